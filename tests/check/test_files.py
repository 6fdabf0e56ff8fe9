"""`check_file`: rows are numbered as in the file, and a fitted method is not fitted again."""

from __future__ import annotations

import numpy as np
import pytest

from contone import Inversion, enhance_file
from contone.check.files import check_file
from contone.exceptions import ArgumentError

pl = pytest.importorskip("polars")


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(0)
    L = np.eye(3, dtype=int)[rng.integers(0, 3, 60)]
    L[:20] = 0  # nobody labelled these
    path = tmp_path / "rows.csv"
    pl.DataFrame({"x": rng.normal(size=60), "a": L[:, 0], "b": L[:, 1], "c": L[:, 2]}).write_csv(path)
    return path


def test_rows_have_the_numbers_of_the_file(source):
    method = Inversion(n_sweeps=20, n_burn=5)
    found = check_file(source, labels="a,b,c", method=method, unlabelled="predict")
    assert found.n_rows == 40
    assert all(20 <= row.row < 60 for row in (*found.ambiguous, *found.doubtful))
    assert not hasattr(method, "fit_")


def test_what_enhance_file_fitted_is_taken_as_it_is(source, tmp_path):
    settings = {"labels": "a,b,c", "unlabelled": "predict"}
    done = enhance_file(source, tmp_path / "soft.csv", method=Inversion(n_sweeps=20, n_burn=5), **settings)
    before = done.method.fit_
    found = check_file(source, method=done.method, **settings)
    assert done.method.fit_ is before
    assert found.yes_weight == done.method.rule_report_.yes_weight


def test_other_methods_are_refused(source):
    from contone import Uniform

    with pytest.raises(ArgumentError, match="inversion"):
        check_file(source, labels="a,b,c", method=Uniform())
