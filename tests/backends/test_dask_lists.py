"""Neighbours of lazy rows by lists: exact where all lists are visited, else with the recall that is reported."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")
pytest.importorskip("faiss")

from contone.backends.dask import lists  # noqa: E402
from contone.backends.dask import neighbours as dask_neighbours  # noqa: E402
from contone.numerics import graphs  # noqa: E402

K = 6


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def surface(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Rows near a surface of three dimensions, some of them equal."""
    rng = np.random.default_rng(seed)
    X = np.sin(rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))) + 0.05 * rng.normal(size=(n, d))
    X[n // 2 : n // 2 + 20] = X[:20]
    return X


def lazily(X: np.ndarray, rows: int):
    return da.from_array(X, chunks=(rows, X.shape[1]))


def exact(X: np.ndarray) -> np.ndarray:
    return NearestNeighbors(n_neighbors=K).fit(X).kneighbors()[0]


@pytest.mark.parametrize(("d", "rows", "unit"), [(10, 200, 1.0), (10, 130, 1e100), (4, 200, 1e-100), (10, 700, 1.0)])
def test_all_lists_give_the_exact_neighbours(d, rows, unit):
    X = surface(700, d)
    found = lists.nearest_neighbours(lazily(X * unit, rows), K, lists=9, probes=9)
    assert found.recall == 1.0
    indices, distances = dask.compute(found.indices, found.distances)
    # In the order of the lists; the order itself takes rows there and back.
    listed = found.order.take(lazily(X, rows))
    assert listed.chunks[0] == found.order.sizes == found.indices.chunks[0]
    there = listed.compute()
    np.testing.assert_array_equal(found.order.put_back(listed).compute(), X)
    np.testing.assert_allclose(distances / unit, exact(there), rtol=1e-6, atol=1e-9)
    assert (indices != np.arange(len(X))[:, None]).all()
    lengths = np.linalg.norm(there[indices] - there[:, None, :], axis=2)
    np.testing.assert_allclose(distances / unit, lengths, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("group_bytes", "groups"), [(1 << 28, 2), (20_000, 3)])
def test_a_cluster_searches_in_few_groups_whatever_the_blocks(group_bytes, groups, monkeypatch):
    X = surface(700, 10)
    monkeypatch.setattr(lists.tasks, "worker_threads", lambda: 1)
    monkeypatch.setattr(lists, "GROUP_BYTES", group_bytes)
    found = lists.nearest_neighbours(lazily(X, 100), K, lists=9, probes=9)
    assert len(found.order.sizes) == groups
    there = found.order.take(lazily(X, 100)).compute()
    np.testing.assert_allclose(found.distances.compute(), exact(there), rtol=1e-6, atol=1e-9)


def test_large_problems_are_searched_by_lists_and_told_in_row_numbers(monkeypatch):
    X = surface(900, 12)
    monkeypatch.setattr(dask_neighbours, "EXACT_ROWS", 500)
    found = graphs.nearest_neighbours(lazily(X, 250), K)
    assert "lists" in found.engine
    indices, distances = dask.compute(found.indices, found.distances)
    assert indices.shape == (900, K)
    assert found.indices.chunks[0] == (250, 250, 250, 150)
    lengths = np.linalg.norm(X[indices] - X[:, None, :], axis=2)
    np.testing.assert_allclose(distances, lengths, rtol=1e-9, atol=1e-12)
    share = np.mean(distances <= exact(X)[:, -1:] * (1 + 1e-9))
    assert share >= 0.95
    assert abs(share - found.recall) < 0.03


def test_too_few_visits_are_doubled_until_the_recall_is_good(monkeypatch):
    X = np.random.default_rng(0).normal(size=(600, 10))
    poor = lists.nearest_neighbours(lazily(X, 200), K, lists=24, probes=2)
    monkeypatch.setattr(lists, "enough_lists", lambda ranks: 2)
    good = lists.nearest_neighbours(lazily(X, 200), K, lists=24)
    assert poor.recall < 0.9
    assert good.recall >= lists.LEAST_RECALL
    assert good.probes in (4, 8, 16, 24)


def test_the_number_of_visits_is_read_from_ranks():
    ranks = np.concatenate([np.zeros(490, dtype=int), np.full(10, 7)]).reshape(100, 5)
    assert lists.enough_lists(ranks) == 1
    assert lists.enough_lists(ranks + (np.arange(500) >= 489).reshape(100, 5)) == 2


def test_every_row_finds_k_others_even_if_its_lists_are_short():
    far = np.concatenate([surface(300, 10), 1e3 + surface(50, 10, seed=1)[:3]])
    found = lists.nearest_neighbours(lazily(far, 101), K, lists=30, probes=1)
    assert np.isfinite(found.distances.compute()).all()


def test_equal_rows_come_together():
    X = surface(600, 10)
    found = lists.nearest_neighbours(lazily(X, 150), K, lists=12)
    group = np.repeat(np.arange(len(found.order.sizes)), found.order.sizes)
    numbers = found.order.take(da.arange(600, chunks=150)).compute()
    where = np.empty(600, dtype=int)
    where[numbers] = group
    assert np.array_equal(where[300:320], where[:20])
