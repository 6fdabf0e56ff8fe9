"""How an answer leaves an estimator, and what an estimator says where it has none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from array_api_compat import array_namespace

from contone.backends import get_backend
from contone.exceptions import AnswerError, InputError
from contone.typing import Array
from contone.validation import Border, index_of

MISSING_VERBS = {
    "predict": "{0} has no `predict`: it recovers the degrees of rows from their labels, and cannot tell those of rows "
    "without. Use a method that can (Inversion, GLLE, LCdr), or fit a learner such as contone.MaxEnt to what "
    "`fit_enhance` gives.",
    "enhance": "{0} has no `enhance`: it recovers the degrees of all rows together, and its answer says nothing of "
    "other rows. Give all rows to `fit_enhance`, or use a method that takes new ones (Inversion, GLLE, LCdr).",
    "score": "{0} has no `score`, because it has no `predict`: it cannot tell degrees without labels.",
    "intervals": "{0} gives no intervals; Inversion does.",
    "intervals_": "{0} gives no intervals; Inversion does.",
}
"""Verbs that some methods have not, and why."""


class Answers:
    """The container of answers: that of the input, or the one that `set_output` asks for."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """The container of all answers: "pandas" or "polars" frames, or "default", the kind that came in.

        Named as in scikit-learn, whose pipelines call it; None changes nothing.
        """
        if transform not in (None, "default", "pandas", "polars"):
            raise InputError(f'set_output: transform must be "default", "pandas" or "polars"; got {transform!r}.')
        if transform is not None:  # under scikit-learn's own name, because `clone` carries it over
            self._sklearn_output_config = {"transform": transform}
        return self

    @property
    def answer_container(self) -> str | None:
        """What `set_output` asked for; None for the kind that came in."""
        wanted: str | None = getattr(self, "_sklearn_output_config", {}).get("transform")
        return None if wanted == "default" else wanted

    def wrapped(self, border: Border, X: Any, D: Array) -> Any:
        """D (n, q) of the rows X on its way out: through the border, or as `set_output` asks."""
        return replace(border, wanted=self.answer_container, index=index_of(X)).wrap(D)


class SaysWhatIsMissing:
    """An enhancer without a verb says in words why; `hasattr` is False all the same."""

    if not TYPE_CHECKING:  # mypy would take every attribute for granted

        def __getattr__(self, name: str) -> Any:
            found = getattr(type(self), name, None)
            if isinstance(found, property):  # which raised an AttributeError with its own words
                return found.fget(self)
            if name in MISSING_VERBS:
                raise AttributeError(MISSING_VERBS[name].format(type(self).__name__))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def on_simplex(D: Array, shape: tuple[int, ...], estimator: Any) -> Array:
    """The answer, checked on the way out for every method; rounding is repaired, anything worse is a defect."""
    name = type(estimator).__name__
    if D.shape != tuple(shape):
        raise AnswerError(f"{name} gave an answer of shape {D.shape} (expected {tuple(shape)}).")
    return get_backend(D).map_rows(partial(_repaired, name=name), D, columns=shape[1])


def _repaired(D: Any, name: str) -> Any:
    xp = array_namespace(D)
    if not bool(xp.all(xp.isfinite(D))):
        raise AnswerError(f"{name} gave an answer with NaN in it.")
    rounding = 1e-6 if D.dtype == xp.float64 else 1e-4
    total = xp.sum(D, axis=1)
    if float(xp.min(D)) < -1e-3 * rounding or float(xp.max(xp.abs(total - 1.0))) > rounding:
        raise AnswerError(
            f"{name} gave rows that are not distributions; this is a defect in the method, please report it."
        )
    D = xp.clip(D, min=0.0)
    return D / xp.sum(D, axis=1, keepdims=True)
