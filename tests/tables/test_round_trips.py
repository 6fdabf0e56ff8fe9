"""What is written in any format is what is read from it: numbers to the bit, text to the letter."""

from __future__ import annotations

import gzip
import importlib.util
import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

import contone
from contone.exceptions import ArgumentError, MissingExtraError, OutputError
from contone.tables import excel, formats

FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
NAMES = st.text("abcXYZ _.:()é%", min_size=1, max_size=6).map(str.strip).filter(bool)
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float)
LETTERS = st.characters(codec="utf-8", exclude_categories=["C", "Z"], include_characters=" ,;\"'\n{}%?=|")
SOME_TEXT = st.text(LETTERS, min_size=1, max_size=8).map(str.strip).filter(bool)
TEXTS = st.none() | SOME_TEXT


@st.composite
def tables(draw) -> pl.DataFrame:
    """A table with numbers and texts.

    Each text column has one entry that is no number, or it would be read as one; and no row is empty, because that is
    no row in a sheet.
    """
    n = draw(st.integers(1, 5))
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique_by=str.lower))
    columns = [pl.Series(names[0], draw(st.lists(NUMBERS, min_size=n, max_size=n)), dtype=pl.Float64)]
    for name in names[1:]:
        texts = TEXTS if name != names[1] else SOME_TEXT
        entries = [*draw(st.lists(texts, min_size=n - 1, max_size=n - 1)), "text"]
        columns.append(pl.Series(name, entries, dtype=pl.String))
    return pl.DataFrame(columns)


def is_there(suffix: str) -> bool:
    return suffix != ".xlsx" or all(importlib.util.find_spec(name) for name in ("fastexcel", "xlsxwriter"))


@pytest.mark.parametrize("suffix", [s for s in formats.WRITABLE if s not in (".pq", ".feather", ".ipc", ".ndjson")])
@FEW
@given(frame=tables())
def test_what_is_written_is_read(tmp_path_factory, suffix, frame):
    if not is_there(suffix):
        pytest.skip("contone[excel] is not installed")
    path = tmp_path_factory.mktemp("t") / f"t{suffix}"
    formats.write(frame, str(path), overwrite=False)
    found = formats.read(path)
    assert found.stored.columns == frame.columns
    number, *texts = frame.columns
    values = found.values[number]
    values = values.cast(pl.Float64) if values.dtype != pl.Null else pl.Series(number, [None] * len(frame), pl.Float64)
    rounding = 1e-15 if suffix == ".xlsx" else 0.0  # a sheet has 16 digits
    np.testing.assert_allclose(values.to_numpy(), frame[number].to_numpy(), rtol=rounding)
    for name in texts:
        blank = found.stored[name].fill_null("").to_list()  # a text file does not tell an empty text from none
        assert blank == frame[name].fill_null("").to_list()


@pytest.mark.parametrize("compressed", [False, True])
@FEW
@given(data=st.data())
def test_libsvm_with_any_sets_of_labels(tmp_path_factory, compressed, data):
    n = data.draw(st.integers(2, 5))
    L = np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=n, max_size=n)), dtype=int
    )
    L[0, 1] = 1  # some label is there
    X = np.array(data.draw(st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=n, max_size=n)))
    X[0, 2], X[:, 0] = 1, np.abs(X[:, 0]) + 1  # the last feature is seen, and no line is blank
    stream = io.BytesIO()
    dump_svmlight_file(X, L, stream, multilabel=True, zero_based=False)
    path = tmp_path_factory.mktemp("t") / ("t.svm.gz" if compressed else "t.svm")
    path.write_bytes(gzip.compress(stream.getvalue()) if compressed else stream.getvalue())
    found = formats.read(path)
    there = np.flatnonzero(L.any(axis=0))
    assert list(found.label_names) == [f"label_{label}" for label in there]
    np.testing.assert_array_equal(found.stored.select(found.label_names).to_numpy(), L[:, there])
    np.testing.assert_array_equal(found.stored.drop(found.label_names).to_numpy(), X)


def test_excel_goes_in_and_out(tmp_path, monkeypatch):
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"x": [0.5, 1.5, 2.5], "note": ["=1+1", None, "c"], "a": [1, 0, 1], "b": [0, 1, 1]})
    frame.write_excel("t.xlsx")
    done = contone.enhance_file("t.xlsx", "o.xlsx", labels="a,b", method="temperature")
    found = pl.read_excel("o.xlsx")
    assert found["note"].to_list() == frame["note"].to_list()
    expected = contone.Temperature().fit_enhance(np.zeros((3, 1)), frame.select("a", "b").to_numpy())
    np.testing.assert_allclose(found.select(done.degrees).to_numpy(), expected, rtol=1e-15)
    with pytest.raises(ArgumentError, match="cannot hold a struct"):
        contone.enhance_file("t.xlsx", "p.xlsx", labels="a,b", degrees_as="struct")


def test_a_format_whose_library_is_missing_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(excel, "find_spec", lambda name: None)
    Path("t.xlsx").write_bytes(b"PK")
    for call in (lambda: formats.read(Path("t.xlsx")), lambda: contone.enhance_file("t.csv", "o.xlsx", labels="a")):
        Path("t.csv").write_text("x,a,b\n1,0,1\n2,1,0\n")
        with pytest.raises(MissingExtraError, match=r"pip install 'contone\[excel\]'"):
            call()


def test_what_a_sheet_cannot_hold_is_refused(tmp_path):
    pytest.importorskip("xlsxwriter")
    for frame in (pl.DataFrame({"t": ["x" * 40_000]}), pl.DataFrame({f"c{j}": [1] for j in range(16_385)})):
        with pytest.raises(OutputError, match="sheet holds|no cell holds"):
            excel.write_excel(frame, tmp_path / "o.xlsx")
