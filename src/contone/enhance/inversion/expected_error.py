"""How far the answer is expected to be from the truth, when no truth exists.

The posterior mean d^ of a row has the expected error

    E KL(d || d^)  =  E sum_j d_j log d_j  -  sum_j E[d_j] log d^_j

under whatever is believed of d. Under the posterior at the fitted parameters this is optimistic: the parameters are
estimates, and part of them the labels do not determine. So it is averaged over models that the labels allow, each with

- B and the shape of Sigma from their posterior given the labels (`simulate`), its flat directions from the prior;
- every label's own scale changed by a factor whose log deviation is between 0 and sqrt(3) `OWN_SCALE`, another one in
  every model: whether a label is marked says which side of the middle it is on, and how far only as far as the tails
  are known. Labels may all vary alike, and the interval has that, too;
- rows with normal or heavier tails, by the prior `TAILS` (t distributions, a common factor per row);
- the spread from its posterior under all this: the numbers of labels per row are compared with those of the changed
  model.

Graded rows narrow all this: m of them determine the scale of a label as m rows of a normal sample do, and tails and
spread as `evidence` says; their own error is none.

The mean over models is the expected error; their spread gives the interval. Every model costs a short chain on a sample
of the rows. A row's own error comes from the width of its posterior (second order: sum_j var(d_j) / (2 d^_j)), brought
to the level of the sample.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.special import ndtri

from contone.backends import get_backend
from contone.enhance.inversion import logistic_normal, simulate
from contone.enhance.inversion.assessment import ErrorSample
from contone.enhance.inversion.chain import simulated_rows
from contone.enhance.inversion.logistic_normal import Parameters, spread_posterior, variance_factor
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.posterior import Posterior
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import AnswerError
from contone.measurements import IntervalRule
from contone.numerics.simplex import kl_divergence, softmax
from contone.typing import Array

N_MODELS, N_SWEEPS = 12, 24
"""Models that are tried, and sweeps for each of them; a third of these is left out of the averages."""
OWN_SCALE = 0.35
"""Deviation of the logarithm of a label's own scale, root mean square over the models: a third of the labels is 1.4
times as wide as thought, or 0.7."""
TAILS = (math.inf,) * 6 + (12.0,) * 2 + (6.0,) * 2 + (3.0,) * 2
"""Degrees of freedom of the rows, one for each model: normal with probability one half."""
LEVEL = 0.9
VOTE_TRIALS = 8
"""How often votes are drawn until they give the labels of their row."""
MOST_VOTES, ENOUGH_DEGREES = 40, 15
"""The largest lattice that is looked for among graded degrees, and how many of these it takes."""


@dataclass(frozen=True)
class ExpectedError:
    """Expected KL(D || D^), mean over the rows, without any truth.

    Attributes
    ----------
    mean : float
    lower, upper : float
        90 % interval.
    rows : (n,)
        The same for every row.
    """

    mean: float
    lower: float
    upper: float
    rows: Array = field(repr=False, compare=False, default=None)

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        return f"expected KL {self.mean:.3g} (90 % interval {self.lower:.3g} to {self.upper:.3g})"


def expect_error(
    fit: Fit, sample: ErrorSample, posterior: Posterior, seed: int = 0, answer: Array | None = None
) -> ExpectedError:
    """The expected error of the answer to the rows that `fit` and `posterior` are of.

    The answer is the posterior's mean, or another one, (n, q), which the sample then holds as well.
    """
    xp = array_namespace(posterior.mean)
    if posterior.mean.shape[1] == 1 or bool(sample.graded.all()):
        return ExpectedError(0.0, 0.0, 0.0, xp.zeros_like(posterior.mean[:, 0]))
    E = errors_under_models(fit, sample, np.random.default_rng(seed))
    means = E.mean(axis=1)
    mean = float(means.mean())
    # Between models, and between rows: the error of the mean over n rows.
    log_means = np.log(np.maximum(means, 1e-300))
    chance = float(E.mean(axis=0).std()) / max(mean, 1e-300) / math.sqrt(sample.n)
    reach = float(ndtri(0.5 + LEVEL / 2)) * math.sqrt(float(log_means.var(ddof=1)) + chance**2)
    centre = float(log_means.mean())
    # E KL(d || a) = E KL(d || d^) + KL(d^ || a), where d^ is the posterior's mean.
    rows = second_order(posterior) + (0.0 if answer is None else kl_divergence(posterior.mean, answer))
    level = mean / max(float(get_backend(rows).compute(rows.mean())[0]), 1e-300)
    return ExpectedError(mean, math.exp(centre - reach), math.exp(centre + reach), rows * level)


def errors_under_models(fit: Fit, sample: ErrorSample, rng: np.random.Generator) -> np.ndarray:
    """Expected KL (k, m) of the sample's m rows under k models that the labels allow, q > 1."""
    q = sample.L.shape[1]
    information = simulate.learn_information(fit, sample.X, sample.L, rng)
    # The sample stands for all rows that the parameters were estimated on.
    share = max(fit.n_rows / sample.X.shape[0], 1.0)
    information = replace(information, shape=share * information.shape, gram=share * information.gram)
    # One stratum each, so that a dozen models cover the prior evenly.
    scores = ndtri((rng.permutation(N_MODELS) + 0.5) / N_MODELS)
    tails = rng.permutation(TAILS) if not fit.n_graded else np.full(N_MODELS, fit.tail)
    own_scales = math.sqrt(3.0) * OWN_SCALE * (rng.permutation(N_MODELS) + 0.5) / N_MODELS
    found = []
    for score, tail, own_scale, stream in zip(scores, tails, own_scales, rng.spawn(N_MODELS), strict=True):
        drawn = simulate.draw_parameters(fit, information, sample.X, stream)
        known = (own_scale**-2 + 2.0 * fit.n_graded) ** -0.5
        own = np.exp(known * stream.standard_normal(q)) if q > 2 else np.ones(q)
        model = _with_spread(fit, _stretch(drawn, own), float(tail), float(score), sample, stream)
        found.append(_expected_kl(fit, model, float(tail), sample, stream))
    return np.where(sample.graded, 0.0, finite_models(np.stack(found)))


