"""The parts of reading and writing tables, each by cases worked out by hand: columns, words, texts, pieces, sheets."""

from __future__ import annotations

import gzip
import io
import math
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import contone
from contone.exceptions import ArgumentError, DataError, LabelError, OutputError
from contone.runtime.progress import Progress
from contone.tables import arff, checkpoint, columns, embeddings, excel, formats, grading, labels, pieces, text, writing
from contone.tables.encoder import ColumnEncoder, described
from contone.tables.evaluation import evaluate_file
from contone.tables.reading import are_classes, are_counts, read_table
from contone.tables.settings import Reading, Writing
from contone.tables.table import Table, refuse_missing
from contone.tables.targets import check_targets
from contone.tables.text import ColumnKind

# ------------------------------------------------------------------------------------------------ columns by name


def test_each_column_has_one_part_and_patterns_pass_over_what_is_taken():
    names = ["id", "row_id", "x", "c", "t", "a_x", "a_y", "valid"]
    found = columns.choose(
        names, ["id", "row_id", "x", "a_x", "a_y", "valid"], labels=["a_x"], categorical=["c"], text=["t"]
    )
    assert (found.labels, found.features, found.carried) == (["a_x"], ["x", "c", "t", "a_y", "valid"], ["id", "row_id"])
    assert (found.categories, found.texts, found.as_written) == (["c"], ["t"], ["c", "t"])
    named = columns.choose(names, ["id", "x", "a_x", "a_y"], labels=["a_x"], features=["a_*,x"], text=["t"])
    assert (named.features, named.carried) == (["a_y", "x", "t"], ["id", "row_id", "c", "valid"])
    declared = columns.choose(names, ["x"], labels=["a_x"], declared=["c", "a_x"])
    assert (declared.features, declared.categories) == (["x", "c"], ["c"])
    for wrong, argument in (
        ({"ids": ["a_x"]}, "ids"), ({"categorical": ["a_x"]}, "categorical"),
        ({"categorical": ["c"], "text": ["c"]}, "text"), ({"features": ["a_x"]}, "features"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match="cannot be used in two ways") as refused:
            columns.choose(names, names, labels=["a_x"], **wrong)
        assert refused.value.argument == argument
    with pytest.raises(ArgumentError, match="features must hold numbers; 'c' do not"):
        columns.choose(names, ["x"], labels=["a_x"], features=["c"])


def test_ranges_counts_and_near_misses_at_their_ends():
    names = ["a", "b", "c"]
    assert columns.resolve(["last:3"], names, "labels") == columns.resolve(["first:3"], names, "labels") == names
    assert columns.resolve(["b:b", "c,b"], names, "labels") == ["b", "c"]
    for wrong in ("first:0", "last:4"):
        with pytest.raises(ArgumentError, match=f"asks for {wrong[-1]} columns; the table has 3"):
            columns.resolve([wrong], names, "labels")
    with pytest.raises(ArgumentError, match="there is no column 'a:z'"):
        columns.resolve(["a:z"], names, "labels")
    many = [f"n{i}" for i in range(13)]
    assert columns.shown(many).endswith("'n11' and 1 more")
    assert columns.shown(many[:12]).endswith("'n11'")
    assert columns.listed(many[:4]) == "n0, n1, n2, n3"
    assert columns.matching(["b*, c", "z"], names) == ["b", "c"]


# ------------------------------------------------------------------------------------------------ words of labels


def test_what_words_mean_depends_on_all_columns():
    meant = labels.meanings
    assert meant({"a": ("", "x"), "b": ("", "1")}, []) == {"a": {"": 0.0, "x": 1.0}, "b": {"": 0.0, "1": 1.0}}
    assert meant({"a": ("", "x"), "b": ("no", "yes")}, []) == {"a": {"": None, "x": 1.0}, "b": {"no": 0.0, "yes": 1.0}}
    assert meant({"a": ("+1", "-1")}, []) == {"a": {"+1": 1.0, "-1": 0.0}}
    assert meant({"a": ("-1", "0", "1"), "b": None}, ["a", "b"]) == {"a": None, "b": None}  # levels, and many numbers
    with pytest.raises(LabelError, match=r"'a' \('-1'\)"):
        meant({"a": ("-1", "no")}, [])
    with pytest.raises(LabelError, match="'a' .'many different texts'"):
        meant({"a": None}, [])
    assert [labels.is_logical(w) for w in (("no", "yes"), ("-1", "1"), ("-1", "0", "1"), ("", "x"), None)] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_few_words_are_counted_and_more_are_not():
    eight, nine = ([f"w{i % n}" for i in range(300)] for n in (8, 9))
    found = labels.words_of_columns(
        pl.DataFrame({"a": eight, "b": nine, "c": list(range(300)), "d": [1, 2, None] * 100})
    )
    assert found == {"a": tuple(f"w{i}" for i in range(8)), "b": None, "c": None, "d": ("", "1", "2")}
    assert labels.joined_words(("a",), ("b", "a")) == ("a", "b")
    assert labels.joined_words(tuple("abcdefgh"), ("a",)) == tuple("abcdefgh")
    assert labels.joined_words(tuple("abcdefgh"), ("z",)) is None
    assert labels.joined_words(None, ("z",)) is None


def test_sets_are_told_from_marks_and_split_at_the_most_telling_delimiter():
    yes = pl.String()
    assert not labels.are_sets(yes, ("", "no", "yes"), None)
    assert labels.are_sets(yes, ("", "no", "yes"), "|")
    assert labels.are_sets(yes, ("calm", "no"), None)
    assert labels.are_sets(yes, None, None)
    assert labels.are_sets(pl.List(pl.String()), None, None)
    assert not labels.are_sets(pl.Int64(), None, "|")
    assert labels.delimiters_in(pl.Series(["a;b", "c,d", "e|f"])) == ["|", ";", ","]
    assert labels.exploded(pl.Series("m", ["a | b", None, " "]), "|").rows() == [(0, "a"), (0, "b")]
    assert labels.codes(pl.Series(["b", None, "z", "a"]), ["a", "b"]).tolist() == [1, -1, -1, 0]


# ------------------------------------------------------------------------------------------------ text files


def kind_of(*cells: str | None, decimal: str = ".") -> ColumnKind:
    return text.kinds_of(pl.DataFrame({"c": cells}, schema={"c": pl.String}), decimal)["c"]


@pytest.mark.parametrize(
    ("cells", "dtype", "facts"),
    [
        (("1", "2", ""), "Int64", {"exact": True, "n_entries": 2, "n_numbers": 2}),
        (("1", " 2"), "Int64", {"exact": False}),
        (("1.5", "2"), "Float64", {"exact": False}),  # 2 would be written as 2.0
        (("1.5", "2.0"), "Float64", {"exact": True}),
        (("1,5", "2,0"), "String", {"n_numbers": 0, "odd": "1,5"}),
        (("True", "false"), "Boolean", {"exact": False}),
        (("true", "false"), "Boolean", {"exact": True}),
        (("12%", "3.5 %"), "Float64", {"percent": True, "exact": False}),
        (("12%", "3"), "String", {"percent": False}),
        (("007", "8"), "String", {"odd": ""}),
        (("-0.5", "0"), "Float64", {}),
        (("+49", "50"), "Int64", {"code": True}),
        (("1234567890123456", "1"), "Int64", {"code": True}),
        (("123456789012345", "1"), "Int64", {"code": False}),
        (("1", "?", "NA", "2"), "Int64", {"stray": ("?", "NA"), "exact": False, "n_entries": 4, "n_numbers": 2}),
        (("?", "NA"), "String", {"stray": ()}),
        (("?", "x", "1"), "String", {"stray": (), "odd": "?"}),
        (("", None), "Null", {"n_entries": 0}),
    ],
)
def test_the_kind_of_a_text_is_the_narrowest_that_all_entries_allow(cells, dtype, facts):
    found = kind_of(*cells)
    assert str(found.dtype) == dtype
    assert {name: getattr(found, name) for name in facts} == facts


def test_kinds_of_two_parts_join():
    whole, half, words, blank, percent = kind_of("1"), kind_of("1.5"), kind_of("a", "2"), kind_of(""), kind_of("5%")
    assert (str(whole.joined(half).dtype), whole.joined(half).exact) == ("Float64", False)
    assert (str(whole.joined(whole).dtype), whole.joined(whole).exact) == ("Int64", True)
    assert str(half.joined(percent).dtype) == "String"
    assert percent.joined(percent).percent
    assert str(whole.joined(words).dtype) == "String"
    assert (whole.joined(words).n_entries, whole.joined(words).n_numbers, whole.joined(words).odd) == (3, 2, "a")
    assert blank.joined(whole).dtype == whole.joined(blank).dtype == whole.dtype
    assert whole.joined(kind_of("+5")).code


def test_text_that_is_mostly_numbers_is_more_likely_a_fault():
    def mostly(numbers: int, others: int) -> bool:
        return kind_of(*["1"] * numbers, *["a", "b", "c", "d", "e"][:others]).is_mostly_numbers

    assert [mostly(*counts) for counts in ((3, 0), (2, 1), (3, 1), (4, 1), (16, 4), (15, 4))] == [
        False, False, False, True, True, False,
    ]  # fmt: skip


def test_numbers_are_read_as_they_are_meant():
    frame = pl.DataFrame(
        {"i": ["1", "?"], "f": ["1,5", ""], "b": ["True", "false"], "p": ["12 %", "50%"], "t": ["a", ""]}
    )
    kinds = text.kinds_of(frame, ",")
    found = text.read_columns(frame, kinds, ",")
    assert found.rows() == [(1, 1.5, True, pytest.approx(0.12), "a"), (None, None, False, pytest.approx(0.5), "")]


def dialect(content: bytes, **given) -> tuple[text.Dialect, list[str]]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path, said = Path(folder) / "t.csv", []
        path.write_bytes(content)
        encoding = text.encoding_of(path)
        found = text.found_dialect(path, encoding, ",", given.get("separator"), given.get("decimal"), said.append)
        return found, said


def test_the_dialect_of_a_file_is_found_and_said():
    plain, said = dialect(b"a,b\n1.5,2\n")
    assert (plain, said) == (text.Dialect(), [])
    german, said = dialect(b"a;b\n1,5;2\n")
    assert (german.separator, german.decimal) == (";", ",")
    assert len(said) == 2
    assert dialect(b"a;b\n1,5;2.5\n")[0].decimal == "."  # a point somewhere
    assert dialect(b"a;b\n1,5e3;2\n")[0].decimal == ","
    assert dialect(b"a;b\n1,5;2\n", separator=";", decimal=",")[1] == []
    assert dialect(b"a|b,c\n1|2,3\n")[0].separator == ","  # as the name of the file says
    old, said = dialect("a,b\né,2\n".encode("cp1252"))
    assert (old.encoding, len(said)) == ("cp1252", 1)
    assert dialect(b"a,b\n\x81,2\n")[0].encoding == "latin-1"
    assert dialect("a,b\n1,2\n".encode("utf-16"))[0].encoding == "utf-16"
    # Nine of ten records must have as many fields as the header.
    records = [b"a;b"] + [b"1;2"] * 8 + [b"1"]
    assert dialect(b"\n".join(records))[0].separator == ";"
    assert dialect(b"\n".join([*records, b"1"]))[0].separator == ","


def test_headers_are_read_by_the_rules_of_csv():
    stream = io.BytesIO(b'"a\nb",c\n1,2\n')
    header = text.header_record(stream)
    assert (header, stream.read()) == (b'"a\nb",c\n', b"1,2\n")
    assert text.column_names(header, text.COMMAS, Path("t")) == ["a\nb", "c"]
    assert text.column_names(b"\xef\xbb\xbfa,b\n", text.COMMAS, Path("t")) == ["a", "b"]
    with pytest.raises(DataError, match="columns of the same name: 'a'"):
        text.column_names(b"a,b,a\n", text.COMMAS, Path("t"))
    with pytest.raises(DataError, match="it has no header"):
        text.column_names(b"", text.COMMAS, Path("t"))
    with pytest.raises(DataError, match="names 3 columns, its rows have 2"):
        text.parse(b"a,b\n1,2\n", ["a", "b", "c"], text.COMMAS, Path("t"))


# ------------------------------------------------------------------------------------------------ pieces of a file


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 20])
@pytest.mark.parametrize("block", [7, 1 << 24])
def test_pieces_are_all_rows_once_whatever_their_size(tmp_path, monkeypatch, end, rows, block):
    monkeypatch.setattr(text, "BLOCK_BYTES", block)
    records = [(str(i), f"two\nlines, {i}" if i % 3 else 'a "quote"') for i in range(7)]
    quoted = [(i, '"' + t.replace('"', '""') + '"') for i, t in records]
    path = tmp_path / "t.csv"
    path.write_text("i,t\n" + "\n".join(map(",".join, quoted)) + end, newline="")
    found = pieces.cut(path, rows)
    assert len(found) == math.ceil(7 / rows)
    assert found.n_rows == 7
    assert [found.rows_of(i) for i in range(len(found))] == [min(rows, 7 - s) for s in range(0, 7, rows)]
    read = [row for _, piece in found.read() for row in piece.stored.rows()]
    assert read == records
    last = len(found) - 1
    assert [piece.stored.rows() for _, piece in found.read([last])] == [records[last * rows :]]
    assert str(found.schema["i"]) == "Int64"
    assert (found.offsets[0], found.offsets[-1]) == (4, path.stat().st_size)


