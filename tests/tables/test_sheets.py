"""How far a sheet reaches is known before it is unpacked into memory."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import polars as pl
import pytest

from contone.exceptions import DataError
from contone.tables import excel

NAMESPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)


def archive_of(name: str, content: str) -> tuple[zipfile.ZipFile, zipfile.ZipInfo]:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    archive = zipfile.ZipFile(stream)
    return archive, archive.getinfo(name)


def cell(value: bool = True, repeated: object = "", kind: str = "table-cell") -> str:
    times = f' table:number-columns-repeated="{repeated}"' if repeated else ""
    stored = ' office:value-type="float"' if value else ""
    return f"<table:{kind}{times}{stored}/>"


def row(*cells: str, repeated: object = "") -> str:
    times = f' table:number-rows-repeated="{repeated}"' if repeated else ""
    return f"<table:table-row{times}>{''.join(cells)}</table:table-row>"


@pytest.mark.parametrize(
    ("rows", "reach"),
    [
        ([], (0, 0)),
        ([row(cell())], (1, 1)),
        ([row(cell(), cell(), cell(False)), row(cell())], (2, 2)),
        ([row(cell(repeated=4), cell(False, 1000))], (1, 4)),  # empty cells to the right do not count
        ([row(cell(False, 5), cell())], (1, 6)),
        ([row(cell(), repeated=7), row(cell(False), repeated=10**6)], (7, 1)),  # nor empty rows below
        ([row(cell(False), repeated=9), row(cell())], (10, 1)),
        ([row(cell(kind="covered-table-cell"), cell())], (1, 2)),
        ([row(cell(repeated="many")), row(cell(repeated=10**12))], (2, 1)),  # no numbers
        ([row(cell(repeated=10**10))], (1, 10**10)),
    ],
)
def test_the_last_cell_of_an_opendocument_sheet(rows, reach):
    for tables in ([rows], [rows, []], [[row(cell(False))], rows]):  # each sheet begins anew
        body = "".join(f"<table:table>{''.join(one)}</table:table>" for one in tables)
        found = archive_of("content.xml", f"<office:body {NAMESPACES}>{body}</office:body>")
        assert excel._last_repeated_cell(*found) == reach


@pytest.mark.parametrize(
    ("names", "reach"),
    [
        (["A1"], (1, 1)),
        (["B7", "C2"], (7, 3)),
        (["Z1"], (1, 26)),
        (["AA1"], (1, 27)),
        (["XFD1048576"], (1048576, 16384)),
    ],
)
def test_the_last_cell_of_an_excel_sheet(names, reach):
    content = "".join(f'<c r="{name}"><v>1</v></c>' for name in names)
    assert excel._last_cell(*archive_of("xl/worksheets/sheet1.xml", content)) == reach
    far = " " * ((1 << 20) - 8) + content  # a name on the border of two blocks
    assert excel._last_cell(*archive_of("xl/worksheets/sheet1.xml", far)) == reach


def test_a_sheet_that_reaches_too_far_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "far.ods"
    body = f"<table:table>{row(cell(), repeated=1000)}</table:table>"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content.xml", f"<office:body {NAMESPACES}>{body}</office:body>")
    enough = 2 * 1000 * excel.CELL_BYTES
    monkeypatch.setattr(excel, "available_bytes", lambda: enough)
    excel._refuse_what_does_not_fit(path)
    monkeypatch.setattr(excel, "available_bytes", lambda: enough - 1)
    with pytest.raises(DataError, match="reaches over 1,000 rows and 1 columns"):
        excel._refuse_what_does_not_fit(path)
    monkeypatch.setattr(excel, "available_bytes", lambda: 100)
    with pytest.raises(DataError, match="which does not fit into memory"):
        excel._refuse_what_does_not_fit(path)


@pytest.mark.parametrize(
    ("values", "whole"),
    [([3.0], True), ([3.0, None], True), ([None], False), ([], False), ([3.0, 0.5], False), ([2.0**53 - 1], True),
     ([2.0**53], False), ([-(2.0**53)], False)],
)  # fmt: skip
def test_numbers_of_a_sheet_that_are_whole_and_exact_become_integers(values, whole):
    found = excel._whole(pl.Series(values, dtype=pl.Float64))
    assert (found.dtype == pl.Int64) == whole
    assert [value if value is None else float(value) for value in found] == values


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
def test_of_a_full_disk_is_said_what_the_disk_says():
    with pytest.raises(OSError, match="No space left"):
        excel.write_excel(pl.DataFrame({"a": [1]}), Path("/dev/full"))
