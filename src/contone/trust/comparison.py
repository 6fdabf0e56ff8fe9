"""Which method is best here? Every method on every replicate of a rehearsal, with the baselines and the limit.

All methods see the same replicates (common random numbers), so that the differences between them are far better known
than the scores themselves. How sure the order is stands in the table: in how many replicates a method is ahead of the
next one. Replicates differ in what the labels do not say (`contone.trust.rehearsal`), so an order that holds in all of
them does not depend on it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed

from contone.base import Enhancer, check_whole_numbers
from contone.enhance import Inversion, Logical, Temperature, Uniform
from contone.exceptions import ArgumentError
from contone.limits import recovered
from contone.measures import MEASURES, evaluate
from contone.pages import words
from contone.runtime.machine import check_jobs
from contone.runtime.plain import plain
from contone.trust.hidden_labels import can_be_asked, score_hidden_entries
from contone.trust.rehearsal import Rehearsal
from contone.trust.trial import Tried, counting_methods, named_methods, quiet, shared_memory, try_all
from contone.typing import Data, Matrix, Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASELINES = (Uniform, Temperature, Logical)
LIMIT = "limit"
NOT_ASKED = (math.nan, "")
"""The held-out score of a method from which no label can be hidden, and what was hidden."""


@dataclass(frozen=True)
class Standing:
    """One method in a comparison.

    Attributes
    ----------
    name, kind : str
        "method", "baseline", or "limit" for what no method can pass on average.
    scores, deviations : dict
        Mean and standard deviation over replicates of every measure; empty where it failed in all of them.
    recovered : float
        Mean share of the way from uniform (0) to the limit (1), in KL; NaN where there is none.
    ahead : float
        Share of the replicates in which its KL is less than that of the next in the table; NaN for the last one.
    kl : tuple of float
        KL in every replicate that it was run on.
    n_replicates : int
        On how many replicates it gave an answer.
    seconds : float
        Mean time of a fit.
    errors, notes : tuple of str
        Why it failed, whether it was too slow, and its warnings; each once.
    held_out : float
        How well it predicts real labels that were hidden from it (`contone.trust.hidden_labels`): share of the log loss
        of label frequencies that it saves, 1 for all of it; NaN for methods that neither take unasked entries nor
        predict.
    hidden : str
        What was hidden: "entries", "rows" (for methods that take no unasked entries), or nothing.
    """

    name: str
    kind: str
    scores: dict[str, float]
    deviations: dict[str, float]
    recovered: float
    kl: tuple[float, ...]
    n_replicates: int
    seconds: float
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ahead: float = math.nan
    held_out: float = math.nan
    hidden: str = ""


@dataclass(frozen=True)
class Comparison:
    """What a rehearsal says about methods, the best first; the limit is above them, what failed is last.

    Attributes
    ----------
    standings : tuple of Standing
    n_replicates, n_rows, n_labels : int
    warnings : tuple of str
        Why the rehearsal may mislead, and what the labels leave open.
    """

    standings: tuple[Standing, ...]
    n_replicates: int
    n_rows: int
    n_labels: int
    warnings: tuple[str, ...]

    def __getitem__(self, name: str) -> Standing:
        """The standing of that name."""
        return next(s for s in self.standings if s.name == name)

    @property
    def best(self) -> str:
        """The name of the method or baseline with the least expected KL."""
        return next(s.name for s in self.standings if s.kind != "limit")

    def to_dict(self) -> Record:
        """Plain values; what is not finite is None."""
        found: Record = plain(self)
        return found

    def __str__(self) -> str:
        rows = [COLUMNS, *rows_for_people(self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"Expected scores on {words.count(self.n_replicates, 'rehearsed data set')} of "
            f"{words.count(self.n_rows, 'row')} and {words.count(self.n_labels, 'label')}",
            "",
        ]
        for row in rows:
            first, *others = (c.rjust(w) for c, w in zip(row[:-1], widths[:-1], strict=True))
            lines.append("  ".join([first.strip().ljust(widths[0]), *others, row[-1]]).rstrip())
        return "\n".join([*lines, "", *NOTES, *(f"Warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def figure(self) -> Figure:
        """The KL of every method in every replicate; needs matplotlib."""
        from contone.pages import svg

        shown = [s for s in self.standings if s.scores and math.isfinite(s.scores["kl"])]
        figure = svg.canvas(7.6, 0.8 + 0.28 * len(shown))
        axis = figure.subplots()
        for height, s in enumerate(reversed(shown)):
            colour = {"limit": "0.4", "baseline": "0.6"}.get(s.kind, "C0")
            axis.plot(s.kl, [height] * len(s.kl), "|", color=colour, markersize=9, alpha=0.6)
            axis.plot([s.scores["kl"]], [height], "o", color=colour, markersize=5)
        axis.set_yticks(range(len(shown)), [s.name for s in reversed(shown)], parse_math=False)
        axis.set_xscale("log")
        axis.set_xlabel("KL on rehearsed data (dot: mean; bars: replicates)")
        axis.grid(axis="x", alpha=0.3)
        svg.bare(axis, "left", "top", "right")
        return figure


def compare(
    methods: Any,
    X: Data,
    Y: Data,
    *,
    model: Inversion | None = None,
    degrees: Data = None,
    n_replicates: int = 5,
    max_rows: int = 5000,
    random_state: int = 0,
    rehearsal: Rehearsal | None = None,
    budget: float | None = None,
    n_splits: int = 3,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare methods on data like (X, Y) with known truth; see `Rehearsal`.

    Parameters
    ----------
    methods : sequence or mapping
        Names, classes or instances of enhancers. The baselines are added; of answers of people ("votes", "levels"),
        these are what counts them, and a method of 0/1 labels is given the label that most people chose.
    X, Y : (n, d), (n, q)
        Features and labels, as in `fit`.
    model, degrees, n_replicates, max_rows, random_state : default=None, None, 5, 5000, 0
        Of `Rehearsal`.
    rehearsal : Rehearsal or None
        One that is there already; X and Y and its parameters are then not looked at.
    budget : float or None
        Seconds per method, over all replicates. A method that would need more is run on fewer replicates (one at
        least), and the table says so.
    n_splits : int, default=3
        How often a tenth of the real labels is hidden, another one each time; 0 leaves this check out.
    n_jobs : int or None
        Processes for the methods, as joblib counts them.

    Examples
    --------
    >>> from contone import CumulativeMass
    >>> rng = np.random.default_rng(0)
    >>> X, D = rng.normal(size=(80, 2)), rng.dirichlet([4.0] * 5, size=80)
    >>> comparison = compare(["lp"], X, CumulativeMass().apply(D), n_replicates=2)
    >>> sorted(standing.name for standing in comparison.standings)
    ['LP', 'Logical', 'Temperature', 'Uniform', 'limit']
    """
    named = named_methods(methods)
    check_jobs(n_jobs, "n_jobs")
    check_whole_numbers("compare", {"n_splits": 0, "random_state": 0}, n_splits=n_splits, random_state=random_state)
    if budget is not None and not (isinstance(budget, Real) and float(budget) > 0):
        raise ArgumentError(f"compare: budget must be a number of seconds above 0, or None; got {budget!r}.", "budget")
    if rehearsal is None:
        sizes = {"n_replicates": n_replicates, "max_rows": max_rows, "random_state": random_state}
        rehearsal = Rehearsal(X, Y, model, degrees=degrees, **sizes)
    baselines = {cls.__name__: cls() for cls in BASELINES}
    if rehearsal.model.reads_answers():
        baselines = {Uniform.__name__: Uniform(), **counting_methods(rehearsal.model)}
    there = {type(method) for method in named.values()}
    named = {**{name: method for name, method in baselines.items() if type(method) not in there}, **named}
    done = Parallel(n_jobs=n_jobs)(
        delayed(_attempt)(method, rehearsal, budget, n_splits, random_state) for method in named.values()
    )
    tried = {name: (named[name].baseline, trials) for name, (trials, _) in zip(named, done, strict=True)}
    return rank(tried, rehearsal, {name: score for name, (_, score) in zip(named, done, strict=True)})


