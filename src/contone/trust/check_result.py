"""What checks find: one sentence with a verdict, a number and what a picture needs; and all of them as a `Check`."""

from __future__ import annotations

import html
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from contone.enhance.inversion.expected_error import ExpectedError
from contone.runtime.plain import plain
from contone.typing import Record

if TYPE_CHECKING:
    from contone.trust.verdict import Decision

UNTOLD, FINE, DOUBTFUL, OFF = "tells nothing here", "fine", "doubtful", "off"
NARROW = 72
"""Characters of a line under which verdicts do not stand in a column of their own."""
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
    shown : dict
        For the picture: what was observed in each category.
    axis : str
        What the picture's axis shows.
    lower, upper : tuple of float
        The band in which it was expected, category by category; empty where there is none.
    """

    name: str
    title: str
    verdict: str
    value: float
    sentence: str
    shown: Mapping[str, float] = field(default_factory=dict, repr=False)
    axis: str = field(default="", repr=False)
    lower: Sequence[float] = field(default=(), repr=False)
    upper: Sequence[float] = field(default=(), repr=False)


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
    decision : Decision
        Use, use with care, do not use: `word`, with its `reasons` and at most three `actions`.
    method : str
        Whose answer it is.
    rule, rule_words : str
        The rule that the answer assumes; for methods that assume none, that of the model it is compared with.
    explained : float or None
        Share of the rows whose number of labels the rule explains.
    yes_weight : float
        Mean weight of the labels marked yes.
    expected_error : ExpectedError
        Over the rules that the labels allow.
    error_given_rule : ExpectedError
        The same if the rule is right.
    rule_share : float
        How much of the expected error is that nobody knows the rule.
    baselines : dict
        Expected KL of equal degrees and of the labels alone.
    findings : tuple of Finding
    labels : tuple of LabelSummary
    ambiguous : tuple of RowSummary
        Rows with the largest expected error.
    doubtful : tuple of DoubtfulEntry
        Labels that look wrong, by `contone.doubtful_labels`.
    n_rows, n_checked : int
        Rows of the data, and how many of them the checks looked at.
    not_checked : tuple of str
        What could not be looked at, and why.
    n_fitted : int or None
        Rows that the method was fitted on, where these are a sample of the data.
    """

    decision: Decision
    rule: str
    rule_words: str
    explained: float | None
    yes_weight: float
    expected_error: ExpectedError
    error_given_rule: ExpectedError
    rule_share: float
    baselines: dict[str, float]
    findings: tuple[Finding, ...]
    labels: tuple[LabelSummary, ...] = field(repr=False)
    ambiguous: tuple[RowSummary, ...] = field(repr=False)
    doubtful: tuple[DoubtfulEntry, ...] = field(repr=False)
    n_rows: int
    n_checked: int
    method: str = MODEL
    not_checked: tuple[str, ...] = ()
    n_fitted: int | None = None

    @property
    def verdict(self) -> str:
        """Use, use with care, or do not use."""
        return self.decision.word

    def headline(self) -> str:
        """Rule, weight and expected error in two sentences."""
        beside = ", ".join(f"{name} {value:.3g}" for name, value in self.baselines.items())
        error = f"{str(self.expected_error).capitalize().replace('kl', 'KL')} ({beside})"
        share = f"; {self.rule_share:.0%} of it is that nobody knows the rule" if self.rule_share >= 0.005 else ""
        fits = (
            "," if self.explained is None else f", which explains the number of labels of {self.explained:.0%} of rows,"
        )
        if self.rule.startswith(("Votes", "Levels", "Marks")):
            return f"Read as: {self.rule_words}. {error}."
        whose = "labels" if self.method == MODEL else f"with {self.method} labels"
        return (
            f"Under the rule “{self.rule_words}”{fits} {whose} marked yes keep {self.yes_weight:.0%} of the weight. "
            f"{error}{share}."
        )

    def text(self, *, commands: bool = False, width: int = 0) -> str:
        """The verdict, what is expected, every check, and what to do; with options of the command line for commands.

        Lines are broken at `width` characters; 0 leaves them whole.
        """
        indent = max((len(f.verdict) for f in self.findings), default=0) + 2
        told = [(f"{f.verdict:>{indent - 2}}  ", f.sentence) for f in self.findings]
        if 0 < width < NARROW:
            told = [("- ", f"{f.verdict.capitalize()}. {f.sentence}") for f in self.findings]
        paragraphs = [
            ("", self.decision.sentence()),
            *(("- ", action) for action in (self.decision.commands if commands else self.decision.actions)),
            ("", self.headline()),
            *told,
            *(("", said) for said in self.not_checked),
        ]
        return "\n".join(
            textwrap.fill(said, width or sys.maxsize, initial_indent=start, subsequent_indent=" " * len(start))
            for start, said in paragraphs
        )

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> Record:
        """Plain values for JSON; what is infinite is None."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        errors = {
            name: {"mean": error.mean, "lower": error.lower, "upper": error.upper}
            for name, error in own.items()
            if isinstance(error, ExpectedError)
        }
        found: Record = plain({**own, **errors, "verdict": self.verdict})
        return found

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text(width=100))}</pre>"
