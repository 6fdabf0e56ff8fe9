"""X -> D^: label distribution learners, trained on distributions (true or recovered)."""

from contone.predict.bayes import PTBayes
from contone.predict.classifier import FromClassifier
from contone.predict.copies import WeightedRows, weighted_rows
from contone.predict.knn import AAKNN
from contone.predict.ldlforest import LDLForest
from contone.predict.ldllrr import LDLLRR
from contone.predict.ldlscl import LDLSCL
from contone.predict.maxent import MaxEnt
from contone.predict.regressor import FromRegressor

__all__ = [
    "AAKNN",
    "LDLLRR",
    "LDLSCL",
    "FromClassifier",
    "FromRegressor",
    "LDLForest",
    "MaxEnt",
    "PTBayes",
    "WeightedRows",
    "weighted_rows",
]
