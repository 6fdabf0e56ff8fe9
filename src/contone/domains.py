"""Domains of parameters and arguments, and the other private parts of scikit-learn that contone uses.

They are imported here and nowhere else: should a release of scikit-learn move them, this is the one file to change.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import _check_n_features as check_n_features

from contone.exceptions import ArgumentError

__all__ = [
    "CheckedEstimator",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "check_n_features",
    "check_whole_numbers",
]


class CheckedEstimator(BaseEstimator):
    """An estimator whose numbers are numbers: in Python True is one, and what libraries make of it differs."""

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, allowed in self._parameter_constraints.items():
            value = getattr(self, name, None)
            if isinstance(value, bool) and {"boolean", "verbose", "no_validation"}.isdisjoint(_words(allowed)):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must not be {value!r}: give a number."
                )


def _words(allowed: Any) -> set[str]:
    return {allowed} if isinstance(allowed, str) else {entry for entry in allowed if isinstance(entry, str)}


def check_whole_numbers(function: str, least: dict[str, int], **arguments: Any) -> None:
    """Refuse arguments of a function that are not whole numbers, or below the least that it can use."""
    for name, value in arguments.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least[name]:
            raise ArgumentError(
                f"{function}: {name} must be a whole number, {least[name]} or more; got {value!r}.", name
            )
