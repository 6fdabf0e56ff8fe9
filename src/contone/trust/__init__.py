"""Is this answer credible, and which method is best here, when no truth exists?"""

from contone.trust.chances import DoubtfulLabels as DoubtfulLabels
from contone.trust.chances import doubtful_labels as doubtful_labels
from contone.trust.chances import label_chances as label_chances
from contone.trust.check_result import Check as Check
from contone.trust.check_result import Finding as Finding
from contone.trust.comparison import Comparison as Comparison
from contone.trust.comparison import Standing as Standing
from contone.trust.comparison import compare as compare
from contone.trust.credibility import check as check
from contone.trust.rehearsal import Rehearsal as Rehearsal
from contone.trust.rehearsal import Replicate as Replicate
from contone.trust.tuned import Best as Best
from contone.trust.tuned import Tuned as Tuned