def test_shapes_are_estimated_and_pieces_are_not_too_small(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "1,2,3\n" * 9)
    assert pieces.estimated_shape(path) == (10, 3)
    long = tmp_path / "long.csv"
    long.write_bytes(b"a,b\n" + b"12345,12345\n" * 200_000)  # 2.3 times the megabyte that is looked at
    n, width = pieces.estimated_shape(long)
    assert n == pytest.approx(200_001, rel=1e-3)
    assert width == 2
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 9, mtime=0))
    assert pieces.estimated_shape(tmp_path / "t.csv.gz")[1] == 2
    pl.DataFrame({"a": range(2500), "b": range(2500)}).write_parquet(tmp_path / "t.parquet")
    assert pieces.estimated_shape(tmp_path / "t.parquet") == (2500, 2)
    assert pieces.cut(tmp_path / "t.parquet", 1000).starts == [0, 1000, 2000, 2500]
    assert pieces.cut(tmp_path / "t.parquet", None).starts == [0, 2500]
    wide = pl.DataFrame({f"c{j}": [0] * 2500 for j in range(3200)})
    wide.write_parquet(tmp_path / "wide.parquet")
    assert pieces.cut(tmp_path / "wide.parquet", None).starts == [0, 1250, 2500]  # four million cells
    (tmp_path / "none.csv").write_text("a,b\n")
    pl.DataFrame({"a": []}).write_parquet(tmp_path / "none.parquet")
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(DataError, match="has no rows"):
            pieces.cut(tmp_path / name, 5)
    (tmp_path / "open.csv").write_text('a,b\n1,"2\n3,4\n')
    with pytest.raises(DataError, match="never closed"):
        pieces.cut(tmp_path / "open.csv", 5)


