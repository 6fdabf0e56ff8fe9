"""show_versions() says what a bug report needs, without importing anything for it."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

import contone
from contone.runtime import versions


def test_every_section_is_printed(capsys):
    contone.show_versions()
    printed = capsys.readouterr().out
    for title in versions.collect():
        assert title in printed.splitlines()
    assert contone.__version__ in printed
    assert np.__version__ in printed


def test_dependencies_are_those_that_are_declared_with_their_versions():
    sections = versions.collect()
    assert sections["Dependencies"]["scikit-learn"] == version("scikit-learn")
    assert "torch" in sections["Optional"]
    assert not set(sections["Dependencies"]) & set(sections["Optional"])
    assert "contone" not in set(sections["Dependencies"]) | set(sections["Optional"])


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(versions, "_requirements", lambda: ["no-such-package>=1; extra == 'x'"])
    assert versions.collect()["Optional"] == {"no-such-package": "not installed"}


def test_a_source_tree_that_was_never_installed_still_shows_the_system(monkeypatch):
    monkeypatch.setattr(versions, "PACKAGE", "never-installed-under-this-name")
    sections = versions.collect()
    assert sections["System"]["never-installed-under-this-name"] == "not installed"
    assert sections["Dependencies"] == {}


def test_nothing_heavy_is_imported(bare_forks):
    code = (
        "import sys, contone; contone.show_versions()\n"
        "sys.exit(bool({'torch', 'dask', 'polars', 'matplotlib'} & set(sys.modules)))"
    )
    assert bare_forks.run("-c", code).returncode == 0
