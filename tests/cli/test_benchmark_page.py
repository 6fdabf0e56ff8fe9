"""`contone benchmark` without data of one's own: the table, the page, and what happens when a method fails."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contone import enhance
from contone.base import Enhancer
from contone.cli.app import app
from contone.cli.experiment import print_tables
from contone.exceptions import MissingExtraError
from contone.experiments.report.make import make_report
from contone.experiments.store import Store
from contone.measures import MEASURES
from contone.numerics.solution import Solution

REFERENCE = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "cli_reference.py"))
QUICK = ("--max-rows", "60", "--seeds", "1", "--no-estimate", "--jobs", "1")


@pytest.fixture
def quick(tmp_path, monkeypatch, undrawn, cheap_limits):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory, make_limits_cheap):
    """What one plain run prints, and its folder."""
    folder = tmp_path_factory.mktemp("benchmark")
    with pytest.MonkeyPatch.context() as patch:
        make_limits_cheap(patch)
        for network in (enhance.ConLE, enhance.LEIC, enhance.LEVI, enhance.LIBLE):  # what they learn does not matter
            for name in {"epochs", "pretrain_epochs"} & {*network.__init__.__kwdefaults__}:
                patch.setitem(network.__init__.__kwdefaults__, name, 2)
        patch.chdir(folder)
        result = CliRunner().invoke(app, ["benchmark", *QUICK], prog_name="contone")
    assert result.exit_code == 0, result.output
    return result, folder / "contone-benchmark"


class Broken(Enhancer):
    """A method that never works."""

    reference = "nobody"

    def _fit_enhance(self, X, L):
        raise ZeroDivisionError("the moon is [too] far\nand more")


class Doubtful(Enhancer):
    """A method that never converges."""

    reference = "nobody"

    def _fit_enhance(self, X, L):
        return Solution(L / L.sum(axis=1, keepdims=True), residual=1.0, n_iter=7, converged=False)


class Lacking(Enhancer):
    """A method whose extra is not installed."""

    reference = "nobody"

    def _fit_enhance(self, X, L):
        raise MissingExtraError("Lacking needs the moon, which is not installed.")


def test_every_method_is_in_the_table_and_on_the_page(finished):
    result, folder = finished
    assert "contone-benchmark/report.html" in result.stderr
    shares = {row.name: row for row in make_report(Store(folder)).shares.rows}
    assert set(shares) == {*(cls.__name__ for cls in enhance.methods().values()), "Limit", "Mean of truth"}
    assert shares["Uniform"].kind == "baseline"
    assert shares["Uniform"].cells[0].value == 0.0
    assert shares["Limit"].cells[0].value == 1.0
    page = (folder / "report.html").read_text(encoding="utf-8")
    for cls in enhance.methods().values():
        assert cls.__name__ in result.stdout
        assert cls.__name__ in page
    order = [row.cells[0].value for row in shares.values() if row.kind != "oracle"]
    assert order == sorted(order, reverse=True)


def test_json_goes_to_stdout_alone(quick, run):
    found = run("benchmark", *QUICK, "--methods", "lp,lcdr", "--json")
    read = json.loads(found.stdout)
    names = {row["name"] for row in read["shares"]["rows"]}
    assert names == {"LP", "LCdr", "Uniform", "Temperature", "Logical", "Limit", "Mean of truth"}
    (scores,) = (section for section in read["sections"] if section["name"] == "recovery")
    for fold in (block for block in scores["blocks"] if "is_open" in block):
        rows = fold["blocks"][0]["rows"]
        assert any(cell["best"] for row in rows for cell in row["cells"])
        assert all(row["kind"] != "oracle" for row in rows if any(cell["best"] for cell in row["cells"]))


def test_methods_that_fail_or_do_not_converge_are_shown_with_the_reason(quick, run, monkeypatch):
    known = {"uniform": enhance.Uniform, "broken": Broken, "doubtful": Doubtful}
    monkeypatch.setattr("contone.enhance.methods", lambda: known)
    for cls in (Broken, Doubtful):
        monkeypatch.setattr(f"contone.{cls.__name__}", cls, raising=False)
    result = run("benchmark", *QUICK, "--methods", f"{__name__}:Broken,{__name__}:Doubtful")
    assert result.exit_code == 1
    reason = "ZeroDivisionError: the moon is [too] far"
    assert reason in " ".join(result.stderr.split())
    page = (quick / "contone-benchmark" / "report.html").read_text(encoding="utf-8")
    assert reason in page
    assert "Doubtful stopped after 7 iterations" in page


def test_a_method_without_its_extra_is_left_out_and_is_no_failure(quick, run):
    result = run("benchmark", *QUICK, "--methods", f"{__name__}:Lacking,lp")
    assert result.exit_code == 0, result.output
    assert "0 failed" in result.stderr
    page = (quick / "contone-benchmark" / "report.html").read_text(encoding="utf-8")
    assert "Lacking is left out: Lacking needs the moon, which is not installed." in page
    assert "No cell failed." in page


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_table_fits_the_terminal(finished, monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    print_tables(make_report(Store(finished[1])))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    shown = [line for line in lines if line.startswith("Temperature")]
    assert shown
    assert len(re.findall(r"\d\.\d{4}", shown[0])) >= min(len(MEASURES), 2 + (width - 60) // 20)


def test_the_page_needs_nothing_from_elsewhere(finished):
    page = (finished[1] / "report.html").read_text(encoding="utf-8")
    seen = _Page()
    seen.feed(page)
    assert all(source.startswith(("data:", "#")) for source in seen.sources)
    assert not re.search(r"https?://|@import|<script[^>]", page)
    drawn = len(enhance.methods()) + 2  # with the two oracles
    assert len(seen.alternatives) == drawn + 2 + 2  # truth, labels; the two of the comparison
    assert all(seen.alternatives)
    assert seen.open == []
    assert "color-scheme: light dark" in page
    assert "light-dark(" in page


def test_open_shows_the_page(quick, run, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("benchmark", *QUICK, "--methods", "uniform", "--no-open")
    assert opened == []
    run("benchmark", *QUICK, "--methods", "uniform", "--open")
    assert opened == [(quick / "contone-benchmark" / "report.html").resolve().as_uri()]


def test_a_folder_that_cannot_be_made_is_an_error_not_a_traceback(quick, run):
    (quick / "taken").write_text("a file")
    for folder in ("taken", "taken/below"):
        result = run("benchmark", *QUICK, "--methods", "uniform", "--store", folder)
        assert result.exit_code in (1, 2)
        assert "taken" in result.stderr
        assert "Traceback" not in result.stderr


def test_the_first_example_in_the_help_text_runs(quick, run, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda address: None)
    monkeypatch.setattr("contone.enhance.methods", lambda: {"uniform": enhance.Uniform})
    lines = REFERENCE["examples"](dict(REFERENCE["commands"]())["contone benchmark"])
    assert lines
    assert run(*shlex.split(lines[0])[1:], "--jobs", "1").exit_code == 0


class _Page(HTMLParser):
    """Collects what a page loads, the alternative texts, and tags left open."""

    VOID = frozenset({"meta", "link", "img", "br", "input"})

    def __init__(self):
        super().__init__()
        self.sources, self.alternatives, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.sources += [values[k] for k in ("src", "href") if k in values]
        if tag == "img":
            self.alternatives.append(values.get("alt"))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
