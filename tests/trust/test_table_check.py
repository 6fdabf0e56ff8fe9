"""`check_file`: rows are numbered as in the file, and a fitted method is not fitted again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contone import Inversion, Temperature, enhance_file, read_table
from contone.pages.render import render
from contone.trust import page
from contone.trust.table_check import check_file, check_rows

pl = pytest.importorskip("polars")
QUICK = Inversion(n_sweeps=20, n_burn=5)


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
    found = check_rows(done.method, done.fitted_rows())
    assert found.n_rows == 40
    assert all(20 <= row.row < 60 for row in (*found.ambiguous, *found.doubtful))
    assert done.method.fit_ is before
    assert found.yes_weight == done.method.rule_report_.yes_weight


def test_a_streamed_file_is_checked_by_the_sample_of_its_fit(tmp_path, undrawn):
    n, rng = 60_000, np.random.default_rng(0)
    x, L = rng.normal(size=n), np.eye(3, dtype=int)[rng.integers(0, 3, n)]
    source = tmp_path / "many.parquet"
    pl.DataFrame({"x": x, "a": L[:, 0], "b": L[:, 1], "c": L[:, 2]}).write_parquet(source)
    settings = {"labels": "a,b,c", "method": Temperature(c=1.0)}
    done = enhance_file(source, tmp_path / "soft.parquet", **settings, chunk_rows=20_000, sample_rows=50)
    sample = done.fitted_rows()
    assert len(sample.numbers) == 50
    np.testing.assert_array_equal(sample.Y.to_numpy(), L[sample.numbers])
    standardized = (x[sample.numbers] - x[sample.numbers].mean()) / x[sample.numbers].std()
    own = (sample.X[:, 0] - sample.X[:, 0].mean()) / sample.X[:, 0].std()
    np.testing.assert_allclose(own, standardized)
    job = done.fitted_rows.__self__
    redrawn = replace(job, sample=None).rows()  # as after an interruption
    np.testing.assert_array_equal(redrawn.numbers, sample.numbers)
    np.testing.assert_array_equal(redrawn.X, sample.X)
    found = check_rows(done.method, sample, model=QUICK)
    assert (found.n_rows, found.n_fitted, found.n_checked) == (n, 50, 50)
    assert {row.row for row in found.ambiguous} <= set(sample.numbers)
    text = render(page.document(found, "many.parquet"), "html")
    assert "60,000 rows, 3 labels, enhanced by Temperature; the method was fitted to a sample of 50 rows" in text
    assert len(text.encode()) < 2_000_000
    # The method of an interrupted run comes from a file without the answer to its rows: it is fitted once more.
    again = check_rows(Temperature(c=1.0), sample, model=QUICK)
    assert again.yes_weight == found.yes_weight


def test_items_whose_levels_are_all_zero_have_answers(tmp_path):
    """Nothing applies: that is an answer about every label, not a row without one."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 4, (60, 3))
    levels[:12] = 0
    path = tmp_path / "levels.csv"
    rows = np.column_stack([rng.normal(size=(60, 2)).round(3), levels])
    np.savetxt(path, rows, delimiter=",", header="x,y,a,b,c", comments="", fmt="%g")
    reading = {"labels": "a,b,c", "rule": "levels"}
    assert read_table(path, **reading).labelled.all()
    assert not read_table(path, labels="a,b,c", rule="votes").labelled[:12].any()
    found = check_file(
        path, method=Inversion(degradation="levels", n_sweeps=30, n_burn=10), unlabelled="predict", **reading
    )
    assert found.n_rows == found.n_checked == 60
