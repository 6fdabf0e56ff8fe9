"""LEIC: gradients, the parts of its bound against torch's distributions, limits, scores of the authors' program."""

from __future__ import annotations

import math

import numpy as np
import pytest

from contone import LEIC, CumulativeMass, measures
from contone.enhance import leic
from contone.numerics import networks

torch = pytest.importorskip("torch")


@pytest.fixture
def tiny():
    """Sizes, rows of X (6, 3) and L (6, 2), noise and weights."""
    rng = np.random.default_rng(0)
    X, L = rng.random((6, 3)), np.array([[1, 0], [1, 1], [0, 1], [0, 1], [1, 0], [1, 1]], dtype=float)
    sizes = leic.network_sizes(3, 2, 4)
    graph = torch.from_numpy(leic.label_graph(L, X, 2))
    X, L = torch.from_numpy(X), torch.from_numpy(L)
    shapes = (6, 4), (6, 2), (leic.BOOSTS, 6, 2)
    noise = leic.Noise(
        *(torch.from_numpy(A) for A in (*(rng.normal(size=s) for s in shapes[:2]), rng.random(shapes[2])))
    )
    w = torch.from_numpy(networks.initial_parameters(sizes, rng, start="uniform"))
    return sizes, leic.Rows(X, L, graph, leic.smooth(graph, X)), noise, w


def test_gradient_of_every_weight_but_that_of_the_clusters(tiny):
    sizes, rows, noise, w = tiny
    # Clusters enter e without a gradient, as published: their weights are held here.
    held = networks.unpack(torch.arange(len(w)), sizes)["cluster"][0]
    first, last = int(held[0].min()), int(held[1].max()) + 1
    rest = torch.cat([w[:first], w[last:]]).requires_grad_(True)

    def loss(rest):
        whole = torch.cat([rest[:first], w[first:last], rest[first:]])
        return leic.objective(networks.unpack(whole, sizes), rows, noise, 1.5)

    assert torch.autograd.gradcheck(loss, (rest,))


def test_the_bound_is_made_of_densities_and_divergences(tiny):
    sizes, rows, noise, w = tiny
    distributions, divergence = torch.distributions, torch.distributions.kl_divergence
    nets = networks.unpack(w, sizes)
    found = leic.encode(nets, rows, 1.5)
    z, p = found.mean + found.deviation * noise.z, leic.dirichlet_draw(found.shape, noise)

    def linear(name, A):
        return networks.forward(nets[name], A, ())

    def positive(A):
        return torch.nn.functional.softplus(A) + leic.LEAST

    of_x = distributions.Normal(linear("x_mean", z), positive(linear("x_deviation", z))).log_prob(rows.X).sum()
    of_graph = distributions.Bernoulli(logits=z @ z.T).log_prob(rows.graph).sum()
    of_labels = leic.expected_label_log_likelihood(found.shape, rows.L)
    expected = -(of_x + of_graph + of_labels)
    q = found.log_cluster.exp()
    uniform = distributions.Categorical(logits=torch.zeros(3, dtype=w.dtype))
    expected = expected + divergence(distributions.Categorical(probs=q), uniform).sum()
    for c in range(3):
        columns = slice(4 * c, 4 * c + 4)
        prior = distributions.Normal(linear("z_mean", p)[:, columns], positive(linear("z_deviation", p)[:, columns]))
        own = distributions.Normal(found.mean, found.deviation)
        expected = expected + (q[:, c] * divergence(own, prior).sum(dim=1)).sum()
    flat = distributions.Dirichlet(torch.ones(2, dtype=w.dtype))
    expected = expected + divergence(distributions.Dirichlet(found.shape), flat).sum()
    assert float(leic.objective(networks.unpack(w, sizes), rows, noise, 1.5)) == pytest.approx(
        float(expected), rel=1e-10
    )


