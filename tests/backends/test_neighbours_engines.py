"""The engine of the neighbour search is chosen by size; an approximate one is measured, and says when it is poor."""

from __future__ import annotations

import itertools
import re
import sys
import warnings

import numpy as np
import pytest

from contone import GLLE, LP, LabelConfidence, LCdr
from contone.backends import Neighbours
from contone.backends.numpy import neighbours
from contone.exceptions import ApproximationWarning
from contone.numerics.graphs import (
    GOOD_RECALL,
    in_order,
    local_neighbours,
    nearest_neighbours,
    put_back,
    query_neighbours,
)

faiss = pytest.importorskip("faiss")
from contone.backends.numpy import faiss_lists  # noqa: E402
from contone.backends.numpy import faiss_search as neighbours_faiss  # noqa: E402


def surface(n: int, d: int = 12, seed: int = 0) -> np.ndarray:
    """Rows near a curved surface of four dimensions, far from the origin."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 4))
    return 1e3 + Z @ rng.normal(size=(4, d)) + np.sin(Z @ rng.normal(size=(4, d))) + 0.05 * rng.normal(size=(n, d))


@pytest.fixture(scope="module")
def X():
    return surface(6000)


@pytest.fixture
def small_limit(monkeypatch):
    """Everything beyond 1000 rows counts as large."""
    monkeypatch.setattr(neighbours, "EXACT_ROWS", 1000)


def test_small_problems_and_few_features_are_searched_exactly(X, small_limit):
    assert nearest_neighbours(X[:1000], 5).report() == {"engine": "exact", "recall": 1.0}
    assert nearest_neighbours(X[:, :6], 5).engine == "exact"
    assert nearest_neighbours(X, 5).engine.startswith("faiss")


def test_a_large_problem_is_searched_approximately_and_its_recall_is_what_was_measured(X, small_limit):
    found = nearest_neighbours(X, 10)
    truth = neighbours.NearestNeighbors(n_neighbors=10).fit(X).kneighbors()[1]
    share = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.indices, truth, strict=True)])
    assert share >= GOOD_RECALL
    assert found.recall == pytest.approx(share, abs=0.01)


def test_the_answer_is_a_neighbourhood_whatever_the_engine(X, small_limit):
    found = nearest_neighbours(X, 7)
    assert found.indices.shape == found.distances.shape == (len(X), 7)
    assert not (found.indices == np.arange(len(X))[:, None]).any()
    assert all(len(set(row)) == 7 for row in found.indices.tolist())
    assert (np.diff(found.distances, axis=1) >= 0).all()
    # Distances come from the float64 features, although these lie far from the origin and the search is in float32.
    expected = np.linalg.norm(X[found.indices] - X[:, None, :], axis=2)
    np.testing.assert_allclose(found.distances, expected, rtol=1e-12)


def test_independent_noise_takes_more_probes_for_the_same_recall():
    easy = neighbours_faiss.search(surface(8000, d=16), None, 10)
    hard = neighbours_faiss.search(np.random.default_rng(0).normal(size=(8000, 16)), None, 10)
    few, many = (int(re.search(r"(\d+) probes", found.engine)[1]) for found in (easy, hard))
    assert few < many
    assert min(easy.recall, hard.recall) >= GOOD_RECALL


def test_two_searches_are_the_same_with_any_number_of_threads(X, monkeypatch):
    monkeypatch.setattr(faiss_lists, "BLOCK_ROWS", 500)  # something for every thread
    found, threads = [], faiss.omp_get_max_threads()
    try:
        for n in (1, 2):
            faiss.omp_set_num_threads(n)
            monkeypatch.setenv("OMP_NUM_THREADS", str(n))
            found.append(neighbours_faiss.search(X, None, 10))
    finally:
        faiss.omp_set_num_threads(threads)
    assert np.array_equal(found[0].indices, found[1].indices)
    assert found[0].engine == found[1].engine


def test_duplicates_are_neighbours_at_zero_and_a_row_is_never_its_own(small_limit):
    X = np.repeat(surface(500), 6, axis=0)  # five twins each
    found = nearest_neighbours(X, 5)
    assert found.recall == 1.0
    assert (found.distances == 0).all()
    assert not (found.indices == np.arange(len(X))[:, None]).any()


def test_rows_that_are_all_equal_are_no_trouble(small_limit):
    found = nearest_neighbours(np.ones((2000, 8)), 4)
    assert (found.distances == 0).all()
    assert found.recall == 1.0


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_the_features_does_not_matter(X, scale, small_limit):
    a, b = nearest_neighbours(X, 5), nearest_neighbours(X * scale, 5)
    np.testing.assert_allclose(a.distances[:, 0] * scale, b.distances[:, 0], rtol=1e-6)


def test_lists_keep_their_length_however_many_rows_there_are():
    lists = [faiss_lists.n_lists(n) for n in (1, 100, 50_000, 100_000, 1_000_000)]
    assert lists == [1, 1, 250, 500, 5000]


def test_every_row_is_in_one_list_near_it():
    X = surface(20_000)
    index = neighbours_faiss._Index(X)
    assert np.array_equal(np.sort(index.order), np.arange(len(X)))
    assert np.array_equal(index.X, X[index.order])
    nearest = index._inverted.quantizer.assign(index._points, 1)[:, 0]
    assert np.mean(nearest == index._member) > 0.98


def test_candidates_are_measured_and_the_nearest_kept():
    """By float32 the k best of each row's candidates; by float64 the k nearest, without itself and what is no row."""
    rng = np.random.default_rng(0)
    X, asked = rng.normal(size=(50, 3)), rng.normal(size=(8, 3))
    found = np.stack([rng.permutation(50)[:12] for _ in range(8)])
    distance = np.linalg.norm(asked[:, None] - X[found], axis=2)
    expected = np.take_along_axis(found, np.argsort(distance, axis=1), axis=1)
    single = asked.astype(np.float32), X.astype(np.float32)
    for k in (1, 5, 12, 20):
        kept = faiss_lists.best(*single, found, k)
        assert [set(row) for row in kept] == [set(row[:k]) for row in expected]
    found[:, 7] = -1
    found[2, 3] = 0
    indices, distances = faiss_lists.measured(asked, X, found, 4, None)
    for row in range(8):
        there = found[row][found[row] >= 0]
        order = np.argsort(np.linalg.norm(asked[row] - X[there], axis=1))[:4]
        assert indices[row].tolist() == there[order].tolist()
        np.testing.assert_allclose(distances[row], np.linalg.norm(asked[row] - X[indices[row]], axis=1))
    itself = indices[:, 0]
    np.testing.assert_array_equal(faiss_lists.measured(asked, X, found, 3, itself)[0], indices[:, 1:])
    assert neighbours_faiss._recall(np.array([[1.0, 2.0], [1.0, 3.1]]), np.array([2.0, 3.0])) == 0.75


