"""What a run will cost: scaled as the trials say, and taken from the store where it is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from contone import Temperature
from contone.experiments import run as estimating
from contone.experiments.benchmark import make_spec
from contone.experiments.describe import describe
from contone.experiments.plan import Cell, make_plan
from contone.experiments.run import PROBE_ROWS, Progress, estimate, run
from contone.experiments.sources import Source, load
from contone.experiments.store import Store

CUMULATIVE = {"class": "CumulativeMass", "params": {"t": 0.5}}


def cells(count: int) -> list[Cell]:
    task = [{"kind": "enhance", "estimator": describe(Temperature(c=1 + i))} for i in range(count)]
    data_hash = load("artificial")[3]
    return [Cell("test", f"row {i}", "T", "artificial", data_hash, t, CUMULATIVE) for i, t in enumerate(task)]


@pytest.mark.parametrize(("power", "kept"), [(1.5, 1.5), (0.0, 1.0), (4.0, 2.5)])
def test_the_growth_between_two_trials_is_carried_on(tmp_path, monkeypatch, power, kept):
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: 1e-3 * (n / 100) ** power)
    found = estimate(cells(1), Store(tmp_path))
    n = len(load("artificial")[0])
    expected = 1e-3 * (PROBE_ROWS[1] / 100) ** power * (n / PROBE_ROWS[1]) ** kept
    assert found.cells == {cells(1)[0].key: pytest.approx(expected)}
    assert found.seconds == pytest.approx(expected)


def test_time_grows_with_rows_and_labels_from_the_smallest_set(tmp_path, monkeypatch):
    rng, made = np.random.default_rng(0), []
    for name, n, q in (("large", 800, 6), ("small", 240, 3)):
        path = tmp_path / f"{name}.npz"
        np.savez(path, X=rng.normal(size=(n, 2)), D=rng.dirichlet(np.ones(q), size=n))
        source = Source(name, str(path)).plain()
        task = {"kind": "enhance", "estimator": describe(Temperature())}
        made.append(Cell("t", "row", "T", name, load(name, source).content, task, CUMULATIVE, source=source))
    tried = []
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: tried.append((cell.dataset, n)) or 1e-3 * n**1.5)
    found = estimate(made, Store(tmp_path / "store"), jobs=2)
    assert tried == [("small", 120), ("small", 240)]
    small = 1e-3 * 240**1.5
    large = small * (800 / 240) ** 1.5 * 2  # twice as many labels
    assert [found.cells[c.key] for c in made] == pytest.approx([large, small])
    assert found.longest.dataset == "large"
    assert found.seconds == pytest.approx(large)  # more than half of all
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: tried.append(n) or 3.0)
    long = estimate(made, Store(tmp_path / "store"))
    assert tried[2:] == [120]  # a trial that takes long is not repeated with more rows
    assert [long.cells[c.key] for c in made] == pytest.approx([3.0 * 800 / 120 * 2, 3.0 * 240 / 120])
    assert long.seconds == pytest.approx(3.0 * 800 / 120 * 2 + 6.0)


@pytest.mark.parametrize(("n", "seconds"), [(50, 0.3), (240, 0.0)])
def test_small_sets_are_tried_whole_once_and_no_time_grows_to_none(tmp_path, monkeypatch, n, seconds):
    """The set with the fewest rows is tried, however many labels it has."""
    made, tried, rng = [], [], np.random.default_rng(0)
    for name, rows, q in (("large", 2 * n, 3), ("small", n, 6)):
        path = tmp_path / f"{name}.npz"
        np.savez(path, X=rng.normal(size=(rows, 2)), D=rng.dirichlet(np.ones(q), size=rows))
        source = Source(name, str(path)).plain()
        task = {"kind": "enhance", "estimator": describe(Temperature())}
        made.append(Cell("t", "row", "T", name, load(name, source).content, task, CUMULATIVE, source=source))
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: tried.append((cell.dataset, n)) or seconds)
    found = estimate(made, Store(tmp_path / "store"))
    assert tried == [("small", min(size, n)) for size in PROBE_ROWS[: 1 if n < PROBE_ROWS[0] else 2]]
    assert [found.cells[c.key] for c in made] == pytest.approx([2 * seconds, seconds])  # as many labels at the most


def test_what_the_store_knows_of_a_row_is_taken_for_another_version_of_it(tmp_path, monkeypatch):
    """The row is there with other parameters: a run of it took two seconds."""
    before, after = cells(2)
    after = replace(after, row=before.row)
    store = Store(tmp_path)
    store.add({"key": before.key, "status": "done", "cell": before.plain(), "scores": {}, "time": {"wall": 2.0}})
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: pytest.fail("tried"))
    assert estimate([after], store).cells == {after.key: 2.0}


def test_a_run_is_not_shorter_than_its_longest_cell(tmp_path, monkeypatch):
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: 5.0 if cell.row == "row 0" else 1e-9)
    found = estimate(cells(4), Store(tmp_path), jobs=4)
    assert found.longest.row == "row 0"
    assert found.seconds == pytest.approx(found.cells[found.longest.key])


def test_a_row_that_fails_is_named_and_taken_as_typical(tmp_path, monkeypatch):
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: math.nan if cell.row == "row 1" else 3.0)
    found = estimate(cells(2), Store(tmp_path))
    assert found.unknown == ("row 1",)
    assert found.cells[cells(2)[1].key] == found.cells[cells(2)[0].key]
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: math.nan)  # nothing is known of any
    nothing = estimate(cells(2), Store(tmp_path))
    assert (nothing.seconds, {*nothing.cells.values()}, len(nothing.unknown)) == (0.0, {0.0}, 2)


def test_what_is_in_the_store_is_not_tried_again(tmp_path, monkeypatch):
    store = Store(tmp_path)
    run(cells(2), store, jobs=1)
    monkeypatch.setattr(estimating, "seconds_on", lambda cell, n: pytest.fail("tried"))
    nothing = estimate(cells(2), store)
    assert (nothing.cells, nothing.seconds, nothing.longest) == ({}, 0.0, None)


def test_a_real_trial_leaves_nothing_behind(tmp_path):
    store = Store(tmp_path)
    plan = make_plan([make_spec(["Temperature"])], dataset_names=["artificial"])
    found = estimate([c for c in plan.cells if c.row != "Limit"], store)
    assert all(np.isfinite(v) and v >= 0 for v in found.cells.values())
    assert len(store) == 0


def test_the_time_left_is_known_before_the_first_cell():
    progress = Progress(total=2, reused=0, jobs=2, expected={"a": 3.0, "b": 5.0})
    progress.waiting = {"a": "x", "b": "y"}
    assert progress.seconds_left() == pytest.approx(4.0)


def test_a_row_without_an_estimate_takes_as_long_as_it_did_or_as_the_others():
    progress = Progress(total=4, reused=0, jobs=1, expected={"a": 3.0}, costs={"x": [1.0, 2.0], "y": [6.0]})
    progress.waiting = {"a": "x", "b": "x", "c": "z"}
    assert progress.seconds_left() == pytest.approx(3.0 + 1.5 + 3.0)
    assert (progress.left, progress.running) == (3, 1)