def test_labels_spread_as_the_definition_says():
    rng = np.random.default_rng(1)
    n, q, C = 7, 4, 3
    own, cluster, L = rng.random((n, q)), rng.dirichlet(np.ones(C), n), (rng.random((n, q)) < 0.6).astype(float)
    L[:, 3] = 0.0  # a label that nobody has
    expected = np.zeros((n, q))
    for i in range(n):
        A = sum(cluster[i, c] * (L.T * cluster[:, c]) @ L for c in range(C))
        root = np.array([1 / math.sqrt(s) if s > 0 else 0.0 for s in A.sum(axis=1)])
        expected[i] = own[i] @ (root[:, None] * A * root)
    found = leic.spread_over_labels(*(torch.from_numpy(A) for A in (own, cluster, L)))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_the_expected_likelihood_is_the_mean_over_draws():
    shape, L = torch.tensor([[0.7, 2.0, 3.5]], dtype=torch.float64), torch.tensor([[1.0, 0.0, 1.0]])
    p = np.random.default_rng(0).dirichlet(shape[0].numpy(), 200_000)
    log = np.log(np.where(L.numpy() > 0, p, 1 - p)).sum(axis=1)
    found = float(leic.expected_label_log_likelihood(shape, L))
    assert found == pytest.approx(log.mean(), abs=4 * log.std() / math.sqrt(len(log)))


@pytest.mark.parametrize("shape", [[0.2, 0.5, 1.0], [3.0, 1.0, 8.0]])
def test_draws_have_the_moments_of_a_dirichlet_distribution(shape):
    rng, m = np.random.default_rng(0), 100_000
    noise = leic.Noise(
        *(torch.from_numpy(A) for A in (np.zeros((m, 1)), rng.normal(size=(m, 3)), rng.random((3, m, 3))))
    )
    a = np.array(shape)
    p = leic.dirichlet_draw(torch.tensor([shape] * m, dtype=torch.float64), noise).numpy()
    mean = a / a.sum()
    np.testing.assert_allclose(p.mean(axis=0), mean, atol=0.005)
    np.testing.assert_allclose(p.var(axis=0), mean * (1 - mean) / (a.sum() + 1), rtol=0.03)


def test_neighbours_have_similar_labels_and_among_equals_similar_features():
    L = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [1, 1]], dtype=float)
    X = np.array([[0.0], [3.0], [1.0], [0.1], [0.2]])
    graph = leic.label_graph(L, X, 1)
    np.testing.assert_array_equal(graph, graph.T)
    np.testing.assert_array_equal(np.diag(graph), 1.0)
    assert graph[0, 2] == 1  # same labels, nearest
    assert graph[1, 2] == 1
    assert graph[0, 3] == 0  # nearest of all, other labels
    order = np.random.default_rng(0).permutation(5)
    np.testing.assert_array_equal(leic.label_graph(L[order], X[order], 1), graph[np.ix_(order, order)])


def test_a_large_weight_of_the_labels_gives_them_back(small):
    X, L, _ = small
    D = LEIC(label_weight=1e6, epochs=3).fit_enhance(X, L)
    np.testing.assert_allclose(D, L / L.sum(axis=1, keepdims=True), atol=1e-4)


def test_training_lowers_the_objective_and_a_seed_is_an_answer(small):
    X, L, _ = small
    long, short = (LEIC(epochs=steps, n_code=8).fit(X, L) for steps in (200, 2))
    assert long.solution_.objective < short.solution_.objective
    np.testing.assert_array_equal(LEIC(epochs=2, n_code=8).fit_enhance(X, L), short.label_distributions_)


def test_a_label_that_nobody_has(small):
    X, L, _ = small
    L = np.column_stack([L, np.zeros(len(L))])
    with pytest.warns(UserWarning, match="label"):
        D = LEIC(epochs=2).fit_enhance(X, L)
    assert np.isfinite(D).all()
    assert D[:, -1].max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "known"),
    [
        pytest.param({}, 0.102, marks=pytest.mark.exhaustive),  # 10 s, a second known score on the same set
        (LEIC.PRESETS["original_sjaffe"], 0.0321),
    ],
)
def test_scores_of_the_authors_program(real, settings, known):
    X, D = real("SJAFFE")
    R = LEIC(**settings).fit_enhance(X, CumulativeMass().apply(D))
    assert measures.kl(D, R) == pytest.approx(known, rel=0.15)
