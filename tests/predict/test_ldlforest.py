"""LDLF: paths, gradient, the step of the leaves, the case without decisions, symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit

from contone import LDLForest, measures
from contone.numerics.optimise import join, split
from contone.predict import ldlforest
from contone.predict.ldlforest import evaluate, follow, initial_network, tree_predictions, updated_leaves


@pytest.fixture
def forest(small):
    """X (60, 5), D (60, 4), and a forest of two trees with random leaves: network, nodes, leaves."""
    X, _, D = small
    random = np.random.RandomState(0)
    nodes = np.array([random.permutation(8)[:7] for _ in range(2)])
    network = initial_network(5, 6, 8, random)
    return X, D, network, nodes, random.dirichlet(np.ones(4), size=(2, 8))


def test_leaf_probabilities_are_products_along_the_path():
    F, nodes = np.random.default_rng(0).normal(size=(4, 5)), np.array([[2, 0, 1]])
    root, left, right = expit(F[[2, 0, 1]])
    expected = [root * left, root * (1 - left), (1 - root) * right, (1 - root) * (1 - right)]
    np.testing.assert_allclose(follow(F, nodes).mu[-1][0], expected)


def test_leaf_probabilities_sum_to_one(forest):
    X, _, network, nodes, _ = forest
    mu = follow(ldlforest.network_outputs(X, network)[1], nodes).mu[-1]
    assert mu.shape == (2, 8, 60)
    np.testing.assert_allclose(mu.sum(axis=1), 1.0)


def test_the_objective_is_the_mean_cross_entropy_of_the_trees(forest):
    X, D, network, nodes, leaves = forest
    mu = follow(ldlforest.network_outputs(X, network)[1], nodes).mu[-1]
    crosses = [-np.mean(np.sum(D * np.log(mu[t].T @ leaves[t]), axis=1)) for t in (0, 1)]
    penalty = 0.15 * (np.sum(network[0] ** 2) + np.sum(network[2] ** 2))
    assert evaluate(*forest, 0.3).value == pytest.approx(np.mean(crosses) + penalty)
    np.testing.assert_allclose(tree_predictions(leaves, mu).sum(axis=1), 1.0)


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_gradient_against_finite_differences(forest, l2):
    X, D, network, nodes, leaves = forest
    shapes = [part.shape for part in network]

    def at(w):
        return evaluate(X, D, split(w, shapes), nodes, leaves, l2)

    assert check_grad(lambda w: at(w).value, lambda w: at(w).gradient, 2 * join(network)) < 1e-6


def test_the_step_of_the_leaves_never_raises_the_objective(forest):
    X, D, network, nodes, leaves = forest
    values = []
    for _ in range(30):
        found = evaluate(X, D, network, nodes, leaves, 0.0)
        values.append(found.value)
        leaves = updated_leaves(leaves, found.weight)
        np.testing.assert_allclose(leaves.sum(axis=2), 1.0)
    assert max(np.diff(values)) <= 1e-12


def test_blocks_of_rows_give_the_same(forest, monkeypatch):
    whole = evaluate(*forest, 0.1)
    monkeypatch.setattr(ldlforest, "BLOCK_ENTRIES", 16 * 7)
    for one, other in zip(whole, evaluate(*forest, 0.1), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_without_decisions_it_is_the_mean(small):
    X, _, D = small
    answer = LDLForest(depth=0, max_iter=3).fit(X, D).predict(X[:5])
    np.testing.assert_allclose(answer, np.tile(D.mean(axis=0), (5, 1)), atol=1e-12)


def test_training_lowers_the_objective_and_reaches_the_distributions(small):
    X, _, D = small
    short, long = (LDLForest(max_iter=k).fit(X, D) for k in (1, 300))
    assert long.solution_.objective < 0.1 * short.solution_.objective
    assert measures.kl(D, long.predict(X)) < 0.01
    assert measures.kl(D, long.predict(X)) <= long.solution_.objective + 1e-9  # the forest is no worse than its trees


def test_order_of_labels_and_units_of_features_do_not_matter(small):
    X, _, D = small
    labels = [3, 0, 2, 1]
    model = LDLForest(depth=3, max_iter=50)
    plain = model.fit(X, D).predict(X)
    np.testing.assert_allclose(model.fit(X, D[:, labels]).predict(X), plain[:, labels], atol=1e-8)
    np.testing.assert_allclose(model.fit(1e3 * X + 7, D).predict(1e3 * X + 7), plain, atol=1e-6)