@pytest.mark.parametrize("probes", [1, 3])
def test_a_query_visits_the_lists_nearest_to_it(probes):
    rng = np.random.default_rng(0)
    centres, points = (rng.normal(size=(n, 3)).astype(np.float32) for n in (30, 40))
    lists = faiss_lists.Lists(centres[:5], centres, None)
    squared = ((points[:, None] - centres) ** 2).sum(axis=2)
    visited, gaps = lists.visit(points, squared.argmin(axis=1), probes)
    near = np.sort(np.argsort(squared, axis=1)[:, :probes], axis=1)
    same = (np.sort(visited, axis=1) == near).all(axis=1)
    assert same.mean() >= (0.9 if probes == 1 else 1.0)  # all 30 lists are compared with three probes, 16 with one
    np.testing.assert_allclose(gaps, np.take_along_axis(squared, visited, axis=1), rtol=1e-4, atol=1e-4)


class Adjustable:
    """An index of 100 lists that finds a share of the neighbours which depends on how thoroughly it searches."""

    lists = 100

    def __init__(self, share):
        self._share, self.tried = share, []

    def use(self, settings):
        self.settings = settings
        self.tried.append(settings)

    def true_radius(self, asked, k, itself):
        self.itself = [itself]
        return np.ones(len(asked))

    def nearest(self, asked, k, itself):
        self.itself.append(itself)
        found = np.full(len(asked), 2.0)
        found[: round(len(asked) * self._share(self.settings))] = 1.0
        return None, found[:, None]


