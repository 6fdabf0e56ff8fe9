"""Who and what, of answers by several people: agreement, persons, ambiguous items and doubtful answers.

How far the degrees d of an item speak for an answer y (a vote, marks or levels) is the mean, over the pairs of labels
that the answer puts in an order, of the chance that degrees alone give to that order:

    speaks_for(y, d) = mean over y_j > y_k of d_j / (d_j + d_k)

Near 1 the item's degrees say the same, at 1/2 they say nothing, below they speak against it: such an answer is
doubtful. An item is ambiguous where even the lower end of its second largest degree is large: people chose more than
one label, and not because they were careless, which the model allows for. Drift is how far `speaks_for` changed from
the first half of a person's answers to the second, with its standard error.
"""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contone.backends import to_numpy
from contone.enhance.inversion import Inversion
from contone.exceptions import InputError
from contone.measurements.base import Answers
from contone.trust.agreement import Agreement, agreement, mean_over_pairs
from contone.trust.check_result import Finding, LabelSummary, graded
from contone.trust.left_out import Asked, find_in_answers
from contone.trust.subject import SHOWN, summarize_labels
from contone.trust.verdict import Decision, decide
from contone.typing import Data, Matrix

IDLE = 0.5
"""Sharpness below which, with 95 %, a person hardly follows the items; that of a typical person is 1."""
LEAST_ANSWERS = 10
"""Fewest answers of a person for which drift is reported."""

Degree = tuple[str, float, float, float]
"""A label, its degree, and the ends of the 90 % interval."""


class Person(NamedTuple):
    """A person who answered: sharpness and bits with their intervals; drift is None with too few answers."""

    name: str
    answers: int
    too_often: str
    sharpness: tuple[float, float, float]
    bits: tuple[float, float, float]
    drift: float | None
    drift_error: float = 0.0

    @property
    def is_drifting(self) -> bool:
        """Whether the change is beyond chance."""
        return self.drift is not None and abs(self.drift) > 3 * self.drift_error


class ItemAnswer(NamedTuple):
    """An item, who said what (of an ambiguous one: how many said it), and its largest degrees."""

    item: str
    said: str
    person: str | None
    score: float
    degrees: tuple[Degree, ...]


