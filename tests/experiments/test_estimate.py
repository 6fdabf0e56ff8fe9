"""What a run will cost: scaled as the trials say, and taken from the store where it is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from contone import Temperature
from contone.experiments import run as estimating
from contone.experiments.benchmark import make_spec
from contone.experiments.describe import describe
from contone.experiments.plan import Cell, make_plan
from contone.experiments.run import PROBE_ROWS, Progress, estimate, run
from contone.experiments.sources import load
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
    assert estimate(cells(2), store).cells == {}


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