# ------------------------------------------------------------------------------------------------ what is written


def problem(source: Path, **reading):
    return read_table(source, **reading)


@pytest.fixture
def asked(tmp_path):
    """A table of three rows and labels, and degrees of them."""
    path = tmp_path / "t.csv"
    path.write_text("id,x,a,=b,c\n001,1.5,1,0,1\n002,2.5,0,1,0\n003,4,1,1,1\n")
    return problem(path, labels=["a", "=b", "c"]), np.array([[0.5, 0.2, 0.3], [0.0, 1.0, 0.0], [1 / 3] * 3])


def added(asked, **how) -> pl.DataFrame:
    given, D = asked
    target = how.pop("target", "o.csv")
    return writing.added_columns(Writing(target, **how), given, D, how.pop("ends", None))


def test_degrees_come_in_the_order_of_the_labels_with_the_first_ones_by_name(asked):
    frame = added(asked, top=5)
    assert frame.columns == ["a_degree", "=b_degree", "c_degree", "top_1", "top_2", "top_3"]
    np.testing.assert_array_equal(frame.select(frame.columns[:3]).to_numpy(), asked[1])
    assert frame.select("top_1", "top_2", "top_3").rows() == [("a", "c", "'=b"), ("'=b", "a", "c"), ("a", "'=b", "c")]
    assert added(asked, top=1, target="o.parquet")["top_1"].to_list() == ["a", "=b", "a"]  # no spreadsheet


