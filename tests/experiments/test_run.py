"""The runner: resumes, keeps failures apart, survives kill -9, Ctrl-C, dying workers; runs on dask."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed

from contone import Temperature
from contone.exceptions import InputError, MissingExtraError
from contone.experiments import run as running
from contone.experiments.compute import compute
from contone.experiments.describe import describe
from contone.experiments.plan import Cell
from contone.experiments.run import Progress, _backend, leave_with, run
from contone.experiments.sources import load
from contone.experiments.store import Store

CUMULATIVE = {"class": "CumulativeMass", "params": {"t": 0.5}}


def cells(count: int, **changes) -> list[Cell]:
    """Cells that differ in a parameter: cheap, real, and each with its own key."""
    return [
        Cell(
            experiment="test",
            row=f"Temperature {i}",
            method="Temperature",
            dataset="artificial",
            data_hash=load("artificial")[3],
            task={"kind": "enhance", "estimator": describe(Temperature(c=i / 100))},
            degradation=CUMULATIVE,
            **changes,
        )
        for i in range(count)
    ]


def test_a_run_fills_the_store_and_repeats_nothing(tmp_path):
    store, seen = Store(tmp_path), []
    progress = run(cells(4), store, jobs=1, observer=lambda p: seen.append((p.done, p.left)))
    assert (progress.done, progress.failed, progress.reused) == (4, 0, 0)
    assert seen == [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)]
    again = run(cells(6), store, jobs=1, about={"command": "again"})
    assert (again.done, again.reused) == (2, 4)
    first, second = store.runs()
    assert first["state"] == second["state"] == "finished"
    assert (second["command"], second["done"], second["reused"], second["failed"]) == ("again", 2, 4, 0)
    assert second["machine"]["processor"]
    assert second["machine"]["cores"] == os.cpu_count()
    assert first["started"] <= first["finished"] <= second["started"]


def test_a_result_holds_what_the_report_needs(tmp_path):
    store = Store(tmp_path)
    (cell,) = cells(1)
    run([cell], store, jobs=1)
    found = store.result(cell.key)
    # c = 0 is the uniform distribution, whose scores on this set are known.
    assert found["scores"]["kl"] == pytest.approx(0.0566, abs=1e-4)
    assert found["scores"]["kl"] == found["scores"]["kl_forward"]
    assert {"kl_reversed_drop", "kl_reversed_clip", "cosine", "intersection"} <= set(found["scores"])
    assert len(found["examples"]["rows"]) == len(found["examples"]["recovered"]) == 4
    assert found["time"]["wall"] > 0
    assert found["versions"]["contone"]
    assert np.shape(found["surface"]) == (2601, 3)


def test_two_processes_give_the_same_numbers_as_one(tmp_path):
    one, two = Store(tmp_path / "1"), Store(tmp_path / "2")
    run(cells(3), one, jobs=1)
    run(cells(3), two, jobs=2)
    for cell in cells(3):
        assert one.result(cell.key)["scores"] == two.result(cell.key)["scores"]


def _swept(Z):
    from contone.enhance.inversion.sweeps import Bound, Move
    from contone.enhance.inversion.sweeps.compiled import CompiledSweeps
    from contone.measurements import Region

    given = Z, Bound(Z > 0), 0.1 * Z, np.eye(len(Z)), Move(np.full_like(Z, 0.3), Z[0])
    return CompiledSweeps(Region("mass", 0.5)).sweep(*given)


def test_compiled_loops_give_the_same_in_worker_processes():
    Z = np.random.default_rng(0).normal(size=(4, 50))
    here = _swept(Z)  # first, so that the others need not compile as well
    with _backend("loky", None, 2):
        there = Parallel(n_jobs=2)(delayed(_swept)(Z) for _ in range(2))
    assert not np.allclose(here, Z)
    for answer in there:
        np.testing.assert_array_equal(answer, here)


def test_an_edited_score_is_computed_again(tmp_path):
    store = Store(tmp_path)
    (cell,) = cells(1)
    run([cell], store, jobs=1)
    path = tmp_path / "results" / f"{cell.key}.json"
    true = store.result(cell.key)["scores"]["kl"]
    path.write_text(path.read_text().replace(repr(true), "0.001"))
    again = run([cell], store, jobs=1)
    assert (again.done, again.reused) == (1, 0)
    assert store.result(cell.key)["scores"]["kl"] == true


def test_a_failing_cell_does_not_stop_the_others(tmp_path):
    bad = Cell(
        experiment="test",
        row="bad",
        method="Temperature",
        dataset="artificial",
        data_hash=load("artificial")[3],
        task={"kind": "enhance", "estimator": {"class": "Temperature", "params": {"c": -1}}},
        degradation=CUMULATIVE,
    )
    store = Store(tmp_path)
    progress = run([bad, *cells(2)], store, jobs=1)
    assert (progress.done, progress.failed) == (2, 1)
    assert bad.key not in store
    assert "InvalidParameterError" in store.failure(bad.key)["error"]
    assert "Traceback" in store.failure(bad.key)["traceback"]
    # It is tried again the next time.
    assert run([bad], store, jobs=1).failed == 1


def test_changed_data_is_a_failure(tmp_path):
    (cell,) = cells(1)
    changed = Cell(**{**vars(cell), "data_hash": "other"})
    store = Store(tmp_path)
    assert run([changed], store, jobs=1).failed == 1
    assert "other content" in store.failure(changed.key)["error"]


def _die(cell: Cell):
    if cell.row == "Temperature 1":
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(cell)


def test_a_worker_that_dies_is_named(tmp_path):
    store = Store(tmp_path)
    progress = run(cells(2), store, jobs=2, compute=_die)
    assert (progress.done, progress.failed) == (1, 1)
    dead = store.failure(cells(2)[1].key)
    assert "out of memory" in dead["error"]
    assert 0 < dead["time"]["wall"] < 600
    assert (dead["time"]["cpu"], dead["status"]) == (0.0, "failed")


def _other_code(cell: Cell):
    return {**compute(cell), "key": "what the worker's code gives"}


def test_a_worker_with_other_code_gives_no_result(tmp_path):
    store = Store(tmp_path)
    assert run(cells(1), store, jobs=1, compute=_other_code).failed == 1
    assert len(store) == 0
    assert "other code" in store.failure(cells(1)[0].key)["error"]


def test_time_left_follows_the_rows():
    (cell,) = cells(1)
    progress = Progress(total=3, reused=0, jobs=2)
    progress.waiting = {cell.key: cell.row, "b": cell.row, "c": "another"}
    assert progress.seconds_left() is None
    progress.arrived(cell, {"status": "done", "time": {"wall": 4.0}})
    assert progress.running == 2
    assert progress.seconds_left() == pytest.approx(4.0)


# --------------------------------------------------------------------------------------------------- interruptions

SLOW_RUN = """
    import sys, time
    sys.path.insert(0, {here!r})
    from test_run import cells
    from contone.experiments.compute import compute
    from contone.experiments.run import run
    from contone.experiments.store import Store

    def slow(cell):
        time.sleep(0.15)
        return compute(cell)

    run(cells(16), Store({root!r}), jobs={jobs}, compute=slow)
