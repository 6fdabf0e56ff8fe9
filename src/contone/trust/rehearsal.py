"""Rehearsal: data like the user's with known truth, to try methods on.

Label enhancement has no validation set: no row's degrees are known. But `Inversion` is a generative model, and fitted
to (X, L) it makes others: the same features, distributions D* drawn from the model, and the labels L* that the same
rule makes of them (`contone.enhance.inversion.simulate`). Whatever one would like to know about a method on the real
data, its error, its best parameters, its rank, can be measured on (X, L*, D*). This is the parametric bootstrap.

Every replicate has its own draw of the parameters, so that what the labels do not say differs between replicates; the
overall spread, on which most hangs, takes evenly spaced quantiles of its posterior instead of independent draws. What
the real table looks like is imitated: entries that are unasked (NaN) stay unasked, and a share of wrong labels, if the
model has one, is wrong in the replicates too. Graded rows inform the model, and are graded in the replicates for the
methods that can use them.

Answers of people are rehearsed the same way: a draw of the parameters that the fit kept gives log weights of the same
items, what people give them on average is the truth D*, and as many answers as there are come from people drawn from
all people. Persons with names are not: a rehearsed answer is by anybody.

References
----------
B. Efron, R. Tibshirani. An Introduction to the Bootstrap. Chapman & Hall, 1993.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sklearn.base import clone

from contone.backends import get_backend, to_numpy
from contone.base import check_whole_numbers
from contone.enhance.graded import fit_graded
from contone.enhance.inversion import Inversion, simulate
from contone.enhance.inversion.fit import choose_rows
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.people.model import Draw, PeopleFit, simulate_answers, sort_responses
from contone.exceptions import ArgumentError, LabelWarning
from contone.measurements import Measurement
from contone.runtime.warnings import warn
from contone.typing import Array, Data, Matrix
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees, check_degrees
from contone.validation.training import check_training

MISFIT = 0.1
"""Total-variation distance of the numbers of labels per row, real against rehearsed, from which a rehearsal warns,
where it is also larger than chance explains."""
RELAXED = 0.05
"""Share of rows that the rule cannot have made from which a rehearsal warns."""
WIDE = 3.0
"""Spread from which labels look alike, however uneven degrees are: a typical degree is twenty times its neighbour."""
UNKNOWN_SPREAD = 0.2
"""Deviation r of the spread, relative to it, from which a rehearsal remarks on it: a scale that is off by r costs about
2 r^2 of what can be recovered, here eight points."""


@dataclass(frozen=True)
class Replicate:
    """One rehearsed data set, for the features of the rehearsal.

    Attributes
    ----------
    distributions : (m, q)
        D*, the truth.
    labels : (m, q)
        L* as the real labels are: 0 and 1, votes or levels; NaN where the real table has no answer.
    parameters : Parameters or Draw
        What made it: B and Sigma, or a draw of the model of answers.
    degrees : (m, q) or None
        D* where the real rows are graded, NaN elsewhere; None where none is.
    """

    distributions: np.ndarray
    labels: np.ndarray
    parameters: Parameters | Draw = field(repr=False)
    degrees: np.ndarray | None = None

    @property
    def judged(self) -> np.ndarray:
        """Which rows (m,) an answer is judged by: those whose degrees are not given, or all where all are."""
        if self.degrees is None:
            return np.ones(len(self.labels), dtype=bool)
        rows: np.ndarray = np.isnan(self.degrees).any(axis=1)
        return rows if rows.any() else ~rows


class Rehearsal:
    """Draws of (D*, L*) for the same features: data like the user's, whose truth is known.

    Parameters
    ----------
    X, Y : (n, d), (n, q)
        Features and labels, as every method takes them; dask arrays and tensors too. Answers of people have one row
        per item: counts of votes, or levels.
    model : Inversion or None
        The model to fit, which says by what rule labels are made, or how people were asked; None means
        ``Inversion()``.
    degrees : (n, q) or None
        Degrees of some rows that are known, as `Inversion.fit` takes them: they show the model how wide the degrees are
        spread where the labels do not.
    n_replicates : int, default=5
        How many data sets to draw.
    max_rows : int, default=5000
        At most this many rows, drawn at random, are rehearsed; all that follows is on these.
    random_state : int, default=0
        Seed.

    Attributes
    ----------
    X : (m, d)
        The features of all replicates, as a NumPy array.
    labels : (m, q)
        The real labels of these rows.
    rows : (m,)
        Which rows of the data these are.
    replicates : tuple of Replicate
    model : Inversion
        Fitted to these rows.
    misfit : float
        Total-variation distance between the numbers of labels per row in the real data and in the replicates.
    warnings : tuple of str
        Why the rehearsal may mislead; empty where nothing speaks against it.
    remarks : tuple of str
        What the labels leave open although the model fits: how uneven the degrees are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, L = rng.normal(size=(50, 2)), np.eye(3)[rng.integers(0, 3, 50)]
    >>> rehearsal = Rehearsal(X, L, n_replicates=2)
    >>> [replicate.distributions.shape for replicate in rehearsal.replicates]
    [(50, 3), (50, 3)]
    """

    def __init__(
        self,
        X: Data,
        Y: Data,
        model: Inversion | None = None,
        *,
        degrees: Data = None,
        n_replicates: int = 5,
        max_rows: int = 5000,
        random_state: int = 0,
    ) -> None:
        least = {"n_replicates": 1, "max_rows": 2, "random_state": 0}
        check_whole_numbers("Rehearsal", least, n_replicates=n_replicates, max_rows=max_rows, random_state=random_state)
        if not isinstance(model, Inversion | None):
            raise ArgumentError(f"Rehearsal: model must be an Inversion; got {type(model).__name__}.", "model")
        fitted = clone(model) if model is not None else Inversion()
        X_checked, L_checked, border = check_training(fitted, X, Y)
        n = L_checked.shape[0]
        known = NOTHING_KNOWN if degrees is None else degrees
        if not isinstance(known, KnownDegrees):
            known = check_degrees(degrees, border.label_names, n, X, Y)
        rows = choose_rows(n, max_rows, np.random.default_rng(random_state), known.rows)
        X_some, L_some = taken(X_checked, rows), taken(L_checked, rows)
        known = known.among(rows)
        fit = fit_graded(fitted, X_some, L_some, known).fit_
        how = X_some, L_some, n_replicates, np.random.default_rng(random_state)
        if isinstance(fit, PeopleFit):
            drawn = _draw_answers(fit, *how)
        else:
            drawn = draw_labels(fit, *how, n_graded=len(known.rows))
        replicates = tuple(Replicate(*each, degrees=_graded(each[0], known.rows)) for each in drawn)
        self.X, self.labels, self.rows, self.label_names = X_some, L_some, rows, tuple(border.label_names)
        self.model, self.replicates = fitted, replicates
        self.misfit, chance = _compare_cardinalities(L_some, replicates, fitted.degradation_)
        self.warnings = _reasons_to_doubt(self.misfit, chance, fitted.n_relaxed_ / len(L_some))
        self.remarks = _remarks(fit.believed_spread, replicates)
        for text in self.warnings:
            warn(text, LabelWarning)

    def __len__(self) -> int:
        return len(self.replicates)

    @cached_property
    def limits(self) -> tuple[np.ndarray, ...]:
        """For every replicate E[d | x, l] (m, q) under the parameters that made it: on average no answer is better."""
        return tuple(self._limit(k, replicate) for k, replicate in enumerate(self.replicates))

    def _limit(self, k: int, replicate: Replicate) -> np.ndarray:
        fit, made_by = self.model.fit_, replicate.parameters
        if isinstance(fit, PeopleFit) and isinstance(made_by, Draw):
            responses = sort_responses(fit.kind, fit.rule.coded(replicate.labels), len(self.X))
            posterior = fit.weigh(responses, [f.features(self.X) for f in fit.maps], [made_by])
        else:
            true = replace(fit, parameters=made_by)
            posterior = true.posterior_of_block(self.X, replicate.labels, np.random.default_rng(k))
        return np.asarray(posterior.mean)


def taken(A: Array, rows: np.ndarray) -> Matrix:
    """Some rows of any array, in memory."""
    backend = get_backend(A)
    return np.asarray(to_numpy(A[rows] if backend.in_memory else backend.compute(A[rows])[0]), dtype=np.float64)


def _graded(D: Matrix, rows: np.ndarray) -> Matrix | None:
    """The degrees of some rows of D (m, q), NaN elsewhere; None where there are none."""
    found = np.full(D.shape, np.nan)
    found[rows] = D[rows]
    return found if len(rows) else None


Drawn = Iterator[tuple[Matrix, Matrix, Parameters | Draw]]
"""Degrees (m, q), labels (m, q), and what made them."""


def draw_labels(
    fit: Fit, X: Matrix, L: Matrix, n_replicates: int, rng: np.random.Generator, *, n_graded: int = 0
) -> Drawn:
    """Replicates of rows X (m, d) with labels L (m, q) that a rule made, some of them graded."""
    unasked = np.isnan(L)
    silent = np.asarray(fit.settings.noise.silent(fit.rule, L))
    if L.shape[1] == 1:
        for _ in range(n_replicates):
            yield np.ones_like(L), np.where(unasked, np.nan, 1.0), fit.parameters
        return
    information = simulate.learn_information(fit, X, L, rng)
    if n_graded:
        information = simulate.with_graded_rows(information, len(L), n_graded)
    scores = simulate.even_scores(n_replicates, rng)
    for score, stream in zip(scores, rng.spawn(n_replicates), strict=True):
        parameters = simulate.draw_parameters(fit, information, X, stream, score)
        D, drawn, _ = simulate.draw_rows(fit, parameters, X, stream, L)
        labels = np.where(unasked, np.nan, drawn)
        labels[silent] = L[silent]  # rows without a label stay so
        yield D, labels, parameters


def _draw_answers(fit: PeopleFit, X: Matrix, L: Matrix, n_replicates: int, rng: np.random.Generator) -> Drawn:
    """The same for items X (m, d) that people answered, L (m, q): each with another draw of the parameters."""
    features = [f.features(X) for f in fit.maps]
    for number in np.linspace(0, len(fit.draws) - 1, n_replicates).round().astype(int):
        draw = fit.draws[number]
        D, labels = simulate_answers(fit, draw, features, L, rng)
        yield D, labels, draw


def _compare_cardinalities(L: np.ndarray, replicates: tuple[Replicate, ...], rule: Measurement) -> tuple[float, float]:
    """Total-variation distance of the histogram of |L| from the mean one of the replicates, and what chance may do.

    The latter is the largest distance between two replicates, or twice the bound sqrt(k / n) / 2 on the mean distance
    of n draws from their distribution over k values.
    """
    lowest = getattr(rule, "lowest", 0.0)  # of levels
    real, *made = (cardinality_shares(A, lowest) for A in (L, *(r.labels for r in replicates)))
    shares = np.stack(made)
    apart = 0.5 * np.abs(shares[:, None] - shares[None, :]).sum(axis=2)
    chance = np.sqrt(np.count_nonzero(real + shares.sum(axis=0)) / len(L))
    return float(0.5 * np.abs(real - shares.mean(axis=0)).sum()), float(max(apart.max(), chance))


def cardinality_shares(L: Matrix, lowest: float = 0.0) -> Matrix:
    """Shares (q + 1,) of the rows with 0, 1, ..., q labels."""
    return np.bincount((lowest < L).sum(axis=1), minlength=L.shape[1] + 1) / len(L)


def _reasons_to_doubt(misfit: float, chance: float, relaxed: float) -> tuple[str, ...]:
    found = []
    if misfit > max(MISFIT, chance):
        found.append(
            f"The model does not make labels like these: {misfit:.0%} of the rows have other numbers of labels. What a "
            'rehearsal says may not hold; try another rule, e.g. model=Inversion(degradation="auto").'
        )
    if relaxed > RELAXED:
        found.append(
            f"{relaxed:.0%} of the rows have labels that the rule cannot have made, so the rehearsed rows differ from "
            "them. Try another rule (degradation), or noise > 0."
        )
    return tuple(found)


def _remarks(spread: Spread, replicates: tuple[Replicate, ...]) -> tuple[str, ...]:
    largest = float(np.mean([replicate.distributions.max(axis=1).mean() for replicate in replicates]))
    if replicates[0].distributions.shape[1] > 1 and (spread.mean > WIDE or spread.at_edge()):
        return (
            f"The rehearsed degrees lie at an edge: the largest one of a row is {largest:.2f} in the mean (spread "
            f"{spread.mean:.2g}). Labels look alike from here on, however uneven degrees are, so that errors and the "
            "order of the methods may be others on your data. The degrees of a few rows (degrees=...) would say more.",
        )
    if not spread.deviation > UNKNOWN_SPREAD * spread.mean > 0:
        return ()
    return (
        f"The labels hardly say how uneven the degrees are: the spread of their logarithms is {spread.mean:.2g} ± "
        f"{spread.deviation:.1g}, largely as the prior has it. Expected scores, and a temperature that is chosen by "
        "them, depend on it; the order of methods less so. The degrees of a few rows (degrees=...) would say more.",
    )
