"""Inversion: exactness of the samples, the model's own mathematics, and what it reaches on real data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from contone import CumulativeMass, Inversion, Temperature, Threshold, TopK, Uniform
from contone.enhance.inversion import logistic_normal
from contone.exceptions import InputError, LabelWarning
from contone.numerics.simplex import kl_divergence, softmax

RULES = [CumulativeMass(), CumulativeMass(0.7), TopK(2), Threshold(0.2)]
SHORT = {"n_sweeps": 40, "n_burn": 20}
FAIR = {"n_sweeps": 100, "n_burn": 40}
"""Long enough for answers that are compared with the truth or with each other."""


def simulated(seed=0, n=400, q=5, d=3, spread=0.5, rule=None):
    """Data from the model itself: X (n, d), L (n, q), D (n, q)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    factor = rng.normal(size=(q, q)) / np.sqrt(q)
    Z = X @ rng.normal(size=(d, q)) * 0.5 + rng.normal(size=(n, q)) @ (0.5 * factor + 0.7 * np.eye(q))
    Z -= Z.mean(axis=1, keepdims=True)
    D = softmax(spread * Z / Z.std())
    return X, (rule or CumulativeMass()).apply(D).astype(float), D


def mean_kl(D, answer):
    return float(np.mean(kl_divergence(D, answer)))


@pytest.mark.usefixtures("few_simulated")
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("spread", [0.1, 0.5, 3.0])
def test_every_sample_degrades_to_the_given_labels(rule, spread):
    X, L, _ = simulated(spread=spread, rule=rule)
    method = Inversion(degradation=rule, n_samples=5, **SHORT).fit(X, L)
    assert method.samples_.shape == (5, *L.shape)
    assert method.n_relaxed_ == 0
    for D in method.samples_:
        np.testing.assert_array_equal(rule.apply(D), L)


@pytest.mark.usefixtures("few_simulated")
def test_samples_with_ties_degrade_exactly():
    """Two labels, some rows with both: only .5/.5 gives that, and the sampler must stay there."""
    X, L, _ = simulated(q=2)
    L[:20] = 1.0
    method = Inversion(n_samples=3, **SHORT).fit(X, L)
    for D in method.samples_:
        np.testing.assert_array_equal(CumulativeMass().apply(D), L)
    np.testing.assert_array_equal(method.label_distributions_[:20], 0.5)


@pytest.mark.usefixtures("few_simulated")
def test_impossible_rows_keep_the_order_and_are_reported():
    X, L, _ = simulated()
    L[0] = 1.0
    L[1] = [1, 1, 1, 1, 0]
    with pytest.warns(LabelWarning, match="2 of 400 rows"):
        answer = Inversion(**SHORT).fit_enhance(X, L)
    assert (answer[1, :4] > answer[1, 4]).all()


def test_two_runs_agree_exactly_and_seeds_agree_nearly():
    X, L, _ = simulated(n=150)
    first = Inversion(random_state=3, **FAIR).fit_enhance(X, L)
    np.testing.assert_array_equal(first, Inversion(random_state=3, **FAIR).fit_enhance(X, L))
    other = Inversion(random_state=4, **FAIR).fit_enhance(X, L)
    assert not np.array_equal(first, other)
    assert np.abs(first - other).mean() < 0.01


def test_the_label_order_does_not_matter():
    X, L, _ = simulated(n=150)
    order = [3, 1, 4, 0, 2]
    answer, permuted = Inversion(**FAIR).fit_enhance(X, L), Inversion(**FAIR).fit_enhance(X, L[:, order])
    assert np.abs(answer[:, order] - permuted).mean() < 0.01


@pytest.mark.parametrize("spread", [0.2, 0.5, 1.5])
def test_the_spread_is_found_from_the_cardinalities(spread):
    X, L, _ = simulated(n=1500, q=8, spread=spread)
    assert Inversion(**SHORT).fit(X, L).spread_ == pytest.approx(spread, rel=0.25)


def test_features_help_where_they_matter():
    X, L, D = simulated(n=400)
    with_features = mean_kl(D, Inversion(**FAIR).fit_enhance(X, L))
    without = mean_kl(D, Inversion(features=False, **FAIR).fit_enhance(X, L))
    assert with_features < 0.9 * without
    noise = np.random.default_rng(9).normal(size=X.shape)
    assert mean_kl(D, Inversion(**FAIR).fit_enhance(noise, L)) < 1.1 * without