def test_degrees_in_one_column_have_their_entropy_beside_them(asked):
    given, D = asked
    ends = D - 0.1, D + 0.1
    frame = writing.added_columns(Writing("o.parquet", degrees_as="struct", intervals=0.9), given, D, ends)
    assert frame.columns == ["degrees", "lower", "upper", "entropy"]
    assert frame["degrees"][0] == {"a": 0.5, "=b": 0.2, "c": 0.3}
    assert frame["lower"][0]["a"] == 0.4
    expected = [-(0.5 * math.log(0.5) + 0.2 * math.log(0.2) + 0.3 * math.log(0.3)), 0.0, math.log(3)]
    assert frame["entropy"].to_list() == pytest.approx(expected)
    lists = writing.added_columns(Writing("o.parquet", degrees_as="list"), given, D)
    assert (lists.columns, lists["degrees"][0].to_list()) == (["degrees", "entropy"], [0.5, 0.2, 0.3])
    columns_of = writing.added_columns(Writing("o.csv", intervals=0.9, digits=1), given, D, ends)
    assert columns_of.columns[3:] == ["a_low", "a_high", "=b_low", "=b_high", "c_low", "c_high"]
    assert columns_of.row(0)[3:5] == (0.4, 0.6)
    assert columns_of.row(2)[:3] == (0.4, 0.3, 0.3)


@pytest.mark.parametrize("digits", [1, 2, 5, 15])
def test_rounded_rows_sum_to_one_and_are_within_one_of_the_last_digit(digits):
    D = np.random.default_rng(0).dirichlet(np.ones(7), size=200)
    found = writing.rounded(D, digits)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(found - D).max() < 10.0**-digits + 1e-12
    np.testing.assert_allclose(found * 10**digits, np.rint(found * 10**digits), atol=1e-3 if digits == 15 else 1e-6)
    exact = np.array([[0.29, 0.57, 0.14]])  # as they are, whatever floating point makes of 100 times them
    np.testing.assert_array_equal(writing.rounded(exact, 2), exact)


