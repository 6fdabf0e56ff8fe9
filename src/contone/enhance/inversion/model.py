"""The fitted model as a value: from features its prior mean, from features and labels the posterior.

    z_i ~ N(B^T phi(x_i), Sigma),   d_i = softmax(z_i),   l_i = degrade(d_i)

`fit` is a function of data, settings and a generator; a `Fit` is all that later rows need, and can be sent anywhere.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.stats import chi2

from contone.backends import get_backend, like, to_numpy
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.chain import Settings, calibrate_parameters, learn_parameters, show_progress
from contone.enhance.inversion.covariance import FEW_LABELS, Covariance, FactorCovariance
from contone.enhance.inversion.evidence import Calibration, Grades
from contone.enhance.inversion.judged import Answer, closest_step
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.enhance.inversion.posterior import Averages, Posterior
from contone.enhance.inversion.sampler import MANY_ROWS, Rows
from contone.enhance.inversion.shape_uncertainty import ShapeUncertainty
from contone.enhance.inversion.unasked import count_labels
from contone.exceptions import LabelError
from contone.measurements import IntervalRule
from contone.numerics.principal import PrincipalMap, principal_map
from contone.numerics.simplex import softmax
from contone.typing import Array

N_DIRECTIONS = 64
"""Pairs of mirrored draws that a prior mean averages over."""
BURN_FEW = 9
"""Sweeps that forget the start of a chain of few labels: after 6, the error of the averages is that of their number."""
MOMENTS = ("mean", "logit_centre", "logit_width")


@dataclass(frozen=True)
class Fit:
    """A fitted model: the rule, the feature map, the parameters, and how they were found."""

    rule: IntervalRule
    feature_map: PrincipalMap | None
    """None where the mean does not depend on features."""
    parameters: Parameters
    spread: Spread
    settings: Settings
    directions: np.ndarray
    """Standard normal draws (N_DIRECTIONS, q) for prior means: the same for all rows, whenever they are asked for."""
    n_rows: int
    """Rows that the parameters were estimated on."""
    n_relaxed: int
    """Rows among these that the rule cannot have made."""
    effective_sample_size: float
    split_r_hat: float
    tail: float = math.inf
    """Degrees of freedom of the residuals, as graded rows say; infinite for normal ones."""
    annotator_deviation: float = 0.0
    """Standard deviation tau of what one annotator adds to the log weights of an item; 0 where rows are items."""
    withheld: float = 0.0
    """By how much graded rows say that the log of the spread is larger than the answers take it (`least_change`)."""
    n_graded: int = 0
    """Graded rows among those that the parameters were estimated on."""
    shape_shares: np.ndarray | None = None
    """What the uncertainty of Sigma adds to the variance of a label's logits, relative to it (q,); None: nothing."""

    factors: FactorCovariance | None = None
    """What Sigma was made of where labels are many."""

    @property
    def spread_deviation(self) -> float:
        """Posterior standard deviation of the spread relative to its mean."""
        return self.spread.deviation / self.spread.mean if self.spread.mean > 0 else 0.0

    @property
    def believed_spread(self) -> Spread:
        """The spread as it is believed to be, which the answers follow with the caution of the least change."""
        mean = self.spread.mean * math.exp(self.withheld)
        return Spread(mean, mean * math.sqrt(max(self.spread_deviation**2 - self.withheld**2, 0.0)))

    def mean(self, X: Array) -> Array:
        """Means (q, m) of z for features X (m, d)."""
        phi = _mean_features(self.feature_map, X)
        return _within_reach(like(self.parameters.coefficients.T, phi) @ phi)

    def prior_mean(self, X: Array) -> Array:
        """E[d | x] (m, q) of rows with features X (m, d)."""
        noise = self.directions @ logistic_normal.square_root(self.parameters.covariance).T
        mean = self.mean(X).T
        # Mirrored pairs cancel the odd part of the sampling error.
        return sum(softmax(mean + e) + softmax(mean - e) for e in like(noise, mean)) / (2 * len(noise))

    def prior(self, X: Array) -> Posterior:
        """What the features alone say of rows: as a `Posterior` without labels."""
        noise = self.directions @ logistic_normal.square_root(self.parameters.covariance).T
        mean = self.mean(X)
        if len(mean) == 1:
            return _certain(mean.T)
        averages = Averages(mean, 0, 0)
        for e in like(noise, mean):
            averages.add(mean + e[:, None])
            averages.add(mean - e[:, None])
        return averages.posterior(0)

    def posterior(self, X: Array, L: Array, rng: np.random.Generator) -> Posterior:
        """Posterior of rows with features X (m, d) and labels L (m, q), `max_rows` rows at a time."""
        backend = get_backend(X)
        size = backend.rows_per_block(X, L.shape[1], self.settings.max_rows)
        starts = range(0, X.shape[0], size)

        def of_block(block: tuple[int, np.random.Generator]) -> Posterior:
            rows = slice(block[0], block[0] + size)
            return self.posterior_of_block(X[rows], L[rows], block[1], single=X.shape[0] >= MANY_ROWS)

        # Every block has its own stream of random numbers: which thread is first makes no difference.
        blocks = zip(starts, rng.spawn(len(starts)), strict=True)
        done = backend.map_blocks(of_block, blocks)
        work = L.shape[0] * L.shape[1] * self._chain_length()[0]
        found = list(show_progress(done, len(starts), work, self.settings.verbose))
        concat = array_namespace(L).concat
        return Posterior(
            concat([p.mean for p in found]),
            concat([p.logit_centre for p in found]),
            concat([p.logit_width for p in found]),
            sum(p.n_relaxed for p in found),
        )

    def posterior_of_block(
        self, X: Array, L: Array, rng: Any, n_samples: int = 0, *, single: bool = False
    ) -> Posterior:
        """The same for all rows at once; `rng` draws uniform and normal numbers, whose shapes end with m."""
        if L.shape[1] == 1:
            return _certain(L)
        silent = self.rule.silent(L)
        if bool(silent.all()):
            return self.prior(X)
        found = self._sampled(X, self.rule.forget_silent(L), rng, n_samples, single)
        if not bool(silent.any()):
            return found
        xp, prior = array_namespace(L), self.prior(X)
        where = {a: xp.where(silent[:, None], getattr(prior, a), getattr(found, a)) for a in MOMENTS}
        return replace(found, **where)

    def _sampled(self, X: Array, L: Array, rng: Any, n_samples: int, single: bool) -> Posterior:
        """The same by a Markov chain."""
        n_sweeps, n_burn = self._chain_length()
        rows = Rows(self.rule, L, self.settings.noise, tail=self.tail, single=single)
        precision = logistic_normal.precision(self._covariance() if rows.takes_factors else self.parameters.covariance)
        mean, draws = self.mean(X), get_backend(X).draws(rng, X)
        averages = Averages(rows.Z, n_samples, n_sweeps - n_burn)
        if n_samples == 0 and rows.run(mean, precision, draws, n_sweeps, n_burn, averages):
            return averages.posterior(rows.n_relaxed)
        for k in range(n_sweeps):
            rows.sweep(mean, precision, draws, reflect=k % 2 == 1)
            if k >= n_burn:
                averages.add(rows.Z)
        return averages.posterior(rows.n_relaxed)

    def _covariance(self) -> Covariance:
        """Sigma by its factors, where it still is what they make: `replace` may have given the model another one."""
        Sigma, factors = self.parameters.covariance, self.factors
        return factors if factors is not None and np.allclose(factors.dense(), Sigma, rtol=1e-9, atol=0.0) else Sigma

    def _chain_length(self) -> tuple[int, int]:
        """Sweeps of a chain whose parameters are known, and how many of them are left out of the averages."""
        n_sweeps = max(20, self.settings.n_sweeps // 2)
        kept, few = n_sweeps - n_sweeps // 4, len(self.parameters.covariance) <= FEW_LABELS
        n_burn = min(n_sweeps // 4, BURN_FEW) if few else n_sweeps // 4
        return n_burn + kept, n_burn


def fit(
    X: Array, L: Array, rule: IntervalRule, settings: Settings, rng: np.random.Generator, grades: Grades | None = None
) -> tuple[Fit, Posterior]:
    """The model of features X (n, d) and labels L (n, q) under a rule, and the posterior of these rows.

    Parameters are estimated on at most `max_rows` rows, drawn at random, graded ones first; the posterior is that of
    all rows. Graded rows have the degrees that they were given.
    """
    n, q = L.shape
    silent = rule.silent(L)
    if grades is not None:
        silent = silent & ~grades.known
    if q > 1 and bool(silent.any()):
        return _fit_labelled(X, L, silent, rule, settings, rng, grades)
    directions = copy.deepcopy(rng).standard_normal((N_DIRECTIONS, q))
    feature_map = principal_map(X, settings.n_components) if settings.features else None
    chosen = choose_rows(n, settings.max_rows, grades, rng)
    phi = _mean_features(feature_map, X[chosen])
    if q == 1:  # one label has the degree 1, whatever else is known
        parameters = Parameters(np.zeros((len(phi), 1)), np.zeros((1, 1)), 0.0)
        size = float(settings.n_sweeps)
        model = Fit(rule, feature_map, parameters, Spread(0.0, 0.0), settings, directions, n, 0, size, 1.0)
        return model, _certain(L)
    known = None if grades is None else grades[chosen]
    # Labels first, as if nothing were graded, and then what graded rows say beside them: what changes is theirs alone.
    at_once = known is not None and not _labels_tell(rule, L[chosen], known)
    rows = Rows(rule, L[chosen], settings.noise, known if at_once else None)
    n_kept = settings.n_sweeps - settings.n_burn
    averages = Averages(rows.Z, settings.n_samples, n_kept)
    counts = count_labels(L, rule)
    shape = ShapeUncertainty(rows.Z.shape[1], q, float(q) if settings.strength is None else settings.strength)
    parameters, spread, factors = learn_parameters(phi, rows, averages, counts, settings, rng, shape)
    size, split = averages.diagnostics()
    n_rows, n_relaxed = rows.Z.shape[1], rows.n_relaxed
    model = Fit(rule, feature_map, parameters, spread, settings, directions, n_rows, n_relaxed, size, split)
    n_graded = 0 if grades is None else int(grades.known[chosen].sum())
    model = replace(model, n_graded=n_graded, shape_shares=shape.shares(settings.weights, n_graded), factors=factors)
    if known is not None:
        rows = rows if at_once else _hold_graded(rows, L[chosen], known, settings)
        found = calibrate_parameters(phi, rows, parameters, spread, counts, settings, rng)
        if not at_once:
            found = closest_step(
                Calibration(parameters, spread, math.inf), found, *_as_if_ungraded(model, X[chosen], L[chosen], known)
            )
        model = replace(
            model,
            **found._asdict(),
            directions=with_tails(directions, found.tail),
        )
    if n > settings.max_rows:
        posterior = model.posterior(X, L, rng)
    elif grades is not None:
        posterior = model.posterior_of_block(X, L, rng, settings.n_samples)
    else:
        posterior = averages.posterior(n_relaxed)
    return model, posterior if grades is None else posterior.with_known(grades)


def _labels_tell(rule: IntervalRule, L: Array, grades: Grades) -> bool:
    """Whether labels L (n, q) alone say something of the scale, and of every graded row."""
    return rule.scale_matters and not bool((rule.silent(L) & grades.known).any())


def _as_if_ungraded(model: Fit, X: Array, L: Array, grades: Grades) -> tuple[np.ndarray, Answer]:
    """The degrees (m, q) of graded rows, and the answers that their labels would get under other parameters."""
    rows = np.flatnonzero(to_numpy(grades.known))

    def answer(parameters: Parameters, tail: float) -> np.ndarray:
        # The same random numbers for all parameters.
        other = replace(model, parameters=parameters, tail=tail)
        found: np.ndarray = to_numpy(other.posterior_of_block(X[rows], L[rows], np.random.default_rng(0)).mean)
        return found

    return to_numpy(grades.degrees)[rows], answer


def _hold_graded(rows: Rows, L: Array, grades: Grades, settings: Settings) -> Rows:
    """The same rows, where they are, but those whose degrees are known stay at these."""
    held = Rows(rows.rule, L, rows.noise, grades)
    xp = array_namespace(held.Z)
    held.Z = xp.where(grades.known, held.Z, xp.astype(rows.Z, held.Z.dtype))
    held.positive = xp.where(grades.known, held.positive, rows.positive)
    return held


def _fit_labelled(
    X: Array,
    L: Array,
    silent: Array,
    rule: IntervalRule,
    settings: Settings,
    rng: np.random.Generator,
    grades: Grades | None,
) -> tuple[Fit, Posterior]:
    """The same where the labels of some rows say nothing: they have no part in the fit, and their prior is theirs."""
    told = ~silent
    if int(told.sum()) < 2:
        raise LabelError(
            f"Y has {int(told.sum())} rows with a label (of {len(L)}): nothing can be learnt from fewer than 2."
        )
    among = None if grades is None else grades[told]
    model, found = fit(X[told], L[told], rule, settings, rng, among)
    prior = model.prior(X[silent])
    if found.samples is not None:
        prior = replace(prior, samples=_draw_prior(model, X[silent], len(found.samples), rng))
    return model, _side_by_side(found, prior, silent)


def _draw_prior(model: Fit, X: Array, n_samples: int, rng: np.random.Generator) -> Array:
    """Draws (n_samples, m, q) of the distributions of rows X (m, d) whose labels say nothing."""
    mean = model.mean(X).T
    drawn = []
    for _ in range(n_samples):
        normals = with_tails(rng.standard_normal(tuple(mean.shape)), model.tail)
        noise = normals @ logistic_normal.square_root(model.parameters.covariance).T
        drawn.append(softmax(mean + like(noise, mean)))
    return array_namespace(mean).stack(drawn)


def _side_by_side(told: Posterior, prior: Posterior, silent: Array) -> Posterior:
    """The posterior (n, q) of all rows: those that tell something, and the others, where `silent` (n,) is true."""
    xp = array_namespace(silent, told.mean)

    def put(A: Array, B: Array, axis: int = 0) -> Array:
        order = xp.argsort(xp.concat([xp.nonzero(~silent)[0], xp.nonzero(silent)[0]]))
        return xp.take(xp.concat([A, B], axis=axis), order, axis=axis)

    samples = None
    if told.samples is not None and prior.samples is not None:
        samples = put(told.samples, prior.samples, axis=1)
    return Posterior(
        put(told.mean, prior.mean),
        put(told.logit_centre, prior.logit_centre),
        put(told.logit_width, prior.logit_width),
        told.n_relaxed,
        samples,
    )


def choose_rows(n: int, max_rows: int, grades: Grades | None, rng: np.random.Generator) -> Any:
    """At most `max_rows` of n rows, in their order: all, or graded ones first and others at random."""
    if n <= max_rows:
        return slice(None)
    order = rng.permutation(n)
    if grades is not None:
        order = order[np.argsort(~to_numpy(grades.known)[order], kind="stable")]
    return np.sort(order[:max_rows])


def with_tails(normals: np.ndarray, tail: float) -> Array:
    """Normal draws (m, q) as draws of a t distribution, by quantiles of its weights in an order of no meaning."""
    if math.isinf(tail):
        return normals
    m = len(normals)
    weights = chi2.ppf((np.random.default_rng(0).permutation(m) + 0.5) / m, tail) / tail
    return normals / np.sqrt(weights)[:, None]


def _mean_features(feature_map: PrincipalMap | None, X: Array) -> Array:
    """Features (p, n) of the mean, a constant first; they are dense where X is sparse."""
    if get_backend(X).name == "sparse":
        constant = np.ones((1, X.shape[0]))
        return constant if feature_map is None else np.concatenate([constant, feature_map(X).T])
    xp = array_namespace(X)
    constant = xp.ones_like(X[:, :1]).T
    return constant if feature_map is None else xp.concat([constant, feature_map(X).T])


def _within_reach(mean: Array) -> Array:
    """Means (q, m) whose exponentials are numbers: those of rows far outside of the training rows are shortened."""
    xp = array_namespace(mean)
    farthest = 0.45 * math.log(float(xp.finfo(mean.dtype).max))
    return mean * (farthest / xp.clip(xp.max(xp.abs(mean), axis=0, keepdims=True), min=farthest))


def _certain(L: Array) -> Posterior:
    """The posterior of rows with one label."""
    xp = array_namespace(L)
    return Posterior(xp.ones_like(L), xp.full_like(L, xp.inf), xp.zeros_like(L))
