"""Every public call says in a sentence what is wrong with what it was given: a line for each thing once raw."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import contone
from contone import KM, ML2, Augmented, Inversion, TopK, evaluate
from contone.exceptions import ContoneError

BRIEF = {"n_sweeps": 20, "n_burn": 5}


def folder_named(variable: str) -> subprocess.CompletedProcess[str]:
    code = "import contone; contone.datasets.load('no such data')"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, variable: "~nobody-has-this-name/x"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("variable", ["CONTONE_DATA", "CONTONE_CACHE"])
def test_the_home_of_nobody_is_no_traceback_of_pathlib(variable):
    assert "DataError" in folder_named(variable).stderr.splitlines()[-1]


def two_columns_of_one_name(small):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(small[2], columns=["a", "a", "b", "c"])


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (lambda X, L, D: contone.datasets.load(None), "got None"),
        (lambda X, L, D: TopK(2).apply([["a", "b"]]), "D must hold numbers"),
        (lambda X, L, D: evaluate(D, [["a"] * 4] * 60), "D_hat must hold numbers"),
        (lambda X, L, D: Inversion(**BRIEF).fit(X, L, degrees=[["a"] * 4] * 60), "degrees must hold numbers"),
        (lambda X, L, D: Inversion(**BRIEF).fit(X, L).intervals(level=None), "between 0 and 1; got None"),
        (lambda X, L, D: Inversion(**BRIEF).fit(X, L).intervals(Y=L), "Y came without X"),
        (lambda X, L, D: Inversion(degradation="votes").fit(X, L[:, :1]), "Votes need two labels"),
        (lambda X, L, D: Inversion(**BRIEF).fit(X, L).intervals(X, level="a"), "between 0 and 1; got 'a'"),
        (lambda X, L, D: Inversion(degradation="bar", **BRIEF).fit(X, np.full(L.shape, np.nan)), "0 rows with a label"),
    ],
)
@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_what_cannot_be_used_is_named(small, question, said):
    with pytest.raises(ContoneError, match=said):
        question(*small)


@pytest.mark.parametrize("question", [TopK(2).apply, lambda D: evaluate(D, D)])
def test_columns_of_one_name_are_named(small, question):
    with pytest.raises(ContoneError, match="duplicate column names: a"):
        question(two_columns_of_one_name(small))


@pytest.mark.parametrize("method", [KM(), ML2()], ids=repr)
def test_a_wrapper_brings_tensors_to_a_method_of_numpy_arrays(small, method):
    torch = pytest.importorskip("torch")
    X, L, _ = small
    answer = Augmented(method).fit_enhance(torch.tensor(X), torch.tensor(L))
    np.testing.assert_allclose(answer.numpy(), Augmented(method).fit_enhance(X, L), atol=1e-9)


def test_a_wrapper_fetches_lazy_rows_for_a_method_that_needs_all(small):
    da = pytest.importorskip("dask.array")
    X, L, _ = small
    answer = Augmented(KM()).fit_enhance(da.from_array(X, chunks=20), da.from_array(L, chunks=20))
    np.testing.assert_allclose(answer.compute(), Augmented(KM()).fit_enhance(X, L), atol=1e-12)


def test_a_billion_samples_are_as_many_as_there_are_sweeps(small):
    X, L, _ = small
    assert len(Inversion(n_samples=10**9, **BRIEF).fit(X, L).samples_) == BRIEF["n_sweeps"] - BRIEF["n_burn"]


@pytest.mark.filterwarnings("ignore")
def test_a_prior_of_next_to_no_strength_leaves_no_singular_matrix():
    """More labels than rows: the labels alone would say that Sigma has no variance in most directions."""
    rng = np.random.default_rng(14)
    L = (rng.random((4, 9)) < 0.5) | np.eye(4, 9, dtype=bool)
    answer = Inversion(strength=1e-300, **BRIEF).fit_enhance(rng.normal(size=(4, 2)), L)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)