def test_new_columns_must_not_be_there_unless_they_take_the_place_of_labels(asked):
    given = asked[0]
    degrees, more = writing.new_columns(Writing("o.csv", suffix="", top=2), given)
    assert (degrees, more) == (["a", "=b", "c"], ["top_1", "top_2"])
    for name, how, said in (("x", {}, "already has 'x'"), ("top_1", {"top": 1}, "two columns 'top_1'")):
        clash = SimpleNamespace(columns=given.columns, label_names=[name], beside=given.beside)
        with pytest.raises(ArgumentError, match=said):
            writing.new_columns(Writing("o.csv", suffix="", **how), clash)
    for wrong, argument in (("o.txt", "target"), ("o.csv.gz", "target")):
        with pytest.raises(ArgumentError, match="must end in") as refused:
            writing.check_format(Writing(wrong))
        assert refused.value.argument == argument
    with pytest.raises(ArgumentError, match="cannot hold a list"):
        writing.check_format(Writing("o.csv", degrees_as="list"))
    writing.check_format(Writing("o.jsonl", degrees_as="list"))
    for setting in ({"intervals": 0.0}, {"intervals": 1.0}, {"top": 0}, {"digits": 0}, {"digits": 16}):
        with pytest.raises(ArgumentError, match=r"between 0 and 1|1 or more|from 1 to 15"):
            Writing("o.csv", **setting)
    assert [Writing("o.csv", digits=d).digits for d in (1, 15)] == [1, 15]


def test_text_goes_to_typed_formats_where_that_is_lossless(tmp_path, asked):
    given, D = asked
    contone.write_answer(given, D, tmp_path / "o.parquet")
    out = pl.read_parquet(tmp_path / "o.parquet")
    assert dict(zip(out.columns[:5], map(str, out.dtypes), strict=False)) == {
        "id": "String", "x": "Float64", "a": "Int64", "=b": "Int64", "c": "Int64",
    }  # fmt: skip
    contone.write_answer(given, D, tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text().splitlines()[3].startswith("003,4,1,1,1,0.33")
    carried = tmp_path / "carried.csv"
    carried.write_text("k,code,a,b\n1,+5,1,0\n2,+6,0,1\n")
    kept = problem(carried, labels="a,b", ids="k,code")
    contone.write_answer(kept, np.eye(2), tmp_path / "k.parquet")
    assert [str(d) for d in pl.read_parquet(tmp_path / "k.parquet").dtypes[:2]] == ["Int64", "String"]
    done = contone.enhance_file(carried, tmp_path / "w.csv", labels="a,b", ids="k,code", method="uniform", top=1)
    assert done.in_words().endswith("w.csv: 2 rows, new columns a_degree, b_degree and top_1")


def test_places_are_compared_as_files(tmp_path):
    source, other = tmp_path / "t.csv", tmp_path / "o.csv"
    source.write_text("x")
    with pytest.raises(ArgumentError, match="is read by this command"):
        check_targets([source], {"target": source}, overwrite=True)
    check_targets([source], {"target": source}, overwrite=True, over_source=source)
    with pytest.raises(ArgumentError, match="is read by this command"):
        check_targets([source], {"save_model": source}, overwrite=True, over_source=source)
    with pytest.raises(ArgumentError, match="exists already"):
        check_targets([source], {"target": source}, overwrite=False, over_source=source)
    with pytest.raises(ArgumentError, match=r"two outputs \(target and save_model\)"):
        check_targets([source], {"target": other, "save_model": tmp_path / "." / "o.csv"}, overwrite=False)
    check_targets([source], {"target": "-", "save_model": None, "annotators": other}, overwrite=False)


# ------------------------------------------------------------------------------------------------ other formats


def test_numbers_of_arff_keep_their_digits_and_sparse_rows_their_first_class():
    content = "@relation 'r: -C 1'\n@attribute z {u,v}\n@attribute n numeric\n@attribute long numeric\n@data\n"
    rows = "v,1,12345678901234567890\nu,2,1\n"
    table = arff.read_arff(Path("t.arff"), content + rows)
    assert table.stored.rows() == [("v", 1, "12345678901234567890"), ("u", 2, "1")]
    assert (table.label_names, table.categories) == (("z",), ("z",))
    sparse = arff.read_arff(Path("t.arff"), content + "% c\n{1 5}\n{0 v, 2 2.5}\n")
    assert sparse.stored.rows() == [("u", 5, 0.0), ("v", 0, 2.5)]
    for count in (0, 4, -4):
        with pytest.raises(DataError, match="claims"):
            arff.read_arff(Path("t.arff"), content.replace("-C 1", f"-C {count}") + rows)
    assert arff.read_arff(Path("t.arff"), content.replace("-C 1", "-C -3") + rows).label_names == ("z", "n", "long")
    with pytest.raises(DataError, match="'n' holds 'x', which is not a number"):
        arff.read_arff(Path("t.arff"), content + "v,x,1\n")


def test_formats_are_known_by_name():
    known = {"a.CSV": ".csv", "a.csv.gz": ".csv", "a.parquet.gz": "", "a.gz": "", "a": "", "a.jsonl.gz": ".jsonl"}
    assert {name: formats.suffix_of(name) for name in known} == known
    assert formats.target_suffix("-") == ".csv"


def test_a_target_that_cannot_hold_a_column_is_refused_before_any_work():
    frame = pl.DataFrame({"n": [1], "l": [[1]], "b": [b"x"]})
    formats.refuse_unwritable(frame.select("n"), "o.csv")
    formats.refuse_unwritable(frame, "o.parquet")
    for name, target in (("l", "o.csv"), ("b", "o.csv"), ("b", "o.jsonl"), ("l", "o.xlsx")):
        with pytest.raises(ArgumentError, match=f"cannot hold the column '{name}'"):
            formats.refuse_unwritable(frame.select(name), target)
    formats.refuse_unwritable(frame.select("l"), "o.jsonl")


def test_a_csv_is_written_with_the_marks_of_the_one_that_was_read():
    frame, german = pl.DataFrame({"a": [1.5], "b": ["x"]}), text.Dialect(";", ",")
    for suffix, marks, expected in (
        (".csv", german, b"a;b\n1,5;x\n"), (".csv", None, b"a,b\n1.5,x\n"), (".tsv", german, b"a\tb\n1.5\tx\n"),
        (".csv", text.Dialect(";", ",", is_csv=False), b"a,b\n1.5,x\n"),
    ):  # fmt: skip
        stream = io.BytesIO()
        formats.write_frame(frame, stream, suffix, dialect=marks)
        assert stream.getvalue() == expected
    stream = io.BytesIO()
    formats.write_frame(frame, stream, ".csv", header=False)
    assert stream.getvalue() == b"1.5,x\n"


def test_sheets_keep_what_a_cell_would_round(tmp_path, monkeypatch):
    pytest.importorskip("xlsxwriter")
    pytest.importorskip("fastexcel")
    path = tmp_path / "t.xlsx"
    frame = pl.DataFrame({"exact": [2**53, 1], "long": [2**53 + 1, 1], "x": [0.5, None], "blank": [None, "t"]},
                         schema_overrides={"blank": pl.String})  # fmt: skip
    excel.write_excel(frame, path)
    back = excel.read_excel(path)
    assert back["long"].to_list() == [str(2**53 + 1), "1"]
    assert back["x"].to_list() == [0.5, None]
    assert back.height == 2
    with pytest.raises(OutputError, match="texts of more than 32,767 letters"):
        excel.write_excel(pl.DataFrame({"t": ["x" * 32_768]}), path)
    excel.write_excel(pl.DataFrame({"t": ["x" * 32_767]}), path)
    monkeypatch.setattr(excel, "MOST_ROWS", 3)
    monkeypatch.setattr(excel, "MOST_COLUMNS", 2)
    excel.write_excel(pl.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]}), path)
    for rows, width in ((4, 2), (3, 3)):
        with pytest.raises(OutputError, match=f"has {rows} rows and {width} columns; a sheet holds 3 and 2"):
            excel.write_excel(pl.DataFrame({f"c{j}": [1] * rows for j in range(width)}), path)


