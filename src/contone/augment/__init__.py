"""(X, L) -> (X~, F): label confidence, supervised reduction, and both in front of any enhancer."""

from contone.augment.augmented import Augmented
from contone.augment.confidence import LabelConfidence
from contone.augment.reduction import HSICReducer

__all__ = ["Augmented", "HSICReducer", "LabelConfidence"]
