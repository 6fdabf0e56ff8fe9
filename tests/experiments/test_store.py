"""The store: atomic, resumable, honest about failures."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from contone.exceptions import OutputError
from contone.experiments.store import Store


def record(key: str = "k", **changes):
    base = {"key": key, "cell": {}, "status": "done", "scores": {"kl": 0.5}}
    return {**base, **changes}


def planned(key: str, **changes):
    base = {"key": key, "experiment": "e", "dataset": "d", "row": "r", "setting": {}, "seed": None}
    return {**base, **changes}


def test_a_result_comes_back(tmp_path):
    store = Store(tmp_path / "new")
    assert "k" not in store
    store.add(record(scores={"kl": math.inf, "clark": math.nan, "cosine": 0.1 + 0.2}, surface=np.eye(2)))
    found = store.result("k")
    assert "k" in store
    assert len(store) == 1
    assert found["scores"]["kl"] == math.inf
    assert math.isnan(found["scores"]["clark"])
    assert found["scores"]["cosine"] == 0.1 + 0.2
    assert found["surface"] == [[1.0, 0.0], [0.0, 1.0]]


def test_failures_are_kept_apart_and_forgotten_on_success(tmp_path):
    store = Store(tmp_path)
    store.add(record(status="failed", traceback="where"))
    assert "k" not in store
    assert store.result("k") is None
    assert store.failure("k")["traceback"] == "where"
    store.add(record())
    assert "k" in store
    assert store.failure("k") is None


def test_nothing_half_written_is_seen(tmp_path):
    store = Store(tmp_path)
    with pytest.raises((TypeError, ValueError)):
        store.add(record(scores=object()))
    assert len(store) == 0
    assert list((tmp_path / "results").glob("*")) == []
    store.add(record())
    (tmp_path / "results" / ".abc.part").write_text("half")
    assert [r["key"] for r in store.results()] == ["k"]


def test_a_place_that_cannot_hold_a_store_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OutputError, match="--store"):
        Store(tmp_path / "file").add(record())


EDITS = {
    "cut": lambda text: text[:-10],
    "score edited": lambda text: text.replace("0.5", "0.4"),
    "another cell's": lambda text: text.replace('"key": "k"', '"key": "j"'),
    "foreign": lambda text: '{"some": "thing else"}',
    "not an object": lambda text: "[1, 2]",
    "nested": lambda text: "[" * 100_000,
    "empty": lambda text: "",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_file_that_is_not_what_was_stored_is_refused_and_named(tmp_path, edit):
    path = tmp_path / "results" / "k.json"
    Store(tmp_path).add(record())
    path.write_text(edit(path.read_text()))
    store = Store(tmp_path)
    assert "k" not in store
    assert store.result("k") is None
    assert list(store.results()) == []
    (problem,) = store.problems()
    assert str(path) in problem
    store.add(record())  # computed again
    assert store.result("k")["scores"] == {"kl": 0.5}
    assert store.problems() == []


def test_the_file_of_another_cell_under_a_key_is_refused(tmp_path):
    store = Store(tmp_path)
    store.add(record("a"))
    store.add(record("b", scores={"kl": 0.1}))
    shutil.copy(tmp_path / "results" / "b.json", tmp_path / "results" / "a.json")
    assert "a" not in store
    assert "belongs to another cell" in store.problems()[0]
    assert [r["key"] for r in store.results()] == ["b"]


def test_a_file_without_what_a_result_has_is_no_result(tmp_path):
    store = Store(tmp_path)
    identity = store.open_run({}, [])
    (tmp_path / "results").mkdir()
    shutil.copy(tmp_path / "runs" / f"{identity}.json", tmp_path / "results" / f"{identity}.json")
    store._write("results", "k", {"key": "k", "scores": {"kl": 0.0}})
    assert list(store.results()) == []
    assert len(store.problems()) == 2


def test_foreign_files_among_the_runs_are_left_out(tmp_path):
    store = Store(tmp_path)
    store.open_run({"command": "one"}, [planned("k")])
    (tmp_path / "runs" / "zzz.json").write_text('{"cells": 3}')
    assert [run["command"] for run in store.runs()] == ["one"]
    assert "zzz.json" in store.problems()[0]


@pytest.mark.parametrize("name", ["file/below", "x" * 304])
def test_folders_that_cannot_be_used_are_errors_with_a_sentence(tmp_path, name):
    (tmp_path / "file").write_text("not a folder")
    store = Store(tmp_path / name)
    with pytest.raises(OutputError):
        store.add(record())
    with pytest.raises(OutputError):
        store.open_run({}, [])


def test_runs_are_in_order_also_around_the_end_of_a_second(tmp_path, monkeypatch):
    store, moments = Store(tmp_path), [10**18 - 2, 10**18 - 1, 10**18, 10**18 + 1]
    ids = []
    for moment in moments:
        monkeypatch.setattr("contone.experiments.store.time.time_ns", lambda moment=moment: moment)
        ids.append(store.open_run({}, []))
    assert ids == sorted(ids)
    assert ids[1].startswith("20010909T014639-999999999-")
    assert ids[2].startswith("20010909T014640-000000000-")


def test_the_latest_plan_wins_place_by_place(tmp_path):
    store = Store(tmp_path)
    store.open_run({"command": "one"}, [planned("old"), planned("kept", row="s")])
    second = store.open_run({"command": "two"}, [planned("new")])
    store.close_run(second, state="finished")
    assert {c["key"] for c in store.plan()} == {"new", "kept"}
    assert [r["state"] for r in store.runs()] == ["open", "finished"]


def test_an_old_number_stays_until_the_new_one_is_there(tmp_path):
    store = Store(tmp_path)
    store.open_run({"whole": True}, [planned("old"), planned("gone", row="s")])
    store.add(record("old"))
    store.add(record("gone"))
    store.open_run({"whole": True}, [planned("new")])
    assert [(c["key"], c["stale"]) for c in store.plan()] == [("old", True)]
    store.add(record("new"))
    assert [(c["key"], c["stale"]) for c in store.plan()] == [("new", False)]


WRITE_MANY = """
import sys
from contone.experiments.store import Store
here, root, start = sys.argv[1:]
sys.path.insert(0, here)
from test_store import record
store = Store(root)
for i in range(int(start), int(start) + 40):
    store.add(record(key=f"k{i % 50}"))
"""


def test_several_writers_share_a_store(tmp_path, forks):
    here = Path(__file__).parent
    writers = [forks.start("-c", WRITE_MANY, here, tmp_path, 20 * i) for i in range(2)]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    store = Store(tmp_path)
    assert len(store) == 50
    assert all(r["status"] == "done" for r in store.results())
    assert not list(tmp_path.rglob("*.part"))
