"""Killed at any moment, the same command goes on and ends with the file that an undisturbed run writes."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest

# Calls of the operating system that change a file are counted; the process kills itself at the one asked for, and says
# how many were left where it comes to its end.
RUN = """
import os, signal, sys
import contone
left = int(sys.argv[1])
def counted(module, name):
    call = getattr(module, name)
    def counting(*arguments, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)
    setattr(module, name, counting)
for name in ("replace", "unlink", "rmdir", "fsync", "open", "chmod"):
    counted(os, name)
contone.enhance_file(*sys.argv[2:], labels="a,b", method="temperature", chunk_rows=40, overwrite=True)
print(left)
"""


@pytest.fixture
def run(tmp_path, forks):
    """Run with a call to be killed at and two places: the exit code, and how many calls were left (None: killed)."""

    def start(kill_at: int, *places: str) -> tuple[int, int | None]:
        done = forks.run("-c", RUN, kill_at, *places, cwd=tmp_path)
        return done.returncode, int(done.stdout) if done.stdout else None

    return start


def table(folder: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    frame = pl.DataFrame({"id": np.arange(200), "x": rng.normal(size=200), "a": labels, "b": 1 - labels})
    frame.write_csv(folder / "in.csv")
    frame.write_parquet(folder / "in.parquet")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_killed_at_random_points_it_goes_on(tmp_path, run, kind):
    table(tmp_path)
    places = f"in.{kind}", f"out.{kind}"
    code, left = run(10**6, places[0], f"whole.{kind}")
    assert code == 0
    n_calls = 10**6 - left
    assert n_calls > 30
    expected = (tmp_path / f"whole.{kind}").read_bytes()
    points = random.Random(0).sample(range(1, n_calls), 5)
    for kill_at in [*points, n_calls - 1]:  # the last ones are in the merge and the clean-up
        code, left = run(kill_at, *places)
        assert code in (-signal.SIGKILL, 0)  # 0: fewer calls were left than that
        target = tmp_path / places[1]
        assert not target.exists() or target.read_bytes() == expected
    assert run(10**6, *places)[0] == 0
    assert (tmp_path / places[1]).read_bytes() == expected
    left = sorted(set(os.listdir(tmp_path)) - {"in.csv", "in.parquet"})
    assert left == sorted([places[1], f"whole.{kind}"])  # no folder, no temporary file
