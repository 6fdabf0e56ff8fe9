"""Answers as they are collected, named and gathered: numbers of items and people, scales, questions, columns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import contone
from contone.exceptions import ArgumentError, DataError, LabelError
from contone.pages import words
from contone.runtime.progress import Progress
from contone.tables.answers import Answers, Collector, Question, choose_question, gather, in_order
from contone.tables.fitting import FittedProblem, named_method, posterior_of_answers, read_by
from contone.tables.reading import read_table
from contone.tables.settings import Reading
from contone.tables.table import Table


def collected(*answers: tuple[object, object, list[str]], **how) -> Answers:
    """Answers (item, person, labels) as a tool's reader hands them over."""
    found = Collector(Question("Tool", "q"))
    for item, person, labels in answers:
        found.add(found.item(item, {"name": f"about {item}"}), person, labels)
    return found.finish(**how)


def test_items_and_people_are_numbered_as_they_come_and_labels_by_their_order():
    answers = collected(("i", "p", ["b"]), ("j", {"email": "q@r", "id": 3}, ["a"]), ("i", {"id": 4}, ["10"]),
                        ("j", "", ["9"]), ("k", None, ["b"]), ("k", "p", ["a"]))  # fmt: skip
    assert answers.items.rows() == [("i", "about i"), ("j", "about j"), ("k", "about k")]
    assert answers.item.tolist() == [0, 1, 0, 1, 2, 2]
    assert (answers.workers, answers.worker.tolist()) == (["p", "q@r", "4"], [0, 1, 2, -1, -1, 0])
    assert answers.annotators == ("p", "q@r", "4", "", "", "p")
    assert answers.labels == ["10", "9", "a", "b"]  # not all are numbers
    np.testing.assert_array_equal(answers.Y.argmax(axis=1), [3, 2, 0, 1, 3, 2])
    assert answers.question.kind == "votes"
    assert answers.n_answers.tolist() == [2, 2, 2]
    sorted_ = answers.by_item()
    assert sorted_.item.tolist() == [0, 0, 1, 1, 2, 2]
    np.testing.assert_array_equal(sorted_.Y.argmax(axis=1), [3, 0, 2, 1, 3, 2])
    assert sorted_.annotators == ("p", "4", "q@r", "", "", "p")
    assert collected(("i", None, ["a"])).annotators is None
    assert collected(("i", "p", ["a"]), ("i", "q", [])).question.kind == "marks"
    assert collected(("i", "p", ["a", "b"])).question.kind == "marks"
    assert collected(("i", "p", ["a"]), kind="levels").question.kind == "levels"
    assert in_order(["10", "9", "-1"]) == ["-1", "9", "10"]


def test_labels_that_nobody_was_offered_are_blank_and_levels_are_kept():
    found = Collector(Question())
    found.add(found.item(None, {}), "p", ["a", "b"], [2.0, 0.5])
    found.add(found.item(None, {}), "p", ["c"], offered=["c", "d"])
    answers = found.finish()
    assert answers.items.height == 2  # without a name, each is an item
    np.testing.assert_array_equal(answers.Y, [[2, 0.5, 0, 0], [np.nan, np.nan, 1, 0]])
    known = answers.with_labels(["d", "c", "b", "a", "e"])
    np.testing.assert_array_equal(known.Y, [[0, 0, 0.5, 2, 0], [0, 1, np.nan, np.nan, 0]])
    with pytest.raises(LabelError, match="the label 'd' is not one of the model's: a, b, c"):
        answers.with_labels(["a", "b", "c"])
    other = found.sharing_items(Question(name="other"))
    for name in ("n", 0, "n"):  # items of both questions are one where they have a name; 0 is one
        other.add(other.item(name, {}), "q", ["z"])
    assert other.finish().item.tolist() == [2, 3, 2]
    assert found.finish().items["item"].to_list() == other.finish().items["item"].to_list()