def _attempt(
    method: Enhancer, rehearsal: Rehearsal, budget: float | None, n_splits: int, seed: int
) -> tuple[list[Tried], tuple[float, str]]:
    """Trials on the replicates, and the score by hidden labels of the real rows where there is time for it."""
    with shared_memory(method) as able:
        trials = try_all(able, rehearsal.X, rehearsal.replicates, budget)
        is_slow = budget is not None and n_splits * trials[-1].seconds > budget
        hides_nothing = rehearsal.model.reads_answers() or not can_be_asked(able)
        if n_splits < 1 or is_slow or trials[-1].error or hides_nothing:
            return trials, NOT_ASKED
        try:
            found = score_hidden_entries(quiet(able), rehearsal.X, rehearsal.labels, n_splits=n_splits, seed=seed)
        except Exception:  # a method from anywhere may fail in any way; the others must still be scored
            return trials, NOT_ASKED
        return trials, (found.explained, found.hidden)


def rank(
    tried: dict[str, tuple[bool, list[Tried]]],
    rehearsal: Rehearsal,
    held_out: dict[str, tuple[float, str]] | None = None,
) -> Comparison:
    """Trials of methods (name: whether it is a baseline, trials) on a rehearsal, scored and put in order."""
    n_replicates, (n, q) = len(rehearsal), rehearsal.labels.shape
    place_of_kl = list(MEASURES).index("kl")

    def scored(answers: Iterable[np.ndarray | None]) -> Matrix:
        """Every measure of the answers to the replicates, (replicates, measures); NaN where there is none."""
        found = np.full((n_replicates, len(MEASURES)), np.nan)
        for k, (r, A) in enumerate(zip(rehearsal.replicates, answers, strict=False)):
            if A is not None:
                found[k] = list(evaluate(r.distributions[r.judged], A[r.judged]).values())
        return found

    scores = {name: scored(t.answer for t in trials) for name, (_, trials) in tried.items()}
    limits, uniform = scored(rehearsal.limits), scored([np.full((n, q), 1.0 / q)] * n_replicates)
    kl = {name: found[:, place_of_kl] for name, found in scores.items()}
    mean = {name: np.nanmean(values) if (~np.isnan(values)).any() else np.nan for name, values in kl.items()}
    order = sorted(kl, key=lambda name: (np.isnan(mean[name]), mean[name]))  # what failed everywhere comes last

    def standing(name: str, kind: str, found: Matrix, trials: Sequence[Tried] = ()) -> Standing:
        there = np.flatnonzero(~np.isnan(found).all(axis=1))
        ends = (A[there, place_of_kl] for A in (found, uniform, limits))
        shares = np.array([recovered(*each) for each in zip(*ends, strict=True)])
        shares = shares[~np.isnan(shares)]
        errors = dict.fromkeys(t.error.splitlines()[0] for t in trials if t.error)
        if trials and len(trials) < n_replicates:
            errors[f"too slow for the budget: run on {len(trials)} of {n_replicates} replicates"] = None
        with np.errstate(invalid="ignore"):  # measures that are infinite have no deviation
            deviations = found[there].std(axis=0, ddof=1) if len(there) > 1 else np.full(len(MEASURES), np.nan)
        return Standing(
            name,
            kind,
            dict(zip(MEASURES, found[there].mean(axis=0).tolist(), strict=True)) if len(there) else {},
            dict(zip(MEASURES, deviations.tolist(), strict=True)) if len(there) else {},
            float(shares.mean()) if len(shares) else math.nan,
            tuple(found[there, place_of_kl].tolist()),
            len(there),
            float(np.mean([t.seconds for t in trials])) if trials else 0.0,
            tuple(errors),
            tuple(dict.fromkeys(note for t in trials for note in t.notes)),
        )

    standings = [standing(LIMIT, "limit", limits)]
    for name, following in zip(order, [*order[1:], None], strict=True):
        is_baseline, trials = tried[name]
        own = standing(name, "baseline" if is_baseline else "method", scores[name], trials)
        next_one = kl[following] if following is not None else np.full(n_replicates, np.nan)
        both = ~np.isnan(kl[name] + next_one)
        ahead = float(np.mean(kl[name][both] < next_one[both])) if both.any() else math.nan
        score, hidden = (held_out or {}).get(name, NOT_ASKED)
        standings.append(replace(own, ahead=ahead, held_out=score, hidden=hidden))
    return Comparison(tuple(standings), n_replicates, n, q, (*rehearsal.warnings, *rehearsal.remarks))


