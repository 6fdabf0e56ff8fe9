"""dask arrays: the answers of NumPy, lazily, whatever the blocks, and with a worker killed on the way."""

from __future__ import annotations

import os
import signal
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

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
from contone.exceptions import (
    FeatureError,
    InputTypeError,
    LabelError,
    LabelWarning,
    MemoryEstimateError,
    ShapeError,
)

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
    LP(),
    LCdr(n_components=2),
    Augmented(Temperature(c=1.0)),
    ML2(),
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
    assert np.abs(answer.compute() - expected).max() < 1e-12


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
    assert np.abs(method.predict(lazily(new, 50)).compute() - expected).max() < 1e-12
    in_memory = method.predict(new)
    assert isinstance(in_memory, np.ndarray)
    assert np.abs(in_memory - expected).max() < 1e-12


@pytest.mark.usefixtures("here")
def test_learners_fit_and_predict_lazy_rows():
    X, L = problem(80)
    D = L / L.sum(axis=1, keepdims=True)
    expected = MaxEnt().fit(X, D).predict(X)
    for fitted in (MaxEnt().fit(X, D), MaxEnt().fit(lazily(X, 30), lazily(D, 20))):
        assert np.abs(fitted.predict(lazily(X, 30)).compute() - expected).max() < 1e-12


@pytest.mark.usefixtures("here")
def test_rows_without_labels_are_predicted():
    X, L = problem(90)
    L[[3, 70]] = 0
    with pytest.warns(LabelWarning, match="rows without any label"):
        expected = LCdr().fit_enhance(X, L)
    with pytest.warns(LabelWarning, match="rows without any label"):
        answer = LCdr().fit_enhance(lazily(X, 25), lazily(L, 25))
    assert np.abs(answer.compute() - expected).max() < 1e-12


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
    for method, most in ((Temperature(), 0), (LCdr(n_components=2), 0), (Inversion(**SHORT, max_rows=30), 1)):
        answer = method.fit_enhance(lazy, lazily(L, 20))
        read = len(seen)
        answer[:20].compute()
        # The answer for one block needs that block alone, or nothing where it has been computed.
        assert len(seen) - read == most


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
@pytest.mark.parametrize("method", [GLLE(), LP(), LCdr(), ML2(), MaxEnt(), HSICReducer()], ids=label)
def test_what_does_not_fit_here_is_refused_before_a_row_is_fetched(method, monkeypatch):
    X, L = (lazily(A, 200) for A in problem(n=600, d=40))
    # All that a fit has beyond the rows themselves would fit.
    limit = method._fit_bytes(600, 40, 3) + 0.5 * 8 * 600 * 43
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", f"{int(limit)}")
    text = f"{type(method).__name__} on 600 rows of a dask array with 40 features.*all rows together.*Use Inversion"
    with pytest.raises(MemoryEstimateError, match=text):
        method.fit(X, L / L.sum(axis=1, keepdims=True))
    Temperature().fit(X, L)
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", f"{int(limit + 0.6 * 8 * 600 * 43)}")
    method.fit(X, L / L.sum(axis=1, keepdims=True))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("method", "passes"),
    [(Temperature(), 1), (LP(), 2), (LCdr(n_components=2), 2)],  # the check; and fetching the rows
    ids=lambda value: type(value).__name__,
)
def test_how_often_features_are_read(method, passes):
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


# ------------------------------------------------------------------------------------------------------- on a cluster


def test_workers_give_the_same_answer(client):
    X, L = problem()
    answer = GLLE().fit_enhance(lazily(X, 80), lazily(L, 80))
    assert np.abs(answer.compute() - GLLE().fit_enhance(X, L)).max() < 1e-12


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