@pytest.mark.parametrize(
    ("chosen", "labels"),
    [
        (["3", "5"], ["1", "2", "3", "4", "5"]),
        (["0", "2"], ["0", "1", "2"]),
        (["-2", "1"], ["-2", "-1", "0", "1"]),
        (["1", "101"], [str(i) for i in range(1, 102)]),
        (["1", "102"], ["1", "102"]),  # too far apart for a scale
        (["2.5", "4"], ["2.5", "4"]),
        (["good", "4"], ["4", "good"]),
        ([], []),
    ],
)
def test_a_scale_is_offered_from_one_or_its_least_level_to_its_last(chosen, labels):
    found = Collector(Question())
    found.offer(chosen)
    found.offer_scale()
    found.add(found.item("i", {}), "p", chosen[:1])
    assert found.finish().labels == labels


def test_what_was_read_and_left_out_is_one_sentence():
    found = Collector(Question("Tool", "mood"))
    with pytest.raises(DataError, match=r"^This Tool export holds no answers: export"):
        found.finish().refuse_empty()
    for why in ("cancelled", "draft", "draft"):
        found.skip(why)
    with pytest.raises(DataError, match=r"This Tool export holds no answers \(1 cancelled, 2 draft\): export"):
        found.finish().refuse_empty()
    found.add(found.item("i", {}), "p", [])
    with pytest.raises(DataError, match="nobody chose a label: 1 answers are empty"):
        found.finish().refuse_empty()
    found.add(found.item("i", {}), "q", ["a"])
    found.reference[0] = ["a"]
    assert found.finish().in_words() == (
        "Tool: 2 answers by 2 people about 1 item, question 'mood'; 1 item with a reference answer "
        "(1 cancelled, 2 draft left out)"
    )
    plain = Collector(Question())
    plain.add(plain.item("i", {}), None, ["a"])
    assert plain.finish().in_words() == "1 answer about 1 item"
    assert [words.count(n, "person", "people") for n in (1, 0)] == ["1 person", "0 people"]


def test_the_question_is_the_only_one_or_named():
    assert choose_question("T", ["a"], None) == "a"
    assert choose_question("T", ["b", "a", "b"], "b") == "b"
    for names, question, said in (
        (["b", "a"], None, "has 2 questions: a, b. Name one"),
        (["b", "a"], "c", "has no question 'c'; it has a, b."),
        ([], None, "has no answers to any question."),
        ([], "c", "has no question 'c'."),
    ):
        with pytest.raises(DataError, match=f"This T export {said}"):
            choose_question("T", names, question)


# --------------------------------------------------------------------------------------------- answers in a table


def gathered(rows: str, **reading) -> tuple[Answers | Table, list[str]]:
    frame, said = pl.read_csv(rows.encode(), infer_schema=False), []
    return gather(Table(frame, is_text=True), Reading(**reading), said.append), said


def told(answers: Answers) -> list[tuple[object, str, str]]:
    """(item, person, labels) of each answer."""
    names = answers.items[answers.key].to_list() if answers.key else list(range(answers.items.height))
    chosen = ["".join(answers.labels[j] for j in np.flatnonzero(row > 0)) for row in answers.Y]
    who = answers.annotators or [""] * len(chosen)
    return list(zip([names[i] for i in answers.item], who, chosen, strict=True))


