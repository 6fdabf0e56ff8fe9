"""Estimators of other libraries inside a learner: what they say about the data, said by contone."""

from collections.abc import Iterator
from contextlib import contextmanager

from contone.exceptions import ContoneError, InputError
from contone.typing import EstimatorLike


@contextmanager
def named_errors(learner: EstimatorLike, estimator: EstimatorLike) -> Iterator[None]:
    """Errors of the estimator about data become contone's, with the name of both."""
    try:
        yield
    except ContoneError:
        raise
    except (ValueError, ArithmeticError) as error:
        inner = type(estimator).__name__
        raise InputError(
            f"{type(learner).__name__}: {inner} cannot use this data: {error}. Change the data, e.g. scale the "
            f"features, or the parameters of {inner}."
        ) from error