def finite_models(errors: np.ndarray) -> np.ndarray:
    """The models (k, m) under which all rows have a number; parameters that leave floating point have no part."""
    kept: np.ndarray = errors[np.isfinite(errors).all(axis=1)]
    if len(kept) < 2:
        raise AnswerError(
            f"No error can be expected: {len(errors) - len(kept)} of {len(errors)} models that the labels "
            "allow have parameters beyond floating point. A label that is never marked, or features of very different "
            "sizes, may be the reason: leave that label out, or standardise the features."
        )
    return kept


def _stretch(parameters: Parameters, own: np.ndarray) -> Parameters:
    """Parameters with every label's deviation, and with it its mean, multiplied by its own factor (q,)."""
    C = logistic_normal.centring(len(own))
    covariance = C @ (parameters.covariance * np.outer(own, own)) @ C
    return Parameters((parameters.coefficients * own) @ C, covariance, parameters.theta)


def _with_spread(
    fit: Fit, shape: Parameters, tail: float, score: float, sample: ErrorSample, rng: np.random.Generator
) -> Parameters:
    """The shape at a spread that the numbers of labels per row allow: the quantile of its posterior at normal score."""
    q = len(shape.covariance)
    mean = replace(fit, parameters=shape).mean(sample.X).T
    # The spread, its prior's too, is that of rows with their tails.
    size = float(np.sqrt(np.mean(np.square(mean)) + variance_factor(tail) * np.trace(shape.covariance) / q))
    m = simulated_rows(q)
    normals = rng.standard_normal((m, q)) @ logistic_normal.square_root(shape.covariance).T
    if math.isfinite(tail):
        normals /= np.sqrt(rng.chisquare(tail, m) / tail)[:, None]
    Z = mean[rng.integers(0, len(mean), m)] + normals
    noise = fit.settings.noise
    spread = fit.believed_spread if fit.n_graded else spread_posterior(fit.rule, Z / size, sample.counts, noise)
    return shape.scaled(spread.at(score) / size)


def _expected_kl(fit: Fit, model: Parameters, tail: float, sample: ErrorSample, rng: np.random.Generator) -> np.ndarray:
    """E KL(d || d^) (m,) of the sample's rows given their labels, under other parameters."""
    rows = Rows(fit.rule, sample.L, fit.settings.noise, tail=tail)
    mean, precision = replace(fit, parameters=model).mean(sample.X), logistic_normal.precision(model.covariance)
    draws: Any = get_backend(sample.X).draws(rng, sample.X)
    log_answer = np.log(np.maximum(sample.D, 1e-300))
    given = np.full_like(sample.L, np.nan) if fit.settings.noise.any() else sample.L  # labels that bind degrees
    total, n_kept = np.zeros(len(sample.D)), 0
    for k in range(N_SWEEPS):
        rows.sweep(mean, precision, draws, reflect=k % 2 == 1)
        if k >= N_SWEEPS // 3:
            D = softmax(rows.Z.T)
            if fit.settings.resolution is not None:
                D = draw_votes(fit.rule, D, given, fit.settings.resolution, rng)
            total += (D * (np.log(np.maximum(D, 1e-300)) - log_answer)).sum(axis=1)
            n_kept += 1
    return np.maximum(total / n_kept, 0.0)


def draw_votes(rule: IntervalRule, D: np.ndarray, L: np.ndarray, votes: int, rng: np.random.Generator) -> np.ndarray:
    """Shares V / m (n, q) of so many votes on degrees D (n, q) that give labels L (n, q), by rejection.

    Rows that give other labels in all `VOTE_TRIALS` trials keep their last draw.
    """
    found, left = np.empty_like(D), np.arange(len(D))
    for _ in range(VOTE_TRIALS):
        found[left] = rng.multinomial(votes, D[left] / D[left].sum(axis=1, keepdims=True)) / votes
        left = left[~rule.agrees(found[left], L[left])]
    return found


def find_votes(degrees: np.ndarray) -> int | None:
    """The number of votes that all degrees (m, q) are shares of, where they are so few that it can be told."""
    whole = degrees[((degrees > 0) & (degrees < 1)).any(axis=1)]
    for votes in range(2, MOST_VOTES + 1):
        apart = np.abs(whole * votes - np.round(whole * votes))
        # With random degrees a fifth of the entries would be as near; hundredths are rounded.
        if whole.size >= ENOUGH_DEGREES and apart.max() <= min(0.1, 0.0051 * votes):
            return votes
    return None


def second_order(posterior: Posterior) -> Array:
    """sum_j var(d_j) / (2 d^_j) (n,), with var(d_j) = (d (1 - d))^2 times the variance of the logit."""
    D, width = posterior.mean, posterior.logit_width
    return 0.5 * (D * (1.0 - D) ** 2 * width**2).sum(axis=1)