"""


@pytest.fixture
def slow_run(tmp_path, forks):
    """Starts runs in processes of their own; whatever is left of them ends with the test."""
    started = []

    def start(jobs: int):
        code = SLOW_RUN.format(here=str(Path(__file__).parent), root=str(tmp_path / "store"), jobs=jobs)
        with open(tmp_path / "stderr", "a") as stderr:
            process = forks.start("-c", textwrap.dedent(code), stderr=stderr, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _gone(group: int, seconds: float = 20.0) -> bool:
    """Whether every process of the group ends within that time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("kill", "jobs"),
    [(signal.SIGKILL, 2), pytest.param(signal.SIGINT, 2, marks=pytest.mark.exhaustive), (signal.SIGINT, 1)],
)
def test_a_killed_run_goes_on_where_it_stopped(tmp_path, slow_run, kill, jobs):
    store = Store(tmp_path / "store")
    process = slow_run(jobs)
    deadline = time.monotonic() + 300  # a busy machine
    while len(store) < 3 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None, (tmp_path / "stderr").read_text()
    os.kill(process.pid, kill)
    assert process.wait(timeout=30) != 0
    assert _gone(process.pid), "workers outlived the run"
    finished = {r["key"] for r in store.results()}
    stamps = {key: (store.root / "results" / f"{key}.json").stat().st_mtime_ns for key in finished}
    assert 3 <= len(finished) < 16
    assert store.runs()[0]["state"] == ("open" if kill == signal.SIGKILL else "interrupted")

    progress = run(cells(16), store, jobs=1)
    assert progress.reused == len(finished)
    assert progress.done == 16 - len(finished)
    # What was finished was not computed again.
    for key, stamp in stamps.items():
        assert (store.root / "results" / f"{key}.json").stat().st_mtime_ns == stamp


