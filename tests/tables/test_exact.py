"""No digit and no letter is lost between any two formats: whole numbers beyond 2^53, addresses, times."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import contone
from contone.exceptions import ArgumentError
from contone.tables import formats
from contone.tables.writing import rounded

pytestmark = pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
pytest.importorskip("fastexcel")
pytest.importorskip("xlsxwriter")
FEW = settings(max_examples=6, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
               suppress_health_check=list(HealthCheck))  # fmt: skip
INPUTS = (".csv", ".tsv", ".parquet", ".arrow", ".jsonl", ".xlsx", ".arff")
OUTPUTS = (".csv", ".tsv", ".parquet", ".arrow", ".jsonl", ".xlsx")
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(2**53 - 2, 2**53 + 10) | st.integers(-20, 20)


def write(path: Path, ids: list[int], kind: str) -> None:
    """A table with an id, a feature and two labels."""
    n = len(ids)
    frame = pl.DataFrame({"song_id": ids, "x": np.arange(n) / 2, "a": [i % 2 for i in range(n)]})
    frame = frame.with_columns(b=1 - pl.col("a"))
    if path.suffix == ".arff":
        rows = "\n".join(",".join(map(str, row)) for row in frame.rows())
        path.write_text(f"@relation t\n@attribute song_id {kind}\n@attribute x real\n@attribute a {{0,1}}\n"
                        f"@attribute b {{0,1}}\n@data\n{rows}\n")  # fmt: skip
    else:
        formats.write(frame, str(path), overwrite=False)


@pytest.mark.parametrize("target", OUTPUTS)
@pytest.mark.parametrize("source", INPUTS)
@FEW
@given(ids=st.lists(WHOLE, min_size=3, max_size=4), kind=st.sampled_from(["numeric", "integer"]))
def test_whole_numbers_stay_exact_between_any_two_formats(tmp_path_factory, source, target, ids, kind):
    folder = tmp_path_factory.mktemp("t")
    write(folder / f"in{source}", ids, kind)
    contone.enhance_file(folder / f"in{source}", folder / f"out{target}", labels="a,b", method="uniform")
    found = formats.read(folder / f"out{target}").stored["song_id"].to_list()
    assert [int(entry) for entry in found] == ids


@pytest.mark.parametrize("target", OUTPUTS)
@pytest.mark.parametrize("source", [".csv", ".jsonl"])
def test_numbers_larger_than_any_integer_stay_exact(tmp_path, source, target):
    path, big = tmp_path / f"in{source}", "123456789012345678901234567890"
    rows = [(big, 1.5, 1, 0), ("7", 2.5, 0, 1), ("8", 3.5, 1, 1)]
    if source == ".csv":
        path.write_text("song_id,x,a,b\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    else:
        names = ("song_id", "x", "a", "b")
        lines = (", ".join(f'"{n}": {v}' for n, v in zip(names, row, strict=True)) for row in rows)
        path.write_text("".join("{" + line + "}\n" for line in lines))
    contone.enhance_file(path, tmp_path / f"out{target}", labels="a,b", method="uniform")
    found = formats.read(tmp_path / f"out{target}").stored["song_id"].cast(pl.String)
    assert found.to_list() == [big, "7", "8"]


@pytest.mark.parametrize("target", OUTPUTS)
def test_doubles_keep_every_digit(tmp_path, target):
    numbers = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -1 / 3, 2.0**53 - 1]
    formats.write(pl.DataFrame({"t": numbers}), str(tmp_path / f"out{target}"), overwrite=False)
    assert formats.read(tmp_path / f"out{target}").stored["t"].cast(pl.Float64).to_list() == numbers


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_large_whole_numbers_among_fractions_stay_exact(tmp_path, suffix):
    path, rows = tmp_path / f"in{suffix}", ['{"t": 9007199254740993, "x": 1e20}', '{"t": 1.5, "x": 0.5}']
    path.write_text("\n".join(rows) if suffix == ".jsonl" else f"[{','.join(rows)}]")
    found = formats.read(path).stored
    assert found["t"].to_list() == ["9007199254740993", "1.5"]
    assert found["x"].to_list() == [1e20, 0.5]


def test_infinite_numbers_are_in_json_lines(tmp_path):
    formats.write(pl.DataFrame({"t": [1.5, float("-inf"), None]}), str(tmp_path / "out.jsonl"), overwrite=False)
    assert formats.read(tmp_path / "out.jsonl").stored["t"].to_list() == ["1.5", "-inf", None]


ADDRESSES = ["https://example.org/a?b=c", "mailto:x@y", "file:///etc/passwd", "internal:Sheet1!A1", "ftp://h", "=1+1",
             "{=SUM(A1:A2)}", "00123", "1e5", "+49 30", "external:c:\\t.xlsx", "@x", "-1-1", "TRUE"]  # fmt: skip


@pytest.mark.parametrize("target", OUTPUTS)
def test_strings_stay_strings(tmp_path, target):
    n = len(ADDRESSES)
    frame = pl.DataFrame({"t": ADDRESSES, "x": np.arange(n) / 2, "a": [i % 2 for i in range(n)], "b": [1] * n})
    frame.write_parquet(tmp_path / "in.parquet")
    contone.enhance_file(tmp_path / "in.parquet", tmp_path / f"out{target}", labels="a,b", method="uniform")
    assert formats.read(tmp_path / f"out{target}").stored["t"].to_list() == ADDRESSES


def test_as_many_addresses_as_there_are(tmp_path):
    n = 66_000  # a sheet takes 65,530 links
    frame = pl.DataFrame({"t": [f"https://example.org/{i}" for i in range(n)]})
    formats.write(frame, str(tmp_path / "out.xlsx"), overwrite=False)
    assert formats.read(tmp_path / "out.xlsx").stored["t"].equals(frame["t"])


TIMES = {
    "duration": [datetime.timedelta(seconds=i) for i in range(3)],
    "zone": [datetime.datetime(2024, 1, 1, i, tzinfo=datetime.UTC) for i in range(3)],
    "time": [datetime.time(i) for i in range(3)],
    "date": [datetime.date(2024, 1, 1 + i) for i in range(3)],
    "moment": [datetime.datetime(2024, 1, 1, i) for i in range(3)],
    "binary": [b"a", b"b", b"c"],
}

FINE = {
    "1234567890123456789.25": decimal.Decimal("1234567890123456789.25"),
    "2024-01-01 01:30:00.123456": datetime.datetime(2024, 1, 1, 1, 30, 0, 123456),
    "2024-01-01 01:30:00.000000+00:00": datetime.datetime(2024, 1, 1, 1, 30, tzinfo=datetime.UTC),
    "01:30:00.123456": datetime.time(1, 30, 0, 123456),
    "P1DT0.000001S": datetime.timedelta(days=1, microseconds=1),
    "1900-02-28": datetime.date(1900, 2, 28),
    "1899-12-31 05:00:00.000000": datetime.datetime(1899, 12, 31, 5),
    "inf": float("inf"),
}


@pytest.mark.parametrize("text", FINE)
def test_what_a_sheet_would_round_is_text(tmp_path, text):
    formats.write(pl.DataFrame({"t": [FINE[text], None]}), str(tmp_path / "out.xlsx"), overwrite=False)
    assert formats.read(tmp_path / "out.xlsx").stored["t"].to_list()[0] == text


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("target", OUTPUTS)
@pytest.mark.parametrize("name", TIMES)
def test_what_cannot_be_written_is_refused_before_the_fit(tmp_path, monkeypatch, name, target, streamed):
    if streamed and target not in formats.STREAMED:
        pytest.skip("this format is not streamed")
    pl.DataFrame({"t": TIMES[name], "x": [1.0, 2.0, 3.0], "a": [1, 0, 1], "b": [0, 1, 1]}).write_parquet(
        tmp_path / "in.parquet"
    )
    fitted, fit = [], contone.Uniform.fit
    monkeypatch.setattr(contone.Uniform, "fit", lambda *given, **more: (fitted.append(1), fit(*given, **more))[1])
    options = {"labels": "a,b", "method": "uniform", "stream": streamed}
    refused = None
    try:
        contone.enhance_file(tmp_path / "in.parquet", tmp_path / f"out{target}", **options)
    except ArgumentError as error:
        refused = str(error)
    if refused is not None:
        assert "'t'" in refused
        assert not fitted
        assert name in ("duration", "zone", "time", "binary")
        assert target != ".parquet"
    else:
        assert formats.read(tmp_path / f"out{target}").stored["t"].null_count() == 0


# ------------------------------------------------------------------------------------------- what contone itself adds


def test_rounded_degrees_still_sum_to_one(tmp_path):
    D = np.random.default_rng(0).dirichlet(np.ones(7), 200)
    for digits in (1, 2, 4, 12):
        found = rounded(D, digits)
        assert np.abs(found - D).max() < 10.0**-digits
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(found, np.round(found, digits))
    np.testing.assert_array_equal(rounded(np.eye(3), 3), np.eye(3))
    rng = np.random.default_rng(0)
    pl.DataFrame({"x": rng.normal(size=20), **{n: rng.integers(0, 2, 20) for n in "abc"}, "d": [1] * 20}).write_csv(
        tmp_path / "in.csv"
    )
    done = contone.enhance_file(
        tmp_path / "in.csv", tmp_path / "o.csv", labels="a,b,c,d", method="temperature", digits=3
    )
    text = pl.read_csv(tmp_path / "o.csv", infer_schema=False).select(done.degrees)
    assert max(len(entry) for row in text.rows() for entry in row) <= 5
    np.testing.assert_allclose(text.cast(pl.Float64).to_numpy(), done.method.label_distributions_, atol=1e-3)
    with pytest.raises(ArgumentError, match="from 1 to 15"):
        contone.enhance_file(tmp_path / "in.csv", tmp_path / "p.csv", labels="a", digits=0)


@pytest.mark.parametrize(("target", "expected"), [(".csv", "'=1+1"), (".tsv", "'=1+1"), (".parquet", "=1+1")])
def test_names_that_a_spreadsheet_would_run_are_quoted_where_contone_writes_them(tmp_path, target, expected):
    (tmp_path / "in.csv").write_text("x,mood\n1.5,=1+1\n2.5,calm\n3.5,=1+1|calm\n")
    contone.enhance_file(tmp_path / "in.csv", tmp_path / f"o{target}", labels="mood", method="logical", top=1)
    found = formats.read(tmp_path / f"o{target}").stored
    assert found["top_1"].to_list()[:2] == [expected, "calm"]
    assert found["mood"].to_list()[0] == "=1+1"  # as it was