def test_intervals_cover_what_they_promise():
    X, L, D = simulated(n=1500, q=6)
    method = Inversion().fit(X, L)
    for level in (0.5, 0.9):
        lower, upper = method.intervals(level=level)
        covered = np.mean((lower <= D) & (upper >= D))
        assert covered == pytest.approx(level, abs=0.05)
    assert (method.intervals(level=0.5)[0] >= method.intervals(level=0.9)[0]).all()
    with pytest.raises(InputError, match="level"):
        method.intervals(level=1.0)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("spread", [0.15, 0.3, 1.2])
def test_intervals_cover_at_any_spread(spread, seed):
    """At 0.15 six labels hardly tell the spread, and its doubt has to be part of the intervals."""
    X, L, D = simulated(seed, n=500, q=6, spread=spread)
    lower, upper = Inversion().fit(X, L).intervals(level=0.9)
    assert 0.85 < np.mean((lower <= D) & (upper >= D)) < 0.95


def test_where_the_labels_say_nothing_the_spread_is_that_of_the_prior():
    X, L, _ = simulated(q=2)  # one of two labels in every row, whatever the spread
    half = Inversion(**SHORT).fit(X, L)
    order = Inversion(degradation="topk", **SHORT).fit(X, L)
    prior = logistic_normal.spread_prior(CumulativeMass())
    assert order.spread_ == prior.mean
    assert half.spread_ == pytest.approx(prior.mean, rel=0.02)
    assert half.spread_deviation_ == pytest.approx(prior.deviation, rel=0.1)


def test_prediction_for_new_rows_with_and_without_labels():
    X, L, D = simulated(n=600)
    method = Inversion(**FAIR).fit(X[:400], L[:400])
    uniform = mean_kl(D[400:], np.full_like(D[400:], 1 / D.shape[1]))
    without, with_labels = method.predict(X[400:]), method.enhance(X[400:], L[400:])
    assert mean_kl(D[400:], with_labels) < mean_kl(D[400:], without) < uniform
    assert method.enhance(X[:1], L[:1]).shape == (1, L.shape[1])
    with pytest.raises(InputError, match="labels"):
        method.enhance(X[:2], L[:2, :3])


def test_rows_beyond_max_rows_follow_block_by_block():
    X, L, D = simulated(n=600)
    whole = Inversion().fit_enhance(X, L)
    blocks = Inversion(max_rows=250).fit_enhance(X, L)
    assert mean_kl(D, blocks) < 1.15 * mean_kl(D, whole)


@pytest.mark.parametrize("share", [pytest.param(0.05, marks=pytest.mark.exhaustive), 0.1])
def test_noise_makes_wrong_labels_harmless(share):
    X, L, D = simulated(n=300)
    rng = np.random.default_rng(1)
    flipped = np.where(rng.random(L.shape) < share, 1 - L, L)
    flipped[flipped.sum(axis=1) == 0, 0] = 1
    with pytest.warns(LabelWarning):
        plain = mean_kl(D, Inversion(**FAIR).fit_enhance(X, flipped))
    assert mean_kl(D, Inversion(noise=share, **FAIR).fit_enhance(X, flipped)) < plain


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")  # two labels in every row: hardly told apart
@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, marks=pytest.mark.exhaustive) for rule in (CumulativeMass(0.8), TopK(2))] + [Threshold(0.2)],
    ids=str,
)
def test_auto_finds_the_rule(rule):
    """One half, which is the convention of the field, is looked for in `inversion/test_rules.py`."""
    X, L, _ = simulated(n=800, rule=rule, spread=0.8)
    found = Inversion(degradation="auto", **SHORT).fit(X, L)
    assert found.degradation_ == rule
    assert found.n_relaxed_ == 0