def test_a_run_that_is_killed_while_its_workers_start_leaves_none(tmp_path, slow_run):
    """The workers had not asked for anything yet: they must know whose they are from the beginning."""
    process = slow_run(2)
    deadline = time.monotonic() + 300  # a busy machine
    while len(_children(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    assert _gone(process.pid), "workers outlived the run"


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def test_a_worker_ends_when_its_parent_is_gone_and_not_before(monkeypatch):
    parents, ended = iter([7, 7, 7, 1]), threading.Event()
    asked, codes = [], []

    def leave(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr(running, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(running.os, "getppid", lambda: asked.append(next(parents)) or asked[-1])
    monkeypatch.setattr(running.os, "_exit", leave)
    leave_with(7)
    assert ended.wait(10)
    assert (asked, codes) == ([7, 7, 7, 1], [1])


@pytest.mark.parametrize("jobs", [0, -99_999, 99_999])  # -2 is all cores but one, as joblib counts
def test_a_number_of_processes_that_makes_no_sense_is_refused(tmp_path, jobs):
    with pytest.raises(InputError, match=f"jobs={jobs}"):
        run(cells(1), Store(tmp_path), jobs=jobs)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("address", ["nonsense", "tcp://", "tcp://127.0.0.1:1", "tcp://127.0.0.1:99999", "http://x y"])
def test_an_address_where_nobody_answers_is_an_error_with_a_sentence(tmp_path, monkeypatch, address):
    pytest.importorskip("distributed")
    monkeypatch.setattr("contone.experiments.run.CONNECT_TIMEOUT", "1s")
    with pytest.raises(InputError, match="No dask scheduler answers"):
        run(cells(1), Store(tmp_path), backend="dask", address=address)
    with pytest.raises(InputError, match="backend='dask'"):
        run(cells(1), Store(tmp_path), address=address)


def test_concurrent_runs_share_a_store(tmp_path, slow_run):
    both = slow_run(1), slow_run(1)
    assert [process.wait(timeout=120) for process in both] == [0, 0], (tmp_path / "stderr").read_text()
    assert len(Store(tmp_path / "store")) == 16


# ------------------------------------------------------------------------------------------------------------ dask


def test_dask_runs_the_cells(tmp_path):
    distributed = pytest.importorskip("distributed")
    store = Store(tmp_path)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
    ) as cluster:
        progress = run(cells(4), store, backend="dask", address=cluster.scheduler_address)
    assert (progress.done, progress.failed, progress.jobs) == (4, 0, 2)
    reference = Store(tmp_path / "here")
    run(cells(4), reference, jobs=1)
    for cell in cells(4):
        assert store.result(cell.key)["scores"] == reference.result(cell.key)["scores"]


def _slow(cell: Cell):
    time.sleep(0.3)
    return compute(cell)


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_a_dask_worker_that_is_killed_loses_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    store, killed = Store(tmp_path), []

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:

        def kill_one(progress: Progress) -> None:
            if progress.done == 2 and not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        progress = run(
            cells(10), store, backend="dask", address=cluster.scheduler_address, observer=kill_one, compute=_slow
        )
    assert killed
    assert (progress.done, progress.failed) == (10, 0)
    assert len(store) == 10


def test_dask_needs_an_address_and_an_extra(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="address"):
        run(cells(1), Store(tmp_path), backend="dask")
    with pytest.raises(InputError, match="backend"):
        run(cells(1), Store(tmp_path), backend="slurm")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match="scale"):
        run(cells(1), Store(tmp_path), backend="dask", address="tcp://localhost:1")
