"""contone report: formats, where it writes, what it says when there is nothing to report."""

from __future__ import annotations

import json

import pytest

from contone.experiments.plan import make_plan
from contone.experiments.run import run as run_cells
from contone.experiments.store import Store
from contone.reproduction.specs import specs


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    plan = make_plan([specs()["recovery"]], dataset_names=["artificial"], method_names=["Uniform"])
    cheap = [cell for cell in plan.cells if cell.row in ("Uniform", "Temperature", "Mean of truth")]
    run_cells(cheap, Store(folder), jobs=1, about={"command": "contone reproduce"})
    return folder


def test_the_page_is_the_default(run, undrawn, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("report", "--store", store)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "report.html" in result.stderr
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("name", "options", "start"),
    [
        ("r.json", (), "{"),
        ("r.md", (), "# "),
        ("r.tex", (), "% "),
        ("r.txt", ("--format", "markdown"), "# "),
        ("r.html", ("--format", "json"), "{"),
    ],
)
def test_the_name_or_the_option_gives_the_format(run, store, tmp_path, name, options, start):
    result = run("report", "--store", store, "-o", tmp_path / name, *options)
    assert result.exit_code == 0, result.output
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_what_is_reported_on_is_not_replaced_by_the_report(run, flat, store):
    cell = next((store / "results").iterdir())
    kept = cell.read_bytes()
    result = run("report", "--store", store, "-o", cell, "--force")
    assert result.exit_code == 2
    assert "is read by this command" in flat(result.stderr)
    assert cell.read_bytes() == kept


def test_stdout(run, store):
    result = run("report", "--store", store, "-o", "-", "--format", "json")
    assert json.loads(result.stdout)["schema"] >= 1


def test_open_shows_the_page(run, store, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("report", "--store", store, "-o", tmp_path / "r.md", "--open")
    assert opened == [(tmp_path / "r.md").as_uri()]


def test_errors_say_what_to_do(run, flat, store, tmp_path):
    missing = run("report", "--store", tmp_path / "nothing")
    assert missing.exit_code == 1
    assert "contone reproduce" in missing.stderr
    assert run("report", "--store", store, "--format", "pdf").exit_code == 2
    nowhere = run("report", "--store", store, "-o", tmp_path / "no" / "r.html")
    assert nowhere.exit_code == 2
    assert "does not exist" in flat(nowhere.stderr)
