"""Votes: each person chooses one label, and a degree is the share of people who would choose it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace

from contone.backends import to_numpy
from contone.exceptions import InputError, LabelError
from contone.measurements.base import Answers, Spoken, first_entry
from contone.typing import Array

MOST_VOTES = 1e9
"""Of one label of one item; more are a mistake, or so many that counting is exact."""


@dataclass(frozen=True)
class Votes(Answers):  # numpydoc ignore=PR02
    """How many people chose each label of an item.

    Y (n, q) holds counts, whole numbers not below zero; NaN is a label that was not on offer. Exactly one 1 per row
    (one class per item) is one vote per item.

    Parameters
    ----------
    ordered : bool, default=False
        Whether the labels are levels of one scale in their order, as with one to five stars: an item then lies
        somewhere on the scale, and neighbouring labels are chosen for the same items. It helps with few votes.

    Examples
    --------
    >>> Votes().simulate(np.array([[0.0, 1.0, 0.0]]), np.random.default_rng(0), like=np.array([[1, 2, 0]])).tolist()
    [[0.0, 3.0, 0.0]]
    """

    ordered: bool = False
    spoken: ClassVar[dict[str, Spoken]] = {"votes": Spoken("votes, how many people chose each label")}
    spread_prior: ClassVar[tuple[float, float]] = (1.0, 0.4)

    def __post_init__(self) -> None:
        if not isinstance(self.ordered, bool | np.bool_):
            raise InputError(f"Votes: ordered must be True or False; got {self.ordered!r}.")

    def check_labels(self, Y: Array) -> None:
        xp = array_namespace(Y)
        if Y.shape[1] < 2:
            raise LabelError("Votes need two labels to choose from; all of these are for one and say nothing.")
        asked = Y == Y
        for what, off in {
            "is negative": asked & (Y < 0),
            "is not a whole number": asked & (xp.round(Y) != Y),
            f"is more than {MOST_VOTES:.0e}": asked & (Y > MOST_VOTES),
        }.items():
            if bool(xp.any(off)):
                raise LabelError(
                    f"Y must hold counts of votes, whole numbers not below zero; {first_entry(off, Y)}, which {what}. "
                    "Give how many people chose each label, NaN where a label was not on offer."
                )

    def simulate(self, D: Array, rng: np.random.Generator, like: Array | None = None) -> Array:
        """As many votes of every item as `like` (n, q) has, or one each, among the labels on offer."""
        shares = np.asarray(to_numpy(D), dtype=float)
        given = np.eye(1, shares.shape[1]).repeat(len(shares), axis=0) if like is None else to_numpy(like)
        offered = ~np.isnan(given)
        shares = np.where(offered, shares, 0.0) + 1e-300 * offered
        n = np.nansum(given, axis=1).astype(np.int64)
        none = ~offered.any(axis=1)
        shares[none] = 1.0
        votes = rng.multinomial(n, shares / shares.sum(axis=1, keepdims=True)).astype(float)
        return np.where(offered, votes, np.nan)

    def silent(self, Y: Array) -> Array:
        """Items that nobody voted on."""
        return array_namespace(Y).all((Y != Y) | (Y == 0), axis=1)

    def count_answers(self, Y: np.ndarray) -> np.ndarray:
        return np.asarray(np.nansum(Y, axis=1))

    def in_words(self) -> str:
        return "each person chose one label"
