"""dask arrays: the answers of NumPy, lazily, whatever the blocks, and with a worker killed on the way."""

from __future__ import annotations

import os
import re
import signal
import tracemalloc
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

import contone
from contone import (
    GLLE,
    LP,
    ML2,
    Augmented,
    CumulativeMass,
    HSICReducer,
    Inversion,
    LabelConfidence,
    LCdr,
    Logical,
    MaxEnt,
    Temperature,
    Uniform,
)
from contone.backends import get_backend
from contone.backends.dask import graph as dask_graph
from contone.backends.dask import neighbours as dask_neighbours
from contone.backends.numpy.draws import TILE, RowStream
from contone.base import Enhancer
from contone.exceptions import (
    FeatureError,
    InputError,
    InputTypeError,
    LabelError,
    LabelWarning,
    MemoryEstimateError,
    ShapeError,
)
from contone.numerics import graphs

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore::contone.exceptions.NearUniformWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.RankWarning"),
]

METHODS = [
    Uniform(),
    Temperature(),
    Logical(),
    LabelConfidence(),
    GLLE(),
    GLLE(lambda_="balanced", n_neighbors="labels", standardize=False, output="sum"),
    LP(graph="knn"),
    LP(graph="knn", sigma=0.7, output="sum"),
    LCdr(n_components=2, beta=0.02),
    Augmented(Temperature(c=1.0)),
]
INDUCTIVE = [m for m in METHODS if hasattr(m, "predict")]


