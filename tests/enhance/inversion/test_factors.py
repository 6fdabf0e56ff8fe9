"""Sigma of many labels as factors: the same algebra as a full matrix, the same sweeps, and a fit that improves."""

import numpy as np
import pytest

from contone import CumulativeMass, Inversion
from contone.enhance.inversion import covariance, logistic_normal
from contone.enhance.inversion.covariance import FactorCovariance, FactorFit, choose_rank, improve_factors
from contone.enhance.inversion.sampler import Rows
from contone.numerics.simplex import softmax

Q, K = 70, 4


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(0)
    return FactorCovariance(rng.normal(size=(Q, K)), rng.uniform(0.3, 1.0, size=Q))


def test_products_are_those_of_the_matrix(factors):
    whole = factors.loadings @ factors.loadings.T + np.diag(factors.own)
    centred = logistic_normal.centring(Q) @ whole @ logistic_normal.centring(Q)
    np.testing.assert_allclose(factors.dense(), centred, atol=1e-12)
    np.testing.assert_allclose(factors.total_variance(), np.trace(centred))
    root = factors.colour(np.eye(Q))
    np.testing.assert_allclose(root.T @ root, centred, atol=1e-10)
    np.testing.assert_allclose((factors * 4.0).dense(), 4.0 * centred, atol=1e-10)
    precision, inverse = factors.precision(), np.linalg.inv(whole)
    np.testing.assert_allclose(precision.dense(), inverse, atol=1e-10)
    np.testing.assert_allclose(covariance.dense(precision), inverse, atol=1e-10)
    assert covariance.dense(inverse) is inverse
    np.testing.assert_allclose(precision.diagonal(), np.diag(inverse), atol=1e-10)
    np.testing.assert_allclose(precision.along(), inverse.sum(axis=0), atol=1e-10)
    B = np.random.default_rng(1).normal(size=(3, Q)) @ logistic_normal.centring(Q)
    expected = np.einsum("kj,jl,kl->", B, np.linalg.pinv(centred, rcond=1e-10, hermitian=True), B)
    np.testing.assert_allclose(precision.centred_square(B), expected)


def test_a_sweep_with_factors_is_that_with_the_matrix(factors):
    rng = np.random.default_rng(2)
    L = CumulativeMass()._apply(softmax(rng.normal(size=(30, Q)))).astype(float)
    precision, mean = factors.precision(), rng.normal(size=(Q, 30))
    found = []
    for form in (precision, precision.dense()):
        rows = Rows(CumulativeMass(), L)
        assert rows.takes_factors
        for k in range(2):
            rows.sweep(mean, form, np.random.default_rng(k), reflect=k == 1)
        found.append(rows.Z)
    np.testing.assert_allclose(*found, atol=1e-8)


def test_steps_raise_the_likelihood_and_find_factors_again(factors):
    whole = factors.loadings @ factors.loadings.T + np.diag(factors.own)

    def fit_of(found: FactorCovariance) -> float:
        precision = found.precision().dense()
        return np.linalg.slogdet(precision)[1] - np.trace(precision @ whole)

    now = covariance.principal_factors(whole, K)
    scores = [fit_of(now)]
    for _ in range(8):
        now = improve_factors(whole, now)
        scores.append(fit_of(now))
    assert (np.diff(scores) > -1e-9).all()
    again = FactorFit(K)(factors.dense(), 300)
    np.testing.assert_allclose(again.dense(), factors.dense(), atol=0.02 * np.abs(factors.dense()).max())


def test_the_start_is_exact_where_labels_have_one_variance_of_their_own(factors):
    """Of Lambda Lambda^T + c I the leading eigenvalues are those of Lambda Lambda^T plus c, the others c."""
    shared = factors.loadings @ factors.loadings.T
    found = covariance.principal_factors(shared + 0.4 * np.eye(Q), K)
    np.testing.assert_allclose(found.loadings @ found.loadings.T, shared, atol=1e-10)
    np.testing.assert_allclose(found.own, 0.4, rtol=1e-9)
    small = covariance.principal_factors(1e-8 * (shared + 0.4 * np.eye(Q)), K)  # in any unit
    np.testing.assert_allclose(small.loadings, 1e-4 * found.loadings, atol=1e-12)
    np.testing.assert_allclose(small.own, 0.4e-8, rtol=1e-6)
    assert covariance.principal_factors(np.diag([0.0, 1.0, 2.0]), 1).own.min() > 0  # of a label that all rows share
    every = covariance.principal_factors(shared + 0.4 * np.eye(Q), Q)  # as many factors as labels leave nothing else
    np.testing.assert_allclose(every.own, covariance.LEAST_OWN * np.diag(shared + 0.4 * np.eye(Q)))
    fit = FactorFit(K)
    before = fit(factors.dense(), 1)
    fit.rescale(4.0)
    np.testing.assert_allclose(fit.last.dense(), 4.0 * before.dense())


