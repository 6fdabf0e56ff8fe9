"""The simplex: projections are characterised by their optimality conditions, not by another implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contone.numerics.simplex import (
    _project_by_sorting,
    kl_divergence,
    project_masked_simplex,
    row_sums,
    shared_out,
    softmax,
    to_distributions,
)


def random_mask(rng, n, q, density=0.5):
    mask = rng.random((n, q)) < density
    mask[np.arange(n), rng.integers(0, q, n)] = True
    return mask


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), q=st.integers(1, 9), scale=st.sampled_from([1e-6, 1.0, 10.0, 1e6]))
def test_projection_meets_its_optimality_conditions(seed, q, scale):
    rng = np.random.default_rng(seed)
    V, mask = rng.normal(size=(20, q)) * scale, random_mask(rng, 20, q)
    F = project_masked_simplex(V, mask)
    assert (F >= 0).all()
    assert not F[~mask].any()
    np.testing.assert_allclose(F.sum(axis=1), 1.0, atol=4e-16 * max(scale, 1.0) * q)
    # v - f is one constant theta on the support, and no more than theta elsewhere on the mask.
    rest = V - F
    theta = np.where(F > 0, rest, -np.inf).max(axis=1, keepdims=True)
    rounding = 1e-14 * max(scale, 1.0)
    assert (np.abs(rest - theta)[F > 0] <= rounding).all()
    assert (rest[mask] <= np.broadcast_to(theta, V.shape)[mask] + rounding).all()


def test_closed_form_and_sorting_agree():
    rng = np.random.default_rng(1)
    V, mask = rng.normal(size=(500, 7)) * 0.3, random_mask(rng, 500, 7)
    np.testing.assert_allclose(project_masked_simplex(V, mask), _project_by_sorting(V, mask), atol=1e-15)


def test_projection_leaves_the_simplex_alone_and_is_not_expansive():
    rng = np.random.default_rng(2)
    mask = random_mask(rng, 100, 5)
    F = project_masked_simplex(rng.normal(size=(100, 5)), mask)
    np.testing.assert_allclose(project_masked_simplex(F, mask), F, atol=1e-15)
    A, B = rng.normal(size=(2, 100, 5))
    moved = np.linalg.norm(project_masked_simplex(A, mask) - project_masked_simplex(B, mask), axis=1)
    assert (moved <= np.linalg.norm(np.where(mask, A - B, 0.0), axis=1) + 1e-12).all()


@pytest.mark.parametrize("project", [project_masked_simplex, _project_by_sorting])
def test_one_relevant_label_takes_all(project):
    V, mask = np.array([[3.0, -100.0], [0.0, 5.0]]), np.array([[False, True], [True, False]])
    np.testing.assert_array_equal(project(V, mask), mask.astype(float))


def test_input_is_not_changed():
    V = np.random.default_rng(3).normal(size=(10, 4))
    before = V.copy()
    project_masked_simplex(V, np.ones((10, 4), dtype=bool))
    np.testing.assert_array_equal(V, before)


def test_row_sums_and_softmax_of_large_numbers():
    A = np.random.default_rng(4).normal(size=(30, 6))
    np.testing.assert_allclose(row_sums(A), A.sum(axis=1), atol=1e-14)
    np.testing.assert_allclose(softmax(np.array([[1e4, 0.0], [-1e4, -1e4]])), [[1.0, 0.0], [0.5, 0.5]])


def test_torch_gives_the_same_projection():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    V, mask = rng.normal(size=(50, 4)), random_mask(rng, 50, 4)
    answer = project_masked_simplex(torch.from_numpy(V), torch.from_numpy(mask))
    np.testing.assert_allclose(answer.numpy(), project_masked_simplex(V, mask), atol=1e-15)


def test_the_divergence_of_rows_is_its_definition():
    rng = np.random.default_rng(6)
    D, R = rng.dirichlet(np.ones(4), size=(2, 50))
    D[0, 1] = 0.0
    expected = [
        sum(d * math.log(d / r) for d, r in zip(*rows, strict=True) if d > 0) for rows in zip(D, R, strict=True)
    ]
    np.testing.assert_allclose(kl_divergence(D, R), expected, rtol=1e-13)
    np.testing.assert_array_equal(kl_divergence(D, D), 0.0)
    R[:3, 1] = 0.0
    assert np.isinf(kl_divergence(D, R)[:3]).tolist() == [False, True, True]  # 0 log 0 = 0


def test_scores_become_distributions():
    scores = np.array([[1.0, -1.0, 3.0], [0.0, -2.0, 0.0]])
    np.testing.assert_allclose(to_distributions(scores, "sum"), [[0.25, 0.0, 0.75], [1 / 3] * 3])
    np.testing.assert_allclose(
        np.log(to_distributions(scores, "softmax")), scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    )


@pytest.mark.parametrize("total", [1.0, 7.0, 100.0])
def test_what_is_shared_out_is_the_nearest_whole_numbers_with_that_sum(total):
    """Of all whole numbers with the sum `total`, none are closer; what is whole already stays."""
    D = np.random.default_rng(7).dirichlet(np.ones(4), size=30)
    found = shared_out(D, total)
    np.testing.assert_array_equal(found, np.round(found))
    np.testing.assert_array_equal(found.sum(axis=1), total)
    away = found - total * D
    assert (np.ptp(away, axis=1) <= 1.0 + 1e-9).all()  # to move one from one place to another gains nothing
    np.testing.assert_array_equal(shared_out(np.array([[1 / 3] * 3, [0.5, 0.25, 0.25]]), 12.0), [[4, 4, 4], [6, 3, 3]])
    np.testing.assert_array_equal(shared_out(np.full((1, 4), 0.25), 2.0), [[1, 1, 0, 0]])  # of equal ones the first
