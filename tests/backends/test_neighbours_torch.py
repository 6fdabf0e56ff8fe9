"""The two-stage search gives the neighbours that the definition gives."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from contone.backends.numpy.neighbours import nearest_neighbours  # noqa: E402
from contone.backends.torch import neighbours as neighbours_torch  # noqa: E402


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


def test_rows_that_float32_cannot_tell_apart_are_searched_again():
    """Clusters far from each other and tight inside: stage 1 sees ties, the certificate fails, the answer is exact."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(4, 3)) * 1e4, 600, axis=0) + rng.normal(size=(2400, 3)) * 1e-3
    X = X[rng.permutation(len(X))]
    found = neighbours_torch.nearest_neighbours(torch.tensor(X), 4)
    assert found.n_uncertified > 0
    assert found.distances.numpy() == pytest.approx(nearest_neighbours(X, 4).distances, abs=1e-9)


def test_small_blocks_change_nothing(monkeypatch):
    X = torch.tensor(np.random.default_rng(1).normal(size=(700, 6)))
    whole = neighbours_torch.nearest_neighbours(X, 6)
    monkeypatch.setattr(neighbours_torch, "STAGE_BYTES", 2**18)
    pieces = neighbours_torch.nearest_neighbours(X, 6)
    assert torch.equal(whole.indices, pieces.indices)
