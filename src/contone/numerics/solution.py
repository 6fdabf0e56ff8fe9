"""What every solver returns, so that failure is a value the caller inspects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from contone.typing import Array, Record


@dataclass(frozen=True)
class Solution:
    """A solver's answer and what is known about its quality.

    Attributes
    ----------
    value : array
        The answer. For an enhancer: label distributions, (n, q).
    objective : float
        Value of the method's objective at the answer; NaN where the method has none.
    residual : float
        How far from optimal, in the solver's own certificate (duality gap, relative residual, gradient norm).
    n_iter : int
        Iterations used; 0 for a closed form.
    converged : bool
        Whether `residual` met the tolerance asked for.
    info : dict
        Anything else worth knowing: plain values only.
    """

    value: Array
    objective: float = float("nan")
    residual: float = 0.0
    n_iter: int = 0
    converged: bool = True
    info: Record = field(default_factory=dict)

    def with_value(self, value: Array, **info: object) -> Solution:
        """The same certificate for an answer that was made from this one, with more to know about it."""
        return replace(self, value=value, info={**self.info, **info})
