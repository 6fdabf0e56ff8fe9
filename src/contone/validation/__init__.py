"""The only place where data is checked, and the way out of answers: `training` is what a call goes through."""

from contone.validation.containers import (
    Border,
    default_names,
    index_of,
    open_border,
    refuse_beyond_squares,
    refuse_other_index,
)
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees, check_degrees, check_degrees_of_items
from contone.validation.distributions import check_distributions, check_learning, check_pair, check_shares, check_truth
from contone.validation.groups import Grouping, border_of_items, check_groups
from contone.validation.training import (
    SIMPLEX_TOLERANCE,
    Findings,
    Training,
    able_methods,
    check_features,
    check_new_labels,
    check_new_rows,
    check_supervision,
    check_training,
    examine,
    examine_training,
    judge_labels,
    silent_rows,
)

__all__ = [
    "NOTHING_KNOWN",
    "SIMPLEX_TOLERANCE",
    "Border",
    "Findings",
    "Grouping",
    "KnownDegrees",
    "Training",
    "able_methods",
    "border_of_items",
    "check_degrees",
    "check_degrees_of_items",
    "check_distributions",
    "check_features",
    "check_groups",
    "check_learning",
    "check_new_labels",
    "check_new_rows",
    "check_pair",
    "check_shares",
    "check_supervision",
    "check_training",
    "check_truth",
    "default_names",
    "examine",
    "examine_training",
    "index_of",
    "judge_labels",
    "open_border",
    "refuse_beyond_squares",
    "refuse_other_index",
    "silent_rows",
]
