"""contone reproduce: runs on a bare machine, resumes, says what is missing, uses its exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from contone.cli.app import app
from contone.cli.experiment import describe
from contone.experiments.run import Progress
from contone.experiments.store import Store


@pytest.fixture
def bare(monkeypatch, tmp_path, cheap_limits):
    """A machine with no data on it."""
    monkeypatch.delenv("CONTONE_DATA", raising=False)
    monkeypatch.setenv("CONTONE_CACHE", str(tmp_path / "cache"))


def reproduce(tmp_path, *options):
    command = ["reproduce", "--store", str(tmp_path / "store"), "--jobs", "1", *options]
    return CliRunner().invoke(app, command)


def test_a_bare_machine_runs_on_the_artificial_set(bare, tmp_path):
    first = reproduce(tmp_path, "--only", "recovery", "--methods", "uniform")
    assert first.exit_code == 0, first.output
    assert "Temperature" in first.stdout
    assert "recovered share" in first.stdout
    assert "CONTONE_DATA" in first.stderr
    assert "yeast-alpha" in first.stderr
    assert "already there" not in first.stdout
    again = reproduce(tmp_path, "--only", "recovery", "--methods", "uniform", "--json")
    assert "0 cells computed" in again.stderr
    assert json.loads(again.stdout)["schema"] == 3


def test_options_that_make_no_sense(bare, tmp_path):
    assert reproduce(tmp_path, "--only", "nonsense").exit_code == 2
    wrong = reproduce(tmp_path, "--only", "recovery", "--methods", "nonsense")
    assert wrong.exit_code == 1
    assert "nonsense" in wrong.stderr
    missing = reproduce(tmp_path, "--only", "recovery", "--datasets", "yeast-alpha")
    assert missing.exit_code == 1
    assert "nothing to run" in missing.stderr
    assert reproduce(tmp_path, "--only", "recovery", "--methods", "uniform", "--backend", "dask").exit_code == 1


def test_failures_set_the_exit_code(bare, tmp_path, monkeypatch):
    def fails(X, L, D, **_):
        raise ValueError("on purpose")

    monkeypatch.setattr("contone.limits.limit", fails)
    result = reproduce(tmp_path, "--only", "recovery", "--methods", "uniform")
    assert result.exit_code == 1
    assert "failed: Limit on artificial (recovery): ValueError: on purpose" in result.stderr
    assert len(Store(tmp_path / "store")) > 0


def test_ctrl_c_keeps_what_is_finished(bare, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("contone.experiments.run.run", interrupted)
    result = reproduce(tmp_path, "--only", "recovery", "--methods", "uniform")
    assert result.exit_code == 130
    assert "Run the same command to resume" in result.stderr


def test_the_line_of_progress():
    progress = Progress(total=10, reused=2, jobs=2, done=3, failed=1, last="recovery: LP on x")
    progress.waiting = {str(i): "LP" for i in range(6)}
    progress.costs = {"LP": [10.0]}
    assert describe(progress) == (
        "4/10 cells, 2 running, 1 failed, 2 already there, about 30 s left  (recovery: LP on x)"
    )