def test_a_row_per_label_is_an_answer_per_person_or_per_row():
    text = "i,w,y\ns,p,a\nt,,b\ns,p,b\nt,,a\ns,q,a|b\n"
    found, said = gathered(text, item="i", worker="w", labels="y", rule="marks", label_separator="|")
    assert told(found) == [("s", "p", "ab"), ("t", "", "b"), ("t", "", "a"), ("s", "q", "ab")]
    assert (said, found.key) == ([], "i")
    found, said = gathered("i,w,y\ns,p,a\ns,p,a\nt,p,b\n", item="i", worker="w", labels="y", rule="votes")
    assert told(found) == [("s", "p", "a"), ("s", "p", "a"), ("t", "p", "b")]
    assert said == ["33.3% of the answers are by somebody who answered about the item before: each counts"]
    # Without people, a repeated label tells answers from sets; sets agree in everything else.
    assert told(gathered("i,y\ns,a\ns,a\n", item="i", labels="y")[0]) == [("s", "", "a")] * 2
    table, _ = gathered("i,x,y\ns,1,a\ns,1,b\nt,2,a\nt,2,\n", item="i", labels="y")
    assert table.stored.rows() == [("s", "1", ["a", "b"]), ("t", "2", ["a"])]
    with pytest.raises(DataError, match="the rows of item 't' differ in the column 'x'"):
        gathered("i,x,y\ns,1,a\nt,1,b\nt,2,a\n", item="i", labels="y")
    with pytest.raises(DataError, match="the label column 'y' names no label"):
        gathered("i,w,y\ns,p,\n", item="i", worker="w", labels="y")


@pytest.mark.parametrize(("repeats", "is_sets"), [(1, False), (2, True)])
def test_second_rows_of_a_person_are_sets_from_a_twentieth_on(repeats, is_sets):
    """Of 40 rows, one or two are by somebody who had a row about the item: 2.5 or 5 %."""
    rows = [f"i{i},p,a" for i in range(40 - repeats)] + [f"i{i},p,b" for i in range(repeats)]
    found, said = gathered("\n".join(["i,w,y", *rows]), item="i", worker="w", labels="y")
    assert len(found.item) == (40 - repeats if is_sets else 40)
    assert bool(said) is not is_sets


