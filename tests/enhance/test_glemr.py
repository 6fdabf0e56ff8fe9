"""GLEMR: the law of the labels, the limit and its known values, gradients by finite differences, published scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import norm

from contone import GLEMR, CumulativeMass, measures
from contone.enhance import glemr
from contone.enhance.glemr import (
    by_label,
    expected_softmax,
    expected_softmax_of_groups,
    free_posterior,
    label_law,
    limit_objective,
    normal_nodes,
    objective,
)
from contone.numerics import networks
from contone.numerics.simplex import softmax

YEAST = ("spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo")


def degrees_of_limit(q: int, m: int, lz: float) -> tuple[float, float]:
    """The degree of a relevant and of an irrelevant label."""
    mu, v = (np.array([[part[1]] * m + [part[0]] * (q - m)]) for part in free_posterior(q, m, lz).value)
    D = expected_softmax(mu, v)
    return D[0, 0], D[0, -1]


@pytest.mark.parametrize("q", [2, 3, 5])
def test_the_label_law_is_a_law(q):
    vectors = np.array(list(itertools.product([0.0, 1.0], repeat=q)))
    p = np.random.default_rng(q).dirichlet(np.ones(q))
    assert label_law(vectors, np.tile(p, (2**q, 1))).mean() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("q", "m", "lz", "relevant", "irrelevant"),
    [(2, 1, 0.1, 0.6579, 0.3421), (2, 1, 1.0, 0.5715, 0.4285), (4, 2, 0.1, 0.2976, 0.2024), (4, 2, 1.0, 0.27, 0.23)],
)
def test_known_values_of_the_limit(q, m, lz, relevant, irrelevant):
    """Found by stochastic gradients on the same problem, to .0002."""
    np.testing.assert_allclose(degrees_of_limit(q, m, lz), (relevant, irrelevant), atol=3e-4)


def test_all_means_and_variances_free_gives_the_same_maximum():
    """Nothing is lost by one value for all relevant labels, one for the others, and means that sum to 0."""
    q, m, lz = 3, 1, 0.2
    eps = normal_nodes(q, 2**13)
    # All permutations of the nodes, so that the labels are alike in the sample as they are in the law.
    eps = np.concatenate([eps[:, order] for order in itertools.permutations(range(q))])

    def value(w):
        mu, log_v = w[:q], w[q:]
        law = np.log(softmax(mu + np.exp(log_v / 2) * eps)[:, 0] + 1 - m / q).mean()
        return 0.5 * np.sum(lz * (mu**2 + np.exp(log_v)) - log_v) - law

    mu, v = ([part[1], part[0], part[0]] for part in free_posterior(q, m, lz).value)
    best = np.concatenate([mu, np.log(v)])
    steps = np.random.default_rng(0).normal(size=(20, 2 * q))
    for step in 0.3 * steps / np.linalg.norm(steps, axis=1, keepdims=True):
        assert value(best + step) > value(best)


def test_many_labels_have_fewer_nodes_and_the_same_limit(monkeypatch):
    assert normal_nodes(100).shape == (8192, 100)
    few = normal_nodes(1000)
    assert few.shape == (1024, 1000)
    np.testing.assert_allclose(few.mean(axis=0), 0.0, atol=1e-9)
    usual = degrees_of_limit(150, 20, 0.03)
    monkeypatch.setattr(glemr, "normal_nodes", lambda q: normal_nodes(q, 1024))
    np.testing.assert_allclose(degrees_of_limit(150, 20, 0.03), usual, rtol=0.01)


def test_gradient_of_the_limit_against_finite_differences():
    eps = normal_nodes(5, 256)
    for w in np.random.default_rng(0).normal(size=(3, 3)):
        error = check_grad(
            lambda w: limit_objective(w, eps, 2, 0.3)[0], lambda w: limit_objective(w, eps, 2, 0.3)[1], w
        )
        assert error < 1e-6


def test_more_labels_say_less_about_each_and_a_strong_prior_says_nothing(small):
    X, L, _ = small
    ratios = [np.divide(*degrees_of_limit(6, m, 0.1)) for m in (1, 2, 3, 4, 5)]
    assert np.all(np.array(ratios) > 1.0)
    np.testing.assert_allclose(GLEMR(prior_precision=1e6).fit_enhance(X, L), 0.25, atol=1e-5)


def test_the_limit_depends_on_the_number_of_labels_only(small):
    X, L, _ = small
    D = GLEMR().fit_enhance(X, L)
    values = [free_posterior(4, int(m), 0.03).objective for m in L.sum(axis=1)]
    assert GLEMR().fit(X, L).solution_.objective == pytest.approx(np.mean(values))
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(GLEMR().fit_enhance(0 * X, L[:, order]), D[:, order], atol=1e-12)
    for m in np.unique(L.sum(axis=1)).astype(int):
        rows = L.sum(axis=1) == m
        if m < 4:
            np.testing.assert_allclose(D[rows][L[rows] > 0], degrees_of_limit(4, m, 0.03)[0], atol=1e-12)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_a_row_with_all_labels_is_uniform():
    """Its labels say nothing: the posterior is the prior, and the objective has no term of theirs."""
    found, prior = free_posterior(3, 3, 0.2), np.array([0.0, -np.log(0.2), -np.log(0.2)])
    np.testing.assert_allclose(found.value, [[0.0, 0.0], [5.0, 5.0]])
    assert found.objective == pytest.approx(glemr.limit_objective(prior, glemr.normal_nodes(3, 64), 3, 0.2)[0])
    np.testing.assert_allclose(GLEMR().fit_enhance([[0.0], [1.0]], np.ones((2, 3))), 1 / 3)


# ---------------------------------------------------------------------------------------------------------- training


def test_expected_softmax_without_variance_is_softmax():
    mu = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_allclose(expected_softmax(mu, np.zeros((5, 4))), softmax(mu))


def test_expected_softmax_against_draws():
    rng = np.random.default_rng(0)
    mu, v = rng.normal(size=(6, 4)), rng.uniform(0.1, 2.0, size=(6, 4))
    drawn = softmax(mu[:, None, :] + np.sqrt(v)[:, None, :] * rng.normal(size=(6, 20000, 4))).mean(axis=1)
    np.testing.assert_allclose(expected_softmax(mu, v), drawn, atol=0.025)


@pytest.fixture
def tiny(small):
    """Widths of the maps for 3 features, 4 labels and 2 components; rows, their labels, noise and weights."""
    torch = pytest.importorskip("torch")
    X, L, _ = small
    sizes, rng = glemr.network_sizes(3, 4, 2), np.random.default_rng(0)
    w = 0.5 * rng.normal(size=networks.count_parameters(sizes))
    return sizes, *(torch.from_numpy(A) for A in (X[:10, :3], L[:10].astype(float), rng.normal(size=(10, 4)), w))


@pytest.mark.parametrize("ly", [0.0, 2.0, 1e5])
def test_the_objective_is_its_formula(tiny, ly):
    sizes, *rows, w = tiny
    nets = networks.unpack(w, sizes)
    X, L, eps = (A.numpy() for A in rows)
    maps = [tuple(part.numpy() for part in nets[name][0]) for name in ("mu", "v", "a", "b")]
    inputs = np.hstack([X, L])
    mu, v = inputs @ maps[0][0] + maps[0][1], np.log1p(np.exp(inputs @ maps[1][0] + maps[1][1])) + glemr.FLOOR
    total = 0.0
    for x, l, m, s, e in zip(X, L, mu, v, eps, strict=True):
        p = softmax((m + np.sqrt(s) * e)[None])[0] + glemr.FLOOR
        means, deviations = p @ maps[2][0] + maps[2][1], np.log1p(np.exp(p @ maps[3][0] + maps[3][1])) + glemr.FLOOR
        logs = norm.logpdf(np.repeat(x, 2), means, deviations).reshape(3, 2).sum(axis=0)
        rho = softmax(logs[None])[0] + glemr.FLOOR
        total += (rho @ logs + ly * np.log(l @ p + 1 - l.sum() / 4)) / (1 + ly)
        total -= 0.5 * np.sum(0.3 * (m**2 + s) - np.log(s)) + rho @ np.log(rho)
    assert float(objective(nets, *rows, 0.3, ly)) == pytest.approx(-total / 10, rel=1e-9)


@pytest.mark.parametrize("ly", [0.0, 2.0, 1e5])
def test_gradient_against_finite_differences(tiny, ly):
    import torch

    sizes, *rows, w = tiny
    w.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda w: objective(networks.unpack(w, sizes), *rows, 0.3, ly), (w,))


def test_blocks_of_rows_give_the_same(tiny, monkeypatch):
    import torch

    sizes, *rows, w = tiny
    w.requires_grad_(True)

    def value_and_gradient():
        value = objective(networks.unpack(w, sizes), *rows, 0.3, 2.0)
        return value, *torch.autograd.grad(value, w)

    whole = value_and_gradient()
    monkeypatch.setattr(glemr, "BLOCK_ENTRIES", 18)
    heights, of_rows = [], glemr._gain
    monkeypatch.setattr(glemr, "_gain", lambda *a: heights.append(len(a[1])) or of_rows(*a))
    torch.testing.assert_close(value_and_gradient(), whole)
    assert heights == [3, 3, 3, 1, 1, 3, 3, 3]  # each once more, for the gradient


def test_training_approaches_the_limit_where_all_rows_have_as_many_labels():
    """There the linear posterior can be that of the limit; features of a constant cannot help."""
    rng = np.random.default_rng(0)
    L = np.zeros((400, 4))
    for row in L:
        row[rng.choice(4, 2, replace=False)] = 1.0
    trained = GLEMR(solver="adam", prior_precision=0.5, learning_rate=0.01, max_iter=1500)
    D = trained.fit_enhance(np.zeros((400, 1)), L)
    expected = np.where(L > 0, *degrees_of_limit(4, 2, 0.5))
    np.testing.assert_allclose(D, expected, atol=0.01)


def test_the_trained_posterior_is_linear_in_features_and_labels(small):
    X, L, _ = small
    method = GLEMR(solver="adam", max_iter=30, learning_rate=0.05).fit(X, L)
    import torch

    nets = networks.unpack(torch.from_numpy(method._w), method._sizes)
    (W_mu, b_mu), (W_v, b_v) = ([part.numpy() for part in nets[name][0]] for name in ("mu", "v"))
    rows = np.column_stack([(X - X.min(axis=0)) / np.ptp(X, axis=0), L])
    np.testing.assert_allclose(method.means_, rows @ W_mu + b_mu, atol=1e-12)
    np.testing.assert_allclose(method.variances_, np.log1p(np.exp(rows @ W_v + b_v)) + glemr.FLOOR, atol=1e-12)
    np.testing.assert_allclose(method.label_distributions_, expected_softmax(method.means_, method.variances_))


def test_training_raises_the_objective(small):
    X, L, _ = small
    short, long = (GLEMR(solver="adam", max_iter=k, learning_rate=0.01).fit(X, L).solution_ for k in (1, 200))
    assert long.objective < short.objective


@pytest.mark.parametrize("solver", ["limit", "adam"])
def test_new_rows_with_labels_are_treated_as_those_of_the_fit(small, solver):
    X, L, _ = small
    method = GLEMR(solver=solver, max_iter=20).fit(X, L)
    np.testing.assert_allclose(method.enhance(X[:9], L[:9]), method.label_distributions_[:9], atol=1e-12)


def test_memory_of_training_does_not_grow_with_rows_times_components():
    few, many = (GLEMR(solver="adam", n_components=k)._fit_bytes(10**6, 50, 5) for k in (2, 20))
    assert many < 1.1 * few


# -------------------------------------------------------------------------------------------------- published scores


def test_mean_over_yeast(real):
    """.0106 is the mean KL of the authors' program over the ten sets at its best settings: the limit has it, too."""
    scores = []
    for name in YEAST:
        X, D = real(f"Yeast_{name}")
        scores.append(measures.kl(D, GLEMR().fit_enhance(X, CumulativeMass().apply(D))))
    assert np.mean(scores) == pytest.approx(0.0106, rel=0.1)


