"""A cell: one computation of an experiment, described by plain values, and how it is carried out.

A cell says *what* is computed (`task`: an enhancer with its parameters, the limit, ...), on which data, from which
logical labels, with which seed. Everything that can change the number goes into its `key`: the task, the content of the
data, the degradation, the seed, the version of the measures and a fingerprint of the code that computes it. Where it
stands in the tables (`experiment`, `row`, `setting`) does not, so two experiments that need the same number share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from contone.experiments.describe import digest
from contone.experiments.fingerprint import fingerprint
from contone.experiments.tasks import modules_of
from contone.typing import Record

MEASURES_VERSION = 1
"""Raise this when a measure is defined differently: every stored score is then computed anew."""


@dataclass(frozen=True)
class Cell:
    """One computation, and its place in an experiment.

    Attributes
    ----------
    experiment, row : str
        The table and the row in which the number stands, e.g. "recovery" and "GLLE (paper)".
    method : str
        The class behind the row, e.g. "GLLE"; for references their name ("limit", "mean_of_truth").
    dataset, data_hash : str
        The data set and the hash of its content.
    task : dict
        What is computed, e.g. ``{"kind": "enhance", "estimator": {"class": ..., "params": ...}}``; see `tasks`.
    degradation : dict
        The rule that made L from D, e.g. ``{"class": "CumulativeMass", "params": {"t": 0.5}}``.
    seed : int or None
        None where nothing is random.
    setting : dict
        The parameter that a sensitivity curve varies, e.g. ``{"alpha": 0.1}``; else empty.
    baseline, oracle : bool
        Marks of the row: uses no features; has seen the truth.
    source : dict
        Where the data are, for data that are not found by name; see `contone.experiments.sources`.
    """

    experiment: str
    row: str
    method: str
    dataset: str
    data_hash: str
    task: Record
    degradation: Record
    seed: int | None = None
    setting: Record = field(default_factory=dict)
    baseline: bool = False
    oracle: bool = False
    source: Record = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The content key: equal keys mean equal numbers."""
        return digest(
            {
                "task": self.task,
                "data": self.data_hash,
                "degradation": self.degradation,
                "seed": self.seed,
                "measures": MEASURES_VERSION,
                "code": fingerprint(*modules_of(self.task)),
            }
        )

    def plain(self) -> Record:
        """The cell and its key as plain values."""
        return {"key": self.key, **asdict(self)}

    def __str__(self) -> str:
        extra = [f"{name}={value}" for name, value in self.setting.items()]
        extra += [f"seed {self.seed}"] if self.seed is not None else []
        return f"{self.experiment}: {self.row} on {self.dataset}" + (f" ({', '.join(extra)})" if extra else "")


def unique(cells: Iterable[Cell]) -> list[Cell]:
    """Cells with different keys, the first of each, in order."""
    found: dict[str, Cell] = {}
    for cell in cells:
        found.setdefault(cell.key, cell)
    return list(found.values())
