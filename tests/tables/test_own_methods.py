"""Methods from outside contone in model files: by import path, never imported unless they are installed or trusted."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

from contone import Best, Inversion
from contone.base import Enhancer
from contone.exceptions import DataError, InputError
from contone.models import load_model, save_model
from contone.numerics.solution import Solution
from contone.tables import apply_model, fit_file, load_table_model

MODULE = """
from dataclasses import dataclass
import numpy as np
from contone import Best, Inversion
from contone.base import Enhancer
from contone.numerics.solution import Solution

@dataclass(frozen=True)
class Weights:
    floor: float

class Floored(Enhancer):
    def _fit_enhance(self, X, L):
        self.weights_ = Weights(0.1)
        return Solution(self._enhance(X, L))

    def _enhance(self, X, L):
        D = L + self.weights_.floor
        return D / D.sum(axis=1, keepdims=True)
"""
X, L = np.arange(8.0).reshape(4, 2), np.array([[1, 0], [0, 1], [1, 1], [1, 0]])


@pytest.fixture
def outside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outside_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import outside_module

    yield outside_module
    del sys.modules["outside_module"]


def test_a_method_of_ones_own_is_kept_by_its_import_path(outside):
    method = outside.Floored().fit(X, L)
    save_model(method, "m.contone")
    with pytest.raises(DataError, match="If you trust it, say so"):
        load_model("m.contone")
    again = load_model("m.contone", trusted=["outside_module:Floored"])
    np.testing.assert_array_equal(again.enhance(X, L), method.enhance(X, L))


def test_reading_imports_nothing_that_was_not_asked_for(outside, tmp_path):
    save_model(outside.Floored().fit(X, L), "m.contone")
    del sys.modules["outside_module"]
    with pytest.raises(DataError):
        load_model("m.contone")
    assert "outside_module" not in sys.modules
    (tmp_path / "outside_module.py").write_text("raise RuntimeError('gone')")
    with pytest.raises(DataError, match="cannot be imported here .gone."):
        load_model("m.contone", trusted=["outside_module:Floored"])
    sys.modules["outside_module"] = outside


def test_a_table_model_with_a_method_of_ones_own(outside):
    pl.DataFrame({"x": X[:, 0], "y": X[:, 1], "a": L[:, 0], "b": L[:, 1]}).write_csv("t.csv")
    assert fit_file("t.csv", "m.contone", labels="a,b", method=outside.Floored()).labels == ["a", "b"]
    trusted = ["outside_module:Floored"]
    apply_model("m.contone", "t.csv", "o.parquet", trusted=trusted)
    expected = load_table_model("m.contone", trusted=trusted).method.enhance(X, L)
    np.testing.assert_array_equal(pl.read_parquet("o.parquet").select("a_degree", "b_degree").to_numpy(), expected)


def test_a_class_that_no_path_leads_to_is_refused(tmp_path):
    class Local(Enhancer):
        def _fit_enhance(self, X, L):
            return Solution(L / L.sum(axis=1, keepdims=True))

    with pytest.raises(InputError, match="in a module that can be imported"):
        save_model(Local().fit(X, L), tmp_path / "m.contone")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_method_that_was_chosen_on_rehearsed_data_can_be_kept(tmp_path):
    quick = {"n_iter": 1, "n_replicates": 1, "model": Inversion(n_sweeps=6, n_burn=2)}
    method = Best(methods=["uniform", "temperature"], **quick).fit(X, L)
    save_model(method, tmp_path / "m.contone")
    np.testing.assert_array_equal(load_model(tmp_path / "m.contone").enhance(X, L), method.enhance(X, L))
