"""Solvers whose vectors stay in blocks: the answers of NumPy, in the order of lists too, and nothing of size n here."""

from __future__ import annotations

import numpy as np
import pytest

from contone import GLLE, LP, CumulativeMass, LabelConfidence, LCdr

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")
pytest.importorskip("faiss")

from contone.augment import confidence  # noqa: E402
from contone.backends import get_backend  # noqa: E402
from contone.backends.dask import lists, tasks  # noqa: E402
from contone.backends.dask import neighbours as dask_neighbours  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::contone.exceptions.NearUniformWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.RankWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning"),
]

SMOOTH = GLLE(lambda_="balanced")  # the other rule draws random signs, row by row, in the order of the lists
METHODS = [LabelConfidence(), SMOOTH, LP(graph="knn"), LCdr(n_components=2, beta=0.02)]
N, ROWS = 360, 90


@pytest.fixture(autouse=True)
def by_lists(monkeypatch):
    """Everything in this process, and 360 rows are many."""
    monkeypatch.setattr(dask_neighbours, "EXACT_ROWS", 100)
    monkeypatch.setattr(lists, "n_lists", lambda n: 8)
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def problem() -> tuple[np.ndarray, np.ndarray]:
    """Seven features, three labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 7))
    Z = X[:, :3] + 0.3 * rng.normal(size=(N, 3))
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    return X, CumulativeMass().apply(D).astype(float)


def lazily(A: np.ndarray):
    return da.from_array(A, chunks=(ROWS, A.shape[1]))


def all_lists(monkeypatch) -> None:
    monkeypatch.setattr(lists, "enough_lists", lambda ranks: 8)
    monkeypatch.setattr(lists, "CANDIDATES", lists.MOST_CANDIDATES)


def fitted(method, X, L):
    answer = method.fit_enhance(lazily(X), lazily(L))
    assert answer.chunks[0] == lazily(X).chunks[0]
    return answer.compute()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_with_all_lists_the_answer_is_that_of_numpy(method, problem, monkeypatch):
    all_lists(monkeypatch)
    answer = fitted(method, *problem)
    info = method.solution_.info
    search = info.get("neighbours") or info["confidence"]["neighbours"]
    assert search == {"engine": "dask, 8 lists, 8 probes, 4 groups", "recall": 1.0}
    assert np.abs(answer - method.fit_enhance(*problem)).max() < 1e-6


def test_a_few_lists_hardly_change_the_answer(problem):
    method = LP(graph="knn")
    answer, expected = fitted(method, *problem), method.fit_enhance(*problem)
    assert np.abs(answer - expected).mean() < 2e-3


def test_equal_rows_get_equal_answers(problem):
    X, L = problem[0].copy(), problem[1]
    X[100:120] = X[:20]
    method = GLLE()
    answer = fitted(method, X, L)
    assert np.abs(answer[100:120] - answer[:20]).max() < 1e-12
    assert method.solution_.info["n_distinct"] == N - 20


def test_labels_nobody_asked_about_and_rows_without_any(problem, monkeypatch):
    all_lists(monkeypatch)
    X, L = problem[0], problem[1].copy()
    L[5:40, 1], L[60:70] = np.nan, 0.0
    for method in (SMOOTH, LabelConfidence()):
        answer = fitted(method, X, L)
        assert np.abs(answer - method.fit_enhance(X, L)).max() < 1e-6


@pytest.mark.parametrize("n_labels", [2, 3])
def test_flat_directions_are_settled_as_in_memory(n_labels, monkeypatch):
    # Labels that all rows of a component have: mass may move between them, and the nearest to equal shares is chosen.
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(40, 7)) + 100 * i for i in range(3)])
    L = np.ones((120, 3))
    L[:40, n_labels:] = 0.0
    L[40:80, 0] = rng.integers(0, 2, size=40)
    all_lists(monkeypatch)
    method = LabelConfidence(n_neighbors=6)
    answer = method.fit_enhance(da.from_array(X, chunks=(50, 7)), da.from_array(L, chunks=(50, 3))).compute()
    info = method.solution_.info
    assert np.abs(answer - method.fit_enhance(X, L)).max() < 1e-6
    for name in ("components", "flat_directions", "free_rows", "single_label_rows", "isolated_rows"):
        assert info[name] == method.solution_.info[name]
    assert info["flat_directions"] > 0


def test_isolated_rows_share_their_labels_equally(problem, monkeypatch):
    all_lists(monkeypatch)
    X, L = problem[0].copy(), problem[1]
    X[7] = 1e6
    L = np.concatenate([L[:7], [[1.0, 1.0, 0.0]], L[8:]])
    method = LabelConfidence(sigma=1.0)
    answer = fitted(method, X, L)
    assert method.solution_.info["isolated_rows"] >= 1
    np.testing.assert_allclose(answer[7], [0.5, 0.5, 0.0])


def test_what_comes_here_does_not_grow_with_the_rows(monkeypatch):
    """Values that are fetched from workers: their sizes at 300 rows and at 900 are the same."""
    largest = {}
    original = tasks.fetch

    def fetch(handles):
        values = original(handles)
        sizes = [A.nbytes for A in _arrays_in(values)]
        largest[n] = max([largest.get(n, 0), *sizes])
        return values

    monkeypatch.setattr(tasks, "fetch", fetch)
    monkeypatch.setattr(lists, "SAMPLE_QUERIES", 20)
    for n in (300, 900):
        rng = np.random.default_rng(0)
        X, L = rng.normal(size=(n, 7)), rng.integers(0, 2, size=(n, 3)).astype(float)
        L[:, 0] = 1.0
        for method in (LabelConfidence(), GLLE(), LP(graph="knn")):
            method.fit(*(da.from_array(A, chunks=(n // 3, A.shape[1])) for A in (X, L)))
    assert largest[900] <= largest[300]


def _arrays_in(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _arrays_in(entry)


def test_the_certificate_holds_in_blocks(problem):
    X, L = problem
    method = LabelConfidence()
    fitted(method, X, L)
    assert method.solution_.residual <= max(1e-12, confidence.ROUNDINGS * np.finfo(float).eps)


def test_a_sum_over_rows_has_as_many_parts_as_it_says():
    # The objective of LCdr's model gives each part its share of the penalty.
    X = da.ones((50_000, 1), chunks=(30_000, 1))
    backend = get_backend(X)
    total = backend.sum_rows(lambda scale, rows: (scale * rows.sum(), 1), X)
    assert total(2.0) == (100_000.0, backend.n_blocks(X))
    assert backend.n_blocks(X) > len(X.chunks[0])
