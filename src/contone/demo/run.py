"""The demonstration: every method on data whose truth is known, with the baselines and the limit beside them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from contone.base import Enhancer
from contone.datasets import Dataset
from contone.exceptions import MissingExtraError
from contone.limits import limit, mean_of_truth, recovered
from contone.measurements import CumulativeMass, IntervalRule
from contone.measures import evaluate

LEFT_OUT = dict.fromkeys(
    ("glesc", "leic"), "it works on n x n matrices, and would take longer than all others together"
)
"""By name: methods that run only where they are asked for, and why."""


@dataclass(frozen=True)
class Outcome:
    """What came out of one method.

    Attributes
    ----------
    name, title : str
        Name on the command line and name of the class (for references: what they are).
    kind : str
        "method", "baseline", or "oracle" for rows that have seen the truth.
    distributions : (n, q) or None
        The recovered distributions; None where there are none.
    scores : dict
        All measures against the truth, by name.
    seconds : float
        Time it took.
    notes : tuple of str
        Warnings on the way.
    error : str
        That it failed or was left out, and why; empty where there is an answer.
    """

    name: str
    title: str
    kind: str
    distributions: np.ndarray | None = None
    scores: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    error: str = ""


def attempt(name: str, method: Enhancer, L: np.ndarray, data: Dataset) -> Outcome:
    """Run one method on the degraded labels L (n, q); a failure is an outcome, too."""
    kind = "baseline" if method.baseline else "method"
    return _timed(name, type(method).__name__, kind, lambda: method.fit(data.X, L).label_distributions_, data.D)


def leave_out(name: str, method: Enhancer) -> Outcome:
    """The outcome of a method that does not run, with the reason."""
    kind = "baseline" if method.baseline else "method"
    return Outcome(name, type(method).__name__, kind, error=f"left out: {LEFT_OUT[name]} (--method {name} runs it)")


def oracles(L: np.ndarray, data: Dataset) -> list[Callable[[], Outcome]]:
    """Rows to compare with that have seen the truth: the limit of what X and L allow, and the mean of the truth."""
    return [
        lambda: _timed("limit", "Limit", "oracle", lambda: limit(data.X, L, data.D, n_jobs=2).distributions, data.D),
        lambda: _timed("mean-of-truth", "Mean of truth", "oracle", lambda: mean_of_truth(data.D), data.D),
    ]


def degraded(data: Dataset, rule: IntervalRule | None = None) -> np.ndarray:
    """The logical labels (n, q) that the methods are given."""
    return (rule or CumulativeMass()).apply(data.D)


def shares(outcomes: Mapping[str, Outcome]) -> dict[str, float]:
    """How far each outcome got on the way from uniform (0) to the limit (1), in KL."""
    ends = [outcomes[end].scores.get("kl") if end in outcomes else None for end in ("uniform", "limit")]
    if ends[0] is None or ends[1] is None:
        return {}
    return {name: recovered(o.scores["kl"], ends[0], ends[1]) for name, o in outcomes.items() if o.scores}


def _timed(name: str, title: str, kind: str, work: Callable[[], np.ndarray], truth: np.ndarray) -> Outcome:
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            D_hat = work()
        except MissingExtraError as error:
            return Outcome(name, title, kind, error=f"left out: {error}".splitlines()[0])
        except Exception as error:  # one method's failure must not hide the others
            reason = f"failed: {type(error).__name__}: {error}".splitlines()[0]
            return Outcome(name, title, kind, seconds=time.perf_counter() - start, error=reason)
    seconds = time.perf_counter() - start
    notes = tuple(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))
    return Outcome(name, title, kind, D_hat, dict(evaluate(truth, D_hat)), seconds, notes)
