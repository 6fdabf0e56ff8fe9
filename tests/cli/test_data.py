"""`contone data list | fetch | info`: streams, exit codes, narrow terminals."""

from __future__ import annotations

import hashlib
import http.server
import importlib
import io
import json
import threading
from functools import partial

import numpy as np
import pytest
from rich.console import Console
from scipy.io import savemat
from typer.testing import CliRunner

from contone import datasets
from contone.cli import terminal
from contone.cli.app import app


@pytest.fixture
def contone(monkeypatch, tmp_path):
    """The command with nothing available: no CONTONE_DATA, an empty cache, no address that answers."""
    monkeypatch.delenv("CONTONE_DATA", raising=False)
    monkeypatch.setenv("CONTONE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CONTONE_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("COLUMNS", "120")
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, ["data", *arguments])


def test_list_shows_every_set_on_stdout_and_the_advice_on_stderr(contone):
    result = contone("list")
    assert result.exit_code == 0
    for name in datasets.names():
        assert name in result.stdout
    assert "24 not available locally" in result.stderr
    assert "contone data fetch" not in result.stdout


@pytest.mark.parametrize("columns", [40, 60, 89, 90, 120])
def test_list_and_info_fit_the_terminal(contone, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (["list"], ["info", "flickr"], ["info", "artificial"]):
        lines = contone(*arguments).stdout.splitlines()
        assert max(len(line.rstrip()) for line in lines) <= columns


def test_list_as_json(contone):
    result = contone("list", "--json")
    records = json.loads(result.stdout)
    assert [r["name"] for r in records] == datasets.names()
    by_name = {r["name"]: r for r in records}
    assert by_name["artificial"]["where"] == "generated"
    assert by_name["flickr"] == by_name["flickr"] | {"where": "missing", "path": None, "n": 11150, "in_paper": True}
    assert by_name["raf-ml"]["d"] is None


def test_list_warns_of_a_damaged_file(contone, monkeypatch, tmp_path):
    (tmp_path / "SJAFFE.mat").write_bytes(b"nothing")
    monkeypatch.setenv("CONTONE_DATA", str(tmp_path))
    result = contone("list")
    assert result.exit_code == 0
    assert "folder, damaged" in result.stdout
    assert "not the published SJAFFE.mat" in result.stderr


def test_info_describes_the_artificial_set(contone):
    result = contone("info", "artificial", "--json")
    record = json.loads(result.stdout)
    assert (record["n"], record["d"], record["q"], record["zeros"]) == (2601, 3, 3, 0)
    assert record["label_names"] == ["y1", "y2", "y3"]
    assert 1 < record["cardinality"] < 3
    shown = contone("info", "Artificial").stdout
    assert f"{record['cardinality']:.4f}" in shown
    assert "TKDE" in shown


def test_info_of_a_set_not_at_hand_says_what_the_registry_knows(contone):
    result = contone("info", "flickr")
    assert result.exit_code == 0
    assert "11150" in result.stdout
    assert "AAAI 2017" in result.stdout
    assert "contone data fetch flickr" in result.stderr
    assert json.loads(contone("info", "flickr", "--json").stdout)["cardinality"] is None


def test_info_of_a_damaged_file_is_a_failure(contone, monkeypatch, tmp_path):
    (tmp_path / "SJAFFE.mat").write_bytes(b"nothing")
    monkeypatch.setenv("CONTONE_DATA", str(tmp_path))
    result = contone("info", "sjaffe")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "not the published SJAFFE.mat" in result.stderr


def test_info_of_a_file_of_ones_own(contone, monkeypatch, tmp_path):
    np.savez(tmp_path / "mine.npz", X=np.ones((3, 2)), D=np.full((3, 2), 0.5))
    monkeypatch.setenv("CONTONE_DATA", str(tmp_path))
    record = json.loads(contone("info", "mine", "--json").stdout)
    assert (record["n"], record["d"], record["q"], record["cardinality"]) == (3, 2, 2, 2.0)


def test_info_of_yeast_alpha(real):
    real("Yeast_alpha")
    record = json.loads(CliRunner().invoke(app, ["data", "info", "yeast-alpha", "--json"]).stdout)
    assert (record["n"], record["d"], record["q"], record["zeros"]) == (2465, 24, 18, 1)
    assert round(record["cardinality"], 4) == 8.9018


def test_an_unknown_name_is_a_wrong_command_line(contone):
    for command in ("info", "fetch"):
        result = contone(command, "fliker")
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "flickr" in result.stderr


def test_fetch_needs_names_or_all_but_not_both(contone):
    for arguments in ([], ["sjaffe", "--all"]):
        result = contone("fetch", *arguments)
        assert result.exit_code == 2
        assert "--all" in result.stderr


def test_fetch_goes_on_after_a_failure_and_exits_with_1(contone, monkeypatch, tmp_path):
    np.savez(tmp_path / "mine.npz", X=np.ones((3, 2)), D=np.full((3, 2), 0.5))
    monkeypatch.setenv("CONTONE_DATA", str(tmp_path))
    result = contone("fetch", "flickr", "artificial", "mine")
    assert result.exit_code == 1
    assert result.stdout == f"mine\t{tmp_path / 'mine.npz'}\n"
    assert "error: flickr" in result.stderr
    assert "artificial is generated" in result.stderr
    assert "1 of 3 could not be fetched" in result.stderr
    assert not list((tmp_path / "cache").iterdir())


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A server on this machine that has the one set of a registry of its own, 'tiny'."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    rng = np.random.default_rng(0)
    savemat(folder / "Tiny.mat", {"features": rng.normal(size=(9, 2)), "labels": rng.dirichlet([1, 1], size=9)})
    digest = hashlib.sha256((folder / "Tiny.mat").read_bytes()).hexdigest()
    fetching = importlib.import_module("contone.datasets.fetch")
    entry = fetching.Entry("tiny", "Tiny.mat", 9, 2, 2, "a set for tests", "nobody", "none", "", sha256=digest)
    monkeypatch.setattr(fetching, "registry", lambda: {"tiny": entry})
    handler = partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        monkeypatch.setenv("CONTONE_MIRROR", f"http://127.0.0.1:{server.server_port}")
        yield folder
        server.shutdown()
        thread.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without talking about it."""

    def log_message(self, *args):
        """Keep the test output clean."""


@pytest.mark.parametrize("arguments", [["tiny"], ["--all"]])
def test_fetch_downloads_into_the_cache_and_prints_the_path(contone, mirror, tmp_path, arguments):
    result = contone("fetch", *arguments)
    assert result.exit_code == 0
    path = tmp_path / "cache" / "Tiny.mat"
    assert result.stdout == f"tiny\t{path}\n"
    assert path.read_bytes() == (mirror / "Tiny.mat").read_bytes()
    assert "fetching tiny" in result.stderr
    assert json.loads(contone("info", "tiny", "--json").stdout)["where"] == "cache"


def test_fetch_shows_a_clock_on_a_terminal(contone, mirror, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "messages", lambda: Console(file=screen, force_terminal=True, width=80))
    assert contone("fetch", "tiny").exit_code == 0
    assert "fetching tiny" in screen.getvalue()
    assert "0:00:00" in screen.getvalue()


def test_help_has_an_example_each(contone):
    for command in ("list", "fetch", "info"):
        assert f"contone data {command}" in contone(command, "--help").stdout
