"""What an enhancer and a learner are; `template` reads from top to bottom as a call runs."""

from contone.base.learner import DistributionLearner
from contone.base.template import (
    CheckedEstimator,
    Enhancer,
    Estimator,
    FewWarnings,
    InductiveMixin,
    can_enhance_new_rows,
    fit_checked,
    in_its_kind,
    refuse_other_kinds,
    refuse_too_large,
    warn_if_short,
)
from contone.base.words import refuse_setting, refuse_unasked
from contone.validation.domains import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    WHOLE,
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    check_whole_numbers,
    estimator,
    parameter,
)

__all__ = [
    "COUNT",
    "NOT_NEGATIVE",
    "POSITIVE",
    "WHOLE",
    "CheckedEstimator",
    "DistributionLearner",
    "Enhancer",
    "Estimator",
    "FewWarnings",
    "HasMethods",
    "InductiveMixin",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "can_enhance_new_rows",
    "check_whole_numbers",
    "estimator",
    "fit_checked",
    "in_its_kind",
    "parameter",
    "refuse_other_kinds",
    "refuse_setting",
    "refuse_too_large",
    "refuse_unasked",
    "warn_if_short",
]
