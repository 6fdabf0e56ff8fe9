"""What the report on the paper says beyond any comparison: its own experiments, verdicts and errata."""

from __future__ import annotations

from dataclasses import dataclass

from contone.experiments.report.schema import Counts, Section, Summary
from contone.reproduction.errata import Evidence
from contone.reproduction.verdicts import Rule


@dataclass(frozen=True)
class Bar:
    """A method alone and behind the augmentation, measured and published."""

    method: str
    alone: float | None
    augmented: float | None
    alone_published: float | None
    augmented_published: float | None


@dataclass(frozen=True)
class Bars:
    """The paper's bar chart: one data set in one measure."""

    dataset: str
    measure: str
    title: str
    pairs: tuple[Bar, ...]


@dataclass(frozen=True)
class Curve:
    """A row's scores by measure as one parameter changes; `paper_value` is the parameter's value in print."""

    row: str
    dataset: str
    parameter: str
    paper_value: float | None
    values: tuple[float, ...]
    scores: dict[str, tuple[float | None, ...]]
    uniform: dict[str, float | None]


@dataclass(frozen=True)
class Sensitivity:
    """The sensitivity curves, with the paper's letters for the parameters."""

    title: str
    question: str
    symbols: dict[str, str]
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class VerdictCounts(Counts):
    """Table cells by their state, and published figures by their verdict."""

    published: int
    verdicts: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class PaperSummary(Summary):
    """Everything that the report on the paper says."""

    counts: VerdictCounts
    verdicts: tuple[Rule, ...]
    augmentation: Section
    bars: Bars
    ablation: Section
    sensitivity: Sensitivity
    prediction: Section
    prediction_note: str
    errata: tuple[Evidence, ...]

    def section(self, name: str) -> Section:
        """The experiment of that name, of those with published figures cell by cell."""
        found: Section = getattr(self, name)
        return found


COMPARED = ("recovery", "augmentation", "ablation", "prediction")
"""The experiments with published figures cell by cell, in the order of the report."""
