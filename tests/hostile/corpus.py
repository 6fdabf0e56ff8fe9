"""Files that are not what they seem: one small valid file per format, and named ways to spoil each of them."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import scipy.io

import contone

ROWS = b"x,a,b\n1,1,0\n2,0,1\n3,1,1\n4,1,0\n"
HEAD = b"@relation 'songs: -C 2'\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute x numeric\n"
ARFF = HEAD + b"@data\n1,0,1\n0,1,2\n1,1,3\n"
SPARSE_ARFF = ARFF.replace(b"1,0,1\n0,1,2\n1,1,3\n", b"{0 1,2 1}\n{1 1,2 2}\n{0 1,1 1,2 3}\n")
LIBSVM = b"0 1:1\n1 1:2\n0,1 1:3\n"
JSON_LINES = b'{"x":1,"a":1,"b":0}\n{"x":2,"a":0,"b":1}\n{"x":3,"a":1,"b":1}\n'
XML = b'<labels xmlns="http://mulan.sourceforge.net/labels"><label name="a"/><label name="b"/></labels>'
FEATURES, DEGREES = np.array([[1.0], [2.0], [3.0]]), np.array([[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]])


def frame() -> pl.DataFrame:
    return pl.read_csv(io.BytesIO(ROWS))


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def npz(**arrays: object) -> bytes:
    return written(lambda stream: np.savez(stream, **arrays))


def mat(**arrays: object) -> bytes:
    return written(lambda stream: scipy.io.savemat(stream, arrays))


def model(folder: Path) -> bytes:
    path = folder / "valid.contone"
    contone.tables.fit_file(_put(folder, "valid.csv", ROWS), path, labels="a,b", method="temperature", overwrite=True)
    return path.read_bytes()


def _put(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def valid(folder: Path) -> dict[str, bytes]:
    """One file per format, by its ending."""
    return {
        ".csv": ROWS,
        ".tsv": ROWS.replace(b",", b"\t"),
        ".csv.gz": gzip.compress(ROWS, mtime=0),
        ".arff": ARFF,
        ".arff.gz": gzip.compress(SPARSE_ARFF, mtime=0),
        ".libsvm": LIBSVM,
        ".jsonl": JSON_LINES,
        ".parquet": written(frame().write_parquet),
        ".arrow": written(frame().write_ipc),
        ".xml": XML,
        ".npz": npz(features=FEATURES, labels=DEGREES),
        ".mat": mat(features=FEATURES, labels=DEGREES),
        ".contone": model(folder),
    }


def rezipped(content: bytes, change: Callable[[str, bytes], bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive with every member changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", compression) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return out.getvalue()


def spoiled(content: bytes, how: int, n_ways: int = 12) -> bytes:
    """Content cut, with bits turned or bytes exchanged: the k-th of `n_ways` ways, always the same."""
    rng = np.random.default_rng(how)
    data = bytearray(content)
    if how % 3 == 0:
        return bytes(data[: len(data) * how // n_ways])
    for position in rng.integers(0, len(data), size=1 + how):
        data[position] = data[position] ^ (1 << int(rng.integers(8))) if how % 3 == 1 else int(rng.integers(256))
    return bytes(data)


def tables() -> dict[str, bytes]:
    """Tables that cannot be used, each for a reason of its own."""
    data = ARFF.removeprefix(HEAD + b"@data\n")
    cases = {
        "empty.csv": b"",
        "blank.csv": b"\n\n\n",
        "zeros.csv": b"\0" * 50,
        "binary.csv": bytes(range(256)) * 4,
        "ragged.csv": b"x,a,b\n1,1,0\n2,0,1,9\n",
        "open_quote.csv": b'x,a,b\n1,"1,0\n2,0,1\n',
        "header_only.csv": b"x,a,b\n",
        "one_row.csv": b"x,a,b\n1,1,0\n",
        "no_features.csv": b"x,a,b\nu,?,0\nv,0,often\n",
        "text_labels.csv": b"x,a,b\n1,often,0\n2,never,1\n",
        "repeated.csv": b"x,a,b,a\n1,1,0,1\n2,0,1,1\n",
        "infinite.csv": b"x,a,b\ninf,1,0\n2,0,1\n3,1,0\n",
        "huge_labels.csv": b"x,a,b\n1,1e308,0\n2,0,1\n",
        "not_gzip.csv.gz": ROWS,
        "cut.csv.gz": gzip.compress(ROWS * 50)[:-12],
        "twice.csv.gz": gzip.compress(gzip.compress(ROWS)),
        "empty.arff": b"",
        "no_data.arff": HEAD,
        "no_head.arff": b"@data\n" + data,
        "no_rows.arff": HEAD + b"@data\n",
        "short_row.arff": ARFF + b"1,0\n",
        "bad_value.arff": ARFF + b"7,0,1\n",
        "bad_type.arff": ARFF.replace(b"numeric", b"nonsense"),
        "open_brace.arff": ARFF.replace(b"{0,1}", b"{0,1"),
        "repeated.arff": ARFF.replace(b"attribute b", b"attribute a"),
        "bad_index.arff": SPARSE_ARFF + b"{99 1}\n",
        "words.arff": ARFF.replace(b"1,0,1", b"1,0,one"),
        "latin.arff": "@relation café\n".encode("latin-1") + b"@attribute",
        "no_colon.libsvm": b"0 1 1\n1 1:2\n",
        "words.libsvm": b"a 1:1\nb 1:2\n",
        "negative.libsvm": b"0 -1:1\n1 1:2\n",
        "far.libsvm": b"0 999999999999:1\n1 1:2\n",
        "empty.libsvm": b"",
        "not_json.jsonl": b"x,a,b\n1,1,0\n",
        "open.jsonl": JSON_LINES + b'{"x":1,',
        "nested.jsonl": b'{"x":{"y":1},"a":1,"b":0}\n{"x":{"y":2},"a":0,"b":1}\n',
        "deep.jsonl": b'{"x":' * 2000 + b"1" + b"}" * 2000,
        "scalars.jsonl": b"1\n2\n3\n",
        "cut.parquet": written(frame().write_parquet)[:-20],
        "magic.parquet": b"PAR1" + b"\0" * 100 + b"PAR1",
        "claims.parquet": b"PAR1" + b"\xff" * 100 + b"\xff\xff\xff\x7fPAR1",
        "text.parquet": ROWS,
        "text.arrow": ROWS,
        "cut.arrow": written(frame().write_ipc)[:-40],
        "text.xlsx": ROWS,
        "zip.xlsx": npz(x=FEATURES),
        "far.xlsx": far_sheet(),
        "far.ods": far_document(),
    }
    return cases


def far_sheet() -> bytes:
    """Excel's last cell is not empty: 17 billion cells in a small file."""
    last = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    return zipped({"xl/workbook.xml": b"<workbook/>", "xl/worksheets/sheet1.xml": b"<worksheet><sheetData>" + last})