@pytest.mark.slow
@pytest.mark.exhaustive  # 12 s, a second published score
def test_sjaffe(real):
    """.0273 is the KL of the authors' program with the settings shipped for this set; seeds differ by a tenth."""
    X, D = real("SJAFFE")
    answer = GLEMR.preset("original_sjaffe").fit_enhance(X, CumulativeMass().apply(D))
    assert measures.kl(D, answer) == pytest.approx(0.0273, rel=0.15)


def test_two_values_per_row_have_the_degrees_of_all_pairs():
    rng = np.random.default_rng(0)
    L = np.concatenate([rng.random((20, 7)) < 0.4, np.ones((1, 7)), np.zeros((1, 7))]).astype(float)
    by_row = np.stack([5.0 * rng.normal(size=(22, 2)), rng.gamma(1.0, size=(22, 2))], axis=1)
    pairs = expected_softmax(by_label(by_row[:, 0], L), by_label(by_row[:, 1], L))
    np.testing.assert_allclose(expected_softmax_of_groups(by_row, L), pairs, rtol=1e-12)


def test_how_many_labels_a_row_has_cancels():
    """A relevant label has e^c times the degree of an irrelevant one, c being their distance over its deviation."""
    L = np.tril(np.ones((6, 7)))
    by_row = np.tile([[-0.4, 1.1], [0.7, 2.0]], (6, 1, 1))
    D = expected_softmax(by_label(by_row[:, 0], L), by_label(by_row[:, 1], L))
    np.testing.assert_allclose(np.log(D[:, 0] / D[:, 6]), 1.5 / np.sqrt(1.0 + 3.0 / np.pi**2 * 2.7), rtol=1e-12)
    np.testing.assert_allclose(expected_softmax_of_groups(by_row, L), D, rtol=1e-12)
