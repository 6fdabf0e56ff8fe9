"""X -> D^: label distribution learners, trained on distributions (true or recovered)."""

from contone.predict.bayes import PTBayes as PTBayes
from contone.predict.classifier import FromClassifier as FromClassifier
from contone.predict.copies import WeightedRows as WeightedRows
from contone.predict.copies import weighted_rows as weighted_rows
from contone.predict.knn import AAKNN as AAKNN
from contone.predict.ldlforest import LDLForest as LDLForest
from contone.predict.ldllrr import LDLLRR as LDLLRR
from contone.predict.ldlscl import LDLSCL as LDLSCL
from contone.predict.maxent import MaxEnt as MaxEnt
from contone.predict.regressor import FromRegressor as FromRegressor
