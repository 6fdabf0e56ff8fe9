"""The measurement that CONTRIBUTING adds keeps the contract, and Inversion takes it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from others import others_of

from contone import Inversion
from contone.numerics.simplex import softmax

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def AllBut():
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    module = ModuleType("strike")
    sys.modules["strike"] = module  # dataclasses look their module up
    exec(code, vars(module))
    yield module.AllBut
    del sys.modules["strike"]


def test_it_strikes_out_the_worst(AllBut):
    assert AllBut(1).apply([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]).tolist() == [[0, 1, 1], [1, 1, 0]]
    assert AllBut(9).apply([[0.2, 0.5, 0.3]]).tolist() == [[0, 1, 0]]


def test_its_interval_is_where_the_labels_stay(AllBut):
    rule, Z = AllBut(2), np.random.default_rng(0).normal(size=(200, 5))
    L = rule._apply(softmax(Z)).astype(float)
    for j in range(5):
        lower, upper = rule.interval(others_of(Z, L, j), L[:, j] > 0)
        for end, step in ((lower, -1e-7), (upper, 1e-7)):
            for side, stays in ((-step, True), (step, False)):
                moved, finite = Z.copy(), np.isfinite(end)
                moved[:, j] = np.where(finite, end + side, Z[:, j])
                same = (rule._apply(softmax(moved)) == (L > 0)).all(axis=1)
                assert (same[finite] == stays).all()


def test_inversion_recovers_what_was_struck_out(AllBut):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2))
    D = softmax(X @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(150, 4)))
    rule = AllBut(1)
    method = Inversion(degradation=rule, n_sweeps=40, n_burn=15).fit(X, rule.apply(D))
    assert rule.agrees(method.label_distributions_, rule.apply(D)).mean() > 0.95
