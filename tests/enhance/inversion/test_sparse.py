"""Sparse features: the answer of dense ones, without ever making them dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import contone
from contone import Inversion
from contone.exceptions import InputTypeError
from contone.numerics.scaling import principal_map

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RNG = np.random.default_rng(0)


def counts(n: int, d: int) -> sp.csr_array:
    return sp.csr_array(RNG.poisson(0.3, size=(n, d)).astype(float))


def undensifiable(X: sp.csr_array) -> sp.csr_array:
    class Sparse(sp.csr_array):
        def toarray(self, *args, **kwargs):
            raise AssertionError("made dense")

    return Sparse(X)


@pytest.mark.parametrize(("n", "d", "k"), [(60, 12, 5), (60, 450, 5), (30, 450, 40)])
def test_principal_components_are_those_of_the_dense_matrix(n, d, k):
    dense = counts(n, d).toarray()
    dense[:, 2], dense[:, 3] = 0.0, 1.0  # constant columns
    X = sp.csr_array(dense)
    sparse = principal_map(X, k)
    scores = sparse(X)
    standardised = (dense - dense.mean(axis=0)) / np.where(dense.std(axis=0) > 1e-9, dense.std(axis=0), 1.0)
    values, vectors = np.linalg.eigh(standardised @ standardised.T)
    m = min(k, n)
    leading = vectors[:, ::-1][:, :m] * np.sqrt(np.maximum(values[::-1][:m], 0.0))
    expected = leading / np.sqrt(np.maximum(values[::-1][:m], 0.0).sum() / n)
    np.testing.assert_allclose(scores @ scores.T, expected @ expected.T, atol=1e-8)
    np.testing.assert_allclose(sparse(dense), scores, atol=1e-10)


@pytest.mark.parametrize("unit", [2.0**-565, 2.0**515])
def test_sparse_features_may_have_any_unit(unit):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.normal(size=(20, 4)) * (rng.random((20, 4)) < 0.5))
    expected = principal_map(X, 3)(X)
    np.testing.assert_array_equal(principal_map(X * unit, 3)(X * unit), expected)
    assert np.isfinite(principal_map(X * unit, 3)(sp.csr_array([[1e300, 0.0, 1.0, -1e300]]))).all()


def test_the_answer_is_that_of_dense_features():
    X, L = counts(40, 9), np.eye(3)[RNG.integers(0, 3, 40)]
    method = Inversion(n_sweeps=8, n_burn=3)
    expected = method.fit_enhance(X.toarray(), L)
    dense = contone.Inversion(n_sweeps=8, n_burn=3).fit(X.toarray(), L)
    np.testing.assert_allclose(method.fit_enhance(X, L), expected, atol=1e-6)
    np.testing.assert_allclose(method.predict(X[:4]), dense.predict(X[:4].toarray()), atol=1e-6)
    np.testing.assert_allclose(method.predict(X[:4].toarray()), method.predict(X[:4]), atol=1e-12)
    np.testing.assert_allclose(dense.enhance(X[:4], L[:4]), dense.enhance(X[:4].toarray(), L[:4]), atol=1e-9)


def test_many_features_stay_sparse():
    rows, columns = np.repeat(np.arange(50), 40), RNG.integers(0, 200_000, 2000)
    X = sp.csr_array((RNG.random(2000), (rows, columns)), shape=(50, 200_000))
    L = np.eye(3)[RNG.integers(0, 3, 50)]
    found = principal_map(undensifiable(X), 5)(undensifiable(X))
    assert found.shape == (50, 5)
    method = Inversion(n_sweeps=4, n_burn=2, n_components=5).fit(X, L)
    np.testing.assert_allclose(method.label_distributions_.sum(axis=1), 1.0)
    assert sp.issparse(method._error_sample.X)
    assert method.fit_.mean(method._error_sample.X).shape == (3, 50)


def test_a_method_that_needs_dense_features_says_what_they_would_take():
    X = sp.csr_array((1000, 125_000), dtype=float)
    with pytest.raises(InputTypeError, match=r"takes .* are available.*Inversion"):
        contone.GLLE().fit(X, np.eye(2)[RNG.integers(0, 2, 1000)])
