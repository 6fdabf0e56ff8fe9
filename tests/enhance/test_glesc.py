"""GLESC: the tensor norm and its shrinkage against full transforms, a dual bound, both ends of beta, known scores."""

from __future__ import annotations

import numpy as np
import pytest

from contone import CumulativeMass, measures
from contone.enhance.glesc import GLESC, represent, representation_objective, shrink_slices, tensor_nuclear_norm
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import softmax

# KL on SJAFFE with C as the authors' code finds it and P solved exactly, by beta and by what mixes the labels.
KNOWN = {(10.0, False): 0.0349, (1e-3, False): 0.0293, (10.0, True): 0.0495, (1e-3, True): 0.0322}


def slices(Z: np.ndarray) -> np.ndarray:
    """The slices (n, 2) of all n frequencies of Z (2, n, n)."""
    return np.fft.fft(Z).transpose(2, 1, 0)


@pytest.mark.parametrize("n", [6, 7])
def test_shrinkage_and_norm_are_those_of_the_full_transform(n):
    Z = np.random.default_rng(0).normal(size=(2, n, n))
    U, s, V = np.linalg.svd(slices(Z), full_matrices=False)
    assert tensor_nuclear_norm(Z) == pytest.approx(s.sum() / n)
    shrunk = (U * np.maximum(s - 3.0, 0.0)[:, None, :]) @ V
    dense = np.fft.ifft(shrunk.transpose(2, 1, 0))
    np.testing.assert_allclose(dense.imag, 0.0, atol=1e-12)
    np.testing.assert_allclose(shrink_slices(Z, 3.0), dense.real, atol=1e-12)
    np.testing.assert_allclose(shrink_slices(1e-6 * Z, 3e-6), 1e-6 * dense.real, atol=1e-18)  # whatever the unit


@pytest.mark.parametrize("beta", [0.05, 0.3])
def test_with_slow_growth_a_dual_bound_meets_the_objective(small, beta):
    # For every Y: <Y, V> <= objective, if no slice of (V_v^T Y_v)_v is longer than 1 and no column of Y_v than beta.
    X, L, _ = small
    views = [standardisation(X[:12])(X[:12]), L[:12]]
    found = represent(views, beta, growth=1.01, tol=1e-8, max_iter=4000)
    assert found.converged
    pulled = np.stack([Y @ V.T for V, Y in zip(views, found.value.Y, strict=True)])
    longest = np.linalg.norm(np.hstack(found.value.Y), axis=1).max()
    scale = max(1.0, np.linalg.svd(slices(pulled), compute_uv=False).max(), longest / beta)
    bound = sum(float(np.vdot(Y, V)) for Y, V in zip(found.value.Y, views, strict=True)) / scale
    assert bound == pytest.approx(found.objective, rel=5e-3)
    assert bound <= found.objective
    fast = represent(views, beta)
    assert fast.converged
    assert fast.objective >= bound


def test_the_constraints_hold(small):
    X, L, _ = small
    views = [standardisation(X)(X), L]
    Z, E, _ = represent(views, 0.5).value
    for V, R, N in zip(views, Z, E, strict=True):
        np.testing.assert_allclose(R @ V + N, V, atol=1e-6)
    assert representation_objective(views, 0 * Z, 0.5) == pytest.approx(
        0.5 * np.linalg.norm(np.hstack(views), axis=1).sum()
    )


def test_where_noise_is_cheap_no_row_explains_another(small):
    X, L, _ = small
    D = GLESC(beta=1e-9, lambda_=4.0, growth=1.05, max_iter=1000).fit_enhance(X[:12], L[:12])
    np.testing.assert_allclose(D, softmax(0.2 * L[:12]), atol=1e-3)


def test_without_reconstruction_the_labels_stay(small):
    X, L, _ = small
    np.testing.assert_allclose(GLESC(lambda_=0.0).fit_enhance(X, L), softmax(L))


def test_only_the_given_order_knows_the_file(small):
    X, L, _ = small
    given = GLESC.preset("original_code")
    shift = np.roll(np.arange(len(X)), 3)
    # A rotation of the rows changes the phases of the transform alone; any other order changes the answer.
    np.testing.assert_allclose(given.fit_enhance(X[shift], L[shift]), given.fit_enhance(X, L)[shift], atol=1e-6)
    mixed = np.random.default_rng(0).permutation(len(X))
    assert np.abs(given.fit_enhance(X[mixed], L[mixed]) - given.fit_enhance(X, L)[mixed]).max() > 1e-4
    assert not np.allclose(GLESC(random_state=1).fit_enhance(X, L), GLESC().fit_enhance(X, L), atol=1e-4)


@pytest.mark.parametrize(("beta", "transposed"), list(KNOWN))
def test_known_scores_on_sjaffe(real, beta, transposed):
    X, D = real("SJAFFE")
    model = GLESC.preset("original_code", beta=beta, transpose_fix=transposed)
    R = model.fit_enhance(X, CumulativeMass().apply(D))
    assert measures.kl(D, R) == pytest.approx(KNOWN[beta, transposed], rel=0.02)
    assert 30 <= model.solution_.n_iter <= 40
