"""Answers of people on the command line: who, what, where next, how many."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

SHORT = ("-p", "n_sweeps=30", "-p", "n_burn=10")
ASKED = ("answers.csv", "--item", "item", "--worker", "who", "--label", "mood")


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """Twelve items, each by three of four people, one of whom does not look."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        (f"s{i}", x, f"w{w}", rng.choice(list("abc")) if w == 3 else "abc"[i % 3])
        for i, x in enumerate(rng.normal(size=12).round(3))
        for w in range(4)
        if w != (i + 1) % 4
    ]
    frame = pl.DataFrame(rows, ["item", "x", "who", "mood"], orient="row")
    frame.write_csv("answers.csv")
    return frame


def test_enhance_with_persons_and_a_page(answers, run, undrawn):
    result = run("enhance", *ASKED, *SHORT, "-o", "soft.csv", "--annotators", "persons.csv", "--report", "page.html")
    assert result.exit_code == 0, result.output
    assert "exactly one label: read as votes; --rule says otherwise" in result.stderr
    soft, persons = pl.read_csv("soft.csv"), pl.read_csv("persons.csv")
    assert soft["n_answers"].to_list() == [3] * 12
    np.testing.assert_allclose(soft.select(f"{n}_degree" for n in "abc").to_numpy().sum(axis=1), 1.0)
    assert persons["annotator"].to_list()[-1] == "w3"
    assert "w3" in Path("page.html").read_text(encoding="utf-8")


def test_no_spreadsheet_runs_what_a_person_says_too_often(answers, run, monkeypatch):
    told = pl.DataFrame({"annotator": ["w3"], "too_often": ["=b"]})
    monkeypatch.setattr("contone.tables.enhancing.table_of_persons", lambda _: told)
    assert run("enhance", *ASKED, *SHORT, "-o", "soft.csv", "--annotators", "persons.csv").exit_code == 0
    assert pl.read_csv("persons.csv")["too_often"].to_list() == ["'=b"]


def test_persons_need_names(answers, run):
    answers.drop("who").write_csv("unnamed.csv")
    result = run("enhance", "unnamed.csv", "--item", "item", "-l", "mood", "-o", "o.csv", "--annotators", "p.csv")
    assert result.exit_code == 2
    assert "--worker" in result.stderr
    again = run("enhance", *ASKED, "-o", "o.csv", "--annotators", "answers.csv", "--force")
    assert again.exit_code == 2
    assert "not overwritten" in " ".join(again.stderr.split())


def test_suggest_and_plan(answers, run):
    result = run("suggest", *ASKED, *SHORT, "-n", "5", "-o", "next.csv")
    assert result.exit_code == 0, result.output
    found = pl.read_csv("next.csv")
    assert found.columns == ["item", "by", "gain", "x"]
    asked = set(answers.select("item", "who").rows())
    assert not asked & set(found.select("item", "by").rows())  # "": somebody new, where everybody has answered
    assert run("suggest", *ASKED, "-n", "5", "-o", "next.html").exit_code == 2
    plan = json.loads(run("plan", *ASKED, *SHORT, "--json").stdout)
    assert plan["answers"][:2] == [3.0, 4.0]
    assert plan["expected"][0] > plan["expected"][2] > plan["floor"]
    assert "Counting needs" in run("plan", *ASKED, *SHORT).stdout


def test_items_that_nobody_answered_come_first(answers, run):
    counts = answers.pivot("mood", index=["item", "x"], values="who", aggregate_function="len").fill_null(0)
    counts.with_columns(pl.when(pl.col("item") == "s5").then(0).otherwise(pl.col(n)).alias(n) for n in "abc").write_csv(
        "counts.csv"
    )
    result = run(
        "suggest", "counts.csv", "-l", "a,b,c", "--id", "item", "--rule", "votes", *SHORT, "-n", "3", "-o", "n.csv"
    )
    assert result.exit_code == 0, result.output
    assert pl.read_csv("n.csv")["item"][0] == "s5"


@pytest.mark.parametrize("command", [("check",), ("compare", "--replicates", "1")])
def test_other_commands_say_where_people_are_looked_at(answers, run, command):
    result = run(command[0], *ASKED, *command[1:])
    assert result.exit_code == 2
    assert "contone enhance --report" in " ".join(result.stderr.replace("│", "").split())


def test_a_count_below_zero_gets_a_sentence(answers, run, flat):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(5, [0.5, 0.3, 0.2], 30)
    frame = pl.DataFrame(counts, ["a", "b", "c"]).with_columns(x=pl.Series(rng.normal(size=30).round(3)))
    frame.write_csv("counts.csv")
    assert "read as votes" in run("enhance", "counts.csv", "-l", "a,b,c", *SHORT, "-o", "o.csv").stderr
    counts[7, 1] = -2
    frame.with_columns(b=pl.Series(counts[:, 1])).write_csv("counts.csv")
    result = run("enhance", "counts.csv", "-l", "a,b,c", *SHORT, "-o", "p.csv")
    assert result.exit_code == 1
    assert "counts cannot be negative: row 7 has -2 for 'b'" in flat(result.stderr)
    assert not Path("p.csv").exists()
    # A scale from -2 to 2 stays one.
    frame.with_columns(pl.Series(n, rng.integers(-2, 3, 30)) for n in "abc").write_csv("scale.csv")
    assert "read as levels" in run("enhance", "scale.csv", "-l", "a,b,c", *SHORT, "-o", "q.csv").stderr


def test_an_item_with_the_lowest_level_everywhere_has_been_answered(answers, run):
    levels = np.random.default_rng(0).integers(0, 4, (30, 3))
    levels[4] = 0
    pl.DataFrame(levels, ["a", "b", "c"]).with_columns(x=pl.int_range(30)).write_csv("levels.csv")
    result = run("enhance", "levels.csv", "-l", "a,b,c", *SHORT, "--unlabelled", "drop", "-o", "o.csv")
    assert result.exit_code == 0, result.output
    assert "left out" not in result.stderr
    assert len(pl.read_csv("o.csv")) == 30


def test_the_last_line_names_every_new_column(answers, run, flat):
    result = run("enhance", *ASKED, *SHORT, "-o", "o.parquet", "--degrees-as", "list", "--intervals", "0.9")
    assert "12 rows, new columns degrees and n_answers, lower, upper, entropy" in flat(result.stderr)
    assert "36 answers by 4 people about 12 items" in flat(result.stderr)
    Path("one.csv").write_text("task,worker,label\ni,w,a\n")
    assert "1 answer by 1 person about 1 item" in flat(run("enhance", "one.csv", *SHORT, "-o", "p.csv").stderr)