def problem(n: int = 240, d: int = 5, q: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = X @ rng.normal(size=(d, q)) + 0.3 * rng.normal(size=(n, q))
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    return X, CumulativeMass().apply(D).astype(float)


def lazily(A: np.ndarray, rows: int):
    return da.from_array(A, chunks=(rows, A.shape[1]))


def label(method) -> str:
    return str(method).replace("\n", " ")


@pytest.fixture
def here():
    """Tasks run in this process, one after the other: all that matters here but the cluster, and fast."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def cluster(forked_workers):
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as workers:
        yield workers


PATIENCE = 240
"""Seconds after which a cluster that does not answer fails the test that waits for it, in place of hanging."""


def _give_up(*_):
    raise TimeoutError(f"the cluster did not answer in {PATIENCE} s")


@pytest.fixture
def client(cluster):
    # `Client` and `LocalCluster` wait without end for what a killed worker owed them. A real alarm ends any such wait.
    previous = signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(PATIENCE)
    try:
        with distributed.Client(cluster, timeout=60) as opened:
            opened.wait_for_workers(2, timeout=60)
            yield opened
            # A cluster that is closed while a worker starts again may wait for that worker for ever.
            opened.wait_for_workers(2, timeout=180)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


# ------------------------------------------------------------------------------------------------- the same answers


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("rows", [pytest.param(60, marks=pytest.mark.exhaustive), 97])  # of 240: even blocks, and not
@pytest.mark.parametrize("method", METHODS, ids=label)
def test_the_answer_is_that_of_numpy_whatever_the_blocks(method, rows):
    X, L = problem()
    expected = method.fit_enhance(X, L)
    answer = method.fit_enhance(lazily(X, rows), lazily(L, rows))
    assert isinstance(answer, da.Array)
    assert answer.chunks[0] == lazily(X, rows).chunks[0]
    assert np.abs(answer.compute() - expected).max() < 1e-6


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("method", INDUCTIVE, ids=label)
def test_new_rows(method):
    X, L = problem()
    new = problem(seed=1)[0]
    expected = method.fit(X, L).predict(new)
    # A model from memory on lazy rows; a model from lazy rows on both.
    assert np.abs(method.predict(lazily(new, 50)).compute() - expected).max() < 1e-12
    method.fit(lazily(X, 100), lazily(L, 100))
    assert isinstance(method.predict(lazily(new, 50)), da.Array)
    assert np.abs(method.predict(lazily(new, 50)).compute() - expected).max() < 1e-6
    in_memory = method.predict(new)
    assert isinstance(in_memory, np.ndarray)
    assert np.abs(in_memory - expected).max() < 1e-6


@pytest.mark.usefixtures("here")
def test_every_inductive_method_and_learner_predicts_lazy_rows():
    X, L = problem(80)
    for fitted in (ML2().fit(X, L), MaxEnt().fit(X, L / L.sum(axis=1, keepdims=True))):
        if hasattr(fitted, "predict"):
            assert np.abs(fitted.predict(lazily(X, 30)).compute() - fitted.predict(X)).max() < 1e-12


@pytest.mark.usefixtures("here")
def test_a_model_with_kinks_reaches_the_same_minimum():
    # ReLU has kinks, at which L-BFGS stops as soon as rounding is all that is left to gain; the weights are then known
    # to fewer digits than the objective, in NumPy as here.
    X, L = problem()
    model = LCdr(n_components=2)
    in_memory = model.fit_enhance(X, L), model.solution_.objective
    lazy = model.fit_enhance(lazily(X, 70), lazily(L, 70)).compute(), model.solution_.objective
    assert lazy[1] == pytest.approx(in_memory[1], rel=1e-6)
    assert np.abs(lazy[0] - in_memory[0]).max() < 1e-3


@pytest.mark.usefixtures("here")
def test_equal_rows_get_equal_answers():
    X, L = problem(90)
    X[50:60] = X[:10]
    L[50:60] = L[:10]
    answer = GLLE().fit_enhance(lazily(X, 25), lazily(L, 25)).compute()
    assert np.abs(answer[50:60] - answer[:10]).max() < 1e-12


@pytest.mark.usefixtures("here")
def test_statistics_of_the_reducer():
    X, L = problem(n=150)
    reducer = HSICReducer(n_components=2, alpha=0.3, rescale="unit_variance")
    expected = reducer.fit(X, L).transform(X)
    lazy = reducer.fit(lazily(X, 40), lazily(L, 40)).transform(lazily(X, 40))
    assert isinstance(lazy, da.Array)
    assert np.abs(lazy.compute() - expected).max() < 1e-10


# ------------------------------------------------------------------------------------------------------- inversion

SHORT = {"n_sweeps": 60, "n_burn": 20}


@pytest.mark.usefixtures("here")
def test_inversion_of_few_rows_is_that_of_numpy():
    X, L = problem()
    model = Inversion(**SHORT, n_samples=3)
    expected, samples, intervals = model.fit_enhance(X, L), model.samples_, model.intervals()
    answer = model.fit_enhance(lazily(X, 70), lazily(L, 70))
    assert np.abs(answer.compute() - expected).max() < 1e-12
    assert np.abs(model.samples_ - samples).max() < 1e-12
    assert np.abs(model.intervals()[0] - intervals[0]).max() < 1e-12


@pytest.mark.usefixtures("here")
def test_inversion_fits_a_sample_and_follows_the_rows():
    X, L = problem(n=240)
    model = Inversion(**SHORT, max_rows=100)
    answers = [model.fit_enhance(lazily(X, rows), lazily(L, rows)) for rows in (240, 90, 33)]
    first, *others = (answer.compute() for answer in answers)
    # The blocks do not matter, nor does asking twice, nor asking for a few rows only.
    for other in (*others, answers[1].compute()):
        assert np.abs(other - first).max() < 1e-12
    assert np.abs(answers[2][120:140].compute() - first[120:140]).max() < 1e-12
    # The parameters are those of a fit to the sample in memory.
    seed = int(np.random.RandomState(0).randint(2**31))
    rows = np.sort(np.random.default_rng(seed).choice(240, 100, replace=False, shuffle=False))
    sample = Inversion(**SHORT).fit(X[rows], L[rows])
    assert np.abs(sample.coefficients_ - model.coefficients_).max() < 1e-12
    assert np.abs(sample.covariance_ - model.covariance_).max() < 1e-12
    assert model.solution_.info["sample_rows"] == 100
    # The answers are samples from the posterior under these parameters, as those in memory are.
    in_memory = sample.enhance(X, L)
    assert np.abs(first - in_memory).mean() < 0.02
    assert np.abs(first.mean(axis=0) - in_memory.mean(axis=0)).max() < 0.005
    lower, upper = dask.compute(*model.intervals(level=0.9))
    assert ((lower <= upper) & (lower >= 0) & (upper <= 1)).all()
    assert ((lower <= first) & (first <= upper)).mean() > 0.9


@pytest.mark.usefixtures("here")
def test_inversion_of_new_lazy_rows():
    X, L = problem()
    model = Inversion(**SHORT).fit(X, L)
    assert np.abs(model.predict(lazily(X, 50)).compute() - model.predict(X)).max() < 1e-12
    answer = model.enhance(lazily(X, 50), lazily(L, 70))
    assert np.abs(answer.compute() - model.enhance(lazily(X, 240), L).compute()).max() < 1e-12
    assert np.abs(answer.compute() - model.enhance(X, L)).mean() < 0.02
    with pytest.raises(ShapeError, match="2 labels"):
        model.enhance(lazily(X, 50), lazily(L[:, :2], 50))
    silent = L.copy()
    silent[133] = 0  # a row without labels gets what its features tell, wherever it lies
    told = model.enhance(lazily(X, 50), lazily(silent, 50)).compute()
    assert np.abs(told[133] - model.predict(X)[133]).max() < 1e-12
    with pytest.warns(LabelWarning, match="always 1"):
        only = Inversion(**SHORT, max_rows=50).fit_enhance(lazily(X, 60), lazily(np.ones((240, 1)), 60))
    assert (only.compute() == 1).all()


# -------------------------------------------------------------------------------------------------------- laziness


@pytest.mark.usefixtures("here")
def test_nothing_is_computed_before_it_is_asked_for():
    X, L = problem(n=60)
    seen = []

    def note(block):
        seen.append(len(block))
        return block

    lazy = lazily(X, 20).map_blocks(note, dtype=float, meta=np.empty((0, 0)))
    for method in (Temperature(), LCdr(n_components=2, beta=0.02), Inversion(**SHORT, max_rows=30)):
        answer = method.fit_enhance(lazy, lazily(L, 20))
        read = len(seen)
        answer[:20].compute()
        # The answer for one block needs that block alone.
        assert len(seen) - read <= 1


@pytest.mark.usefixtures("here")
def test_rows_in_any_blocks_and_containers():
    X, L = problem(n=60)
    expected = GLLE().fit_enhance(X, L)
    unknown = da.from_array(X, chunks=(20, 5))
    unknown = unknown[da.from_array(np.ones(60, dtype=bool), chunks=20)]
    assert np.isnan(unknown.shape[0])
    empty_block = da.concatenate([lazily(X[:30], 10), lazily(X[:0], 1), lazily(X[30:], 10)])
    for features, labels in [
        (unknown, lazily(L, 60)),
        (da.from_array(X, chunks=(25, 2)), da.from_array(L, chunks=(7, 1))),
        (empty_block, L),
        (X, lazily(L, 20)),
        (lazily(X, 20), lazily(L.astype(bool), 20)),
    ]:
        answer = GLLE().fit_enhance(features, labels)
        assert isinstance(answer, da.Array)
        assert np.abs(answer.compute() - expected).max() < 1e-6


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.usefixtures("here")
def test_bad_input_is_named_with_its_row():
    X, L = problem(n=60)

    def fit(X, L):
        return GLLE().fit(lazily(X, 25), lazily(L, 25))

    for change, error, text in [
        (lambda X, L: X.__setitem__((31, 2), np.nan), FeatureError, "row 31"),
        (lambda X, L: L.__setitem__((57, 0), np.inf), LabelError, "row 57"),
        (lambda X, L: L.__setitem__((40, 1), 0.7), LabelError, "0.7|sum is"),
        (lambda X, L: L.__setitem__((40, 1), -1.0), LabelError, "0 and 1"),
    ]:
        spoilt = X.copy(), L.copy()
        change(*spoilt)
        with pytest.raises(error, match=text):
            fit(*spoilt)
    with pytest.raises(ShapeError, match="60 and 50"):
        fit(X, L[:50])
    with pytest.raises(ShapeError, match="one column per label"):
        GLLE().fit(lazily(X, 25), da.from_array(L[:, 0], chunks=25))
    with pytest.raises(InputTypeError, match="complex"):
        fit(X.astype(complex), L)
    with pytest.raises(FeatureError, match="one row"):
        fit(X[:1], L[:1])
    with pytest.raises(LabelError, match="y is None"):
        GLLE().fit(lazily(X, 25), None)
    with pytest.warns(LabelWarning, match="label_0"):
        fit(X, np.hstack([np.ones((60, 1)), L[:, 1:]]))


@pytest.mark.usefixtures("here")
def test_new_rows_are_checked_when_they_are_used():
    X, L = problem(n=60)
    fitted = GLLE().fit(X, L)
    new = X.copy()
    new[41, 0] = np.inf
    answer = fitted.predict(lazily(new, 20))
    answer[:20].compute()
    with pytest.raises(FeatureError, match="row 41"):
        answer.compute()
    with pytest.raises(FeatureError, match="features"):
        fitted.predict(lazily(new[:, :2], 20))


@pytest.mark.usefixtures("here")
def test_what_needs_all_rows_in_memory_says_so():
    X, L = (lazily(A, 20) for A in problem(n=60))
    with pytest.raises(InputTypeError, match="ML2 does not fit dask arrays; these methods do: Augmented, .*GLLE"):
        ML2().fit(X, L)
    with pytest.raises(InputTypeError, match="MaxEnt"):
        MaxEnt().fit(X, L)
    for method, text in [
        (GLLE(solver="lbfgs"), "solver='exact'"),
        (LP(graph="dense"), "graph='knn'"),
        (LCdr(solver="sgd"), "solver='lbfgs'"),
    ]:
        with pytest.raises(InputError, match=text):
            method.fit(X, L)


@pytest.mark.usefixtures("here")
def test_what_does_not_fit_here_is_refused_before_the_search(monkeypatch):
    X, L = (lazily(A, 20) for A in problem(n=60))
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "10kB")
    with pytest.raises(MemoryEstimateError, match="GLLE on 60 rows"):
        GLLE().fit(X, L)
    Temperature().fit(X, L)
    with pytest.raises(InputTypeError, match="PCA"):
        Augmented(Temperature(), confidence=None, reducer=PCA(2)).fit(X, L)


def test_the_methods_that_take_lazy_rows_are_those_that_say_so():
    X, L = problem(n=60)
    with pytest.raises(InputTypeError) as refused:
        ML2().fit(lazily(X, 20), lazily(L, 20))
    named = set(re.search(r"these methods do: ([\w, ]+)\.", str(refused.value))[1].split(", "))
    public = {name: getattr(contone, name) for name in contone.__all__}
    assert named == {
        n for n, c in public.items() if isinstance(c, type) and issubclass(c, Enhancer) and "dask" in c.kinds
    }
    assert {"LCdr", "GLLE", "LP", "Inversion", "Augmented", "LabelConfidence", "Temperature"} <= named


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("method", "passes"),
    [
        (Temperature(), 1),  # the check
        (LP(), 3),  # the check, means and deviations, neighbours
        (LabelConfidence(), 2),  # the check, neighbours
        (LCdr(n_components=2, beta=0.02), 4),  # the check, neighbours, products with the labels, projections
    ],
    ids=lambda value: type(value).__name__,
)
def test_features_are_read_as_often_as_the_mathematics_needs(method, passes):
    X, L = problem(n=60)
    read = []

    def note(block):
        read.append(len(block))
        return block

    lazy = lazily(X, 30).map_blocks(note, dtype=float, meta=np.empty((0, 0)))
    method.fit(lazy, lazily(L, 30))
    assert len(read) == 2 * passes


def test_contone_does_without_dask(bare_forks):
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('dask', 'distributed'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import contone\n"
        "print(contone.GLLE(n_neighbors=1).fit_enhance([[0.0], [1.0], [2.0]], [[1, 0], [1, 1], [0, 1]]).shape)"
    )
    done = bare_forks.run("-c", code)
    assert done.stdout.strip() == "(3, 2)", done.stderr


# --------------------------------------------------------------------------------------------------------- numerics


@pytest.mark.usefixtures("here")
def test_neighbours_of_duplicates_never_include_the_row_itself():
    X = np.repeat(np.arange(4.0)[:, None], 6, axis=0) * np.ones((1, 3))
    found = graphs.nearest_neighbours(lazily(X, 7), 5)
    indices, distances = dask.compute(found.indices, found.distances)
    assert (indices != np.arange(len(X))[:, None]).all()
    assert np.abs(distances).max() < 1e-12
    assert all(len(set(row)) == 5 for row in indices.tolist())


def _add_product(AF, changed, F, share):
    changed += share * AF
    return (AF * F).sum(axis=0)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("rows", "whole"), [(40, True), (100, False), (250, True)])
def test_block_matrices_behave_like_scipy_ones(rows, whole, monkeypatch):
    if not whole:
        monkeypatch.setattr(dask_graph, "WHOLE_BYTES", 0)  # blocks send each other the rows that are needed
    X, _ = problem(n=250)
    V = np.random.default_rng(1).normal(size=(250, 2))
    lazy_V = lazily(V, rows)
    in_memory, lazy = graphs.nearest_neighbours(X, 4), graphs.nearest_neighbours(lazily(X, rows), 4)
    for by in ("sum", "max"):
        A, B = (
            graphs.edge_graph(found, graphs.gaussian_weights(found.distances, 0.3)).symmetrize(by=by)
            for found in (in_memory, lazy)
        )
        assert np.abs(A.matmul(V) - B.matmul(lazy_V).compute()).max() < 1e-12
        assert np.abs(A.row_sums() - B.row_sums().compute()).max() < 1e-12
        (changed,), numbers = B.update(lazy_V, _add_product, (lazy_V,), (lazy_V,), share=0.5)
        assert np.abs(changed.compute() - V - 0.5 * A.matmul(V)).max() < 1e-12
        assert np.abs(numbers - (V * A.matmul(V)).sum(axis=0)).max() < 1e-12
        assert np.array_equal(lazy_V.compute(), V)
        plus = A.diagonal_plus(V[:, 0], 2.0)(V), B.diagonal_plus(lazy_V[:, 0], 2.0)(lazy_V)
        assert np.abs(plus[0] - plus[1].compute()).max() < 1e-12
        S, T = graphs.normalize_graph(A), graphs.normalize_graph(B)
        assert np.abs(S.S.matmul(V) - T.S.matmul(lazy_V).compute()).max() < 1e-12
        (count, component), (found, part) = (G.S.connected_components() for G in (S, T))
        assert count == found
        # The same partition: each component of one is exactly one of the other.
        assert len(set(zip(component.tolist(), part.compute().tolist(), strict=True))) == count


@pytest.mark.usefixtures("here")
def test_means_over_equal_rows():
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(12, 2))[rng.integers(0, 12, size=40)], rng.normal(size=(40, 3))
    expected = np.stack([V[(x == X).all(axis=1)].mean(axis=0) for x in X])
    backend = get_backend(lazily(X, 7))
    distinct, average = backend.average_equal_rows(lazily(X, 7), slice(None))
    assert distinct == len(np.unique(X, axis=0))
    assert np.abs(average(lazily(V, 7)).compute() - expected).max() < 1e-14


def test_components_of_a_graph_that_falls_apart():
    X = np.concatenate([np.random.default_rng(i).normal(size=(20, 2)) + 1000 * i for i in range(3)])
    with dask.config.set(scheduler="synchronous"):
        found = graphs.nearest_neighbours(lazily(X, 17), 6)
        graph = graphs.affinity_graph(found, 1.0)
        count, component = graph.connected_components()
        component = component.compute()
    assert count == 3
    assert [len(set(component[i : i + 20].tolist())) for i in (0, 20, 40)] == [1, 1, 1]


def test_random_numbers_belong_to_rows():
    n = 3 * TILE + 10
    whole, part = RowStream(5, 0, n), RowStream(5, TILE - 3, 2 * TILE + 1)
    rows = slice(TILE - 3, 2 * TILE + 1)
    for _ in range(2):
        assert np.array_equal(whole.random((2, n))[:, rows], part.random((2, TILE + 4)))
        assert np.array_equal(whole.standard_normal(n)[rows], part.standard_normal(TILE + 4))
    assert not np.array_equal(RowStream(5, 0, 10).random(10), RowStream(6, 0, 10).random(10))


# ------------------------------------------------------------------------------------------------------- on a cluster


def kill_a_worker_at(monkeypatch, cluster, module, name: str, call: int) -> list[int]:
    """Send SIGKILL to a worker at the n-th call of a function; the list holds its process number afterwards."""
    killed, calls, original = [], [0], getattr(module, name)

    def wrapped(*args, **kwargs):
        calls[0] += 1
        if calls[0] == call:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)
        return original(*args, **kwargs)

    monkeypatch.setattr(module, name, wrapped)
    return killed


@pytest.mark.parametrize("method", [GLLE(), LP(graph="knn")], ids=label)
def test_workers_give_the_same_answer(client, method):
    X, L = problem()
    answer = method.fit_enhance(lazily(X, 80), lazily(L, 80))
    assert np.abs(answer.compute() - method.fit_enhance(X, L)).max() < 1e-6


def test_compiled_sweeps_on_workers(client):
    """What a worker of the cluster compiles, or loads, is what this process has."""
    Z = np.random.default_rng(0).normal(size=(4, 50))
    here, there = _sums_of_a_draw(Z), client.submit(_sums_of_a_draw, Z).result()
    np.testing.assert_allclose(here[0], np.exp(Z) / np.exp(Z).sum(axis=0))
    for one, other in zip(there, here, strict=True):
        np.testing.assert_array_equal(one, other)


def _sums_of_a_draw(Z):
    from contone.enhance.inversion.sweeps.compiled import add_draw

    sums = tuple(np.zeros_like(Z) for _ in range(3))
    add_draw(Z, sums, 1e-12, -40.0)
    return sums


# While lists are searched, half of the rows are gone; in the middle of the confidence problem, half of the graph and of
# the vectors that it is multiplied with.
@pytest.mark.parametrize(("module", "name", "call"), [("lists", "_search", 1), ("tasks", "update", 12)])
def test_lcdr_survives_the_death_of_a_worker(client, cluster, monkeypatch, module, name, call):
    pytest.importorskip("faiss")
    X, L = problem(d=8)
    monkeypatch.setattr(dask_neighbours, "EXACT_ROWS", 100)
    model = LCdr(n_components=2, beta=0.02)
    with dask.config.set(scheduler="synchronous"):
        expected = model.fit_enhance(lazily(X, 80), lazily(L, 80)).compute()
    assert "lists" in model.solution_.info["confidence"]["neighbours"]["engine"]
    killed = kill_a_worker_at(monkeypatch, cluster, import_module(f"contone.backends.dask.{module}"), name, call)
    answer = model.fit_enhance(lazily(X, 80), lazily(L, 80)).compute()
    assert killed
    assert np.abs(answer - expected).max() < 1e-9


def _armed(block: np.ndarray, trap: str) -> np.ndarray:
    """The block; the first task that finds the trap set takes its worker down."""
    try:
        Path(trap).unlink()
    except FileNotFoundError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_inversion_survives_the_death_of_a_worker(client, tmp_path):
    X, L = problem(n=400)
    trap = tmp_path / "trap"
    model = Inversion(**SHORT, max_rows=100)
    with dask.config.set(scheduler="synchronous"):
        expected = model.fit_enhance(lazily(X, 50), lazily(L, 50)).compute()
    features = lazily(X, 50).map_blocks(_armed, str(trap), dtype=float, meta=np.empty((0, 0)))
    trap.touch()
    answer = model.fit_enhance(features, lazily(L, 50))
    assert not trap.exists()  # the fit lost a worker
    client.wait_for_workers(2, timeout=60)
    trap.touch()
    assert np.abs(answer.compute() - expected).max() < 1e-12
    assert not trap.exists()  # and so did the answer


def _features(block: np.ndarray) -> np.ndarray:
    """Features made where they are needed, from row numbers."""
    return np.sin(block * np.arange(1.0, 101.0))


def _labels(block: np.ndarray) -> np.ndarray:
    weights = np.exp(np.sin(block * np.arange(1.0, 4.0)))
    return CumulativeMass().apply(weights / weights.sum(axis=1, keepdims=True)).astype(float)


def test_the_client_never_holds_the_features(client):
    n, rows = 40_000, 4000
    numbers = da.arange(n, chunks=rows, dtype=float)[:, None]
    X = numbers.map_blocks(_features, dtype=float, chunks=(rows, 100), meta=np.empty((0, 0)))
    L = numbers.map_blocks(_labels, dtype=float, chunks=(rows, 3), meta=np.empty((0, 0)))
    tracemalloc.start()
    try:
        answer = Inversion(**SHORT, max_rows=200).fit_enhance(X, L)
        assert answer[30_000:30_010].compute().shape == (10, 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.nbytes == 32_000_000
    assert peak < 0.25 * X.nbytes
