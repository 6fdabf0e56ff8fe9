"""The public names of contone, in the order of the pipeline: data, measure, augment, enhance, predict, evaluate.

Type checkers read this list, and `contone.__getattr__` does: a name is imported from here when it is first used.
"""

from contone import datasets, measurements, measures
from contone.augment import Augmented, HSICReducer, LabelConfidence
from contone.enhance import (
    DLDL,
    DRAM,
    FCM,
    GLEMR,
    GLERB,
    GLESC,
    GLLE,
    KM,
    LEIC,
    LEMLL,
    LESC,
    LEVI,
    LIBLE,
    LP,
    ML2,
    ConLE,
    Inversion,
    LCdr,
    Logical,
    Temperature,
    Uniform,
)
from contone.enhance.calibrated import Calibrated
from contone.enhance.rescaled import Rescaled
from contone.experiments.benchmark import benchmark
from contone.measurements import CumulativeMass, Levels, Marks, Threshold, TopK, Votes
from contone.measures import evaluate
from contone.pipeline import Pipeline, make_pipeline
from contone.predict import (
    AAKNN,
    LDLLRR,
    LDLSCL,
    FromClassifier,
    FromRegressor,
    LDLForest,
    MaxEnt,
    PTBayes,
    weighted_rows,
)
from contone.runtime.versions import show_versions
from contone.tables import enhance_file, enhance_table, read_table, suggest_file, write_answer
from contone.trust import Best, Check, Rehearsal, Tuned, check, compare, doubtful_labels, label_chances

__version__: str

__all__ = [
    "AAKNN",
    "DLDL",
    "DRAM",
    "FCM",
    "GLEMR",
    "GLERB",
    "GLESC",
    "GLLE",
    "KM",
    "LDLLRR",
    "LDLSCL",
    "LEIC",
    "LEMLL",
    "LESC",
    "LEVI",
    "LIBLE",
    "LP",
    "ML2",
    "Augmented",
    "Best",
    "Calibrated",
    "Check",
    "ConLE",
    "CumulativeMass",
    "FromClassifier",
    "FromRegressor",
    "HSICReducer",
    "Inversion",
    "LCdr",
    "LDLForest",
    "LabelConfidence",
    "Levels",
    "Logical",
    "Marks",
    "MaxEnt",
    "PTBayes",
    "Pipeline",
    "Rehearsal",
    "Rescaled",
    "Temperature",
    "Threshold",
    "TopK",
    "Tuned",
    "Uniform",
    "Votes",
    "benchmark",
    "check",
    "compare",
    "datasets",
    "doubtful_labels",
    "enhance_file",
    "enhance_table",
    "evaluate",
    "label_chances",
    "make_pipeline",
    "measurements",
    "measures",
    "read_table",
    "show_versions",
    "suggest_file",
    "weighted_rows",
    "write_answer",
]
