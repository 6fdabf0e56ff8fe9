"""`contone demo`: the table, the files, and what happens when a method fails."""

from __future__ import annotations

import csv
import json
import re
import shlex
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from contone import enhance
from contone.base import Enhancer
from contone.cli.app import app
from contone.cli.demo import _print_scores
from contone.cli.reference import commands, examples
from contone.datasets import Dataset, artificial
from contone.datasets.artificial import distributions, recovery_grid
from contone.demo import run as experiment
from contone.limits import LimitResult
from contone.measures import MEASURES
from contone.numerics.solution import Solution


def _make_quick(folder, patch):
    """The demonstration on a coarse grid, with a limit that costs nothing."""
    full = artificial()
    X = recovery_grid(11)
    D = distributions(X)
    coarse = Dataset(X=X, D=D, feature_names=full.feature_names, label_names=full.label_names, about="a small set")
    near = 0.99 * D + 0.01 / 3
    patch.setattr("contone.datasets.artificial", lambda: coarse)
    patch.setattr(experiment, "limit", lambda X, L, D, **_: LimitResult(near, "near", {}, {}))
    for network in (enhance.ConLE, enhance.LEIC, enhance.LEVI, enhance.LIBLE):  # what they learn does not matter here
        for name in {"epochs", "pretrain_epochs"} & {*network.__init__.__kwdefaults__}:
            patch.setitem(network.__init__.__kwdefaults__, name, 2)
    patch.chdir(folder)


@pytest.fixture
def quick(tmp_path, monkeypatch, undrawn):
    _make_quick(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """What one plain run prints, and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        _make_quick(folder, patch)
        result = CliRunner().invoke(app, ["demo"], prog_name="contone")
    assert result.exit_code == 0, result.output
    return result, folder / "contone-demo"


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


def with_method(monkeypatch, cls):
    known = enhance.methods()
    monkeypatch.setattr("contone.enhance.methods", lambda: {**known, cls.__name__.lower(): cls})


def test_every_method_is_in_the_table_and_in_the_files(finished):
    result, folder = finished
    written = {"index.html", "manifold.png", "manifold.svg", "scores.csv", "scores.json"}
    assert {p.name for p in folder.iterdir()} == written
    for name in written:
        assert f"contone-demo/{name}" in result.stderr
    with open(folder / "scores.csv") as file:
        rows = {r["method"]: r for r in csv.DictReader(file)}
    assert set(rows) == {*enhance.methods(), "limit", "mean-of-truth"}
    assert rows["uniform"]["kind"] == "baseline"
    assert float(rows["uniform"]["recovered"]) == 0.0
    assert float(rows["limit"]["recovered"]) == 1.0
    page = (folder / "index.html").read_text(encoding="utf-8")
    for cls in enhance.methods().values():
        assert cls.__name__ in result.stdout
        assert cls.__name__ in page
    order = [float(r["kl"]) for r in rows.values() if r["kind"] != "oracle" and not r["error"]]
    assert order == sorted(order)
    assert {name for name, r in rows.items() if r["error"]} == {*experiment.LEFT_OUT}
    assert "(--method glesc runs it)" in " ".join(result.stdout.split())


def test_what_is_left_out_runs_where_it_is_asked_for(quick, run, monkeypatch):
    monkeypatch.setattr("contone.enhance.methods", lambda: {"uniform": enhance.Uniform, "glesc": enhance.GLESC})
    found = {r["name"]: r for r in json.loads(run("demo", "--json", "--method", "glesc").stdout)}
    assert found["glesc"]["scores"]["kl"] < found["uniform"]["scores"]["kl"]


def test_json_goes_to_stdout_alone(quick, run, monkeypatch):
    known = {name: cls for name, cls in enhance.methods().items() if name in ("uniform", "temperature", "lp", "lcdr")}
    monkeypatch.setattr("contone.enhance.methods", lambda: known)
    records = json.loads(run("demo", "--json", "--out", "elsewhere").stdout)
    assert {r["name"] for r in records} == {*enhance.methods(), "limit", "mean-of-truth"}
    assert json.loads((quick / "elsewhere" / "scores.json").read_text()) == records
    winners = [name for r in records for name in r["best"]]
    assert sorted(winners) == sorted(MEASURES)
    assert all(r["kind"] != "oracle" for r in records if r["best"])


def test_methods_that_fail_or_do_not_converge_are_shown_with_the_reason(quick, run, monkeypatch):
    known = {"uniform": enhance.Uniform, "broken": Broken, "doubtful": Doubtful}
    monkeypatch.setattr("contone.enhance.methods", lambda: known)
    (quick / "contone-demo").mkdir()
    (quick / "contone-demo" / "index.html").write_text("an older run")
    result = run("demo")
    assert result.exit_code == 0
    reason = "ZeroDivisionError: the moon is [too] far"
    assert reason in result.stderr
    assert f"Broken failed: {reason}" in " ".join(result.stdout.split())
    assert "warning: Doubtful: Doubtful stopped after 7 iterations" in " ".join(result.stderr.split())
    page = (quick / "contone-demo" / "index.html").read_text(encoding="utf-8")
    assert f"failed: {reason}" in page
    assert "Doubtful stopped after 7 iterations" in page


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_table_fits_the_terminal(finished, monkeypatch, capsys, width):
    records = json.loads((finished[1] / "scores.json").read_text())
    for r in records:
        r["scores"] = {k: float(v) for k, v in r["scores"].items()}
        r["recovered"] = None if r["recovered"] is None else float(r["recovered"])
    monkeypatch.setenv("COLUMNS", str(width))
    _print_scores(records)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)


def test_the_page_needs_nothing_from_elsewhere(finished):
    page = (finished[1] / "index.html").read_text(encoding="utf-8")
    seen = _Page()
    seen.feed(page)
    assert all(source.startswith(("data:", "#")) for source in seen.sources)
    assert not re.search(r"https?://|@import|<script[^>]", page)
    drawn = len(enhance.methods()) - len(experiment.LEFT_OUT)
    assert len(seen.alternatives) == drawn + 2 + 2  # truth, labels; the two of the comparison
    assert all(seen.alternatives)
    assert seen.open == []
    assert "color-scheme: light dark" in page
    assert "light-dark(" in page


def test_open_shows_the_page(quick, run, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("contone.enhance.methods", lambda: {"uniform": enhance.Uniform})
    run("demo", "--no-open")
    assert opened == []
    run("demo", "--open")
    assert opened == [(quick / "contone-demo" / "index.html").resolve().as_uri()]


def test_a_folder_that_cannot_be_made_is_an_error_not_a_traceback(quick, run, monkeypatch):
    monkeypatch.setattr("contone.enhance.methods", lambda: {"uniform": enhance.Uniform})
    (quick / "taken").write_text("a file")
    assert run("demo", "--out", "taken").exit_code == 2
    result = run("demo", "--out", "taken/below")
    assert result.exit_code == 1
    assert "Cannot make the folder" in result.stderr


def test_the_examples_in_the_help_text_run(quick, run, monkeypatch):
    monkeypatch.setattr("contone.enhance.methods", lambda: {"uniform": enhance.Uniform})
    lines = examples(dict(commands())["contone demo"])
    assert lines
    for line in lines:
        assert run(*shlex.split(line)[1:]).exit_code == 0


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
