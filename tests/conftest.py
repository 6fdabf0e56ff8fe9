"""Fixtures shared by the whole suite."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))  # the folder of the tests has names that packages have
from forks import BELOW, CONTONE, Forks

# What is imported and collected stays: looking through it for garbage, again and again, took a third of the collection.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


YEAST = ("spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo")


@pytest.fixture(scope="session")
def real():
    """A loader of real data, ``real("Yeast_cold") -> (X, D)``; the test is skipped where the data are not available."""
    from scipy.io import loadmat

    folder = os.environ.get("CONTONE_DATA")
    if not folder:
        pytest.skip("CONTONE_DATA is not set: no real data")
    loaded: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def load(stem: str) -> tuple[np.ndarray, np.ndarray]:
        path = Path(folder) / f"{stem}.mat"
        if not path.exists():
            pytest.skip(f"{path.name} is not in CONTONE_DATA")
        if stem not in loaded:
            content = loadmat(path)
            D = np.asarray(content["labels"], dtype=float)
            loaded[stem] = np.asarray(content["features"], dtype=float), D / D.sum(axis=1, keepdims=True)
        return loaded[stem]

    return load


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    """Classes that a test names are no methods after it."""
    monkeypatch.setattr("contone.enhance.plugins._given", {})


@pytest.fixture(scope="session")
def make_limits_cheap():
    """Limits of few trees and folds, through a patch: what a test asks for does not depend on how good they are."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        from contone.limits import limit

        patch.setattr("contone.limits.N_TREES", 10)
        patch.setitem(limit.__kwdefaults__, "n_splits", 3)

    return apply


@pytest.fixture
def cheap_limits(monkeypatch, make_limits_cheap):
    make_limits_cheap(monkeypatch)


ROUGH = ("backends/", "trust/", "cli/", "enhance/inversion/test_model.py",
         "enhance/inversion/test_sparse.py", "enhance/test_hard_inputs.py", "enhance/test_new_rows.py",
         "enhance/test_plugins.py", "experiments/", "hostile/", "predict/", "reproduction/", "tables/",
         "test_estimators.py", "test_limits.py", "test_models.py", "test_pipeline.py", "test_unasked.py")  # fmt: skip
"""Tests of what is true however well Inversion finds the spread and however long its chains are."""
CURSORY = ("trust/test_table_check.py", "trust/test_page.py", "cli/", "hostile/", "tables/")
"""Tests of what is true of `check` however long the chains are that it runs itself."""
BRIEF = {"n_sweeps": 40, "n_burn": 15}
FEW_SIMULATED = 2000, 300
FEWER_SIMULATED = 8000, 1000
"""A third of the usual number: what tests ask of Inversion's answers is true of it, and takes a quarter less time."""


@pytest.fixture(scope="module", autouse=True)
def rough_inversion(request):
    """In `ROUGH`, Inversion's chains are short by default and its model of the labels is simulated with few rows.

    In other tests of methods, with fewer rows than usual.
    """
    path = request.path.relative_to(Path(__file__).parent).as_posix()
    if not path.startswith(ROUGH):
        with pytest.MonkeyPatch.context() as patch:
            if path.startswith("enhance/"):
                patch.setattr("contone.enhance.inversion.chain.SIMULATED", FEWER_SIMULATED)
            yield
        return
    from contone import Inversion
    from contone.enhance.inversion import chain, simulate
    from contone.trust import hidden_labels, model_checks, subject

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "SIMULATED", FEW_SIMULATED)
        patch.setattr(simulate, "N_SWEEPS", BRIEF["n_burn"])
        for name, value in BRIEF.items():
            patch.setitem(Inversion.__init__.__kwdefaults__, name, value)
        if path.startswith(CURSORY):
            patch.setattr(model_checks, "N_REFITS", 2)
            patch.setattr(hidden_labels, "N_SWEEPS", 12)
            patch.setattr(subject, "DOUBT_SWEEPS", 12)
            for name, value in {"n_sweeps": 12, "n_burn": 4}.items():
                patch.setitem(subject.SHORT, name, value)
        yield


