"""`read_table` and `write_answer`: what a table asks, and the answer beside it; every command reads once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import contone
from contone.exceptions import ArgumentError, ContoneError
from contone.runtime.progress import Progress
from contone.tables import formats
from contone.tables.encoder import ColumnEncoder
from contone.tables.reading import refuse_few_labelled

NAMES = ["calm", "happy", "sad"]


@pytest.fixture
def songs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    L = np.eye(3, dtype=int)[rng.integers(0, 3, 40)]
    L[::3, 0] = 1
    frame = pl.DataFrame({"song_id": [f"{i:03d}" for i in range(40)], "x": rng.normal(size=40), "zone": ["u", "v"] * 20,
                          **{name: L[:, j] for j, name in enumerate(NAMES)}})  # fmt: skip
    frame.write_csv("songs.csv")
    return frame


def test_a_problem_holds_what_methods_take_and_how_things_are_called(songs):
    problem = contone.read_table("songs.csv", labels=NAMES, categorical="zone", ids="song_id")
    expected = np.column_stack([songs["x"], songs["zone"] == "v"])
    np.testing.assert_array_equal(problem.X, expected)
    np.testing.assert_array_equal(problem.Y.to_numpy(), songs.select(NAMES).to_numpy())
    assert problem.label_names == NAMES
    assert problem.feature_names == ["x", "zone=v"]
    assert problem.row_names == songs["song_id"].to_list()
    assert problem.groups is problem.annotators is problem.graded is None
    assert problem.notes[0] == "40 rows; labels: calm, happy, sad; features: x, zone"
    D = contone.Temperature().fit_enhance(problem.X, problem.Y)
    contone.write_answer(problem, D, "soft.csv", top=1)
    contone.enhance_file("songs.csv", "same.csv", labels=NAMES, categorical="zone", method="temperature", top=1)
    assert Path("soft.csv").read_bytes() == Path("same.csv").read_bytes()
    with pytest.raises(ContoneError, match="exists already"):
        contone.write_answer(problem, D, "soft.csv")


def test_several_annotators_are_rows_of_their_own(songs):
    Path("long.csv").write_text(
        "song,x,who,mood\ns1,1,ann,calm\ns2,2,ann,sad\ns1,1,bob,sad\ns1,1,bob,happy\ns2,2,eve,\n"
    )
    problem = contone.read_table("long.csv", labels="mood", item="song", worker="who")
    assert problem.label_names == NAMES
    assert problem.groups.tolist() == [0, 0, 1, 1]
    assert problem.annotators == ("ann", "bob", "ann", "eve")
    assert problem.row_names == ["s1", "s2"]
    np.testing.assert_array_equal(problem.X, [[1.0], [1.0], [2.0], [2.0]])
    np.testing.assert_array_equal(problem.Y.to_numpy(), [[1, 0, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(problem.marks, [[1, 1, 1], [0, 0, 1]])


COMMANDS = {
    "enhance": ("enhance", "songs.csv", "-l", "calm,happy,sad", "-p", "n_sweeps=20", "-p", "n_burn=5", "-o", "o.csv"),
    "report": ("enhance", "songs.csv", "-l", "calm,happy,sad", "-p", "n_sweeps=20", "-p", "n_burn=5", "-o", "o.csv",
               "--report", "page.html"),
    "check": ("check", "songs.csv", "-l", "calm,happy,sad", "-p", "n_sweeps=20", "-p", "n_burn=5", "-o", "page.html"),
    "compare": ("compare", "songs.csv", "-l", "calm,happy,sad", "-m", "uniform", "--replicates", "1"),
    "suggest": ("suggest", "songs.csv", "-l", "calm,happy,sad", "-p", "n_sweeps=20", "-p", "n_burn=5", "-o", "g.csv"),
    "fit": ("fit", "songs.csv", "-l", "calm,happy,sad", "-m", "temperature", "-o", "m.contone"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_reads_and_encodes_the_table_once(songs, run, undrawn, monkeypatch, name):
    counts: Counter[str] = Counter()

    def counted(owner, attribute):
        call = getattr(owner, attribute)

        def counting(*arguments, **named):
            counts[attribute] += 1
            return call(*arguments, **named)

        monkeypatch.setattr(owner, attribute, counting)

    counted(formats, "read")
    counted(ColumnEncoder, "fit")
    counted(ColumnEncoder, "transform")
    result = run(*COMMANDS[name])
    assert result.exit_code == 0, result.output
    assert counts == {"read": 1, "fit": 1, "transform": 1}


def test_graded_rows_are_part_of_the_problem(songs):
    pl.DataFrame(
        {"song_id": ["003"], **{f"{n}_degree": [v] for n, v in zip(NAMES, (20, 30, 50), strict=True)}}
    ).write_csv("graded.csv")
    problem = contone.read_table("songs.csv", labels=NAMES, graded="graded.csv", ids="song_id")
    np.testing.assert_allclose(problem.graded[3], [0.2, 0.3, 0.5])
    assert np.isnan(np.delete(problem.graded, 3, axis=0)).all()


def test_words_that_are_no_options_are_refused(songs):
    with pytest.raises(ArgumentError, match="'skip' must be one of impute, drop, error"):
        contone.read_table("songs.csv", labels=NAMES, missing="skip")
    with pytest.raises(TypeError, match="colour"):
        contone.read_table("songs.csv", labels=NAMES, colour="red")


# ------------------------------------------------------------------------------------------------ some of the items


def notes_of(path: str, **options) -> tuple[str, ...]:
    return contone.read_table(path, **options).notes


@pytest.mark.parametrize("kind", ["rows", "answers"])
def test_some_items_of_a_problem_are_the_problem_of_these_items(songs, kind):
    """All that belongs to an item stays with it: features, labels, who gave them, degrees, its number and name."""
    if kind == "rows":
        Path("graded.csv").write_text("song_id,calm,happy,sad\n003,20,30,50\n004,0,0,100\n")
        problem = contone.read_table("songs.csv", labels=NAMES, graded="graded.csv", ids="song_id")
        keep = np.arange(40) % 3 == 1
    else:
        region = {"from_name": "q", "to_name": "t", "type": "choices"}
        tasks = [{"id": f"i{i}", "data": {"x": i / 2}, "annotations": [
            {"completed_by": f"w{w}", "ground_truth": i == 3 and w == 0,
             "result": [{**region, "value": {"choices": ["ab"[(i + w) % 2]]}}]} for w in range(i)
        ]} for i in range(5)]  # fmt: skip
        Path("export.json").write_text(json.dumps(tasks))
        problem = contone.read_table("export.json")
        assert problem.beside["reference"].to_list() == [None, None, None, "b", None]
        keep = np.array([True, False, False, True, True])
    some = problem.subset(keep)
    kept = np.flatnonzero(keep)
    rows = keep if problem.groups is None else keep[problem.groups]
    np.testing.assert_array_equal(some.X, problem.X[rows])
    np.testing.assert_array_equal(some.Y.to_numpy(), problem.Y.to_numpy()[rows])
    np.testing.assert_array_equal(some.numbers, kept)
    np.testing.assert_array_equal(some.labelled, problem.labelled[keep])
    np.testing.assert_array_equal(some.marks, problem.marks[keep])
    assert some.row_names == [problem.row_names[i] for i in kept]
    assert some.item_names == [name for name, there in zip(problem.item_names, rows, strict=True) if there]
    assert some.table.n_rows == len(kept)
    if kind == "rows":
        np.testing.assert_array_equal(some.graded, problem.graded[keep])
        assert some.groups is some.annotators is None
    else:
        assert some.groups.tolist() == np.repeat([0, 1, 2], [0, 2, 4]).tolist()
        assert some.annotators == tuple(np.array(problem.annotators)[rows])
        assert some.beside.rows() == problem.beside.filter(keep).rows()
        with pytest.raises(ArgumentError, match="what is for tables with one row per item"):
            problem.of_one_source("what")
    assert problem.subset(np.ones(len(keep), dtype=bool)).X.tolist() == problem.X.tolist()


def test_rows_are_called_by_their_ids_and_by_numbers_where_these_repeat(folder):
    Path("t.csv").write_text("k,l,x,a,b\n1,u,1,1,0\n1,,2,0,1\n1,u,3,1,1\n")
    named = contone.read_table("t.csv", labels="a,b", ids="k,l")
    assert named.row_names == ["1 u", "1 ", "1 u"]
    assert named.item_names == [0, 1, 2]
    plain = contone.read_table("t.csv", labels="a,b", features="x")
    assert plain.row_names == plain.item_names == ["0", "1", "2"]
    assert plain.of_one_source("what") is plain


def test_rows_with_gaps_are_left_out_where_that_is_asked_for(folder):
    Path("t.csv").write_text("id,x,y,a,b\n0,1,,1,0\n1,2,5,0,0\n2,,,0,1\n3,4,7,1,1\n4,5,8,,1\n")
    options = {"labels": "a,b", "rule": "main"}
    whole = contone.read_table("t.csv", **options)
    assert whole.numbers.tolist() == [0, 1, 2, 3, 4]
    assert whole.labelled.tolist() == [True, False, True, True, True]
    assert "1 entries of label columns are blank: taken as unasked, neither yes nor no" in whole.notes
    assert "carried along: id" in whole.notes
    dropped = contone.read_table("t.csv", missing="drop", unlabelled="drop", **options)
    assert dropped.numbers.tolist() == [3, 4]
    assert dropped.X.tolist() == [[4, 7], [5, 8]]
    assert [note for note in dropped.notes if "left out" in note] == [
        "2 rows with missing features are left out", "1 rows without a label are left out",
    ]  # fmt: skip
    assert not any("left out" in note for note in notes_of("t.csv", missing="drop", features="id", **options))
    with pytest.raises(ContoneError, match="missing"):
        contone.read_table("t.csv", missing="error", **options)
    Path("t.csv").write_text("x,y,a,b\n1,,1,0\n,2,1,0\n")
    with pytest.raises(ContoneError, match="every row has a missing feature"):
        contone.read_table("t.csv", missing="drop", **options)


@pytest.mark.parametrize(("labelled", "total", "is_enough"), [(1, 1, True), (1, 2, False), (0, 3, False), (2, 9, True)])
def test_two_labelled_rows_are_the_least_unless_all_are(labelled, total, is_enough):
    mask = np.arange(total) < labelled
    if is_enough:
        refuse_few_labelled(mask)
    else:
        with pytest.raises(ContoneError, match=f"only {labelled} of {total} rows have a label"):
            refuse_few_labelled(mask)


def test_how_answers_are_read_is_said_by_their_kind(folder):
    def rule(**columns) -> tuple[str | None, str]:
        pl.DataFrame(columns).write_csv("t.csv")
        read = contone.read_table("t.csv", labels="a,b,c", **({"item": "i", "worker": "w"} if "i" in columns else {}))
        return read.rule, " ".join(note for note in read.notes if "--rule says otherwise" in note)

    rng = np.random.default_rng(0)
    marks, people = rng.integers(0, 2, (30, 3)), {"i": np.arange(30) // 2, "w": np.arange(30) % 2}
    alone = {"i": np.arange(30), "w": np.arange(30) % 2}
    orders = np.array([rng.permutation(3) + 1 for _ in range(30)])
    classes = np.eye(3, dtype=int)[rng.integers(0, 3, 30)]

    def columns(Y):
        return dict(zip("abc", Y.T, strict=True))

    assert rule(**columns(marks)) == (None, "")
    assert rule(**columns(classes)) == ("votes", "each row has exactly one label: read as one vote per row; --rule "
                                                 "says otherwise")  # fmt: skip
    assert rule(**alone, **columns(marks))[0] == "marks"
    for who, expected in ((people, "each person gave every label a level"), (alone, "each person puts the labels in")):
        found, said = rule(**who, **columns(orders))
        assert found == "levels"
        assert said.startswith(expected)
    assert rule(**columns(orders))[0] == "order"
    counts = rng.multinomial(6, [0.5, 0.3, 0.2], 30)
    assert rule(**columns(counts))[0] == "votes"
    counts[4, 1] = -1
    with pytest.raises(ContoneError, match="row 4 has -1 for 'b'"):
        rule(**columns(counts))


def test_an_export_whose_columns_are_named_is_a_table(folder):
    """The short export of Label Studio is known by its columns; who names labels means these columns."""
    fixed = {"lead_time": 1.0}
    rows = [{"x": i / 2, "id": i // 2, "annotator": f"w{i % 2}", "annotation_id": i, **fixed, "q": "ab"[i % 3 > 0]}
            for i in range(8)]  # fmt: skip
    pl.DataFrame(rows).write_csv("short.csv")
    Path("short.json").write_text(json.dumps(rows))
    for name in ("short.csv", "short.json"):
        assert len(contone.read_table(name, question="q").answers.item) == 8
        named = contone.read_table(name, labels="q", features="x")
        assert named.answers is None
        assert len(named.Y) == 8


class Listener(Progress):
    def __init__(self):
        self.said = []

    def note(self, message):
        self.said.append(message)


def test_what_is_read_is_said_while_it_is_read(songs):
    heard = Listener()
    problem = contone.read_table("songs.csv", labels=NAMES, progress=heard, graded=None)
    assert [line.strip() for line in heard.said] == list(problem.notes)
    for do in (
        lambda said: contone.enhance_file("songs.csv", "o.csv", labels=NAMES, method="uniform", progress=said),
        lambda said: contone.enhance_table(songs, labels=NAMES, method="uniform", progress=said),
        lambda said: contone.tables.fit_file("songs.csv", "m", labels=NAMES, method="temperature", progress=said),
    ):
        heard = Listener()
        do(heard)
        assert any("labels: calm, happy, sad" in line for line in heard.said)


def test_what_only_the_whole_table_can_give_is_not_streamed(songs):
    def refused(source="songs.csv", target="o.csv", method="temperature", **options):
        with pytest.raises(ArgumentError) as said:
            contone.enhance_file(source, target, labels=NAMES, method=method, stream=True, **options)
        return said.value.argument

    songs.write_parquet("songs.parquet")
    songs.write_ndjson("songs.jsonl")
    assert refused(item="song_id") == "item"
    assert refused(graded="songs.csv") == "graded"
    assert refused(missing="drop") == "missing"
    assert [refused(unlabelled=way) for way in ("drop", "predict")] == ["unlabelled"] * 2
    assert refused(method="km") == "method"
    assert refused(source="songs.jsonl") == "source"
    assert refused(target="o.jsonl") == "target"
    for source in ("songs.csv", "songs.parquet"):
        options = {"labels": NAMES, "method": "temperature", "overwrite": True}
        done = contone.enhance_file(source, "o.csv", stream=True, missing="error", **options)
        assert done.streamed
        assert (done.n_rows, done.fitted_rows().sample_of) == (40, 40)
        np.testing.assert_array_equal(done.fitted_rows().Y.to_numpy(), songs.select(NAMES).to_numpy())
        assert not contone.enhance_file(source, "p.csv", **options).streamed
        assert pl.read_csv("o.csv").equals(pl.read_csv("p.csv"))
    assert contone.enhance_file("songs.csv", "o.csv", chunk_rows=7, **options).streamed
