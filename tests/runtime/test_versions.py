"""show_versions() says what a bug report needs, without importing anything for it."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

import contone
from contone.runtime import versions


def test_what_is_collected_is_printed_with_the_machine(capsys):
    contone.show_versions()
    printed = capsys.readouterr().out
    for name in versions.collect():
        assert name in printed
    assert contone.__version__ in printed
    assert np.__version__ in printed
    assert "executable" in printed
    assert "num_threads" in printed


def test_dependencies_are_those_that_are_declared_with_their_versions(monkeypatch):
    found = versions.collect()
    assert found["scikit-learn"] == version("scikit-learn")
    assert next(iter(found)) == "contone"
    assert {"torch", "dask"} <= set(found)
    monkeypatch.setattr(versions, "requires", lambda name: ["no-such-package>=1; extra == 'x'", "contone[cli]"])
    assert versions.collect()["no-such-package"] == "not installed"


def test_a_source_tree_that_was_never_installed_still_shows_the_machine(monkeypatch):
    monkeypatch.setattr(versions, "PACKAGE", "never-installed-under-this-name")
    found = versions.collect()
    assert found["never-installed-under-this-name"] == "not installed"
    assert set(found) == {"never-installed-under-this-name", "memory available", "threads of contone"}


def test_nothing_heavy_is_imported(bare_forks):
    code = (
        "import sys, contone; contone.show_versions()\n"
        "sys.exit(bool({'torch', 'dask', 'polars', 'matplotlib'} & set(sys.modules)))"
    )
    assert bare_forks.run("-c", code).returncode == 0
