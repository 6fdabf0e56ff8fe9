"""Every format in and out, labels as people write them, columns by name, pattern and range."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import contone
from contone.exceptions import ArgumentError, ContoneError, DataError, LabelError, MemoryEstimateError
from contone.tables import Progress, formats
from contone.tables.columns import choose
from contone.tables.labels import expand
from contone.tables.text import kinds_of

L = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
X = np.array([[0.5, 2.0], [1.5, 0.0], [2.5, 1.0], [-1.0, 3.0]])
NAMES = ["calm", "happy", "very sad"]
EXPECTED = contone.Temperature().fit_enhance(X, L)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Heard(Progress):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, message: str) -> None:
        self.lines.append(message)


def degrees(source: str, **options):
    """The degrees that come out, and what was said."""
    heard = Heard()
    done = contone.enhance_file(source, "out.parquet", method="temperature", overwrite=True, progress=heard, **options)
    return pl.read_parquet("out.parquet").select(done.degrees), "\n".join(heard.lines)


ARFF = """% a comment
@relation {relation}

@attribute x numeric
@attribute 'size of it' real
@attribute calm {{0,1}}
@attribute happy {{0, 1}}
@attribute 'very sad' {{0,1}}

@data
{data}
"""
XML = '<labels xmlns="http://mulan.sourceforge.net/labels">{}</labels>'


def arff(relation: str = "t", sparse: bool = False) -> str:
    rows = np.hstack([X, L])
    if sparse:
        lines = [
            "{" + ", ".join(f"{j} {v:g}" for j, v in enumerate(row) if v) + "}" for row in rows
        ]  # what is 0 is not written
    else:
        lines = [",".join(f"{v:g}" for v in row) for row in rows]
    return ARFF.format(relation=relation, data="\n".join(lines))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_mulan_names_its_labels_in_the_xml_beside_it(here, sparse, compressed):
    write = (
        (lambda p, t: Path(p + ".gz").write_bytes(gzip.compress(t.encode())))
        if compressed
        else (lambda p, t: Path(p).write_text(t))
    )
    write("t.arff", arff(sparse=sparse))
    write("t.xml", XML.format("".join(f'<label name="{name}"></label>' for name in NAMES)))
    D, _ = degrees("t.arff.gz" if compressed else "t.arff")
    assert D.columns == [f"{name}_degree" for name in NAMES]
    np.testing.assert_array_equal(D.to_numpy(), EXPECTED)


def test_the_xml_may_lie_elsewhere(here):
    Path("t.arff").write_text(arff())
    Path("other.xml").write_text(XML.format("".join(f'<label name="{name}"/>' for name in NAMES)))
    np.testing.assert_array_equal(degrees("t.arff", labels="other.xml")[0].to_numpy(), EXPECTED)
    with pytest.raises(ArgumentError, match="name the label columns"):
        degrees("t.arff")


@pytest.mark.parametrize(("count", "columns"), [("-C -3", [2, 3, 4]), ("-C 2", [0, 1])])
def test_meka_counts_its_labels_in_the_relation(here, count, columns):
    Path("t.arff").write_text(arff(relation=f"'Music: {count} -split 3'"))
    table = formats.read(Path("t.arff"))
    assert list(table.label_names) == [table.stored.columns[j] for j in columns]


@pytest.mark.parametrize(
    "content", ["", "@relation x", "@relation x\n@attribute a {0,1\n@data\n1", "\0", "@data\n{9 1}"]
)
def test_malformed_arff_ends_in_a_sentence(here, content):
    Path("t.arff").write_text(content)
    with pytest.raises(ContoneError):
        degrees("t.arff", labels="a")


def test_libsvm_with_rows_without_labels(here):
    Path("t.svm").write_text("0,2 1:0.5 2:2\n1 1:1.5\n0,1 1:2.5 2:1\n 1:7\n2 1:-1 2:3\n")
    D, said = degrees("t.svm", unlabelled="drop")
    assert D.columns == ["label_0_degree", "label_1_degree", "label_2_degree"]
    np.testing.assert_array_equal(D.to_numpy(), EXPECTED)
    assert "1 rows without a label are left out" in said


def frame() -> pl.DataFrame:
    return pl.DataFrame({"x": X[:, 0], "y": X[:, 1], **{name: L[:, j] for j, name in enumerate(NAMES)}})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.pq", "t.arrow", "t.feather", "t.jsonl", "t.ndjson"])
def test_every_format_goes_in_and_out(here, name):
    formats.write(frame(), name, overwrite=True)
    done = contone.enhance_file(name, f"out-{name}", labels="calm:very sad", method="temperature")
    out = formats.read(Path(f"out-{name}")).values
    np.testing.assert_array_equal(out.select(done.degrees).to_numpy(), EXPECTED)
    assert out.select(frame().columns).equals(frame())


def test_the_marks_of_a_text_file_are_found_said_kept_and_overridable(here):
    lines = [["x", "y", *NAMES]] + [
        [*(f"{v:g}".replace(".", ",") for v in x), *map(str, l)] for x, l in zip(X, L, strict=True)
    ]
    for separator, shown in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        Path("t.csv").write_text("\n".join(separator.join(line) for line in lines) + "\n")
        for streamed in (False, True):
            heard = Heard()
            done = contone.enhance_file(
                "t.csv", "o.csv", labels="last:3", method="temperature", overwrite=True, stream=streamed, progress=heard
            )
            assert done.features == ("x", "y")
            said = "\n".join(heard.lines)
            assert f"separated by {shown}" in said
            assert "decimal mark is a comma" in said
            first, second = Path("o.csv").read_text().splitlines()[:2]
            assert first.split(separator)[-1] == "very sad_degree"
            assert second.startswith(separator.join(lines[1]))
            assert float(second.split(separator)[-1].replace(",", ".")) == EXPECTED[0, 2]
    with pytest.raises(ContoneError):
        degrees("t.csv", labels="last:3", separator=";")


# ------------------------------------------------------------------------------------------------- words for labels


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("1", "0"),
        ("true", "false"),
        ("TRUE", "False"),
        ("yes", "no"),
        ("Y", "n"),
        ("+1", "-1"),
        ("1", "-1"),
        ("x", ""),
        ("1", ""),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_yes_and_no_in_many_words(here, yes, no, streamed, kind):
    words = pl.DataFrame({"x": X[:, 0], **{n: [yes if v else no for v in L[:, j]] for j, n in enumerate(NAMES)}})
    formats.write(words, f"t.{kind}", overwrite=True)
    done = contone.enhance_file(
        f"t.{kind}",
        f"o.{kind}",
        labels="last:3",
        method="temperature",
        chunk_rows=2 if streamed else None,
    )
    np.testing.assert_array_equal(formats.read(Path(f"o.{kind}")).values.select(done.degrees).to_numpy(), EXPECTED)


def test_a_blank_beside_a_no_is_missing_not_a_no(here):
    Path("t.csv").write_text("x,a,b\n1,yes,no\n2,,yes\n3,no,yes\n")
    Path("no.csv").write_text("x,a,b\n1,yes,no\n2,no,yes\n3,no,yes\n")
    unasked, no = (degrees(name, labels="a,b")[0].to_numpy() for name in ("t.csv", "no.csv"))
    np.testing.assert_array_equal(unasked[[0, 2]], no[[0, 2]])
    assert unasked[1, 0] > no[1, 0]  # nobody asked: the label's frequency stands for it


def test_other_words_are_refused_by_name(here):
    Path("t.csv").write_text("x,a,b\n1,yes,no\n2,perhaps,yes\n3,no,yes\n")
    with pytest.raises(LabelError, match="do not: 'a' \\('perhaps'\\)"):
        degrees("t.csv", labels="a,b")


@pytest.mark.parametrize("delimiter", ["|", ";", ", ", "/", "::"])
def test_one_column_of_sets(here, delimiter):
    sets = [delimiter.join(n for n, v in zip(NAMES, row, strict=True) if v) for row in L]
    pl.DataFrame({"x": X[:, 0], "mood": sets}).write_csv("t.csv")
    D, said = degrees("t.csv", labels="mood", label_separator="::" if delimiter == "::" else None)
    assert D.columns == [f"{name}_degree" for name in NAMES]
    np.testing.assert_array_equal(D.to_numpy(), EXPECTED)
    assert "3 labels" in said


def test_a_column_of_lists(here):
    lists = [[n for n, v in zip(NAMES, row, strict=True) if v] for row in L]
    pl.DataFrame({"x": X[:, 0], "mood": lists}).write_parquet("t.parquet")
    Path("t.jsonl").write_text("\n".join(json.dumps({"x": x, "mood": m}) for x, m in zip(X[:, 0], lists, strict=True)))
    for source in ("t.parquet", "t.jsonl"):
        np.testing.assert_array_equal(degrees(source, labels="mood")[0].to_numpy(), EXPECTED)


def test_one_row_per_item_and_label(here):
    rows = [(f"s{i}", X[i, 0], n) for i, row in enumerate(L) for n, v in zip(NAMES, row, strict=True) if v]
    long = pl.DataFrame(rows, schema=["song", "x", "mood"], orient="row")
    long.write_csv("t.csv")
    D, _ = degrees("t.csv", labels="mood", item="song")
    np.testing.assert_array_equal(D.to_numpy(), EXPECTED)
    contone.enhance_file("t.csv", "o.csv", labels="mood", item="song", method="temperature")
    assert pl.read_csv("o.csv")["mood"].to_list()[0] == "calm|very sad"
    long.with_row_index("x2").write_csv("t.csv")
    with pytest.raises(DataError, match="the rows of item 's.' differ in the column 'x2'"):
        degrees("t.csv", labels="mood", item="song")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_row_per_item_annotator_and_label(here):
    rng = np.random.default_rng(0)
    rows = [
        (f"s{i}", x, f"w{k}", mood)
        for i, x in enumerate(rng.normal(size=12).round(3))
        for k in range(3)
        for mood in rng.choice(["calm", "happy", "sad"], 1 + (i + k) % 2, replace=False)
    ]
    long = pl.DataFrame(rows, schema=["song", "x", "worker", "mood"], orient="row")
    long[rng.permutation(len(rows))].write_csv("t.csv")
    method = contone.Inversion(degradation="marks", n_sweeps=24, n_burn=8)
    options = {"labels": "mood", "item": "song", "worker": "worker"}
    done = contone.enhance_file("t.csv", "o.csv", method=method, **options)
    answer = pl.read_csv("o.csv")
    assert answer["song"].n_unique() == answer.height == done.n_rows == 12
    assert "worker" not in answer.columns
    read = pl.read_csv("t.csv")
    songs, names = read["song"].unique(maintain_order=True).to_list(), ["calm", "happy", "sad"]
    said = read.group_by("song", "worker", maintain_order=True).agg("x", "mood")
    said = sorted(said.rows(), key=lambda row: songs.index(row[0]))
    Y = np.array([[float(name in row[3]) for name in names] for row in said])
    X, who = np.array([row[2][:1] for row in said]), [row[1] for row in said]
    expected = method.fit_enhance(X, Y, groups=[row[0] for row in said], annotators=who)
    assert answer["song"].to_list() == songs == method.groups_
    np.testing.assert_allclose(answer.select(done.degrees).to_numpy(), expected, atol=1e-9)
    assert done.method.annotator_deviation_ > 0
    pl.DataFrame({"song": ["s3"], "calm_degree": [0.5], "happy_degree": [0.3], "sad_degree": [0.2]}).write_csv("g.csv")
    contone.enhance_file("t.csv", "o3.csv", method=method, graded="g.csv", ids="song", **options)
    graded = pl.read_csv("o3.csv").filter(pl.col("song") == "s3")
    np.testing.assert_allclose(graded.select(done.degrees).to_numpy()[0], [0.5, 0.3, 0.2], atol=1e-9)
    with pytest.raises(ArgumentError, match="one annotator per item"):
        contone.enhance_file("t.csv", "o2.csv", method="temperature", **options)
    with pytest.raises(ArgumentError, match="--item"):
        contone.enhance_file("t.csv", "o2.csv", labels="mood", worker="worker", method=method)


def test_whole_numbers_are_levels_where_the_order_counts(here):
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 4, (20, 3))
    pl.DataFrame({"x": rng.normal(size=20), **{n: levels[:, j] for j, n in enumerate("abc")}}).write_csv("t.csv")
    method = contone.Inversion(degradation="order", n_sweeps=24, n_burn=8)
    done = contone.enhance_file("t.csv", "o.csv", labels="a,b,c", method=method)
    D = pl.read_csv("o.csv").select(done.degrees).to_numpy()
    assert contone.measurements.Order().agrees(D, levels).all()
    with pytest.raises(LabelError, match='degradation="levels"'):
        contone.enhance_file("t.csv", "o2.csv", labels="a,b,c", method="temperature")


# ------------------------------------------------------------------------------------------------ names of columns


def test_ranges_files_and_near_misses(here):
    names = ["x", "f1", "f2", "f3", "f,4"]
    assert choose(names, names, labels=["f1:f3"]).labels == ["f1", "f2", "f3"]
    assert choose(names, names, labels=["last:2"]).labels == ["f3", "f,4"]
    assert choose(names, names, labels=["first:1"]).labels == ["x"]
    Path("names.txt").write_text("f1\n\nf,4\n")
    assert choose(names, names, labels=expand(["@names.txt"])).labels == ["f1", "f,4"]
    for typed, said in (
        ("F1", "did you mean 'f1'"),
        ("f3:f1", "'f1' comes before 'f3'"),
        ("last:9", "the table has 5"),
        ("zzz", "there is no column 'zzz'; the table has"),
    ):
        with pytest.raises(ArgumentError, match=said):
            choose(names, names, labels=[typed])
    with pytest.raises(ArgumentError, match="cannot read the names in nowhere"):
        expand(["@nowhere"])


def test_a_forgotten_label_is_asked_about(here):
    Path("t.csv").write_text("x,c,a,b\n1.5,1,1,0\n2.5,0,1,1\n3.5,1,0,1\n")
    assert "question: c hold yes and no like the labels" in degrees("t.csv", labels="a,b")[1]
    assert "question" not in degrees("t.csv", labels="a,b,c")[1]


# ---------------------------------------------------------------------------------------------- features as they are


def test_missing_numbers_are_filled_and_said(here):
    Path("t.csv").write_text("x,y,a,b\n1,?,1,0\n,2,1,1\n3,4,0,1\n5,NA,0,1\n")
    for streamed in (False, True):
        heard = Heard()
        done = contone.enhance_file(
            "t.csv", "o.csv", labels="a,b", method="glle", overwrite=True, stream=streamed, progress=heard
        )
        said = "\n".join(heard.lines)
        assert done.features == ("x", "y")
        assert "'y': ?, NA read as missing" in said
        assert "filled with the median, beside a column that says where: x (1 of 4), y (2 of 4)" in said
        assert done.method.n_features_in_ == 4
        assert Path("o.csv").read_text().splitlines()[1].startswith("1,?,1,0,")  # the text is as it was


def test_rows_with_missing_numbers_can_be_left_out(here):
    Path("t.csv").write_text("x,y,a,b\n1,?,1,0\n2,2,1,1\n3,4,0,1\n5,7,1,0\n")
    done = contone.enhance_file("t.csv", "o.csv", labels="a,b", method="temperature", missing="drop")
    assert done.n_rows == 3
    assert pl.read_csv("o.csv")["x"].to_list() == [2, 3, 5]


def test_percentages_are_numbers_and_mixtures_are_refused(here):
    Path("t.csv").write_text("x,a,b\n12%,1,0\n3.5 %,1,1\n40%,0,1\n")
    _, said = degrees("t.csv", labels="a,b")
    assert "12% read as 0.12" in said
    Path("t.csv").write_text("x,y,a,b\n1,1,1,0\n2,2,1,1\n3,3,1,1\n4,4,0,1\n5,12%,0,1\n")
    with pytest.raises(DataError, match="'y' holds 4 numbers and 1 entries that are not, such as '12%'"):
        degrees("t.csv", labels="a,b")
    assert degrees("t.csv", labels="a,b", ids="y")[0].height == 5


def test_categories_are_classes_and_constants_are_left_out(here):
    Path("t.csv").write_text("x,zone,k,a,b\n1.5,3,7,1,0\n2,1,7,1,1\n3,2,7,0,1\n4,3,7,0,1\n")
    heard = Heard()
    done = contone.enhance_file("t.csv", "o.csv", labels="a,b", method="glle", categorical="zone", progress=heard)
    said = "\n".join(heard.lines)
    assert "categories, one column per class: zone (3)" in said
    assert "constant columns, left out: k" in said
    assert done.method.n_features_in_ == 4
    assert "few values, taken as quantities: zone" in degrees("t.csv", labels="a,b")[1]


# -------------------------------------------------------------------------------------------------- round trips

CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8) | st.floats(
    allow_nan=False, allow_infinity=False
).map(repr)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(CELLS, min_size=2, max_size=6), kind=st.sampled_from(["csv", "tsv", "parquet", "jsonl", "arrow"]))
def test_carried_text_comes_out_as_it_went_in(tmp_path_factory, cells, kind):
    folder = tmp_path_factory.mktemp("t")
    n = len(cells)
    given_frame = pl.DataFrame({"t": cells, "x": np.arange(n) / 2, "a": [i % 2 for i in range(n)]})
    given_frame = given_frame.with_columns(b=1 - pl.col("a"))
    formats.write(given_frame, str(folder / f"in.{kind}"), overwrite=True)
    contone.enhance_file(folder / f"in.{kind}", folder / f"out.{kind}", labels="a,b", features="x", method="uniform")
    found = formats.read(folder / f"out.{kind}").stored["t"].fill_null("").to_list()
    assert found == formats.read(folder / f"in.{kind}").stored["t"].fill_null("").to_list()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=6), min_size=1, max_size=6), st.sampled_from([".", ","]))
@example(list("abcdefgh"), ".")  # as many different words as are looked at
@example(list("abcdefghi"), ".")
def test_the_kind_of_any_text_can_be_told_in_pieces(cells, decimal):
    whole = kinds_of(pl.DataFrame({"t": cells}, schema={"t": pl.String}), decimal)["t"]
    parts = [kinds_of(pl.DataFrame({"t": [c]}, schema={"t": pl.String}), decimal)["t"] for c in cells]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.joined(part)
    assert joined.words == whole.words
    if whole.is_number:
        assert joined.is_number or whole.stray


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=200), name=st.sampled_from(["t.csv", "t.tsv", "t.arff", "t.jsonl", "t.svm", "t.parquet"])
)
def test_any_bytes_end_in_an_answer_or_a_sentence(tmp_path_factory, content, name):
    folder = tmp_path_factory.mktemp("t")
    (folder / name).write_bytes(content)
    with suppress(ContoneError):  # no other error
        contone.enhance_file(folder / name, folder / "o.csv", labels="first:1", method="uniform")


@pytest.mark.parametrize("name", ["wide.svm", "wide.arff"])
def test_a_sparse_table_too_large_with_its_zeros_is_refused(tmp_path, monkeypatch, name):
    path = tmp_path / name
    if name.endswith(".svm"):
        path.write_text("1 1:1 5000:1\n2 2:1\n" * 10)
    else:
        attributes = "".join(f"@attribute f{j} numeric\n" for j in range(300))
        path.write_text(f"@relation x\n{attributes}@attribute a {{0,1}}\n@data\n" + "{0 1, 300 1}\n" * 20)
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "100KB")
    with pytest.raises(MemoryEstimateError, match=r"is sparse: its 20 rows .* would take about .* Read it in Python"):
        formats.read(path)
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "100MB")
    assert len(formats.read(path).stored) == 20


def test_a_file_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"x,a,b\n" + b"1,1,0\n" * 1000))
    assert formats.read(path).stored.height == 1000
    monkeypatch.setattr("contone.tables.formats.available_bytes", lambda: 30_000.0)  # 5,000 of 6,007 bytes
    with pytest.raises(DataError, match="does not fit into memory"):
        formats.read(path)


def test_columns_cost_memory_however_few_rows_there_are(tmp_path, monkeypatch):
    """Two rows that name a feature of a high number took minutes and 15 GB, where the cells alone would fit."""
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "64GB")
    (tmp_path / "t.svm").write_text("1 100000000:1\n2 3:1\n")
    with pytest.raises(MemoryEstimateError, match="is sparse: its 2 rows and 100,000,002 columns"):
        formats.read(tmp_path / "t.svm")
