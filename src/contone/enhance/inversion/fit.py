"""The model from data: `fit` is a fit from top to bottom.

Rows without a label that says something have no part in it and get their prior.

How far to go from what the labels say to what graded rows make of it is judged by the answers to these rows
(`closest_step`).
The calibration (`evidence`) weighs log degrees by their likelihood, in which the smallest degrees count most; the error
of an answer is KL(d || d^), in which they count least. Where rows are not logistic normal the two disagree: a few
degrees near zero pass for a wide spread or for heavy tails. Whoever graded rows has the means to see it. The answers
that their labels alone would get are compared with their degrees, for the calibrated parameters and for some between
these and the labels' own:

    B = (1 - w) B_labels + w B_calibrated,   Sigma likewise,   tails as calibrated or normal.

The calibrated ones stay, unless others are closer to the graded degrees by more than the standard error of that
difference: few rows do not overrule the model.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, to_numpy
from contone.enhance.inversion.chain import Settings, calibrate_parameters, count_labels, learn_parameters
from contone.enhance.inversion.evidence import Calibration, Grades
from contone.enhance.inversion.logistic_normal import Parameters, Spread, variance_factor
from contone.enhance.inversion.model import Fit, certain, mean_features, on_host, with_tails
from contone.enhance.inversion.posterior import ALL_LABELS, Averages, Posterior, ShapeUncertainty, evenly, joined
from contone.enhance.inversion.sampler import Rows
from contone.enhance.inversion.simulate import free_spread
from contone.exceptions import LabelError
from contone.measurements import IntervalRule
from contone.numerics.scaling import principal_map
from contone.numerics.simplex import kl_divergence, softmax
from contone.typing import Array

N_DIRECTIONS = 64
"""Pairs of mirrored draws that a prior mean averages over."""
STEPS = (0.25, 0.5, 0.75, 1.0)
"""Weights w that are tried beside 0."""
ROWS_OF_SPREAD = 2000
"""At most how many rows say how far the spread depends on the rest of the model."""
FEWEST = 5
"""Graded rows below which a standard error says nothing."""

Answer = Callable[[Parameters, float], np.ndarray]
"""The answers (m, q) that the labels of the graded rows get under parameters and tails."""


def fit(
    X: Array, L: Array, rule: IntervalRule, settings: Settings, rng: np.random.Generator, grades: Grades | None = None
) -> tuple[Fit, Posterior]:
    """The model of features X (m, d) and labels L (m, q) under a rule, and the posterior of these rows.

    Parameters are estimated on at most `max_rows` rows, drawn at random, graded ones first; the posterior is that of
    all of them. Graded rows have the degrees that they were given.
    """
    if get_backend(L).host_is_quicker(L):
        there = None if grades is None else Grades(to_numpy(grades.known), on_host(grades.degrees), grades.bound)
        model, posterior = fit(on_host(X), on_host(L), rule, settings, rng, there)
        return replace(model, on_host=True), posterior.like(L)
    (m, q), silent = L.shape, settings.noise.silent(rule, L)
    if grades is not None:
        silent = silent & ~grades.known
    if q > 1 and bool(silent.any()):  # such rows have no part in the fit, and their prior is theirs
        xp, told = array_namespace(silent), ~silent
        if int(told.sum()) < 2:
            raise LabelError(
                f"Y has {int(told.sum())} rows with a label (of {m}): nothing can be learnt from fewer than 2."
            )
        model, posterior = fit(X[told], L[told], rule, settings, rng, None if grades is None else grades[told])
        prior = model.prior(X[silent])
        if posterior.samples is not None:
            drawn = [softmax(model.draw(X[silent], rng)) for _ in posterior.samples]
            prior = replace(prior, samples=array_namespace(prior.mean).stack(drawn))
        return model, joined([posterior, prior])[xp.argsort(xp.concat([xp.nonzero(told)[0], xp.nonzero(silent)[0]]))]
    directions = copy.deepcopy(rng).standard_normal((N_DIRECTIONS, q))
    feature_map = principal_map(X, settings.n_components) if settings.features else None
    chosen: Any = slice(None)
    if m > settings.max_rows:
        chosen = choose_rows(m, settings.max_rows, rng, None if grades is None else to_numpy(grades.known).nonzero()[0])
    phi, L_some = mean_features(feature_map, X[chosen]), L[chosen]
    if q == 1:  # one label has the degree 1, whatever else is known
        parameters, size = Parameters(np.zeros((len(phi), 1)), np.zeros((1, 1)), 0.0), float(settings.n_sweeps)
        model = Fit(rule, feature_map, parameters, Spread(0.0, 0.0), settings, directions, m, 0, size, 1.0)
        return model, certain(L)
    known = None if grades is None else grades[chosen]
    # Labels first, as if nothing were graded, and then what graded rows say beside them: what changes is theirs alone.
    # All at once where labels say nothing of the scale, or of a graded row.
    unlabelled = known is not None and bool((settings.noise.silent(rule, L_some) & known.known).any())
    at_once = unlabelled or not rule.scale_matters
    rows = Rows(rule, L_some, settings.noise)
    if known is not None and at_once:
        rows.hold(known)
    averages = Averages(rows.Z, settings.n_samples, settings.n_sweeps - settings.n_burn)
    counts = count_labels(L, rule, settings.noise)
    shape = ShapeUncertainty(rows.Z.shape[1], q, settings.worth(q)) if 2 < q <= ALL_LABELS else None
    parameters, spread, factors = learn_parameters(phi, rows, averages, counts, settings, rng, shape)
    settings = replace(settings, noise=rows.noise, noise_known=True)
    n_graded = 0 if known is None else int(known.known.sum())
    model = Fit(
        rule,
        feature_map,
        parameters,
        spread,
        settings,
        directions,
        rows.Z.shape[1],
        rows.n_relaxed,
        *averages.diagnostics(),
        n_graded=n_graded,
        factors=factors,
        shape_shares=None if shape is None else shape.shares(settings.weights, n_graded),
    )
    if rule.spread_by_shape and known is None:
        some = evenly(L_some.shape[0], ROWS_OF_SPREAD)
        model = replace(model, spread=free_spread(model, on_host(X[chosen][some]), on_host(L_some[some])))
    if known is not None:
        if not at_once:
            rows.hold(known)
        found = calibrate_parameters(phi, rows, parameters, spread, counts, settings, rng)
        if not at_once:
            before = Calibration(parameters, spread, math.inf)
            found = closest_step(before, found, *_as_if_ungraded(model, X[chosen], L_some, known))
        model = replace(model, **found._asdict(), directions=with_tails(directions, found.tail))
    if m <= settings.max_rows and grades is None:
        return model, averages.posterior(rows.n_relaxed, rows.exact_labels())
    posterior = model.posterior(X, L, rng, settings.n_samples if m <= settings.max_rows else 0)
    return model, posterior if grades is None else posterior.with_known(grades)


def choose_rows(n: int, max_rows: int, rng: np.random.Generator, graded: np.ndarray | None = None) -> np.ndarray:
    """The numbers, rising, of at most `max_rows` of n rows, drawn at random, graded rows first."""
    if n <= max_rows:
        return np.arange(n)
    chosen = rng.choice(n, max_rows, replace=False, shuffle=False)
    if graded is not None and len(graded):
        others = rng.permutation(np.setdiff1d(chosen, graded))
        chosen = np.concatenate([graded, others])[:max_rows]
    return np.sort(chosen)


def _as_if_ungraded(model: Fit, X: Array, L: Array, grades: Grades) -> tuple[np.ndarray, Answer]:
    """The degrees (m, q) of graded rows, and the answers that their labels would get under other parameters."""
    rows = np.flatnonzero(to_numpy(grades.known))

    def answer(parameters: Parameters, tail: float) -> np.ndarray:
        # The same random numbers for all parameters.
        other = replace(model, parameters=parameters, tail=tail)
        found: np.ndarray = to_numpy(other.posterior_of_block(X[rows], L[rows], np.random.default_rng(0)).mean)
        return found

    return to_numpy(grades.degrees)[rows], answer


def closest_step(labels: Calibration, found: Calibration, degrees: np.ndarray, answer: Answer) -> Calibration:
    """The calibration `found`, or one between it and that of the `labels`, given the degrees (m, q) of graded rows."""
    if len(degrees) < FEWEST:
        return found
    tried = [found, labels]
    for tail in {found.tail, math.inf}:
        tried += [between(labels, found, w, tail) for w in STEPS if w < 1.0 or tail != found.tail]
    errors = np.stack([kl_divergence(degrees, answer(one.parameters, one.tail)) for one in tried])
    best = int(np.argmin(errors.mean(axis=1)))
    gain = errors[0] - errors[best]
    return tried[best] if gain.mean() > gain.std(ddof=1) / math.sqrt(len(gain)) else found


def between(labels: Calibration, found: Calibration, w: float, tail: float) -> Calibration:
    """The calibration at the weight w of what was found, with these tails."""
    (B, Sigma, theta), (C, T, _) = found.parameters, labels.parameters
    parameters = Parameters(w * B + (1 - w) * C, w * Sigma + (1 - w) * T, theta)
    narrower = variance_factor(tail) / variance_factor(found.tail)
    mean = math.sqrt(w * narrower * found.spread.mean**2 + (1 - w) * labels.spread.mean**2)
    relative = found.spread.deviation / found.spread.mean if found.spread.mean > 0 else 0.0
    return Calibration(parameters, Spread(mean, mean * relative), tail, w * found.withheld)
