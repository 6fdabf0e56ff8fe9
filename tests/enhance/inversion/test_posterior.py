"""Posteriors: averages and their diagnostics, intervals, and what the uncertainty of Sigma adds to these."""

import math

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.special import expit, logit
from scipy.stats import norm

from contone import CumulativeMass, Inversion
from contone.enhance.inversion import posterior as module
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.posterior import (
    Averages,
    Posterior,
    ShapeUncertainty,
    chain_noise,
    effective_size,
    evenly,
    joined,
)
from contone.numerics.simplex import softmax

QUICK = {"n_sweeps": 60, "n_burn": 20}


def model_rows(n, q=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    D = softmax(0.5 * (0.6 * X @ rng.normal(size=(2, q)) + 0.7 * rng.normal(size=(n, q))))
    return X, CumulativeMass().apply(D).astype(float)


def test_noise_of_the_chain_in_closed_form():
    weights = [1.0, 1.0, 0.5, 0.25]
    np.testing.assert_allclose(chain_noise(np.array([0.0, 1.0]), weights), [np.square(weights).sum(), 0.0], atol=1e-15)
    share = np.array([0.1, 0.5])  # constant weights: an autoregression, with its variance in the long run
    np.testing.assert_allclose(chain_noise(share, [1.0] * 400), (1 - share) / (1 - (1 - share) ** 2))


def test_rows_that_stay_where_they_are_depend_on_no_parameter():
    Z = np.random.default_rng(0).normal(size=(4, 30))
    Z -= Z.mean(axis=0)
    shape = ShapeUncertainty(30, 4, 4.0)
    for _ in range(25):
        shape.add(Z, 0.7 * Z, Z @ Z.T / 30)
    np.testing.assert_allclose(shape.shares([1.0]), 0.0, atol=1e-9)


@pytest.mark.parametrize("q", [2, 65])
def test_where_nothing_is_looked_at_nothing_is_added(q):
    shape = ShapeUncertainty(10, q, 1.0)
    shape.add(np.zeros((q, 10)), np.zeros((q, 10)), np.eye(q))
    np.testing.assert_array_equal(shape.shares([1.0]), np.zeros(q))


def test_a_share_widens_intervals_by_its_root():
    rng = np.random.default_rng(0)
    width, shares = rng.uniform(0.1, 1.0, (5, 3)), np.array([0.0, 0.44, 1.0])
    posterior = Posterior(np.full((5, 3), 1 / 3), rng.normal(size=(5, 3)), width)
    np.testing.assert_allclose(posterior.total_width(0.0, shares), width * [1.0, 1.2, np.sqrt(2.0)])


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_less_is_known_of_sigma_from_fewer_rows_and_fewer_entries():
    X, L = model_rows(200)
    hidden = np.where(np.random.default_rng(1).random(L.shape) < 0.5, np.nan, L)
    whole, few, partly = (
        Inversion(**QUICK).fit(X[:n], Y[:n]).fit_.shape_shares.mean() for n, Y in ((200, L), (40, L), (200, hidden))
    )
    assert 0 < whole < min(few, partly)


def test_answers_do_not_depend_on_it(monkeypatch):
    X, L = model_rows(50)
    with_it = Inversion(**QUICK).fit(X, L)
    monkeypatch.setattr(ShapeUncertainty, "add", lambda *_: None)
    without = Inversion(**QUICK).fit(X, L)
    np.testing.assert_array_equal(with_it.label_distributions_, without.label_distributions_)
    (lower, upper), (inner_lower, inner_upper) = with_it.intervals(level=0.9), without.intervals(level=0.9)
    assert (lower <= inner_lower).all()  # the same where labels allow no more
    assert (inner_upper <= upper).all()
    assert (upper - lower).mean() > (inner_upper - inner_lower).mean()


# ------------------------------------------------------------------------------------------------ values and intervals


def some(n=5, q=3, seed=0, **more):
    rng = np.random.default_rng(seed)
    return Posterior(rng.dirichlet(np.ones(q), n), rng.normal(size=(n, q)), rng.uniform(0.1, 1.0, (n, q)), **more)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_are_quantiles_of_a_normal_logit_that_knows_its_spread_in_part(level):
    """Its distance from the logit of 1 / q is in proportion to the spread: r of it adds (r c)^2, and r^2 of itself."""
    given, r = some(), 0.3
    at = logit(1 / 3)
    width = np.sqrt((1 + r**2) * given.logit_width**2 + r**2 * (given.logit_centre - at) ** 2)
    np.testing.assert_allclose(given.total_width(r), width)
    lower, upper = given.intervals(level, r)
    tail = (1 - level) / 2
    np.testing.assert_allclose(lower, expit(norm(given.logit_centre, width).ppf(tail)))
    np.testing.assert_allclose(upper, expit(norm(given.logit_centre, width).ppf(1 - tail)))


def test_what_is_known_has_no_width_and_one_or_two_labels_no_shape():
    given = some()
    given.logit_width[1] = 0.0
    assert (given.total_width(0.5, np.ones(3))[1] == 0).all()
    assert (given.total_width(0.5, np.ones(3))[0] > 0).all()
    pair = some(q=2)
    np.testing.assert_array_equal(pair.total_width(0.2, np.ones(2)), pair.total_width(0.2))
    alone = some(q=1)
    np.testing.assert_array_equal(alone.total_width(0.7), alone.logit_width)


def test_posteriors_are_joined_and_taken_apart():
    samples = np.random.default_rng(1).dirichlet(np.ones(3), (2, 5))
    one, other = some(samples=samples, n_relaxed=2), some(seed=1, samples=samples[:, ::-1], n_relaxed=3)
    both = joined([one, other])
    assert both.n_relaxed == 5
    for rows, part in ((slice(5), one), (slice(5, 10), other)):
        for found, expected in zip(
            (*both[rows].moments, both[rows].samples), (*part.moments, part.samples), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    assert joined([one]) is one
    assert joined([one, some()]).samples is None  # of some rows there are none
    rows = np.array([True, False, False, True, False])
    mixed = one.where(rows, other)
    np.testing.assert_array_equal(mixed.mean, np.where(rows[:, None], other.mean, one.mean))
    np.testing.assert_array_equal(mixed.samples, np.where(rows[:, None], other.samples, one.samples))
    assert one.where(rows, some(seed=1)).samples is samples
    assert np.isnan(one.labels).all()


def test_degrees_that_are_known_take_the_place_of_a_posterior():
    degrees = np.array([[0.7, 0.3, 0.0]])
    grades = place_grades(np.array([3]), degrees, np.ones((5, 3)))
    found = some().with_known(grades)
    np.testing.assert_array_equal(found.mean[3], degrees[0])
    np.testing.assert_allclose(found.logit_centre[3, :2], logit(degrees[0, :2]))
    assert found.logit_centre[3, 2] < -700  # finite, and as good as zero
    np.testing.assert_array_equal(found.logit_width[3], 0.0)
    np.testing.assert_array_equal(found.mean[:3], some().mean[:3])
    np.testing.assert_allclose(np.stack(found.intervals(0.9, 0.5))[:, 3], [degrees[0]] * 2, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------ averages


def test_averages_are_moments_of_degrees_and_logits_and_samples_end_with_the_last():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(12, 3, 7))
    averages = Averages(draws[0], 4, 12)
    for Z in draws:
        averages.add(Z)
    D = softmax(np.moveaxis(draws, 1, 2))
    found = averages.posterior(3)
    np.testing.assert_allclose(found.mean, D.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.logit_centre, logit(D).mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.logit_width, logit(D).std(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.samples, D[[2, 5, 8, 11]], rtol=1e-9)
    assert found.n_relaxed == 3
    many = Averages(np.zeros((3, 400)), 0, 1)
    rows, labels = many.watched
    assert len(rows) == module.WATCHED
    assert (rows[0], labels[0], rows[-1], labels[-1]) == (0, 0, 399, 2)
    assert set(labels) == {0, 1, 2}


@pytest.mark.parametrize("m", [20, 21])
def test_effective_sizes_are_those_of_autocorrelations_that_are_summed_one_by_one(m):
    """In pairs up to the first that is negative (Geyer 1992); a last one without a partner has no part."""
    paths = np.random.default_rng(m).standard_normal((m, 6)).cumsum(axis=0) + 50.0
    expected = []
    for x in (paths - paths.mean(axis=0)).T:
        rho = [x[: m - k] @ x[k:] / (x @ x) for k in range(m)]
        pairs = [rho[k] + rho[k + 1] for k in range(0, m - 1, 2)]
        first = next((k for k, pair in enumerate(pairs) if pair <= 0), len(pairs))
        expected.append(m / max(2 * sum(pairs[:first]) - 1, 1.0))
    np.testing.assert_allclose(effective_size(paths), expected)


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.8])
def test_the_effective_size_of_an_autoregression(correlation):
    """m (1 - rho) / (1 + rho); never more than m."""
    m, rng = 4000, np.random.default_rng(0)
    x = rng.standard_normal((m, 30))
    for k in range(1, m):
        x[k] = correlation * x[k - 1] + math.sqrt(1 - correlation**2) * x[k]
    expected = min(m * (1 - correlation) / (1 + correlation), m)
    assert np.median(effective_size(5.0 * x + 3.0)) == pytest.approx(expected, rel=0.12)


def test_a_split_chain_is_compared_half_by_half():
    """R-hat^2 = ((h - 1) / h W + B / h) / W of halves of h draws (Gelman et al.); what never moves is left out."""
    rng = np.random.default_rng(0)
    averages = Averages(np.zeros((2, 3)), 0, 0)
    paths = rng.standard_normal((20, 6)) + np.linspace(0, 3, 20)[:, None]
    averages.paths, averages.n = list(np.column_stack([paths, np.ones(20)])), 20
    halves = paths.reshape(2, 10, 6)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = 10 * halves.mean(axis=1).var(axis=0, ddof=1)
    size, r_hat = averages.diagnostics()
    assert r_hat == pytest.approx(np.quantile(np.sqrt((0.9 * within + between / 10) / within), 0.95))
    assert size == pytest.approx(np.median(effective_size(paths)))
    averages.paths = [1e-6 * path for path in averages.paths]  # in any unit
    assert averages.diagnostics() == pytest.approx((size, r_hat))
    averages.paths = averages.paths[:8]
    assert averages.diagnostics()[1] > 1.0
    averages.paths = averages.paths[:7]  # too few to compare
    assert averages.diagnostics() == (20.0, 1.0)
    averages.paths = [np.ones(3)] * 20
    assert averages.diagnostics() == (20.0, 1.0)


def test_rows_are_taken_evenly_with_both_ends():
    np.testing.assert_array_equal(evenly(4, 10), np.arange(4))
    np.testing.assert_array_equal(evenly(9, 3), [0, 4, 8])


# ------------------------------------------------------------------------------------- what is not known of Sigma


def draws_of(q, n=40, n_sweeps=60, seed=0, scale=1.0):
    """Draws as of a chain: rows of their own means with common noise, truncated so that scores have a mean."""
    rng = np.random.default_rng(seed)
    C = np.eye(q) - 1 / q
    A = C @ rng.normal(size=(q, q))
    Sigma = A @ A.T + 0.3 * C
    H = np.linalg.cholesky(Sigma + 1e-12 * np.eye(q))
    mean = C @ rng.normal(size=(q, n))
    side = np.sign(rng.normal(size=(q, n)))
    for _ in range(n_sweeps):
        e = np.abs(rng.standard_normal((q, n))) * side * 0.7 + 0.3 * rng.standard_normal((q, n))
        residual = C @ H @ e
        yield scale * (mean + residual), scale * residual, scale**2 * Sigma


def shares_of(draws, order=slice(None), weights=(0.5, 0.3), n_graded=0, n=40, q=4, strength=3.0):
    shape = ShapeUncertainty(n, q, strength)
    for Z, residual, Sigma in draws:
        shape.add(Z[order], residual[order], Sigma[order][:, order])
    return shape.shares(weights, n_graded)


def test_another_order_of_the_labels_gives_their_shares_in_that_order():
    """Scores have the same variance in all directions of a symmetric matrix, whatever the coordinates."""
    order = [2, 0, 3, 1]
    expected = shares_of(draws_of(4))
    assert (expected > 1e-4).all()
    assert (expected < 1).all()
    np.testing.assert_allclose(shares_of(draws_of(4), order), expected[order], rtol=1e-6)
    assert (shares_of(draws_of(4), strength=300.0) < expected).all()
    assert (shares_of(draws_of(4), n_graded=500) < expected).all()


@pytest.mark.parametrize(("scale", "strength"), [(1.0, 3.0), (0.01, 60.0)])
def test_shares_are_what_the_formulas_say_row_by_row(scale, strength):
    """I, J, V and the noise of the chain at the top of the file, with A in full and sums over single rows."""
    q, r, n, weights, graded = 4, 3, 40, (0.5, 0.3), 2
    basis, pairs = helmert(q), list(zip(*np.triu_indices(3), strict=True))
    scores, logits, metric, means = [], [], 0.0, 0.0
    for Z, residual, Sigma in draws_of(q, n, scale=scale):
        L = np.linalg.cholesky(basis @ Sigma @ basis.T)
        e = np.linalg.solve(L, basis @ residual)
        of_A = [(e[j] * e[k] - (j == k)) / (math.sqrt(2) if j == k else 1.0) for j, k in pairs]
        mean = Z - residual
        scores.append(np.vstack([of_A, basis.T @ np.linalg.solve(L.T, e) * mean, e]))
        logits.append(logit(softmax(Z.T)).T)
        # of the sum of squares tr Sigma + sum m^2: A_jk twice off the diagonal, root 2 on it
        metric = metric + np.array([(math.sqrt(2) if j == k else 2.0) * (L.T @ L)[j, k] for j, k in pairs])
        means = means + 2 * np.mean(mean**2, axis=1)
    scores, logits = np.array(scores), np.array(logits)
    even = (np.arange(60) // module.BLOCK) % 2 == 0
    told = sum(np.outer(scores[even, :, i].mean(axis=0), scores[~even, :, i].mean(axis=0)) for i in range(n))
    told, s = (told + told.T) / 2, len(pairs)
    inverse = np.linalg.inv(_floored(told[s:, s:] + strength * np.eye(q + r)))
    follow = np.vstack([np.eye(s), -inverse @ told[s:, :s]])
    values, vectors = np.linalg.eigh(told[:s, :s] - told[:s, s:] @ inverse @ told[s:, :s])
    values = np.maximum(values, 0.0)
    noise = chain_noise(np.minimum((values + strength) / n, 1.0), weights) / n
    V = (vectors * (1 / (values + strength + graded) + noise)) @ vectors.T
    slope = np.concatenate([metric, means, np.zeros(r)]) @ follow
    V -= np.outer(V @ slope, V @ slope) / (slope @ V @ slope)
    added, variance = np.zeros(q), np.zeros(q)
    for i in range(n):
        J = np.array([[np.mean(y * x) - y.mean() * x.mean() for x in scores[:, :, i].T] for y in logits[:, :, i].T])
        added += np.diag(J @ follow @ V @ follow.T @ J.T)
        variance += logits[:, :, i].var(axis=0)
    expected = np.minimum(added / variance, module.LARGEST)
    found = shares_of(draws_of(q, n, scale=scale), weights=weights, n_graded=graded, strength=strength)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_some_of_rows_that_are_all_alike_tell_what_all_of_them_do(monkeypatch):
    """Of 40 the information is taken from 8, times 5, and slopes from 3."""
    alike = [(np.tile(Z[:, :1], 40), np.tile(E[:, :1], 40), Sigma) for Z, E, Sigma in draws_of(4)]
    expected = shares_of(alike)
    monkeypatch.setattr(module, "MOST_ROWS", 8)
    monkeypatch.setattr(module, "FEW_ROWS", 3)
    np.testing.assert_allclose(shares_of(alike), expected, rtol=1e-9)
    assert (expected > 1e-4).all()
    assert (expected < 1).all()


def _floored(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 1e-9 * values[-1])) @ vectors.T


def test_beyond_some_labels_the_diagonal_of_a_is_looked_at():
    many = ShapeUncertainty(30, module.MOST_LABELS + 1, 1.0)
    assert many.n_shape == module.MOST_LABELS
    assert ShapeUncertainty(30, module.MOST_LABELS, 1.0).n_shape == module.MOST_LABELS * (module.MOST_LABELS - 1) // 2
    scores = module.shape_scores(np.random.default_rng(0).standard_normal((3, 200_000)), *np.triu_indices(3))
    np.testing.assert_allclose(np.cov(scores), np.eye(6), atol=0.03)  # uncorrelated, of variance 1
    np.testing.assert_allclose(scores.mean(axis=1), 0.0, atol=0.01)
