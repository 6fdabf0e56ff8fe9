"""Nothing is overwritten unasked, and no command writes over what it reads, whatever it is told."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from contone.exceptions import ArgumentError
from contone.tables.targets import check_targets

LABELS = ("-l", "a,b,c")
QUICK = ("-p", "n_sweeps=10", "-p", "n_burn=3")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    L = np.eye(3, dtype=int)[rng.integers(0, 3, 30)]
    pl.DataFrame({"x": rng.normal(size=30), "a": L[:, 0], "b": L[:, 1], "c": L[:, 2]}).write_csv("s.csv")
    os.link("s.csv", "same.csv")
    Path("link.csv").symlink_to("s.csv")
    for name in ("names.txt", "names.html", "names.svg"):
        Path(name).write_text("a\nb\nc\n")
    attributes = "".join(f"@attribute {name} {{0,1}}\n" for name in "xab")
    Path("m.arff").write_text(f"@relation r\n{attributes}@data\n1,1,0\n")
    Path("m.xml").write_text('<labels><label name="a"/><label name="b"/></labels>')
    return Path("s.csv").read_bytes()


OVER_INPUT = {
    "save-model": ("enhance", "s.csv", *LABELS, "-m", "uniform", "-o", "o.csv", "--save-model", "s.csv"),
    "save-model, link": ("enhance", "s.csv", *LABELS, "-m", "uniform", "-o", "o.csv", "--save-model", "link.csv"),
    "save-model, hard link": ("enhance", "s.csv", *LABELS, "-m", "uniform", "-o", "o.csv", "--save-model", "same.csv"),
    "fit": ("fit", "s.csv", *LABELS, "-m", "uniform", "-o", "s.csv"),
    "suggest": ("suggest", "s.csv", *LABELS, *QUICK, "-o", "s.csv"),
    "names": ("enhance", "s.csv", "-l", "@names.txt", "-m", "uniform", "-o", "o.csv", "--save-model", "names.txt"),
    "graded": ("fit", "s.csv", *LABELS, "-m", "uniform", "--graded", "names.txt", "-o", "names.txt"),
    "names of a page": ("check", "s.csv", "-l", "@names.html", *QUICK, "-o", "names.html"),
    "names of a report": ("enhance", "s.csv", "-l", "@names.html", "-o", "o.csv", "--report", "names.html"),
    "names of a figure": ("compare", "s.csv", "-l", "@names.svg", "-m", "uniform", "--figure", "names.svg"),
    "names beside": ("fit", "m.arff", "-m", "uniform", "-o", "m.xml"),
    "two outputs": ("enhance", "s.csv", *LABELS, "-m", "uniform", "-o", "o.csv", "--save-model", "./o.csv"),
    "page and model": ("enhance", "s.csv", *LABELS, "-o", "o.csv", "--save-model", "p.html", "--report", "p.html"),
}  # fmt: skip


@pytest.mark.parametrize("name", OVER_INPUT)
def test_force_does_not_reach_what_is_read_or_written_twice(here, run, flat, name):
    result = run(*OVER_INPUT[name], "--force")
    assert result.exit_code == 2, result.output
    assert "is read by this command" in flat(result.stderr) or "named for two outputs" in flat(result.stderr)
    assert Path("s.csv").read_bytes() == here
    there = ["link.csv", "m.arff", "m.xml", "names.html", "names.svg", "names.txt", "s.csv", "same.csv"]
    assert sorted(p.name for p in Path().iterdir()) == there


def test_a_model_is_not_replaced_by_its_answer(here, run, flat):
    assert run("fit", "s.csv", *LABELS, "-m", "temperature", "-o", "m.csv").exit_code == 0
    result = run("apply", "m.csv", "s.csv", "-o", "m.csv", "--force")
    assert result.exit_code == 2
    assert "is read by this command" in flat(result.stderr)


UNASKED = {
    "figure": ("compare", "s.csv", *LABELS, "-m", "uniform", "--replicates", "1", "--figure", "f.svg"),
    "page": ("check", "s.csv", *LABELS, *QUICK, "-o", "f.html"),
    "answer": ("enhance", "s.csv", *LABELS, "-m", "uniform", "-o", "f.csv"),
    "report": ("enhance", "s.csv", *LABELS, *QUICK, "-o", "g.csv", "--report", "f.html"),
    "model": ("fit", "s.csv", *LABELS, "-m", "uniform", "-o", "f.contone"),
    "sheet": ("suggest", "s.csv", *LABELS, *QUICK, "-o", "f.csv"),
    "benchmark": ("benchmark", "--methods", "uniform", "-o", "f.html", "--store", "kept"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", UNASKED)
def test_what_is_there_is_replaced_only_where_that_is_asked_for(here, run, flat, undrawn, name):
    target = next(word for word in UNASKED[name] if word.startswith("f."))
    Path(target).write_text("precious")
    result = run(*UNASKED[name])
    assert result.exit_code == 2, result.output
    assert "exists already and is left alone. Use --force" in flat(result.stderr)
    assert Path(target).read_text() == "precious"
    if name != "benchmark":  # which takes its time
        assert run(*UNASKED[name], "--force").exit_code == 0
        assert Path(target).read_bytes() != b"precious"


def test_all_targets_are_compared_with_all_inputs_and_with_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").write_text("x")
    Path("sub").mkdir()
    check_targets(["in"], {"target": "in"}, overwrite=True, over_source="in")
    check_targets(["in"], {"target": "-", "figure": "-", "model": None}, overwrite=False)
    for inputs, targets in (
        (["in"], {"target": "sub/../in"}),
        (["in"], {"save_model": tmp_path / "in"}),
        ([], {"target": "a", "report": "sub/../a"}),
    ):
        with pytest.raises(ArgumentError):
            check_targets(inputs, targets, overwrite=True)
    with pytest.raises(ArgumentError):
        check_targets(["in"], {"save_model": "in"}, overwrite=True, over_source="in")