def test_a_stray_entry_far_away_is_found_before_memory_is_taken(tmp_path, monkeypatch):
    cells = '<row r="1"><c r="A1"/></row><row r="1048576"><c r="XFD1048576"/></row>'
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", f"<sheetData>{cells}</sheetData>")
    monkeypatch.setattr(excel, "available_bytes", lambda: 1e9)
    with pytest.raises(DataError, match="reaches over 1,048,576 rows and 16,384 columns"):
        excel._refuse_what_does_not_fit(tmp_path / "t.xlsx")
    row = ('<t:table-row t:number-rows-repeated="{}"><t:table-cell o:value-type="float" t:number-columns-repeated="3"/>'
           '<t:table-cell t:number-columns-repeated="1000"/></t:table-row>')  # fmt: skip
    empty = '<t:table-row t:number-rows-repeated="1000000"><t:table-cell/></t:table-row>'
    for rows, too_much in ((5, False), (10_000_000, True)):
        body = f'<x xmlns:t="t" xmlns:o="o"><t:table>{row.format(rows)}{empty}</t:table></x>'
        with zipfile.ZipFile(tmp_path / "t.ods", "w") as archive:
            archive.writestr("content.xml", body)
        if too_much:
            with pytest.raises(DataError, match="reaches over 10,000,000 rows and 3 columns"):
                excel._refuse_what_does_not_fit(tmp_path / "t.ods")
        else:
            excel._refuse_what_does_not_fit(tmp_path / "t.ods")


# ------------------------------------------------------------------------------------------------ features as numbers


def test_what_became_of_columns_is_said():
    frame = pl.DataFrame({"x": [1.0, None, 3.5, 4.0], "c": ["u", "v", "w", "u"], "k": [7] * 4, "z": [1, 2, 3, 1],
                          "two": [0, 1, 0, 1], "t": ["ab cd", "ef gh", "ab gh", "ij kl"]})  # fmt: skip
    encoder = ColumnEncoder(text=["t"], n_text=2).fit(frame)
    assert described(encoder, frame) == [
        "missing entries filled with the median, beside a column that says where: x (1 of 4)",
        "categories, one column per class: c (3)",
        "texts, as numbers (groups of letters, tf-idf, truncated SVD): t (2)",
        "constant columns, left out: k",
        "whole numbers with few values, taken as quantities: z (--categorical if they name classes)",
    ]
    assert described(encoder, frame, ask=False)[-1].startswith("constant")
    ten, eleven = (pl.DataFrame({"n": [i % k for i in range(30)]}) for k in (10, 11))
    assert [len(described(ColumnEncoder().fit(f), f)) for f in (ten, eleven)] == [1, 0]
    six = pl.DataFrame({f"n{i}": [1.0, None] for i in range(6)})
    assert described(ColumnEncoder().fit(six), six)[0].endswith("n4 (1 of 2) and 1 more")


