"""Which method is best here? Every method on every replicate of a rehearsal, with the baselines and the limit.

All methods see the same replicates (common random numbers), so that the differences between them are far better known
than the scores themselves. How sure the order is stands in the table: in how many replicates a method is ahead of the
next one. Replicates differ in what the labels do not say (`contone.trust.rehearsal`), so an order that holds in all of
them does not depend on it.
"""

from __future__ import annotations

import html
import math
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
from contone.trust.trial import Tried, named_methods, quiet, shared_memory, try_all
from contone.typing import Data, Record

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
    first : float
        Share of the replicates in which it has the least KL of all methods and baselines.
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
    first: float
    ahead: float
    kl: tuple[float, ...]
    n_replicates: int
    seconds: float
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
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
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        return _html(self)

    def figure(self) -> Figure:
        """Recovered share of every method in every replicate; needs matplotlib."""
        return _draw(self)


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
        Names, classes or instances of enhancers. The baselines are added.
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
    for cls in BASELINES:
        if cls not in (type(method) for method in named.values()):
            named[cls.__name__] = cls()
    check_jobs(n_jobs, "n_jobs")
    check_whole_numbers("compare", {"n_splits": 0, "random_state": 0}, n_splits=n_splits, random_state=random_state)
    if budget is not None and not (isinstance(budget, Real) and float(budget) > 0):
        raise ArgumentError(f"compare: budget must be a number of seconds above 0, or None; got {budget!r}.", "budget")
    if rehearsal is None:
        rehearsal = Rehearsal(
            X,
            Y,
            model,
            degrees=degrees,
            n_replicates=n_replicates,
            max_rows=max_rows,
            random_state=random_state,
        )
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
        trials = try_all(able, rehearsal, budget)
        is_slow = budget is not None and n_splits * trials[-1].seconds > budget
        if n_splits < 1 or is_slow or trials[-1].error or not can_be_asked(able):
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
    judged = [r.judged for r in rehearsal.replicates]
    truths = [r.distributions[rows] for r, rows in zip(rehearsal.replicates, judged, strict=True)]
    uniform = [evaluate(D, np.full_like(D, 1.0 / D.shape[1])).kl for D in truths]
    limits = [dict(evaluate(D, A[rows])) for D, A, rows in zip(truths, rehearsal.limits, judged, strict=True)]
    scores: dict[str, list[dict[str, float] | None]] = {
        name: [
            None if t.answer is None else dict(evaluate(D, t.answer[rows]))
            for D, rows, t in zip(truths, judged, trials, strict=False)
        ]
        for name, (_, trials) in tried.items()
    }
    kl = {name: [math.nan if s is None else s["kl"] for s in found] for name, found in scores.items()}
    order = sorted(kl, key=lambda name: _mean(kl[name], math.inf))
    order.sort(key=lambda name: not any(scores[name]))  # what failed everywhere comes last
    complete = [name for name in order if len(kl[name]) == len(truths) and not np.isnan(kl[name]).any()]
    least = [min((kl[name][k] for name in complete), default=math.nan) for k in range(len(truths))]
    standings = [_standing(LIMIT, "limit", list(limits), uniform, limits, math.nan, math.nan, [])]
    for name, following in zip(order, [*order[1:], None], strict=True):
        is_baseline, trials = tried[name]
        wins = [v == m for v, m in zip(kl[name], least, strict=False)]
        first = float(np.mean(wins)) if name in complete else 0.0
        ahead = _share_ahead(kl[name], kl[following]) if following is not None else math.nan
        kind = "baseline" if is_baseline else "method"
        found = _standing(name, kind, scores[name], uniform, limits, first, ahead, trials)
        score, hidden = (held_out or {}).get(name, NOT_ASKED)
        standings.append(replace(found, held_out=score, hidden=hidden))
    n, q = rehearsal.labels.shape
    return Comparison(tuple(standings), len(truths), n, q, (*rehearsal.warnings, *rehearsal.remarks))


def _standing(
    name: str,
    kind: str,
    scores: list[dict[str, float] | None],
    uniform: list[float],
    limits: list[dict[str, float]],
    first: float,
    ahead: float,
    trials: list[Tried],
) -> Standing:
    found = [s for s in scores if s is not None]
    by_measure = {measure: [s[measure] for s in found] for measure in MEASURES} if found else {}
    shares = [recovered(s["kl"], uniform[k], limits[k]["kl"]) for k, s in enumerate(scores) if s is not None]
    errors = list(dict.fromkeys(t.error.splitlines()[0] for t in trials if t.error))
    if trials and len(trials) < len(uniform):
        errors.append(f"too slow for the budget: run on {len(trials)} of {len(uniform)} replicates")
    return Standing(
        name,
        kind,
        {m: _mean(v, math.nan) for m, v in by_measure.items()},
        {m: _deviation(v) for m, v in by_measure.items()},
        _mean(shares, math.nan),
        first,
        ahead,
        tuple(s["kl"] for s in found),
        len(found),
        _mean([t.seconds for t in trials], 0.0),
        tuple(errors),
        tuple(dict.fromkeys(note for t in trials for note in t.notes)),
    )


def _share_ahead(one: list[float], other: list[float]) -> float:
    """In which share of the replicates that both were run on the first is less."""
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if not (math.isnan(a) or math.isnan(b))]
    return float(np.mean([a < b for a, b in pairs])) if pairs else math.nan


def _mean(values: list[float], otherwise: float) -> float:
    kept = [v for v in values if not math.isnan(v)]
    return float(np.mean(kept)) if kept else otherwise


def _deviation(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else math.nan


# ------------------------------------------------------------------------------------------------------ for people


def _head(comparison: Comparison) -> str:
    return (
        f"Expected scores on {words.count(comparison.n_replicates, 'rehearsed data set')} of "
        f"{words.count(comparison.n_rows, 'row')} and {words.count(comparison.n_labels, 'label')}"
    )


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
    "* baseline: uses no features.  limit: the mean under the parameters that made the data; no method passes it.",
    "Recovered: share of the way from uniform to the limit, in KL.  ±: deviation over replicates.",
    "Ahead of next: in which share of the replicates a method has less KL than the one below it.",
    "Held-out: share of the log loss of label frequencies that it saves on hidden real labels (1: all); sees no scale.",
    "† whole rows were hidden and predicted from features alone; from the others, single entries.",
)


def _lines(comparison: Comparison) -> list[str]:
    rows = [COLUMNS, *rows_for_people(comparison)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    lines = [_head(comparison), ""]
    for row in rows:
        cells = [c.ljust(w) if k in (0, 9) else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return [*lines, "", *NOTES, *(f"Warning: {text}" for text in comparison.warnings)]


def _html(comparison: Comparison) -> str:
    def cells(row: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row) + "</tr>"

    body = "".join(cells(row, "td") for row in rows_for_people(comparison))
    after = "".join(f"<p>{html.escape(text)}</p>" for text in (*NOTES, *comparison.warnings))
    caption = f"<caption>{html.escape(_head(comparison))}</caption>"
    return f"<table>{caption}<thead>{cells(COLUMNS, 'th')}</thead><tbody>{body}</tbody></table>{after}"


def _draw(comparison: Comparison) -> Figure:
    from contone.pages import svg

    shown = [s for s in comparison.standings if s.scores and math.isfinite(s.scores["kl"])]
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