@dataclass(frozen=True)
class People:
    """What is known of answers by several people.

    Attributes
    ----------
    n_answers, n_items : int
    labels : tuple of LabelSummary
    agreement : Agreement or None
        Krippendorff's alpha; None where no item has two answers.
    persons : tuple of Person
        The most informative first; empty where nobody is named.
    ambiguous, doubtful : tuple of ItemAnswer
        Items that people see differently, and answers that their items speak against.
    findings : tuple of Finding
        What answers that were left out say; empty where that was not tried.
    """

    n_answers: int
    n_items: int
    labels: tuple[LabelSummary, ...]
    agreement: Agreement | None
    persons: tuple[Person, ...]
    ambiguous: tuple[ItemAnswer, ...]
    doubtful: tuple[ItemAnswer, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def decision(self) -> Decision:
        """Use, use with care, or do not use, by answers that were left out; nothing speaks against it without."""
        return decide(self.findings)


def look_at_people(
    method: Inversion, Y: Data, groups: Sequence[Hashable], annotators: Sequence[Hashable] | None = None, X: Data = None
) -> People:
    """What answers Y (n, q) about items `groups` (n,) by `annotators` (n,) say, of a method that was fitted to them.

    Answers stand in the order in which they were given, as far as that is known: drift is told from it. With features
    X (n, d), the method is fitted once more without some answers, to see whether it predicts them.
    """
    L = np.asarray(to_numpy(Y.to_numpy() if hasattr(Y, "to_numpy") else Y), dtype=float)
    place = {name: i for i, name in enumerate(method.groups_)}
    item, who = np.array([place[name] for name in groups]), [str(w) for w in annotators or [""] * len(L)]
    D, lower, upper = (np.asarray(to_numpy(A)) for A in (method.label_distributions_, *method.intervals(level=0.9)))
    items, names = list(map(str, place)), list(map(str, method.label_names_))
    is_vote = bool((np.nansum(L, axis=1) == 1).all())
    often = np.bincount(item, minlength=len(items))
    share = np.where(often[item] > 1, speaks_for(L, D[item]), np.nan)
    second = np.where(
        often > 1, np.take_along_axis(lower, np.argsort(-D, axis=1), axis=1)[:, min(1, len(names) - 1)], 0
    )

    def told(values: Matrix, count: str = "") -> str:
        chosen = [(names[j], values[j]) for j in np.argsort(-values, kind="stable") if values[j] > 0]
        return ", ".join(f"{name} {value:g}" if count or value != 1 else name for name, value in chosen) or "none"

    def degrees(i: int) -> tuple[Degree, ...]:
        largest = np.argsort(-D[i], kind="stable")[:3]
        return tuple((names[j], float(D[i, j]), float(lower[i, j]), float(upper[i, j])) for j in largest)

    findings: list[Finding] = []
    if X is not None and isinstance(method.degradation_, Answers):
        person = None if annotators is None else np.unique(who, return_inverse=True)[1]
        with suppress(InputError):  # too few answers to leave one out
            findings = find_in_answers(method, Asked(np.asarray(to_numpy(X)), L, item, person))
    persons = _persons(method, who, share) if annotators is not None else ()
    findings += [persons_finding(persons)] if persons else []
    totals = np.zeros(D.shape)
    np.add.at(totals, item, np.nan_to_num(L))
    unsure = [i for i in np.argsort(-second, kind="stable")[:SHOWN] if second[i] > 0.5 / len(names)]
    against = [k for k in np.argsort(share, kind="stable")[:SHOWN] if share[k] < 0.5]  # NaN comes last
    return People(
        len(L),
        len(items),
        summarize_labels(names, L, D, lower, upper),
        agreement(totals if is_vote else count_values(L, item), "nominal" if is_vote else "ordinal"),
        persons,
        tuple(ItemAnswer(items[i], told(totals[i], "count"), None, float(second[i]), degrees(i)) for i in unsure),
        tuple(ItemAnswer(items[item[k]], told(L[k]), who[k], float(share[k]), degrees(item[k])) for k in against),
        tuple(findings),
    )


def speaks_for(L: Matrix, D: Matrix) -> Matrix:
    """How far degrees D (n, q) speak for answers L (n, q); NaN where an answer puts no labels in an order."""
    return mean_over_pairs(L, D, lambda a, b: a / np.maximum(a + b, 1e-300), axis=1)[0]


def persons_finding(persons: Sequence[Person]) -> Finding:
    """How many of the answers are by people who hardly follow what others say, whatever their sharpness may be?

    Such answers weigh next to nothing. Where they are more than half, a minority says what is usual, and nothing in the
    answers tells that it is right.
    """
    idle = [person for person in persons if person.sharpness[2] < IDLE]
    share = sum(person.answers for person in idle) / max(sum(person.answers for person in persons), 1)
    who = f"{len(idle)} of {len(persons)} say next to nothing (sharpness below {IDLE:g} with 95 %)"
    said = f"People: {who}; {share:.0%} of the answers are theirs."
    return Finding("persons", "Do people take care?", graded(share, 0.5, np.inf), share, said)


def count_values(L: Matrix, item: np.ndarray) -> Matrix:
    """Marks or levels L (n, q), counted by label, item and value: (q, items, values)."""
    values, m = np.unique(L[~np.isnan(L)]), int(item.max()) + 1
    counts = [[np.bincount(item[column == v], minlength=m) for v in values] for column in L.T]
    return np.array(counts, dtype=float).swapaxes(1, 2)


def _persons(method: Inversion, who: list[str], share: Matrix) -> tuple[Person, ...]:
    table = method.annotators_
    columns = {name: list(table[name]) for name in (table if isinstance(table, dict) else table.columns)}
    own: dict[str, list[float]] = {}
    for name, value in zip(who, share, strict=True):
        own.setdefault(name, []).extend([] if np.isnan(value) else [value])

    def person(k: int) -> Person:
        name, often = str(columns["annotator"][k]), columns["too_often"][k]
        sharpness, bits = (
            (float(columns[c][k]), float(columns[f"{c}_lower"][k]), float(columns[f"{c}_upper"][k]))
            for c in ("sharpness", "bits")
        )
        drift, error = None, 0.0
        if len(own.get(name, ())) >= LEAST_ANSWERS:
            early, late = np.array_split(np.array(own[name]), 2)
            drift = float(late.mean() - early.mean())
            error = float(np.sqrt(early.var(ddof=1) / len(early) + late.var(ddof=1) / len(late)))
        return Person(name, int(columns["answers"][k]), str(often or ""), sharpness, bits, drift, error)

    return tuple(map(person, range(len(columns["annotator"]))))