def test_a_row_per_answer_has_blanks_where_nobody_was_asked():
    found, said = gathered("i,w,x,z,a,b\ns,p,1,1,1,0\ns,q,1,2,,1\nt,p,2,5,1,1\n", item="i", worker="w", labels="a,b")
    np.testing.assert_array_equal(found.Y, [[1, 0], [np.nan, 1], [1, 1]])
    assert found.items.rows() == [("s", "1"), ("t", "2")]
    assert said == ["left out, since the rows of an item differ in it: z"]
    for options, argument in (
        ({"item": "i", "labels": "i,a"}, "item"), ({"item": "i", "worker": "w", "labels": "w,a"}, "worker"),
        ({"worker": "w", "labels": "a"}, "worker"), ({"item": "i"}, "labels"), ({"item": "z?", "labels": "a"}, "item"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError) as refused:
            gathered("i,w,a\ns,p,1\n", **options)
        assert refused.value.argument == argument


def test_a_column_per_person_asks_where_something_stands():
    found, _ = gathered("i,x,p1,p2\ns,1,a,\nt,2, ,b\nu,3,b,a\n", item="i", worker="p?")
    assert told(found) == [("s", "p1", "a"), ("u", "p1", "b"), ("t", "p2", "b"), ("u", "p2", "a")]
    assert found.items.rows() == [("s", "1"), ("t", "2"), ("u", "3")]
    found, _ = gathered("x,p1,p2\n1,2.0,\n2,,1.0\n", worker="p?")
    assert told(found) == [(0, "p1", "2"), (1, "p2", "1")]
    for text, options, said in (
        ("i,p1,p2\ns,a,b\ns,b,a\n", {"item": "i"}, "the item 'i' is not unique"),
        ("i,p1,p2\ns,,\n", {"item": "i"}, "'p1', 'p2' hold no answer"),
    ):
        with pytest.raises(DataError, match=said):
            gathered(text, worker="p?", **options)


def test_crowd_kit_is_known_by_its_columns_unless_others_are_named():
    text = "task,worker,label,x\ns,p,a,1\n"
    assert isinstance(gathered(text)[0], Answers)
    assert isinstance(gathered(text, features="x")[0], Answers)
    assert isinstance(gathered(text, labels="label")[0], Table)
    assert isinstance(gathered("task,worker,labels\ns,p,a\n")[0], Table)


# --------------------------------------------------------------------------------------------- answers and a method


def test_items_with_a_reference_answer_judge_the_degrees(tmp_path):
    answers = SimpleNamespace(labels=["a", "b"], reference={0: ["a"], 2: ["a", "b"], 5: ["b"], 7: ["a"]})
    D = np.array([[0.4, 0.6], [0.7, 0.3], [0.2, 0.8]])
    fitted = FittedProblem(SimpleNamespace(answers=answers, numbers=np.array([0, 2, 5])), None, D, np.ones(3, bool))
    assert fitted.judged_by_reference() == (2, 3)  # the first is wrong; the last is not among the rows
    for nothing in (None, SimpleNamespace(reference={})):
        fitted.problem.answers = nothing
        assert fitted.judged_by_reference() is None


def test_a_rule_goes_to_what_a_method_stands_around():
    inner = contone.Calibrated(contone.Inversion())
    assert read_by(inner, "votes")
    assert inner.enhancer.degradation == "votes"
    assert not read_by(inner, "marks") or inner.enhancer.degradation == "votes"  # somebody set it
    assert read_by(inner, "marks", always=True)
    assert inner.enhancer.degradation == "marks"
    tuned = contone.Tuned(contone.LP())
    assert read_by(tuned, "levels")
    assert tuned.model.degradation == "levels"
    read_by(tuned, "votes")
    assert tuned.model.degradation == "levels"
    assert not read_by(contone.LP(), "votes")
    with pytest.raises(ArgumentError, match="LP assumes no rule"):
        named_method("lp", Reading(labels="a", rule="votes"))
    assert named_method(contone.LP(alpha=0.3), Reading(labels="a")).alpha == 0.3
    graded = Reading(labels="a", graded="g.csv")
    assert type(named_method("lp", graded)) is contone.Calibrated
    assert type(named_method("inversion", graded)) is contone.Inversion


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_items_that_nobody_answered_come_from_their_features(folder):
    def task(i, x, people):
        region = {"from_name": "q", "to_name": "t", "type": "choices"}
        said = [{"completed_by": f"w{w}", "result": [{**region, "value": {"choices": ["ab"[(i + w) % 2]]}}]}
                for w in range(people)]  # fmt: skip
        return {"id": i, "data": {"x": x}, "annotations": said}

    Path("e.json").write_text(json.dumps([*(task(i, i / 4, 3) for i in range(8)), task(8, 1.1, 0)]))
    problem = read_table("e.json")
    done = contone.enhance_file("e.json", "o.csv", method=contone.Inversion(n_sweeps=40, n_burn=10), intervals=0.8)
    method, fitted = done.method, done.fitted
    assert fitted.fitted_rows.tolist() == [True] * 8 + [False]
    np.testing.assert_array_equal(fitted.D[:8], method.label_distributions_)
    np.testing.assert_array_equal(fitted.D[8:], method.predict(problem.item_features[8:]))
    low, high = fitted.intervals(0.8)
    inside, outside = method.intervals(level=0.8), method.intervals(problem.item_features[8:], None, 0.8)
    for end, own, new in zip((low, high), inside, outside, strict=True):
        np.testing.assert_array_equal(end, np.concatenate([own, new]))
    assert fitted.intervals(None) is None
    assert fitted.rows().numbers.tolist() == list(range(8))
    # The same persons are known by name: their answers say more than those of strangers, whose names do not matter.
    seen = problem.subset(fitted.fitted_rows)
    known, _ = posterior_of_answers(method, seen, None)
    strangers = [
        posterior_of_answers(method, replace(seen, annotators=who), 0.9)[0]
        for who in (None, tuple(f"new {w}" for w in seen.annotators))
    ]
    np.testing.assert_array_equal(*strangers)
    assert not np.array_equal(known, strangers[0])
    unable = contone.Logical()
    with pytest.raises(ArgumentError, match=r"Logical (cannot predict the 1 rows|takes one annotator)"):
        contone.tables.fitting.fit_problem(problem, unable, Progress())
