"""Is this answer credible, and which method is best here, when no truth exists?"""

from contone.check.chances import label_chances
from contone.check.compare import Comparison, Standing, compare
from contone.check.credibility import check
from contone.check.doubtful import DoubtfulLabels, doubtful_labels
from contone.check.findings import Check, Finding
from contone.check.rehearsal import Rehearsal, Replicate
from contone.check.tuned import Best, Tuned

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
