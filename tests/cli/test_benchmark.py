"""contone benchmark: files in, a table and a page out; estimates, exit codes."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def here(tmp_path, monkeypatch, cheap_limits, undrawn):
    """A folder with mine.csv, and no other data on the machine."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    D = np.exp(X @ rng.normal(size=(2, 3)))
    D /= D.sum(axis=1, keepdims=True)
    columns = {"x": X[:, 0], "y": X[:, 1], **{f"{name}_degree": D[:, j] for j, name in enumerate("abc")}}
    pl.DataFrame(columns).write_csv(tmp_path / "mine.csv")
    monkeypatch.delenv("CONTONE_DATA", raising=False)
    monkeypatch.setenv("CONTONE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_of_ones_own_is_a_benchmark(run, here):
    result = run("benchmark", "--methods", "lp", "--datasets", "mine.csv", "--jobs", "1", "-o", "page.html")
    assert result.exit_code == 0, result.output
    assert "LP" in result.stdout
    assert "mine" in result.stdout
    assert "to compute, about" in result.stderr
    assert (here / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    page = run("report", "--store", "contone-benchmark", "-o", "-", "--format", "markdown")
    assert page.stdout.startswith("# Label enhancement methods compared")
    assert "Errata" not in page.stdout
    again = run("benchmark", "--methods", "lp", "--datasets", "mine.csv", "--jobs", "1", "--json")
    assert "0 cells computed" in again.stderr
    assert {row["name"] for row in json.loads(again.stdout)["shares"]["rows"]} >= {"LP", "Uniform", "Limit"}


def test_a_dry_run_says_what_it_would_take_and_computes_nothing(run, here):
    result = run("benchmark", "--methods", "lp", "--datasets", "mine.csv,artificial", "--dry-run", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "expected time" in result.stdout
    assert "LP" in result.stdout
    assert not (here / "contone-benchmark" / "results").exists()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--methods", "nonsense"), 2, "no method 'nonsense'"),
        (("--datasets", "nothing.csv"), 1, "no such file"),
        (("--datasets", "mine.csv", "--degrees", "z_*"), 2, "z_*"),
        (("--jobs", "0"), 1, "jobs=0"),
        (("--jobs", "99999"), 1, "jobs=99999"),
        (("--out", "page.pdf"), 2, ".html"),
        (("--spec", "nothing.toml"), 1, "cannot be read"),
        (("--address", "tcp://nowhere:1", "--no-estimate"), 1, "dask"),
    ],
)
def test_wrong_commands_are_told(run, here, flat, options, code, said):
    result = run("benchmark", "--methods", "lp", *options) if "--methods" not in options else run("benchmark", *options)
    assert result.exit_code == code, result.output
    assert said in flat(result.stderr)
    assert "Traceback" not in result.stderr