def test_classes_are_in_the_order_of_their_numbers_and_unseen_ones_are_named():
    frame = pl.DataFrame({"c": ["10", "9", "-1", "b", " ?", "a"]})
    encoder = ColumnEncoder().fit(frame)
    assert encoder.steps_[0].classes == ("-1", "9", "10", "a", "b")
    assert encoder.steps_[0].n_missing == 1
    new = pl.DataFrame({"c": ["z", "11", "9", None]})
    assert encoder.unseen_classes(new) == {"c": ["11", "z"]}
    np.testing.assert_array_equal(encoder.transform(new)[:, -1], [0, 0, 0, 1])  # where it is missing


def test_missing_entries_are_named_with_their_first_row():
    frame = pl.DataFrame({"a": [1, None, None], "b": [1, 2, 3], "c": [None, 1, 1]})
    with pytest.raises(
        DataError,
        match=r"2 columns have missing entries: 'a' .first row|'a' \(first in row 1\), 'c' \(first in row 0\)",
    ):
        refuse_missing(frame)
    refuse_missing(frame.select("b"))


# ------------------------------------------------------------------------------------------------ beside the table


def test_embeddings_are_checked_where_they_lie(tmp_path):
    table = Table(pl.DataFrame({"id": ["a", "b"], "x": [1, 2]}))
    E = np.array([[1.0, 2.0], [3.0, 4.0]])

    def joined(**arrays):
        np.savez(tmp_path / "e.npz", **arrays)
        reading = Reading(embeddings=tmp_path / "e.npz", ids=["id"])
        return embeddings.join(table, reading, None).embedded.rows()

    assert joined(E=E) == [(1.0, 2.0), (3.0, 4.0)]
    assert joined(E=E, ids=["b", "a"]) == [(3.0, 4.0), (1.0, 2.0)]
    wrong = {
        "has no row for 1 items, such as 'b'": {"E": E, "ids": ["a", "c"]},
        "has 2 rows and 1 ids": {"E": E, "ids": ["a"]},
        "several rows of one id": {"E": E, "ids": ["a", "a"]},
        "must hold one table": {"E": E, "F": E},
        "one row each": {"E": E[:1]},
    }
    for said, arrays in wrong.items():
        with pytest.raises(ArgumentError, match=said):
            joined(**arrays)
    with pytest.raises(ArgumentError, match="must hold one table"):
        joined(E=E[0])
    clash = Table(pl.DataFrame({"embedding_1": [1, 2]}))
    with open(tmp_path / "e.npy", "wb") as claim:  # terabytes
        np.lib.format.write_array_header_1_0(claim, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 1000)})
    with pytest.raises(ArgumentError, match="cannot read"):
        embeddings.join(table, Reading(embeddings=tmp_path / "e.npy"), None)
    np.save(tmp_path / "e.npy", E)
    with pytest.raises(ArgumentError, match="has a column 'embedding_1' already"):
        embeddings.join(clash, Reading(embeddings=tmp_path / "e.npy"), None)
    assert embeddings.join(table, Reading(), None) is table


def test_files_are_compared_row_by_row_or_by_a_shared_column(tmp_path):
    truth = pl.DataFrame({"k": ["1", "2"], "a": [0.2, 0.7], "b": [0.8, 0.3]})
    answer = pl.DataFrame({"k": ["2", "1"], "a_degree": [0.6, 0.2], "b_degree": [0.4, 0.8], "a": [1, 0], "b": [0, 1]})
    truth.write_parquet(tmp_path / "t.parquet")
    answer.write_parquet(tmp_path / "a.parquet")
    found = evaluate_file(tmp_path / "t.parquet", tmp_path / "a.parquet", item="k", measures=["chebyshev"])
    assert found.scores["answer"]["chebyshev"] == pytest.approx(0.05)
    assert found.scores["logical"]["chebyshev"] == pytest.approx((0.2 + 0.3) / 2)
    assert found.scores["uniform"]["chebyshev"] == pytest.approx((0.3 + 0.2) / 2)
    assert (found.labels, found.n_rows) == (("a", "b"), 2)
    by_place = evaluate_file(tmp_path / "t.parquet", tmp_path / "a.parquet", measures=["chebyshev"])
    assert by_place.scores["answer"]["chebyshev"] == pytest.approx((0.4 + 0.5) / 2)
    structs = pl.DataFrame({"degrees": [{"a": 0.2, "b": 0.8}, {"a": 0.7, "b": 0.3}]})
    structs.write_parquet(tmp_path / "s.parquet")
    assert evaluate_file(tmp_path / "t.parquet", tmp_path / "s.parquet").scores["answer"]["kl"] == pytest.approx(0.0)
    answer.with_columns(k=pl.lit("1")).write_parquet(tmp_path / "same.parquet")
    with pytest.raises(DataError, match="rows with the same 'k'"):
        evaluate_file(tmp_path / "t.parquet", tmp_path / "same.parquet", item="k")


