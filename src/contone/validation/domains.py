"""Parameters of estimators: written once each, with type, domain and default.

The private parts of scikit-learn that contone uses are imported here and nowhere else: should a release of scikit-learn
move them, this is the one file to change.
"""

from dataclasses import MISSING, dataclass, field, fields
from numbers import Integral, Real
from typing import TypeVar, dataclass_transform

from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import InvalidParameterError as InvalidParameterError
from sklearn.utils._param_validation import StrOptions as StrOptions

from contone.exceptions import ArgumentError

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")
WHOLE = Interval(Integral, 0, None, closed="left")
WIDTH = Interval(Integral, 1, 10_000, closed="both")
"""Of a layer of a network: a million units take gigabytes and minutes for a dozen rows."""
ROUNDS = Interval(Integral, 1, 1000, closed="both")
"""Of a method that never stops before: a million take an hour for a dozen rows."""

Class = TypeVar("Class", bound=type)
Value = TypeVar("Value")


def parameter(*domain: object, default: Value = MISSING, kw_only: bool = True) -> Value:  # type: ignore[assignment]
    """A parameter of an estimator: what it may be, in scikit-learn's words or as a set of texts, and its default."""
    allowed = [StrOptions(entry) if isinstance(entry, set) else entry for entry in domain]
    return field(default=default, kw_only=kw_only, metadata={"domain": allowed})


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
def estimator(cls: Class) -> Class:
    """Make an estimator of a class whose parameters are fields.

    The constructor stores what it is given, as scikit-learn asks, and `fit` checks it (`_parameter_constraints`).
    """
    dataclass(eq=False, repr=False)(cls)
    domains = {entry.name: entry.metadata["domain"] for entry in fields(cls)}
    domains = {name: d[0] if d == ["no_validation"] else d for name, d in domains.items()}
    cls._parameter_constraints = domains  # type: ignore[attr-defined]
    return cls


def check_whole_numbers(function: str, least: dict[str, int], **arguments: object) -> None:
    """Refuse arguments of a function that are not whole numbers, or below the least that it can use."""
    for name, n in arguments.items():
        if not isinstance(n, Integral) or isinstance(n, bool) or int(n) < least[name]:
            raise ArgumentError(f"{function}: {name} must be a whole number, {least[name]} or more; got {n!r}.", name)