def far_document() -> bytes:
    """The same in OpenDocument: one cell that stands for all others."""
    cell = '<t:table-row t:number-rows-repeated="1048576"><t:table-cell o:value-type="float" o:value="1" '
    cell += 't:number-columns-repeated="16384"/></t:table-row>'
    return zipped({"content.xml": f'<a xmlns:t="t" xmlns:o="o"><t:table>{cell}</t:table></a>'.encode()})


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def label_files() -> dict[str, bytes]:
    """Lists of labels that cannot be used."""
    laughs = b"".join(b'<!ENTITY l%d "%s">' % (k, b"&l%d;" % (k - 1) * 10) for k in range(1, 12))
    return {
        "empty.xml": b"",
        "text.xml": b"a,b",
        "open.xml": XML[:-10],
        "no_labels.xml": b"<labels/>",
        "nameless.xml": b"<labels><label/></labels>",
        "others.xml": XML.replace(b'"a"', b'"zebra"'),
        "laughs.xml": b'<!DOCTYPE labels [<!ENTITY l0 "ha">' + laughs + b']><labels><label name="&l11;"/></labels>',
        "outside.xml": b'<!DOCTYPE labels [<!ENTITY o SYSTEM "file:///etc/passwd">]>'
        b'<labels><label name="a"/>&o;</labels>',
        "latin.xml": b'<?xml version="1.0" encoding="nonsense"?>' + XML,
        "zeros.xml": b"\0" * 40,
        "deep.xml": b"<a>" * 5000,
    }


