"""NumPy's backend: rows in pieces give what all rows give, a sparse graph is its matrix, draws belong to rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from contone.backends import get_backend, to_numpy
from contone.backends.numpy import FEW_COLUMNS, neighbours, take_rows
from contone.backends.numpy.draws import TILE, RowStream
from contone.backends.numpy.graph import NumpyGraph, edge_graph
from contone.backends.numpy.neighbours import LARGEST, SMALLEST, query_neighbours, safe_unit
from contone.backends.protocols import invert
from contone.exceptions import InputTypeError, ShapeError
from contone.runtime import machine

HOST = get_backend(np.zeros(1))


@pytest.fixture(params=[8192, 7], ids=["whole", "pieces"])
def piece_rows(request, monkeypatch):
    """All rows at once, or seven at a time on two threads."""
    monkeypatch.setattr(machine, "PIECE_ROWS", request.param)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_sum_over_rows_is_that_of_all_rows(piece_rows, rng):
    A, B = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    found = HOST.over_rows(lambda a, b, share: share * (a * b).sum(axis=0), A, B, share=2.0)
    np.testing.assert_allclose(found, 2.0 * (A * B).sum(axis=0))
    assert len(HOST.pieces(A)) == (1 if piece_rows > 50 else 8)


def test_rows_may_be_written_over(piece_rows, rng):
    A, B = rng.normal(size=(50, 3)), rng.normal(size=50)
    expected = A + B[:, None]

    def add(a, b):
        a += b[:, None]

    assert HOST.over_rows(add, A, B) is None
    np.testing.assert_array_equal(A, expected)


@pytest.mark.parametrize("shape", [(31,), (31, 4)])
def test_rows_in_another_order(piece_rows, rng, shape):
    A, order = rng.normal(size=(40, 2)), rng.integers(0, 40, size=shape)
    np.testing.assert_array_equal(take_rows(A, order), A[order])
    assert take_rows(A, order).dtype == A.dtype


def test_a_permutation_is_undone():
    order = np.array([2, 0, 3, 1])
    np.testing.assert_array_equal(invert(order), [1, 3, 0, 2])
    np.testing.assert_array_equal(order[invert(order)], np.arange(4))


@pytest.mark.parametrize("columns", [1, 2, FEW_COLUMNS, FEW_COLUMNS + 1])
def test_the_largest_entry_of_a_row(rng, columns):
    A = rng.normal(size=(3, 20, columns))
    np.testing.assert_array_equal(HOST.row_maxima(A), A.max(axis=-1))


def test_members_are_counted_and_summed(rng):
    group, A = np.array([0, 2, 2, 0, 4, 2]), rng.normal(size=(6, 3))
    np.testing.assert_array_equal(HOST.count_members(group, 6), [2, 0, 3, 0, 1, 0])
    expected = np.stack([A[group == g].sum(axis=0) for g in range(6)])
    np.testing.assert_allclose(HOST.sum_members(A, group, 6), expected)
    np.testing.assert_allclose(HOST.sum_members(A[:, 0], group, 6), expected[:, 0])


def test_row_numbers_and_kinds_of_arrays(rng):
    A = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(HOST.row_numbers(A), [[0], [1], [2], [3]])
    assert HOST.transpose(A).flags.c_contiguous
    np.testing.assert_array_equal(HOST.transpose(A), A.T)
    assert HOST.like([1, 2], np.zeros(1, dtype=np.float32)).dtype == np.float32
    assert get_backend(A, sp.csr_array(A)).name == "sparse"
    np.testing.assert_array_equal(to_numpy(sp.csr_array(A)), A)
    assert not HOST.host_is_quicker(A)
    assert HOST.rows_per_block(A, 3, 17) == 17


@pytest.mark.parametrize(
    ("A", "error"),
    [
        (np.zeros(3), ShapeError),
        (np.zeros((3, 0)), ShapeError),
        (np.zeros((2, 2, 2)), ShapeError),
        (np.array([["a"]]), InputTypeError),
        (np.zeros((2, 2), dtype=complex), InputTypeError),
    ],
    ids=["vector", "no columns", "cube", "text", "complex"],
)
def test_what_is_no_matrix_of_numbers_is_refused(A, error):
    with pytest.raises(error, match="^Q must"):
        HOST.check_matrix(A, "Q")


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_a_matrix_of_numbers_passes(dtype):
    A = np.ones((3, 1), dtype=dtype)
    assert HOST.check_matrix(A, "Q") is A


def test_rows_that_are_there_are_checked_at_once_from_the_first_one():
    A, seen = np.ones((3, 1)), []
    assert HOST.check_later(A, lambda rows, first: seen.append((rows, first))) is A
    assert seen == [(A, 0)]
    assert HOST.each_block(lambda a, b: (a, b), A, A) == [(A, A)]


# ------------------------------------------------------------------------------------------------------------- graphs


@pytest.fixture
def edges(rng):
    """Indices and weights (n, k) of a directed graph without loops, one row without weight; and its matrix."""
    n, k = 40, 3
    indices = np.stack([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    weights = rng.uniform(0.1, 1.0, size=(n, k))
    weights[5] = 0.0
    dense = np.zeros((n, n))
    np.put_along_axis(dense, indices, weights, axis=1)
    return indices, weights, dense


def test_a_graph_is_its_matrix(piece_rows, edges, rng):
    indices, weights, A = edges
    graph = edge_graph(indices, weights)
    V, left, right = rng.normal(size=(40, 2)), rng.uniform(size=40), rng.uniform(size=40)
    left[7] = 0.0
    assert graph.shape == A.shape
    assert graph.matrix.indices.dtype == np.int32
    np.testing.assert_allclose(graph.matrix.toarray(), A)
    np.testing.assert_allclose(graph.matmul(V), A @ V)
    np.testing.assert_allclose(graph.row_sums(), A.sum(axis=1))
    np.testing.assert_allclose(graph.diagonal_plus(left, -0.5)(V), (np.diag(left) - 0.5 * A) @ V)
    np.testing.assert_allclose(graph.symmetrize(by="sum").matrix.toarray(), A + A.T)
    np.testing.assert_allclose(graph.symmetrize(by="max").matrix.toarray(), np.maximum(A, A.T))
    scaled = graph.scale(left, right)
    np.testing.assert_allclose(scaled.matrix.toarray(), left[:, None] * A * right)
    assert scaled.matrix.nnz == np.count_nonzero(left[:, None] * A)  # zeros are no entries
    np.testing.assert_allclose(graph.matrix.toarray(), A)  # the graph itself stays as it was
    chosen = np.array([1, 4, 5, 30])
    np.testing.assert_allclose(graph.submatrix(chosen).matrix.toarray(), A[np.ix_(chosen, chosen)])


def test_a_step_with_the_graph_sees_the_product_of_its_rows(piece_rows, edges, rng):
    indices, weights, A = edges
    F, out = rng.normal(size=(40, 2)), np.zeros((40, 2))

    def step(product, out, F, share):
        out[...] = product - share * F
        return float((product * F).sum())

    total = edge_graph(indices, weights).over_rows(F, step, out, F, share=3.0)
    np.testing.assert_allclose(out, A @ F - 3.0 * F)
    assert total == pytest.approx(float(np.sum(F * (A @ F))))


def test_components_are_those_of_the_undirected_graph():
    A = sp.csr_array(([1.0, 1.0, 2.0], ([0, 3, 4], [1, 4, 3])), shape=(6, 6))
    count, member = NumpyGraph(A).connected_components()
    assert count == 4
    assert member[0] == member[1]
    assert member[3] == member[4]
    assert len(set(member.tolist())) == 4


# ---------------------------------------------------------------------------------------------------------- distances


@pytest.mark.parametrize(
    ("largest", "expected"),
    [(0.0, 1.0), (1.0, 1.0), (LARGEST / 2, 1.0), (2.0 * SMALLEST, 1.0), (2.0**600, 2.0**600), (-(2.0**601), 2.0**601)],
)
def test_the_unit_of_features_is_one_unless_squares_would_be_lost(largest, expected):
    assert safe_unit(np.array([[0.0, largest]])) == expected
    assert safe_unit(np.ones((1, 2)), np.array([[largest]])) == (expected if abs(largest) > 1 else 1.0)


def test_a_tiny_unit_is_a_power_of_two_not_above_the_largest_entry():
    unit = safe_unit(np.array([[3e-200, -5e-200]]))
    assert np.frexp(unit)[0] == 0.5
    assert 2.5e-200 < unit <= 5e-200


@pytest.mark.parametrize("unit", [2.0**-600, 1.0, 2.0**600])
def test_queries_find_the_same_rows_in_any_unit(unit):
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
    distance = np.linalg.norm(queries[:, None] - X, axis=2)
    found = query_neighbours(unit * X, unit * queries, 5)
    np.testing.assert_array_equal(found.indices, np.argsort(distance, axis=1)[:, :5])
    np.testing.assert_allclose(found.distances / unit, np.sort(distance, axis=1)[:, :5], rtol=1e-9)


@pytest.mark.parametrize("n", [3, 100, 256, 700, 2000])
def test_the_minutes_of_an_exact_search_are_those_of_a_few_queries_for_all(monkeypatch, n):
    """A clock that runs a hundredth of a second for every query that is asked, spread over the rows."""
    now, asked = [0.0], []

    class Search:
        def __init__(self, n_neighbors):
            assert n_neighbors == min(10, n)

        def fit(self, X):
            return self

        def kneighbors(self, rows):
            now[0] += 0.01 * len(rows)
            asked.extend(rows[:, 0])

    monkeypatch.setattr(neighbours, "NearestNeighbors", Search)
    monkeypatch.setattr(neighbours.time, "perf_counter", lambda: now[0])
    X = np.arange(1.0 * n)[:, None]
    assert neighbours._exact_minutes(X, 6000) == pytest.approx(1.0)
    assert len(asked) == min(n, 256)
    assert asked[0] == 0
    assert asked[-1] > 0.7 * (n - 1)
    assert len(set(asked)) == len(asked)


# -------------------------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize(
    ("start", "stop"),
    [(TILE - 3, 2 * TILE + 1), (2 * TILE + 5, 3 * TILE + 2), (TILE, 2 * TILE), (2 * TILE + 5, 2 * TILE + 9), (0, 1)],
)
def test_random_numbers_belong_to_rows(start, stop):
    """Whatever part of the rows is drawn for, in whatever tiles it begins and ends."""
    n, rows, size = 3 * TILE + 10, slice(start, stop), stop - start
    whole, part = RowStream(5, 0, n), RowStream(5, start, stop)
    for _ in range(2):
        np.testing.assert_array_equal(part.random((2, size)), whole.random((2, n))[:, rows])
        np.testing.assert_array_equal(part.standard_normal(size), whole.standard_normal(n)[rows])
    np.testing.assert_array_equal(part.aside.random(size), whole.aside.random(n)[rows])


def test_streams_are_independent_of_each_other():
    n = 4 * TILE
    streams = [RowStream(5, 0, n), RowStream(6, 0, n), RowStream(5, 0, n).aside, RowStream(5, 0, n, 2)]
    draws = np.array([stream.standard_normal(n) for stream in streams])
    together = np.vstack([draws, draws[0].reshape(4, TILE)[[1, 2, 3, 0]].ravel()])  # other tiles of the first
    assert np.abs(np.corrcoef(together) - np.eye(5)).max() < 0.08
    np.testing.assert_allclose([draws.mean(), draws.std()], [0.0, 1.0], atol=0.03)
    uniform = RowStream(5, 0, n).random(n)
    np.testing.assert_allclose([uniform.min(), uniform.mean(), uniform.max()], [0.0, 0.5, 1.0], atol=0.02)
