"""What an answer does not depend on: docs/guarantees.md has the table, and here each of its cells is tried.

"yes" in the table: the same answer, to 2e-4. Everything else has its reason in `REASONS`.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import contone
from contone import base

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
ENHANCERS = sorted(
    name
    for name in contone.__all__
    if inspect.isclass(value := getattr(contone, name)) and issubclass(value, base.Enhancer)
)
BRIEF = {
    "Inversion": {"n_sweeps": 12, "n_burn": 4},
    "ConLE": {"epochs": 5},
    "LEIC": {"epochs": 5},
    "LEVI": {"epochs": 5},
    "LIBLE": {"epochs": 5, "pretrain_epochs": 5},
    "DRAM": {"max_iter": 2},
}
AROUND = {"Augmented": contone.GLLE(), "Calibrated": contone.LP(), "Rescaled": contone.LP(), "Tuned": contone.LP()}
REASONS = {
    "draws": "draws a number for each of them, from one stream",
    "batches": "trains on batches of rows in an order that is drawn",
    "order": "goes through them in their order: along the rows, or label by label",
    "signs": "principal components have signs that the order of the columns decides, and what is drawn along them",
    "unit": "a penalty has the unit of the features",
}
"""The words of the table beside "yes", and what they mean; the page has them, too."""


@cache
def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    S = np.exp(X @ rng.normal(size=(4, 3)))
    D = S / S.sum(axis=1, keepdims=True)
    return X, np.maximum(D > 0.25, D.max(axis=1, keepdims=True) == D).astype(float)


@cache
def answer(name: str) -> np.ndarray:
    return fitted(name, *problem())


def fitted(name: str, X: Any, L: Any) -> Any:
    rehearsing = {"n_replicates": 1, "model": contone.Inversion(**BRIEF["Inversion"])}
    settings = {"Tuned": {"n_iter": 2, **rehearsing}, "Best": {"methods": ["uniform", "lp"], **rehearsing}, **BRIEF}
    method = getattr(contone, name)(*[AROUND[name]] if name in AROUND else [], **settings.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit_enhance(X, L)


def other_rows(name: str) -> tuple[Any, Any]:
    (X, L), order = problem(), np.random.default_rng(1).permutation(60)
    return fitted(name, X[order], L[order]), answer(name)[order]


def other_columns(name: str) -> tuple[Any, Any]:
    X, L = problem()
    return fitted(name, X[:, [2, 0, 3, 1]], L), answer(name)


def other_labels(name: str) -> tuple[Any, Any]:
    X, L = problem()
    return fitted(name, X, L[:, [2, 0, 1]]), answer(name)[:, [2, 0, 1]]


def other_units(name: str) -> tuple[Any, Any]:
    X, L = problem()
    return fitted(name, 1024.0 * X, L), answer(name)


def a_constant_column(name: str) -> tuple[Any, Any]:
    X, L = problem()
    return fitted(name, np.hstack([X, np.full((60, 1), 7.0)]), L), answer(name)


def other_containers(name: str) -> tuple[Any, Any]:
    pd = pytest.importorskip("pandas")
    X, L = problem()
    return fitted(name, pd.DataFrame(X), pd.DataFrame(L)).to_numpy(), answer(name)


COLUMNS: dict[str, Callable[[str], tuple[Any, Any]]] = {
    "rows": other_rows,
    "columns": other_columns,
    "labels": other_labels,
    "one unit": other_units,
    "constant column": a_constant_column,
    "containers": other_containers,
}


def table() -> dict[str, dict[str, str]]:
    """The cells of the page by method and column."""
    text = PAGE.read_text(encoding="utf-8")
    lines = re.search(r"\| method \|.*?\n\n", text, flags=re.DOTALL)
    assert lines is not None
    head, _, *rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[0].strip().splitlines()]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


@pytest.mark.parametrize("name", ENHANCERS)
def test_the_table_of_the_page_is_true(name):
    said = table()[name]
    assert list(said) == [*COLUMNS, "threads"]
    for column, compare in COLUMNS.items():
        found, expected = compare(name)
        same = bool(np.abs(np.asarray(found) - expected).max() <= 2e-4)
        assert same if said[column] == "yes" else said[column] in REASONS, (column, said[column])


def test_every_method_is_in_the_table():
    assert sorted(table()) == ENHANCERS
    assert {row["threads"] for row in table().values()} == {"yes"}


def test_the_number_of_threads_changes_nothing():
    """In a process each, because threads are counted when libraries are loaded; enough rows to be shared out."""
    code = (
        "import numpy as np, contone, hashlib; rng = np.random.default_rng(0); X = rng.normal(size=(20000, 5));"
        "L = (rng.random((20000, 4)) < 0.5) | np.eye(4, dtype=bool)[rng.integers(4, size=20000)];"
        "wide = rng.normal(size=(1300, 250)) / np.sqrt(1 + np.arange(250));"
        "methods = [contone.GLLE(), contone.Inversion(n_sweeps=12, n_burn=4, max_rows=5000)];"
        "print([np.round(m.fit_enhance(X, L), 6).sum(axis=0).round(3).tolist() for m in methods]);"
        "m = contone.Inversion(n_sweeps=12, n_burn=4).fit(wide, L[:1300]);"
        "bits = [m.label_distributions_, m.enhance(wide, L[:1300]), m.predict(wide), m.expected_error_.mean];"
        "print([hashlib.sha256(np.asarray(A).tobytes()).hexdigest() for A in bits])"  # to the last bit
    )
    said = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": n},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n in "12"
    ]
    assert said[0] == said[1]