def test_rank_counts_what_chance_does_not_give():
    rng = np.random.default_rng(3)
    unrelated = rng.random((Q, 2000)) < 0.3
    related = (rng.normal(size=(Q, 15)) @ rng.normal(size=(15, 2000)) + rng.normal(size=(Q, 2000))) > 1.0
    assert choose_rank(unrelated) == covariance.FEWEST
    assert choose_rank(related) >= 14
    assert choose_rank(unrelated[:5]) == 4


def test_as_many_factors_as_labels_tell_apart_and_no_more_than_the_most(monkeypatch):
    """Groups of labels that always go together: an eigenvalue each; labels that are never or always given, none."""
    rng = np.random.default_rng(5)
    groups = rng.random((30, 3000)) < 0.4
    given = np.vstack([groups.repeat(3, axis=0), np.zeros((5, 3000), bool), np.ones((5, 3000), bool)])
    assert choose_rank(given) == 30
    pairs = np.repeat(np.arange(35), 2)[:, None] == np.arange(640)  # each in one row alone; the edge is 1.77
    assert choose_rank(pairs) == 35
    monkeypatch.setattr(covariance, "MOST", 12)
    assert choose_rank(given) == 12
    q, n = 40, 400  # the edge (1 + root q / n)^2, which unrelated labels hardly pass
    monkeypatch.setattr(covariance, "FEWEST", 0)
    assert choose_rank(rng.random((q, n)) < 0.5) <= 1
    weak = np.linalg.eigvalsh(np.corrcoef(rng.random((q, n)) < 0.5))
    assert (weak > (1 - np.sqrt(q / n)) ** 2).sum() > q / 2


def test_factors_take_the_mean_variance_along_the_shift_along(factors):
    """A centred Sigma has none there; with it, as many factors as directions leave a label what it has of its own."""
    fit = FactorFit(Q - 1)
    found = fit(factors.dense(), 0)
    whole = factors.dense() + np.trace(factors.dense()) / (Q * (Q - 1))
    np.testing.assert_allclose(np.diag(found.loadings @ found.loadings.T) + found.own, np.diag(whole), rtol=0.02)
    C, A = np.eye(5) - 0.2, np.random.default_rng(0).normal(size=(5, 5))
    few = FactorFit(1)(C @ (A @ A.T + np.eye(5)) @ C, 0)
    expected = np.diag(C @ (A @ A.T + np.eye(5)) @ C) + np.trace(C @ (A @ A.T + np.eye(5)) @ C) / 20
    np.testing.assert_allclose(np.square(few.loadings[:, 0]) + few.own, expected)
    assert (found.own >= covariance.LEAST_OWN * np.diag(whole) * (1 - 1e-12)).all()
    assert fit.last is found


def test_many_labels_end_to_end():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 3))
    D = softmax(0.5 * X @ rng.normal(size=(3, Q)) + 0.3 * rng.normal(size=(80, Q)))
    method = Inversion(n_sweeps=24, n_burn=10)
    found = method.fit_enhance(X, CumulativeMass().apply(D))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert method.covariance_.shape == (Q, Q)
    np.testing.assert_allclose(method.covariance_.sum(axis=0), 0.0, atol=1e-9)
    uniform = np.log(Q) + (D * np.log(D)).sum(axis=1).mean()
    assert (D * np.log(D / found)).sum(axis=1).mean() < 0.5 * uniform
    lower, upper = method.intervals(level=0.9)
    assert (lower <= upper).all()
    np.testing.assert_array_equal(found, Inversion(n_sweeps=24, n_burn=10).fit_enhance(X, CumulativeMass().apply(D)))
