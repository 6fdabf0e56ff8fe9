"""What checks find: one sentence with a verdict, a number and what a picture needs; and all of them as a `Check`."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from contone.enhance.inversion.expected_error import ExpectedError

FINE, DOUBTFUL, OFF = "fine", "doubtful", "off"


@dataclass(frozen=True)
class Finding:
    """One check.

    Attributes
    ----------
    name, title : str
    verdict : str
        "fine", "doubtful" or "off".
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


@dataclass(frozen=True)
class LabelSummary:
    """A label over all rows: how often it is marked, its mean degree, and a typical 90 % interval (median ends)."""

    name: str
    frequency: float
    degree: float
    lower: float
    upper: float


@dataclass(frozen=True)
class RowSummary:
    """A row that a person should look at: its number, a score, the labels given and the largest degrees."""

    row: int
    score: float
    marked: tuple[str, ...]
    degrees: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Check:
    """How far an answer can be believed; prints as a short list, in a notebook as a table.

    Attributes
    ----------
    rule, rule_words : str
        The rule that the answer assumes.
    explained : float or None
        Share of the numbers of labels per row that the rule explains.
    yes_weight : float
        Mean weight of the labels marked yes.
    expected_error : ExpectedError
    findings : tuple of Finding
    labels : tuple of LabelSummary
    ambiguous, doubtful : tuple of RowSummary
        Rows with the largest expected error; rows whose labels the features and the other rows do not suggest.
    pairs : tuple
        Labels that go together: (label, label, correlation in the model), the strongest first.
    advice : tuple of str
        What to do next.
    n_rows, n_checked : int
        Rows of the data, and how many of them the checks looked at.
    """

    rule: str
    rule_words: str
    explained: float | None
    yes_weight: float
    expected_error: ExpectedError
    findings: tuple[Finding, ...]
    labels: tuple[LabelSummary, ...] = field(repr=False)
    ambiguous: tuple[RowSummary, ...] = field(repr=False)
    doubtful: tuple[RowSummary, ...] = field(repr=False)
    pairs: tuple[tuple[str, str, float], ...] = field(repr=False)
    advice: tuple[str, ...]
    n_rows: int
    n_checked: int

    @property
    def verdict(self) -> str:
        """The worst verdict of all."""
        return max((f.verdict for f in self.findings), key=[FINE, DOUBTFUL, OFF].index, default=FINE)

    def headline(self) -> str:
        """Rule, weight and expected error in one sentence."""
        fits = "" if self.explained is None else f", which explains {self.explained:.0%} of the numbers of labels,"
        return (
            f"Under the rule “{self.rule_words}”{fits} labels marked yes keep {self.yes_weight:.0%} of the weight; "
            f"{self.expected_error}."
        )

    def counted(self) -> str:
        """How many checks had which verdict."""
        verdicts = [f.verdict for f in self.findings]
        return ", ".join(f"{verdicts.count(v)} {v}" for v in (FINE, DOUBTFUL, OFF) if v in verdicts) + " of the checks"

    def __str__(self) -> str:
        width = max((len(f.verdict) for f in self.findings), default=0)
        lines = [self.headline(), *(f"{f.verdict:>{width}}  {f.sentence}" for f in self.findings)]
        return "\n".join([*lines, *(f"next: {text}" for text in self.advice)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        error = self.expected_error
        return {
            "rule": self.rule,
            "rule_words": self.rule_words,
            "explained": self.explained,
            "yes_weight": self.yes_weight,
            "verdict": self.verdict,
            "expected_error": {"mean": error.mean, "lower": error.lower, "upper": error.upper},
            "findings": [vars(f) | {"categories": list(f.categories)} for f in self.findings],
            "labels": [vars(label) for label in self.labels],
            "ambiguous": [vars(row) for row in self.ambiguous],
            "doubtful": [vars(row) for row in self.doubtful],
            "pairs": [list(pair) for pair in self.pairs],
            "advice": list(self.advice),
            "n_rows": self.n_rows,
            "n_checked": self.n_checked,
        }

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(f.verdict)}</td><td style='text-align:left'>{html.escape(f.sentence)}</td></tr>"
            for f in self.findings
        )
        advice = "".join(f"<li>{html.escape(text)}</li>" for text in self.advice)
        return f"<div><p>{html.escape(self.headline())}</p><table>{rows}</table><ul>{advice}</ul></div>"