def test_counts_and_classes_are_told_from_marks():
    nan = math.nan
    assert [are_counts(np.array(Y)) for Y in ([[0.0, 2.0]], [[0.0, 1.0]], [[0.5, 2.0]], [[nan, 3.0]])] == [
        True, False, False, True,
    ]  # fmt: skip
    classes = [
        [[1.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [0.0, 0.0]],
        [[1.0, 1.0]],
        [[1.0], [1.0]],
        [[0.0, 0.0]],
        [[nan, 1.0]],
    ]
    assert [are_classes(np.array(Y)) for Y in classes] == [True, True, False, False, False, False]


def test_a_sheet_of_degrees_is_read_with_the_rounding_of_people(tmp_path):
    table = Table(pl.DataFrame({"id": ["a", "b"]}))

    def graded(*rows, ids=("id",)):
        sheet = pl.DataFrame(rows, schema=["id", "u_degree", "v"], orient="row")
        sheet.write_csv(tmp_path / "g.csv")
        return grading.read_graded(tmp_path / "g.csv", table, ["u", "v"], ids)

    np.testing.assert_allclose(graded(("b", 30.0, 70.0)), [[np.nan, np.nan], [0.3, 0.7]])
    np.testing.assert_allclose(graded(("a", 0.41, 0.61))[0], np.array([0.41, 0.61]) / 1.02)
    np.testing.assert_allclose(graded(("a", 100.0, None))[0], [1.0, 0.0])
    for wrong in ((0.5, 0.53), (0.5, 0.47), (50.0, 47.0), (-0.1, 1.1)):
        with pytest.raises(LabelError, match="must sum to 100"):
            graded(("a", *wrong))
    with pytest.raises(DataError, match="grades row 0 twice"):
        graded(("a", 1.0, 0.0), ("a", 0.5, 0.5))
    with pytest.raises(DataError, match=r"1 of its rows are not in the table \(rows c\)"):
        graded(("c", 1.0, 0.0))
    assert len(set(grading.fingerprints(pl.DataFrame({"a": ["1", "1\x1f"], "b": ["2", ""]})))) == 2
    assert all(p.isalpha() and len(p) == 12 for p in grading.fingerprints(pl.DataFrame({"a": range(50)})))


def test_parts_are_known_by_what_they_hold(tmp_path):
    part = checkpoint.add_part(tmp_path, 3, "0" * 16, 7, ".csv", lambda path: path.write_bytes(b"x"))
    assert (part.number, part.n_rows, part.read()) == (3, 7, b"x")
    assert list(checkpoint.finished(tmp_path, "0" * 16, ".csv")) == [3]
    assert checkpoint.finished(tmp_path, "1" * 16, ".csv") == checkpoint.finished(tmp_path, "0" * 16, ".tsv") == {}
    part.path.write_bytes(b"y")
    with pytest.raises(DataError, match="changed after it was written"):
        part.read()
    assert not part.path.exists()
    assert checkpoint.read_plan(tmp_path) is None
    (tmp_path / checkpoint.MODEL).write_bytes(b"model")
    checkpoint.write_plan(tmp_path, {"token": "t"})
    assert checkpoint.read_plan(tmp_path)["token"] == "t"
    (tmp_path / checkpoint.MODEL).write_bytes(b"other")
    assert checkpoint.read_plan(tmp_path) is None
    (tmp_path / "mine.txt").write_text("kept")
    checkpoint.empty(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_progress_is_silent_by_default(capsys):
    Progress().note("x")
    assert capsys.readouterr().out == ""


def test_what_a_compressed_file_unpacks_to_is_bounded(tmp_path, monkeypatch):
    path = tmp_path / "labels.xml.gz"
    path.write_bytes(gzip.compress(b"<labels>" + b" " * labels.MOST_BYTES))
    with pytest.raises(DataError, match="holds 17 MB or more"):
        labels.xml_labels(path)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1," + b"x" * 1_000_000 + b"\n"))
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "5MB")
    with pytest.raises(DataError, match="choose a smaller --chunk-rows"):
        pieces.cut(path, None)
    monkeypatch.setattr(text, "MOST_BYTES", 1000)
    path.write_bytes(gzip.compress(b'"' + b"x" * 2000))
    with pytest.raises(DataError, match="no header"):
        pieces.cut(path, None)