@pytest.mark.filterwarnings("ignore:degradation=.auto. took:contone.exceptions.LabelWarning")  # 68 % sure on SJAFFE
@pytest.mark.parametrize("name", [pytest.param("Yeast_heat", marks=pytest.mark.exhaustive), "SJAFFE"])
def test_auto_finds_the_rule_of_real_labels(real, name):
    """Labels that hang together: judged as if they were independent, another share of mass looks likelier here."""
    X, D = real(name)
    L = CumulativeMass().apply(D)
    assert Inversion(degradation="auto", **SHORT).fit(X, L).degradation_ == CumulativeMass(0.5)


@pytest.mark.usefixtures("few_simulated")
def test_confidences_count_by_their_support():
    X, L, _ = simulated()
    F = L / L.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(Inversion(**SHORT).fit_enhance(X, F), Inversion(**SHORT).fit_enhance(X, L))


def test_many_labels():
    X, L, D = simulated(n=200, q=68, spread=0.7)
    answer = Inversion(**SHORT).fit_enhance(X, L)
    assert mean_kl(D, answer) < 0.5 * mean_kl(D, np.full_like(D, 1 / 68))


def test_ridge_draws_have_the_right_mean():
    rng = np.random.default_rng(0)
    n, q = 200, 4
    Z = rng.normal(size=(q, n))
    Z -= Z.mean(axis=0)
    phi = np.concatenate([np.ones((1, n)), rng.normal(size=(2, n))])
    now = logistic_normal.Parameters(np.zeros((3, q)), Z @ Z.T / n, 0.5)
    drawn = [logistic_normal.draw_coefficients(phi @ phi.T, phi @ Z.T, now, rng) for _ in range(3000)]
    ridge = np.linalg.solve(phi @ phi.T + np.diag([1 / logistic_normal.FLAT, 2.0, 2.0]), phi @ Z.T)
    np.testing.assert_allclose(np.mean(drawn, axis=0), ridge, atol=0.01)


def test_the_prior_of_sigma_bears_on_shape_and_not_on_size():
    E = np.random.default_rng(0).normal(size=(50, 4)) * [1.0, 2.0, 0.5, 1.0]
    E -= E.mean(axis=1, keepdims=True)
    scatter = E.T @ E
    for strength in (0.0, 5.0, 1e9):
        assert np.trace(logistic_normal.covariance_mode(scatter, 50, strength)) == pytest.approx(np.trace(scatter) / 50)
    np.testing.assert_allclose(logistic_normal.covariance_mode(scatter, 50, 0.0), scatter / 50)


def test_the_start_recovers_correlations_of_a_probit_model():
    """Labels that really are normal variables passing zero: frequencies and tetrachoric correlations come back."""
    rng = np.random.default_rng(0)
    R = np.array([[1.0, 0.6, -0.4], [0.6, 1.0, 0.0], [-0.4, 0.0, 1.0]])
    L = (rng.multivariate_normal([0.3, -0.5, 0.0], R, size=50000) > 0).astype(float)
    mean, covariance = logistic_normal.moments(L.T @ L, len(L))
    C = logistic_normal.centring(3)
    np.testing.assert_allclose(mean, C @ [0.3, -0.5, 0.0], atol=0.03)
    np.testing.assert_allclose(covariance, C @ R @ C, atol=0.05)


@pytest.mark.usefixtures("few_simulated")
def test_short_runs_are_refused_or_named():
    X, L, _ = simulated(n=30)
    with pytest.raises(InputError, match="n_burn"):
        Inversion(n_sweeps=10, n_burn=10).fit(X, L)
    with pytest.warns(ConvergenceWarning, match="raise n_sweeps"):
        Inversion(n_sweeps=12, n_burn=6).fit(X, L)
    info = Inversion().fit(X, L).solution_.info
    assert info["effective_sample_size"] > 10
    assert info["split_r_hat"] < 1.5


@pytest.mark.parametrize("name", ["spo5", *(pytest.param(s, marks=pytest.mark.exhaustive) for s in ("heat", "cold"))])
def test_ahead_of_the_baselines_on_real_data(real, name):
    X, D = real(f"Yeast_{name}")
    L = CumulativeMass().apply(D).astype(float)
    answer = mean_kl(D, Inversion(n_sweeps=100, n_burn=40).fit_enhance(X, L))
    assert answer < mean_kl(D, Temperature(c=0.2).fit_enhance(X, L)) < mean_kl(D, Uniform().fit_enhance(X, L))