@pytest.fixture
def few_simulated(monkeypatch):
    """As `rough_inversion`, for one test: Inversion's model of the labels is simulated with few rows."""
    monkeypatch.setattr("contone.enhance.inversion.chain.SIMULATED", FEW_SIMULATED)


@pytest.fixture(scope="session")
def brief():
    """Parameters that make a method iterate little: for what holds after any number of iterations."""
    few = {"epochs": 2, "pretrain_epochs": 2, "n_sweeps": 20, "n_burn": 5}

    def settings(method) -> dict[str, int]:
        known = (method() if isinstance(method, type) else method).get_params()
        return {name: value for name, value in few.items() if name in known}

    return settings


@pytest.fixture
def small():
    """A small problem with some structure: X (60, 5), L (60, 4), D (60, 4)."""
    from contone import CumulativeMass

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    Z = X @ rng.normal(size=(5, 4)) * 0.4 + rng.normal(size=(60, 4)) * 0.2
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    return X, CumulativeMass().apply(D).astype(float), D


# ---------------------------------------------------------------- a table to enhance, and ways to run the command

LABELS = ("mood_calm", "mood_happy", "mood_sad")


def songs(n: int = 40):
    """Features, labels, an id with leading zeros, text with a comma and a quote in it."""
    import polars as pl

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
    import polars as pl

    frame = songs()
    frame.with_columns(pl.col(name).alias(name.removeprefix("mood_")) for name in LABELS).drop(LABELS).write_csv(
        tmp_path / "songs.csv"
    )
    frame.write_parquet(tmp_path / "songs.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def put_together_once():
    """The commands are made of their functions once per run: typer does it for every call, which takes 0.04 s."""
    from typer import main, testing

    made = cache(main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "get_command", made)
        patch.setattr(testing, "_get_command", made)
        yield


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are made and not drawn, where a test is not about them: what matplotlib is asked to save is empty."""
    figure = pytest.importorskip("matplotlib.figure")
    empty = {"svg": b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>', "png": b"\x89PNG"}

    def save(self, target, format="png", **_):
        target.write(empty[format].decode() if isinstance(target, io.TextIOBase) else empty[format])

    monkeypatch.setattr(figure.Figure, "savefig", save)


@pytest.fixture
def run(put_together_once):
    """Run ``contone ARGUMENTS`` in this process."""

    def invoke(*arguments: str):
        from typer.testing import CliRunner

        from contone.cli.app import app

        return CliRunner().invoke(app, [str(a) for a in arguments], prog_name="contone")

    return invoke


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Starts processes that have imported contone and its command line already."""
    server = Forks()
    yield server
    server.close()


@pytest.fixture(scope="session")
def bare_forks() -> Iterator[Forks]:
    """Starts processes that have imported what contone needs in any case, and not contone."""
    server = Forks(preload=BELOW)
    yield server
    server.close()


@pytest.fixture(scope="session")
def forked_workers() -> Iterator[None]:
    """Workers of dask are forks of a process that has imported contone. As Python has it: one such process per run."""
    import multiprocessing.forkserver

    multiprocessing.set_forkserver_preload(["distributed", *BELOW, *CONTONE])
    multiprocessing.forkserver.ensure_running()
    with pytest.importorskip("dask").config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield


@pytest.fixture
def process(forks):
    """Run ``python -m contone ARGUMENTS`` as a process of its own."""

    def start(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return forks.run("-m", "contone", *arguments, cwd=cwd, env={**os.environ, "COLUMNS": "100", **environment})

    return start


@pytest.fixture
def flat():
    """What was printed, without boxes and line breaks."""

    def flatten(text: str) -> str:
        return " ".join("".join(" " if c in "│╭╮╰╯─" else c for c in text).split())

    return flatten