def data_sets() -> dict[str, bytes]:
    """Files of arrays that hold no data set."""
    good = npz(features=FEATURES, labels=DEGREES)
    claims = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (274877906944,), }".ljust(117)
        + b"\n"
    )
    return {
        "empty.npz": b"",
        "text.npz": ROWS,
        "cut.npz": good[:-30],
        "pickle.npz": npz(features=np.array([{}], dtype=object), labels=DEGREES),
        "claims.npz": rezipped(good, lambda name, old: claims if name == "features.npy" else old),
        "scalar.npz": npz(features=1.0, labels=2.0),
        "other_names.npz": npz(u=FEATURES, v=DEGREES),
        "other_rows.npz": npz(features=FEATURES[:2], labels=DEGREES),
        "percent.npz": npz(features=FEATURES, labels=100 * DEGREES),
        "negative.npz": npz(features=FEATURES, labels=DEGREES - 0.5),
        "nan.npz": npz(features=FEATURES * np.nan, labels=DEGREES),
        "words.npz": npz(features=np.array([["a"], ["b"], ["c"]]), labels=DEGREES),
        "dates.npz": npz(features=np.zeros((3, 1), dtype="datetime64[s]"), labels=DEGREES),
        "complex.npz": npz(features=FEATURES + 1j, labels=DEGREES),
        "empty_arrays.npz": npz(features=np.zeros((0, 0)), labels=np.zeros((0, 0))),
        "empty.mat": b"",
        "text.mat": ROWS,
        "cut.mat": mat(features=FEATURES, labels=DEGREES)[:-30],
        "header.mat": mat(features=FEATURES, labels=DEGREES)[:128],
        "other_names.mat": mat(u=FEATURES),
        "cells.mat": mat(features=np.array([[{}]], dtype=object), labels=DEGREES),
        "hdf.mat": b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n" + b"\0" * 64,
    }


def models(good: bytes) -> dict[str, bytes]:
    """Model files that are none, or that ask for more than data."""

    def edited(change: Callable[[dict], object]) -> bytes:
        def edit(name: str, old: bytes) -> bytes:
            if name != "model.json":
                return old
            content = json.loads(old)
            change(content)
            return json.dumps(content).encode()

        return rezipped(good, edit)

    def named(cls: str) -> bytes:
        return edited(lambda content: content["method"].__setitem__("class", cls))

    return {
        "empty.contone": b"",
        "text.contone": ROWS,
        "cut.contone": good[:-60],
        "other_zip.contone": npz(x=FEATURES),
        "no_format.contone": edited(lambda c: c.pop("format")),
        "newer.contone": edited(lambda c: c.__setitem__("format", 99)),
        "list.contone": rezipped(good, lambda name, old: b"[]" if name == "model.json" else old),
        "deep.contone": rezipped(good, lambda name, old: b"[" * 100000 if name == "model.json" else old),
        "no_method.contone": edited(lambda c: c.__setitem__("method", None)),
        "foreign.contone": named("os:system"),
        "function.contone": named("contone.models:load_model"),
        "module.contone": named("contone.enhance.missing:Missing"),
        "another.contone": named("contone.enhance.fcm:FCM"),
        "no_details.contone": edited(lambda c: c.__setitem__("details", 3)),
        "other_details.contone": edited(lambda c: c["details"].__setitem__("items", [])),
        "bad_kind.contone": edited(lambda c: c["method"].__setitem__("kind", "pickle")),
        "array.contone": edited(lambda c: c["method"]["state"].__setitem__("c", {"kind": "array", "array": 999})),
        "parameter.contone": edited(lambda c: c["method"]["state"].__setitem__("c", "x")),
        "compressed.contone": rezipped(good, lambda name, old: old, zipfile.ZIP_DEFLATED),
    }
