"""What a report says, as frozen values: built by `summary`, read by its renderings (HTML, Markdown, LaTeX, JSON).

Numbers that are infinite or missing keep a text that says which; in JSON they are null.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from contone.experiments.statistics import Wilcoxon

Kind = Literal["method", "baseline", "oracle"]
Status = Literal["done", "failed", "pending", "no data"]

SCHEMA = 2
"""The version of this layout."""


@dataclass(frozen=True)
class Verdict:
    """What the comparison of a published figure with ours says.

    Attributes
    ----------
    name : str
        "matches", "close", "better", "worse" or "not comparable".
    difference : float or None
        (measured - published) / published, of the losses: negative is better than published.
    reason : str
        Why the two cannot be compared, or why they differ where that is known.
    """

    name: str
    difference: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Published:
    """A figure that was published for this cell.

    Attributes
    ----------
    value, text
        The figure as printed.
    compared, compared_measure
        Our figure that the verdict looks at: the cell's own, or another reading of the measure that was used in print.
    verdict : Verdict
        What the comparison says.
    """

    value: float
    text: str
    compared: float | None
    compared_measure: str
    verdict: Verdict


@dataclass(frozen=True)
class Cell:
    """One figure of a table: the mean over seeds, with their standard deviation.

    `best` marks the best of the rows that have not seen the truth.
    """

    dataset: str
    value: float | None
    text: str
    status: Status = "done"
    deviation: float | None = None
    deviation_text: str = ""
    seeds: int = 0
    best: bool = False
    published: Published | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table, one cell per data set; no mean unless all sets are done."""

    name: str
    kind: Kind
    cells: tuple[Cell, ...]
    mean: float | None = None
    mean_text: str = ""
    published_as: str | None = None


@dataclass(frozen=True)
class MeasureInfo:
    """A measure in words."""

    name: str
    title: str
    formula: str
    arrow: str
    greater_is_better: bool


@dataclass(frozen=True)
class Table:
    """One measure: rows by data sets."""

    measure: str
    title: str
    formula: str
    arrow: str
    greater_is_better: bool
    datasets: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Section:
    """An experiment: what was asked, and its tables, one per measure."""

    name: str
    title: str
    question: str
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Share:
    """The recovered shares of a row, one per data set, None where there is none."""

    name: str
    kind: Kind
    mean: float | None
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Figure:
    """The picture of the recovered shares."""

    datasets: tuple[str, ...]
    rows: tuple[Share, ...]


@dataclass(frozen=True)
class Headline:
    """What was asked and what came out."""

    sentences: tuple[str, ...]
    recovered: Figure


@dataclass(frozen=True)
class DatasetInfo:
    """The size of a data set; `published_as` is its name in the paper, where it is one of the paper's."""

    name: str
    n: int
    d: int
    q: int
    labels_per_row: float
    published_as: str | None = None


@dataclass(frozen=True)
class Missing:
    """What was asked for and could not be done: names with what to do, or why."""

    datasets: dict[str, str] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MethodInfo:
    """What stands behind a row: its class and parameters, and how its runs went."""

    name: str
    method: str
    kind: Kind
    reference: str
    params: dict[str, Any]
    seeds: int
    cpu_seconds: float
    converged: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class PrintedRanks:
    """Ranks and p-values that were published, by method."""

    average_ranks: dict[str, float]
    wilcoxon: dict[str, float]


@dataclass(frozen=True)
class Ranking:
    """Ranks and tests in one measure. Wilcoxon's tests are of `reference` against all others."""

    measure: str
    title: str
    arrow: str
    average_ranks: dict[str, float]
    friedman: dict[str, float] | None
    critical_difference: float | None
    nemenyi: dict[str, dict[str, float]] | None
    reference: str
    wilcoxon: dict[str, Wilcoxon]
    published: PrintedRanks | None = None


@dataclass(frozen=True)
class RankGroup:
    """Rows that are ranked against each other on the data sets that all of them have."""

    name: str
    title: str
    datasets: tuple[str, ...]
    measures: tuple[Ranking, ...]


@dataclass(frozen=True)
class Ranks:
    """The section on ranks and tests."""

    title: str
    question: str
    warning: str
    groups: tuple[RankGroup, ...]


@dataclass(frozen=True)
class Instance:
    """One instance: truth, labels, and what each row recovered (q values each)."""

    row: int
    truth: tuple[float, ...]
    logical: tuple[int, ...]
    recovered: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Example:
    """Instances of a data set, to be drawn."""

    dataset: str
    labels: tuple[str, ...]
    instances: tuple[Instance, ...]


@dataclass(frozen=True)
class Surface:
    """Recovered artificial data: the arrays stored under `key`."""

    row: str
    key: str


@dataclass(frozen=True)
class Failure:
    """A cell that raised."""

    experiment: str
    dataset: str
    row: str
    setting: dict[str, Any]
    seed: int | None
    error: str
    traceback: str


@dataclass(frozen=True)
class Counts:
    """Table cells by their state; `stale`: done, but with earlier code, data or parameters."""

    planned: int
    done: int
    failed: int
    pending: int
    stale: int


@dataclass(frozen=True)
class RunInfo:
    """One run that filled the store."""

    id: str
    command: str
    started: str
    seconds: float | None
    state: str | None
    done: int | None
    failed: int | None
    reused: int | None


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from."""

    generated: str
    runs: tuple[RunInfo, ...]
    versions: dict[str, str]
    machine: dict[str, Any]
    seeds: tuple[int, ...]
    cpu_seconds: float
    damaged: tuple[str, ...] = ()
    """Files of the store that were left out, and why."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Everything that a report on a comparison says."""

    schema: int = SCHEMA
    title: str
    about: str
    headline: Headline
    datasets: tuple[DatasetInfo, ...]
    missing: Missing
    measures: tuple[MeasureInfo, ...]
    rows: tuple[MethodInfo, ...]
    recovery: Section
    shares: Table
    ranks: Ranks
    examples: tuple[Example, ...]
    manifold: tuple[Surface, ...]
    failures: tuple[Failure, ...]
    counts: Counts
    provenance: Provenance


def plain(value: Any) -> Any:
    """Values as JSON has them: dicts, lists, texts and finite numbers; infinite and missing numbers become None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
