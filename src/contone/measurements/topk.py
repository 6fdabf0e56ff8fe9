"""The k best labels."""

from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

from array_api_compat import array_namespace

from contone.exceptions import InputError
from contone.measurements.base import Spoken
from contone.measurements.intervals import IntervalRule, Region, descending, put_back
from contone.typing import Array


@dataclass(frozen=True)
class TopK(IntervalRule):  # numpydoc ignore=PR02
    """The k labels with the largest degrees.

    Parameters
    ----------
    k : int, default=1
        How many.

    Examples
    --------
    >>> TopK(2).apply([[0.2, 0.5, 0.3]]).tolist()
    [[0, 1, 1]]
    """

    k: int = 1
    spoken: ClassVar[dict[str, Spoken]] = {"best": Spoken("the k best", None)}
    parameter: ClassVar[tuple[str, type] | None] = ("topk", int)
    scale_matters: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.k, Integral) or isinstance(self.k, bool) or self.k < 1:
            raise InputError(f"TopK: k must be a positive whole number; got {self.k!r}.")

    @property
    def region(self) -> Region | None:
        return Region("order") if type(self) is TopK else None

    def in_words(self) -> str:
        return "the best" if self.k == 1 else f"the {self.k} best"

    def _apply(self, D: Array) -> Array:
        chosen = array_namespace(D).zeros_like(D, dtype=array_namespace(D).bool)
        chosen[:, : self.k] = True
        return put_back(descending(D)[0], chosen)

    def cardinality(self, ranked: Array) -> Array:
        xp = array_namespace(ranked)
        return xp.full((ranked.shape[0],), min(self.k, ranked.shape[1]), dtype=xp.int64)
