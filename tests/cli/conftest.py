"""A table to enhance, and ways to run the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from contone.cli.app import app

LABELS = ("mood_calm", "mood_happy", "mood_sad")


def songs(n: int = 40) -> pl.DataFrame:
    """Features, labels, an id with leading zeros, text with a comma and a quote in it."""
    rng = np.random.default_rng(0)
    L = rng.integers(0, 2, size=(n, 3))
    L[np.arange(n), np.arange(n) % 3] = 1
    return pl.DataFrame(
        {
            "song_id": [f"{i:05d}" for i in range(n)],
            "title": ['he said "no", she said', "plain"] * (n // 2),
            "tempo": rng.normal(size=n).round(4),
            "loudness": rng.normal(size=n).round(4),
            **{name: L[:, j] for j, name in enumerate(LABELS)},
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with songs.csv (moods as plain names too) and songs.parquet."""
    frame = songs()
    frame.with_columns(pl.col(name).alias(name.removeprefix("mood_")) for name in LABELS).drop(LABELS).write_csv(
        tmp_path / "songs.csv"
    )
    frame.write_parquet(tmp_path / "songs.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run():
    """Run ``contone ARGUMENTS`` in this process."""

    def invoke(*arguments: str):
        return CliRunner().invoke(app, [str(a) for a in arguments], prog_name="contone")

    return invoke


@pytest.fixture
def process():
    """Run ``python -m contone ARGUMENTS`` as a process of its own."""

    def start(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "contone", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            env={**os.environ, "COLUMNS": "100", **environment},
            timeout=120,
        )

    return start


@pytest.fixture
def flat():
    """What was printed, without boxes and line breaks."""

    def flatten(text: str) -> str:
        return " ".join("".join(" " if c in "│╭╮╰╯─" else c for c in text).split())

    return flatten
