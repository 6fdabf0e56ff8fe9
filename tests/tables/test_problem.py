"""`read_table` and `write_answer`: what a table asks, and the answer beside it; every command reads once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import contone
from contone.exceptions import ArgumentError, ContoneError
from contone.tables import formats
from contone.tables.encoder import ColumnEncoder

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
