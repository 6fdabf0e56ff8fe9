"""Killed at any moment, the same command goes on and ends with the file that an undisturbed run writes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

# Calls of the operating system that change a file, counted; the process kills itself at the one asked for.
KILLER = """
import os, signal, sys
from pathlib import Path
left = int(sys.argv.pop(1))
def counted(module, name):
    call = getattr(module, name)
    def counting(*arguments, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)
    setattr(module, name, counting)
import contone
for name in ("replace", "unlink", "rmdir", "fsync", "open", "chmod"):
    counted(os, name)
done = contone.enhance_file(*sys.argv[1:], labels="a,b", method="temperature", chunk_rows=40, overwrite=True)
print(left)
"""


def table(folder: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    frame = pl.DataFrame({"id": np.arange(200), "x": rng.normal(size=200), "a": labels, "b": 1 - labels})
    frame.write_csv(folder / "in.csv")
    frame.write_parquet(folder / "in.parquet")


def run(folder: Path, kill_at: int, *places: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", KILLER, str(kill_at), *places], cwd=folder, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_killed_at_random_points_it_goes_on(tmp_path, kind):
    table(tmp_path)
    places = f"in.{kind}", f"out.{kind}"
    whole = run(tmp_path, 10**6, places[0], f"whole.{kind}")
    assert whole.returncode == 0, whole.stderr
    n_calls = 10**6 - int(whole.stdout)
    assert n_calls > 30
    expected = (tmp_path / f"whole.{kind}").read_bytes()
    points = random.Random(0).sample(range(1, n_calls), 5)
    for kill_at in [*points, n_calls - 1]:  # the last ones are in the merge and the clean-up
        ended = run(tmp_path, kill_at, *places)
        assert ended.returncode in (-signal.SIGKILL, 0), ended.stderr  # 0: fewer calls were left than that
        target = tmp_path / places[1]
        assert not target.exists() or target.read_bytes() == expected
    ended = run(tmp_path, 10**6, *places)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / places[1]).read_bytes() == expected
    left = sorted(set(os.listdir(tmp_path)) - {"in.csv", "in.parquet"})
    assert left == sorted([places[1], f"whole.{kind}"])  # no folder, no temporary file
