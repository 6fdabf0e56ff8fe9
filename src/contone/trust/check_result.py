"""What checks find: one sentence with a verdict, a number and what a picture needs; and all of them as a `Check`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from contone.enhance.inversion.expected_error import ExpectedError
from contone.runtime.plain import plain
from contone.typing import Record

UNTOLD, FINE, DOUBTFUL, OFF = "tells nothing here", "fine", "doubtful", "off"
MODEL = "Inversion"
"""The method whose model says how labels are made."""


@dataclass(frozen=True)
class Finding:
    """One check.

    Attributes
    ----------
    name, title : str
    verdict : str
        "fine", "doubtful" or "off"; "tells nothing here" where chance alone could explain anything.
    value : float
        The number that the verdict is about.
    sentence : str
        What was looked at and what came out.
    categories, observed, lower, upper : tuple
        For the picture: what was observed in each category, and the band in which it was expected (empty: none).
    axis : str
        What the picture's vertical axis shows.
    """

    name: str
    title: str
    verdict: str
    value: float
    sentence: str
    categories: tuple[str, ...] = field(default=(), repr=False)
    observed: tuple[float, ...] = field(default=(), repr=False)
    lower: tuple[float, ...] = field(default=(), repr=False)
    upper: tuple[float, ...] = field(default=(), repr=False)
    axis: str = field(default="", repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        verdict: str,
        value: float,
        sentence: str,
        shown: Mapping[str, float],
        axis: str,
        lower: Iterable[float] = (),
        upper: Iterable[float] = (),
    ) -> Finding:
        """A finding with its picture as numbers by category."""
        observed, low, high = (tuple(map(float, values)) for values in (shown.values(), lower, upper))
        return cls(name, title, verdict, value, sentence, tuple(shown), observed, low, high, axis)


def graded(value: float, fine: float, doubtful: float) -> str:
    """The verdict on a value that should be small: fine up to one bound, doubtful up to the other."""
    return FINE if value <= fine else DOUBTFUL if value <= doubtful else OFF


@dataclass(frozen=True)
class LabelSummary:
    """A label over all rows: how often it is marked, its mean degree, and a typical 90 % interval (median ends).

    The ends are None for methods that have no intervals.
    """

    name: str
    frequency: float
    degree: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class RowSummary:
    """A row that a person should look at: its number, a score, the labels given and the largest degrees."""

    row: int
    score: float
    marked: tuple[str, ...]
    degrees: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class DoubtfulEntry:
    """A label of a row that looks wrong: whether it was marked, the probability that this is wrong, and the row."""

    row: int
    label: str
    given: bool
    probability: float
    marked: tuple[str, ...]
    degrees: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Check:
    """How far an answer can be believed; prints as a short list, in a notebook as a table.

    Attributes
    ----------
    method : str
        Whose answer it is.
    rule, rule_words : str
        The rule that the answer assumes; for methods that assume none, that of the model it is compared with.
    explained : float or None
        Share of the numbers of labels per row that the rule explains.
    yes_weight : float
        Mean weight of the labels marked yes.
    expected_error : ExpectedError
    findings : tuple of Finding
    labels : tuple of LabelSummary
    ambiguous : tuple of RowSummary
        Rows with the largest expected error.
    doubtful : tuple of DoubtfulEntry
        Labels that look wrong, by `contone.doubtful_labels`.
    pairs : tuple
        Labels that go together: (label, label, correlation), the strongest first; of the log degrees beyond what the
        features explain for `Inversion`, of the log degrees for other methods.
    advice : tuple of str
        What to do next.
    n_rows, n_checked : int
        Rows of the data, and how many of them the checks looked at.
    not_checked : tuple of str
        What could not be looked at, and why.
    n_fitted : int or None
        Rows that the method was fitted on, where these are a sample of the data.
    """

    rule: str
    rule_words: str
    explained: float | None
    yes_weight: float
    expected_error: ExpectedError
    findings: tuple[Finding, ...]
    labels: tuple[LabelSummary, ...] = field(repr=False)
    ambiguous: tuple[RowSummary, ...] = field(repr=False)
    doubtful: tuple[DoubtfulEntry, ...] = field(repr=False)
    pairs: tuple[tuple[str, str, float], ...] = field(repr=False)
    advice: tuple[str, ...]
    n_rows: int
    n_checked: int
    method: str = MODEL
    not_checked: tuple[str, ...] = ()
    n_fitted: int | None = None

    @property
    def verdict(self) -> str:
        """The worst verdict of all."""
        return max((f.verdict for f in self.findings), key=[UNTOLD, FINE, DOUBTFUL, OFF].index, default=FINE)

    def headline(self) -> str:
        """Rule, weight and expected error in one sentence."""
        fits = "" if self.explained is None else f", which fits the number of labels in {self.explained:.0%} of rows,"
        if self.method != MODEL:
            return (
                f"With {self.method} labels marked yes keep {self.yes_weight:.0%} of the weight; if labels are made by "
                f"the rule “{self.rule_words}”{fits or ','} its answer has an {self.expected_error}."
            )
        return (
            f"Under the rule “{self.rule_words}”{fits} labels marked yes keep {self.yes_weight:.0%} of the weight; "
            f"{self.expected_error}."
        )

    def counted(self) -> str:
        """How many checks had which verdict."""
        verdicts = [f.verdict for f in self.findings]
        return (
            ", ".join(f"{verdicts.count(v)} {v}" for v in (FINE, DOUBTFUL, OFF, UNTOLD) if v in verdicts)
            + " of the checks"
        )

    def __str__(self) -> str:
        width = max((len(f.verdict) for f in self.findings), default=0)
        lines = [self.headline(), *(f"{f.verdict:>{width}}  {f.sentence}" for f in self.findings), *self.not_checked]
        return "\n".join([*lines, *(f"next: {text}" for text in self.advice)])

    def to_dict(self) -> Record:
        """Plain values for JSON; what is infinite is None."""
        error = self.expected_error
        ends = {"mean": error.mean, "lower": error.lower, "upper": error.upper}
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        found: Record = plain({**own, "verdict": self.verdict, "expected_error": ends})
        return found

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(f.verdict)}</td><td style='text-align:left'>{html.escape(f.sentence)}</td></tr>"
            for f in self.findings
        )
        advice = "".join(f"<li>{html.escape(text)}</li>" for text in (*self.not_checked, *self.advice))
        return f"<div><p>{html.escape(self.headline())}</p><table>{rows}</table><ul>{advice}</ul></div>"
