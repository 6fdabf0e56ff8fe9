"""Is this answer credible, and which method is best here, when no truth exists?"""

from contone.trust.chances import DoubtfulLabels, doubtful_labels, label_chances
from contone.trust.check_result import Check, Finding
from contone.trust.comparison import Comparison, Standing, compare
from contone.trust.credibility import check
from contone.trust.rehearsal import Rehearsal, Replicate
from contone.trust.tuned import Best, Tuned

__all__ = [
    "Best",
    "Check",
    "Comparison",
    "DoubtfulLabels",
    "Finding",
    "Rehearsal",
    "Replicate",
    "Standing",
    "Tuned",
    "check",
    "compare",
    "doubtful_labels",
    "label_chances",
]
