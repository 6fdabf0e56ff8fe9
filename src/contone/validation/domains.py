"""Domains of parameters and arguments: the private parts of scikit-learn that contone uses.

They are imported here and nowhere else: should a release of scikit-learn move them, this is the one file to change.
"""

from __future__ import annotations

from numbers import Integral

from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, StrOptions

from contone.exceptions import ArgumentError

__all__ = ["HasMethods", "Interval", "InvalidParameterError", "StrOptions", "check_whole_numbers"]


def check_whole_numbers(function: str, least: dict[str, int], **arguments: object) -> None:
    """Refuse arguments of a function that are not whole numbers, or below the least that it can use."""
    for name, value in arguments.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least[name]:
            raise ArgumentError(
                f"{function}: {name} must be a whole number, {least[name]} or more; got {value!r}.", name
            )
