"""The search on a device gives the neighbours that the definition gives."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from contone.backends.numpy.neighbours import nearest_neighbours  # noqa: E402
from contone.backends.torch import neighbours as neighbours_torch  # noqa: E402
from contone.backends.torch import screen as screen_torch  # noqa: E402

on_gpu = pytest.mark.skipif(
    screen_torch.triton is None or not torch.cuda.is_available(), reason="no GPU, or torch without Triton"
)


@pytest.mark.parametrize(("n", "d", "k"), [(2, 2, 1), (5, 2, 10), (130, 1, 3), (50, 3, 10), (2000, 12, 10)])
def test_same_neighbours_as_scikit_learn(n, d, k):
    X = np.random.default_rng(n).normal(size=(n, d)) + 100.0  # a mean far from 0 must not cost precision
    expected = nearest_neighbours(X, k)
    found = neighbours_torch.nearest_neighbours(torch.tensor(X), k)
    assert np.array_equal(found.indices.numpy(), expected.indices)
    assert found.distances.numpy() == pytest.approx(expected.distances, abs=1e-9)


def test_float32_keeps_its_type_and_finds_the_same_rows():
    X = np.random.default_rng(0).normal(size=(1500, 8)).astype(np.float32)
    found = neighbours_torch.nearest_neighbours(torch.tensor(X), 5)
    assert found.distances.dtype == torch.float32
    assert np.array_equal(found.indices.numpy(), nearest_neighbours(X.astype(float), 5).indices)


def test_duplicates_are_neighbours_at_zero_and_never_the_row_itself():
    X = torch.tensor(np.repeat(np.random.default_rng(0).normal(size=(100, 4)), 30, axis=0))
    found = neighbours_torch.nearest_neighbours(X, 10)
    assert float(found.distances.max()) == 0.0
    assert not (found.indices == torch.arange(3000)[:, None]).any()


def test_small_blocks_change_nothing(monkeypatch):
    X = torch.tensor(np.random.default_rng(1).normal(size=(700, 6)))
    whole = neighbours_torch.nearest_neighbours(X, 6)
    monkeypatch.setattr(neighbours_torch, "TILE_BYTES", 2**18)
    pieces = neighbours_torch.nearest_neighbours(X, 6)
    assert torch.equal(whole.indices, pieces.indices)


def test_half_precision_bounds_are_below_the_distances():
    """Also of outliers, tiny entries and duplicates; groups and families are in the order that the kernels say."""
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.normal(size=(500, 7)) * 10.0 ** rng.uniform(-6, 3, size=(500, 1)))
    X[3] = X[4]
    X = X - X.mean(dim=0)
    screen = screen_torch.Screen(X)
    products = screen.queries.to(torch.float32) @ screen.points.to(torch.float32).T
    bounds = (products + screen.norms + screen.own[:, None]).view(500, -1, 16, 4, 2).transpose(2, 3).reshape(500, -1)
    squared = torch.cdist(X, X, compute_mode="donot_use_mm_for_euclid_dist") ** 2 * screen.unit**2
    assert bool((bounds[:, :500] <= squared).all())
    assert bool(torch.isinf(bounds[:, 500:]).all())
    sizes = (X**2).sum(dim=1) * screen.unit**2
    assert float(((squared - bounds[:, :500]) / (sizes[:, None] + sizes)).max()) < 0.004


@pytest.mark.parametrize("largest", [0.0, 1e-310, 1e-40, 1.0, 255.0, 256.0, 257.0, 1e38, 1e300])
def test_units_are_powers_of_two_that_bring_entries_into_range(largest):
    unit = screen_torch._unit(largest, 1000)
    assert np.frexp(unit)[0] == 0.5
    assert largest * unit <= 256.0
    assert largest * unit > 128.0 or unit == 2.0**1000 or largest == 0


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "kind", ["plain", "wide", "wider", "many", "outliers", "duplicates", "clusters", "few values", "one value"]
)
def test_screened_neighbours_are_those_of_the_definition(kind, dtype):
    rng = np.random.default_rng(0)
    n, d, k = {"wide": (50_021, 70, 7), "wider": (50_021, 200, 7), "many": (80_021, 5, 30)}.get(kind, (50_021, 5, 7))
    X = rng.normal(size=(n, d)) + 3.0
    if kind == "outliers":
        X[::1000] *= 1e4
    if kind == "duplicates":
        X = X[rng.integers(0, n // 20, n)]
    if kind == "clusters":
        X = np.repeat(rng.normal(size=(50, d)) * 1e4, -(-n // 50), axis=0)[:n] + 1e-2 * X
    if kind == "few values":
        X = np.round(X)
    if kind == "one value":
        X[:] = 1.0
    X = torch.tensor(X, dtype=dtype, device="cuda")
    assert screen_torch.can_screen(X, k)
    found = neighbours_torch.nearest_neighbours(X, k)
    if kind == "one value":
        assert found.n_compared == 0
    if kind in ("plain", "wide", "wider", "many"):
        assert found.n_compared < 100
    some = torch.arange(0, n, 97, device="cuda")
    own = torch.arange(len(some), device="cuda")
    exact = X.to(torch.float64)
    distances = torch.cdist(exact[some], exact, compute_mode="donot_use_mm_for_euclid_dist")
    measured = distances.gather(1, found.indices[some])
    distances[own, some] = torch.inf
    assert not bool((found.indices == torch.arange(n, device="cuda")[:, None]).any())
    assert all(len(set(row)) == k for row in found.indices[some].tolist())
    # Differences are taken in X's precision, from the mean of the rows.
    rounding = 4 * torch.finfo(dtype).eps * float(exact.abs().max())
    expected = torch.topk(distances, k, dim=1, largest=False).values
    assert float((measured - expected).abs().max()) <= rounding
    assert float((found.distances[some].to(torch.float64) - expected).abs().max()) <= rounding
