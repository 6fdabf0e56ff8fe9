"""The modules beside the tests, and a folder with one small table in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def few_simulated_rows():
    """Inversion simulates few rows: nothing here depends on how well it knows the spread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contone.enhance.inversion.chain.SIMULATED", (300, 100))
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    import corpus

    (tmp_path / "in.csv").write_bytes(corpus.ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path