@pytest.mark.parametrize(
    ("share", "probes", "candidates"),
    [
        (lambda s: 1.0, 8, 4),
        (lambda s: s.probes / 40, 41, 4),  # 8, 10, 12, 15, 18, 22, 27, 33, 41; half of the last step is too little
        (lambda s: 0.5 + 0.5 * (s.probes >= 36), 37, 8),  # but here it does; nothing helped at first
        (lambda s: min(s.candidates / 16, 1.0), 16, 16),
        (lambda s: 0.5, 100, 32),  # nothing helps: as thorough as can be
    ],
)
def test_a_search_is_made_more_thorough_until_it_is_good_or_cannot_be(share, probes, candidates):
    index = Adjustable(share)
    found = neighbours_faiss._tune(index, np.zeros((100, 2)), np.arange(100), 1, False)
    assert {*index.itself} == {None}  # queries are no rows
    assert (found.lists, found.probes) == (100, probes)
    assert found.candidates >= candidates
    assert index.settings == found
    steps = itertools.pairwise(s.probes for s in index.tried)
    assert all(b <= a * 5 // 4 for a, b in steps)
    rows = np.arange(0, 100, 3)
    assert neighbours_faiss._tune(index, np.zeros((100, 2)), rows, 1, True) == found
    assert all(itself is rows for itself in index.itself)  # a row is left out of its own neighbours


def test_new_rows_find_their_neighbours_among_many(X, small_limit):
    queries = surface(3000, seed=1)
    found = query_neighbours(X, queries, 6)
    assert found.engine.startswith("faiss")
    exact = neighbours.NearestNeighbors(n_neighbors=6).fit(X).kneighbors(queries)[0]
    assert np.mean(found.distances <= exact[:, -1:] * (1 + 1e-9)) >= GOOD_RECALL
    assert query_neighbours(X, queries[:10], 6).engine == "exact"  # few queries need no index


def test_a_single_query_is_tuned_and_checked_by_itself(X):
    found = neighbours_faiss.search(X, X[7:8], 3)
    assert found.recall == 1.0
    exact = neighbours.NearestNeighbors(n_neighbors=3).fit(X).kneighbors(X[7:8])
    np.testing.assert_allclose(found.distances, exact[0], atol=1e-9)
    assert np.array_equal(found.indices, exact[1])


def test_without_faiss_the_search_is_exact_and_says_what_to_install(X, small_limit, monkeypatch):
    monkeypatch.setattr(neighbours, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.warns(UserWarning, match=r"will take about \d+ minutes.*pip install 'contone\[scale\]'"):
        found = nearest_neighbours(X, 5)
    assert found.report() == {"engine": "exact", "recall": 1.0}


def test_renumbered_rows_have_the_same_neighbours(X, small_limit):
    found = nearest_neighbours(X, 6)
    local, order = local_neighbours(X, 6)
    assert np.array_equal(np.sort(order), np.arange(len(X)))
    assert np.array_equal(order[local.indices], found.indices[order])
    assert np.array_equal(put_back(in_order(X, order), order), X)
    # Closer in memory is the point of it.
    step = lambda f: np.median(np.abs(f.indices - np.arange(len(X))[:, None]))  # noqa: E731
    assert step(local) < 0.25 * step(found)


def test_an_exact_search_leaves_the_rows_where_they_are(X):
    found = nearest_neighbours(X[:100], 6)
    local, order = local_neighbours(X[:100], 6)
    assert np.array_equal(local.indices, found.indices)
    assert order == slice(None)
    assert put_back(X, order) is X


@pytest.mark.parametrize("method", [LabelConfidence(), LP(graph="knn"), GLLE()], ids=lambda m: type(m).__name__)
def test_the_engine_hardly_changes_the_answer(method, monkeypatch):
    X, L = surface(2500), logical(2500)
    exact = method.fit_enhance(X, L)
    monkeypatch.setattr(neighbours, "EXACT_ROWS", 1000)
    np.testing.assert_allclose(method.fit_enhance(X, L).mean(axis=0), exact.mean(axis=0), atol=1e-3)
    assert np.mean(np.abs(method.label_distributions_ - exact)) < 2e-3


def logical(n: int, q: int = 4) -> np.ndarray:
    L = np.random.default_rng(0).integers(0, 2, size=(n, q))
    L[np.arange(n), np.arange(n) % q] = 1
    return L


@pytest.mark.parametrize("method", [LabelConfidence(), LP(graph="knn"), GLLE()], ids=lambda m: type(m).__name__)
def test_methods_report_engine_and_recall(method, small_limit):
    X = surface(2500)
    method.fit(X, logical(2500))
    report = method.solution_.info["neighbours"]
    assert report["engine"].startswith("faiss")
    assert report["recall"] >= GOOD_RECALL


def test_the_augmented_method_reports_the_search_of_its_first_step(small_limit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels here are noise
        method = LCdr().fit(surface(2500), logical(2500))
    assert method.solution_.info["confidence"]["neighbours"]["recall"] >= GOOD_RECALL


def test_a_poor_graph_comes_with_a_warning_that_says_what_to_do(monkeypatch):
    X, L = surface(300), logical(300)
    exact = nearest_neighbours(X, 10)
    poor = Neighbours(exact.indices, exact.distances, "faiss", recall=0.9)
    monkeypatch.setattr("contone.augment.confidence.graphs.local_neighbours", lambda X, k: (poor, slice(None)))
    with pytest.warns(ApproximationWarning, match="only 90% of the true neighbours.*reduce them first"):
        LabelConfidence().fit(X, L)


def test_propagation_over_all_pairs_gives_way_to_neighbours_beyond_ten_thousand_rows(monkeypatch):
    X, L = surface(400), logical(400)
    assert LP().fit(X, L).solution_.info["graph"] == "dense"
    monkeypatch.setattr("contone.enhance.lp.DENSE_ROWS", 399)
    method = LP().fit(X, L)
    assert method.solution_.info["graph"] == "knn"
    np.testing.assert_array_equal(method.label_distributions_, LP(graph="knn").fit_enhance(X, L))