# ------------------------------------------------------------------------------------------------------ for people


def rows_for_people(comparison: Comparison) -> list[tuple[str, ...]]:
    """Texts: name, recovered, KL, its deviation, Chebyshev, cosine, ahead of next, held-out labels, seconds, remark."""
    found = []
    for s in comparison.standings:
        name = s.name + (" *" if s.kind == "baseline" else "")
        ahead = "" if math.isnan(s.ahead) else f"{s.ahead:.0%}"
        remark = s.errors[0] if s.errors else ""
        if s.scores:
            shown = (s.scores["kl"], s.deviations["kl"], s.scores["chebyshev"], s.scores["cosine"])
            cells = (words.percent(s.recovered), *map(words.number, shown), ahead)
        else:
            cells = ("failed", "", "", "", "", "")
        mark = " †" if s.hidden == "rows" else ""
        cells += (f"{s.held_out:.3f}{mark}" if math.isfinite(s.held_out) else "",)
        found.append((name, *cells, f"{s.seconds:.2f}" if s.kind != "limit" else "", remark))
    return found


COLUMNS = ("Method", "Recovered", "KL", "±", "Chebyshev", "Cosine", "Ahead of next", "Held-out", "Seconds", "")
LESS = ("Chebyshev", "Cosine")
"""Columns that a narrow terminal does without."""
NOTES = (
    "* baseline: no features, or counts. limit: the mean under the parameters that made the data; no method passes it.",
    "Recovered: share of the way from uniform to the limit, in KL.  ±: deviation over replicates.",
    "Ahead of next: in which share of the replicates a method has less KL than the one below it.",
    "Held-out: share of the log loss of label frequencies that it saves on hidden real labels (1: all); sees no scale.",
    "† whole rows were hidden and predicted from features alone; from the others, single entries.",
)
