"""LDL-LRR: the printed objective, its gradient, the limit without ranking, and what the ranking does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit, xlogy

from contone import LDLLRR, MaxEnt
from contone.numerics.simplex import softmax
from contone.predict.ldllrr import ranking_term
from contone.predict.maxent import objective


def printed_ranking_term(D, P, ranking):
    """ranking / (2n) sum_i sum_jk w_ijk CE(1[d_ij > d_ik], sigmoid(p_ij - p_ik)), as in print; D, P (n, q)."""
    difference = D[:, :, None] - D[:, None, :]
    above, chance = difference > 0, expit(P[:, :, None] - P[:, None, :])
    entropy = -(xlogy(above, chance) + xlogy(~above, 1 - chance))
    return ranking / (2 * len(D)) * np.sum(difference**2 * entropy)


def test_the_ranking_term_is_the_printed_one(small):
    _, _, D = small
    P = np.random.default_rng(0).dirichlet(np.ones(4), size=60)
    assert ranking_term(D, 0.7)(P.T)[0] == pytest.approx(printed_ranking_term(D, P, 0.7))


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_gradient_against_finite_differences(small, l2):
    X, _, D = small
    extra = ranking_term(D, 5.0)

    def evaluate(flat):
        value, gradient = objective(X, D, flat[:20].reshape(5, 4), flat[20:], l2, extra)
        return value, np.concatenate([part.ravel() for part in gradient])

    for w in np.random.default_rng(0).normal(size=(3, 24)):
        assert check_grad(lambda w: evaluate(w)[0], lambda w: evaluate(w)[1], w) < 1e-5


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_without_ranking_it_is_maximum_entropy(small, l2, fit_intercept):
    X, _, D = small
    ours = LDLLRR(ranking=0.0, l2=l2, fit_intercept=fit_intercept).fit(X, D).predict(X)
    np.testing.assert_allclose(ours, MaxEnt(l2=l2, fit_intercept=fit_intercept).fit(X, D).predict(X), atol=1e-6)


def test_the_answer_is_stationary_and_the_certificate_says_so(small):
    X, _, D = small
    model = LDLLRR(ranking=10.0, l2=0.01).fit(X, D)
    _, gradient = objective(X, D, model.coef_, model.intercept_, 0.01, ranking_term(D, 10.0))
    assert model.solution_.converged
    assert np.abs(gradient.Theta).max() < 1e-5
    assert np.abs(gradient.b).max() < 1e-5


def test_more_weight_on_the_order_means_fewer_labels_in_the_wrong_one(small):
    X, _, D = small
    terms = [ranking_term(D, 1.0)(LDLLRR(ranking=a, l2=0.05).fit(X, D).predict(X).T)[0] for a in (0.0, 1.0, 30.0)]
    assert terms[0] > terms[1] > terms[2]


def test_order_of_labels_and_rows_does_not_matter(small):
    X, _, D = small
    rows, labels = np.random.default_rng(0).permutation(60), [3, 0, 2, 1]
    model = LDLLRR(ranking=1.0, l2=0.01)
    plain = model.fit(X, D).predict(X)
    np.testing.assert_allclose(model.fit(X[rows], D[rows][:, labels]).predict(X), plain[:, labels], atol=1e-5)


def test_ties_have_no_order():
    D = np.full((5, 3), 1 / 3)
    value, gradient = ranking_term(D, 1.0)(softmax(np.random.default_rng(0).normal(size=(5, 3))).T)
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
