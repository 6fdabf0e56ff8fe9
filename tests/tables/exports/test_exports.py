"""Exports of annotation tools are read as their documentation describes them; broken ones get a sentence."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

from contone.exceptions import ContoneError, DataError
from contone.tables.answers import Question
from contone.tables.exports import read_export
from contone.tables.reading import read_table


def read_answers(records, question=None):
    """The answers in a file of these records."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.json"
        path.write_text(json.dumps(records), encoding="utf-8")
        return read_export(path, question)


def task(number, *annotations, **data):
    """A task of Label Studio."""
    return {
        "id": number,
        "data": {"text": f"text {number}", **data},
        "annotations": list(annotations),
        "predictions": [],
    }


def annotation(person, *labels, name="feeling", kind="choices", **flags):
    """An annotation of Label Studio."""
    value = labels[0] if kind == "rating" else list(labels)
    region = {"id": "x1", "from_name": name, "to_name": "text", "type": kind, "value": {kind: value}}
    return {"id": 7, "completed_by": person, "was_cancelled": False, "ground_truth": False, "result": [region], **flags}


def said(answers):
    """(item, person, labels) of every answer."""
    workers = [answers.workers[w] if w >= 0 else None for w in answers.worker]
    chosen = [{answers.labels[j] for j in np.flatnonzero(row > 0)} for row in answers.Y]
    names = answers.items[answers.key].to_list()
    return list(zip([names[i] for i in answers.item], workers, chosen, strict=True))


def fields(answers):
    """What is known about the items, without their names."""
    return answers.items.drop(answers.key).to_dict(as_series=False)


def test_label_studio_votes():
    answers = read_answers(
        [
            task(1, annotation(10, "glad"), annotation({"id": 11, "email": "a@b"}, "sad"), year=1999),
            task(2, annotation(10, "glad", was_cancelled=True), annotation(12, "calm", ground_truth=True)),
            task(3),
        ]
    )
    assert said(answers) == [(1, "10", {"glad"}), (1, "a@b", {"sad"})]
    assert answers.question == Question("Label Studio", "feeling", "votes", "choices", "text")
    assert answers.items["item"].to_list() == [1, 2, 3]
    assert answers.reference == {1: ["calm"]}
    assert fields(answers) == {"text": ["text 1", "text 2", "text 3"], "year": [1999, None, None]}
    assert "2 answers by 2 people about 3 items" in answers.in_words()
    assert "1 cancelled" in answers.in_words()


def test_label_studio_marks_taxonomy_and_ratings():
    marks = read_answers([task(1, annotation(1, "a", "b"), annotation(2, "a"))])
    assert marks.question.kind == "marks"
    assert said(marks) == [(1, "1", {"a", "b"}), (1, "2", {"a"})]
    paths = read_answers([task(1, annotation(1, ["Animal", "Cat"], ["Plant"], kind="taxonomy"))])
    assert said(paths) == [(1, "1", {"Animal / Cat", "Plant"})]
    ratings = read_answers([task(1, annotation(1, 4, kind="rating"), annotation(2, 2, kind="rating"))])
    assert ratings.question.kind == "votes"
    assert ratings.labels == ["1", "2", "3", "4"]
    assert said(ratings) == [(1, "1", {"4"}), (1, "2", {"2"})]


def test_label_studio_ranks():
    region = {"from_name": "best", "to_name": "list", "type": "ranker", "value": {"ranker": {"_": ["b", "a", "c"]}}}
    answers = read_answers([task(1, {**annotation(1, "x"), "result": [region]})])
    assert answers.question.kind == "ranks"
    assert dict(zip(answers.labels, answers.Y[0].tolist(), strict=True)) == {"b": 3.0, "a": 2.0, "c": 1.0}


def test_label_studio_several_questions():
    tasks = [task(1, annotation(1, "a"), annotation(2, "b", name="topic"))]
    with pytest.raises(DataError, match=r"2 questions: feeling, topic\. Name one"):
        read_answers(tasks)
    assert said(read_answers(tasks, "topic")) == [(1, "2", {"b"})]
    with pytest.raises(DataError, match="no question 'tone'; it has feeling, topic"):
        read_answers(tasks, "tone")


def test_label_studio_in_short():
    row = {"text": "t", "id": 5, "annotator": 3, "annotation_id": 9, "created_at": "", "lead_time": 1.0}
    answers = read_answers([{**row, "feeling": {"choices": ["a", "b"]}}, {**row, "annotator": 4, "feeling": "a"}])
    assert said(answers) == [(5, "3", {"a", "b"}), (5, "4", {"a"})]
    assert fields(answers) == {"text": ["t"]}
    with pytest.raises(DataError, match="Which of the columns text, feeling"):
        read_answers([{**row, "feeling": "a"}])
    assert said(read_answers([{**row, "feeling": "a"}], "feeling")) == [(5, "3", {"a"})]


def test_label_studio_regions_alone_are_refused():
    region = {"from_name": "tag", "type": "rectanglelabels", "value": {"rectanglelabels": ["Moon"], "x": 1}}
    with pytest.raises(DataError, match="regions in pictures"):
        read_answers([task(1, {**annotation(1, "a"), "result": [region]})])


def test_argilla_flat():
    record = {
        "id": "r1",
        "text": "hello",
        "label.responses": ["pos", "neg", "pos"],
        "label.responses.users": ["u1", "u2", "u3"],
        "label.responses.status": ["submitted", "submitted", "discarded"],
        "label.suggestion": "pos",
    }
    answers = read_answers([record, {**record, "id": "r2", "label.responses": None}])
    assert said(answers) == [("r1", "u1", {"pos"}), ("r1", "u2", {"neg"})]
    assert fields(answers) == {"text": ["hello", "hello"]}
    assert answers.skipped == (("discarded", 1),)
    assert answers.question.kind == "votes"


def test_argilla_nested_marks_ratings_and_ranks():
    def record(*values):
        given = [{"value": value, "user_id": f"u{i}"} for i, value in enumerate(values)]
        return {"id": "r", "fields": {"text": "t"}, "metadata": {"n": 1}, "responses": {"q": given}}

    marks = read_answers([record(["a", "b"], ["c"])])
    assert (marks.question.kind, said(marks)[0]) == ("marks", ("r", "u0", {"a", "b"}))
    assert fields(marks) == {"text": ["t"], "n": [1]}
    stars = read_answers([record(3, 5)])
    assert (stars.question.kind, set(stars.labels)) == ("votes", {"1", "2", "3", "4", "5"})
    ranks = read_answers([record([{"value": "a", "rank": 2}, {"value": "b", "rank": 1}])])
    assert (ranks.question.kind, ranks.Y.tolist()) == ("ranks", [[1.0, 2.0]])
    with pytest.raises(DataError, match="label, rating and ranking questions"):
        read_answers([record({"start": 1})])


def test_argilla_per_user():
    entry = {"user_id": "u", "status": "submitted", "values": {"q": {"value": "a"}}}
    answers = read_answers([{"id": "r", "fields": {"text": "t"}, "responses": [entry, {**entry, "status": "draft"}]}])
    assert said(answers) == [("r", "u", {"a"})]


def test_doccano():
    rows = [{"id": 1, "text": "t", "label": ["a"], "Comments": []}, {"id": 2, "text": "u", "label": []}]
    answers = read_answers(rows)
    assert (answers.question.kind, said(answers)) == ("marks", [(1, None, {"a"}), (2, None, set())])
    assert answers.workers == []
    with pytest.raises(DataError, match="Line 1 .* places in a text"):
        read_answers([{"text": "t", "label": [[0, 3, "PER"]]}])


def test_prodigy():
    options = [{"id": "A", "text": "first"}, {"id": "B", "text": "second"}]
    row = {"text": "t", "_input_hash": 5, "options": options, "accept": ["A"], "answer": "accept", "_session_id": "x"}
    answers = read_answers([row, {**row, "accept": ["B"], "_annotator_id": "y"}, {**row, "answer": "ignore"}])
    assert (answers.question.kind, said(answers)) == ("votes", [(5, "x", {"A"}), (5, "y", {"B"})])
    other = {**row, "_input_hash": 6, "options": [{"id": "A"}, {"id": "C"}], "config": {"choice_style": "multiple"}}
    answers = read_answers([row, other])
    assert answers.question.kind == "marks"
    assert np.isnan(answers.Y).tolist() == [[False, False, True], [False, True, False]]


def test_prodigy_binary():
    row = {"text": "t", "_input_hash": 5, "label": "SPAM", "answer": "accept"}
    answers = read_answers([row, {**row, "answer": "reject", "_session_id": "x"}, {**row, "label": "HAM"}])
    assert answers.question.kind == "marks"
    np.testing.assert_array_equal(answers.Y, [[np.nan, 1], [np.nan, 0], [1, np.nan]])


def test_lewidi(tmp_path):
    item = {"text": "t", "annotations": "1,0,1", "annotators": "A1,A2,A3", "soft_label": {"0": 0.3}, "split": "train"}
    path = tmp_path / "x_train.json"
    path.write_text(json.dumps({"1": item, "2": {**item, "annotations": {"A1": "0", "A4": "1"}, "split": "dev"}}))
    answers = read_export(path)
    assert said(answers)[:2] == [("1", "A1", {"1"}), ("1", "A2", {"0"})]
    assert (len(answers.item), answers.question.kind) == (5, "votes")
    assert len(read_export(path, "dev").item) == 2
    path.write_text(json.dumps({"1": {**item, "annotators": "A1"}}))
    with pytest.raises(DataError, match="3 annotations by 1 annotators"):
        read_export(path)


def test_columns_keep_what_they_hold_and_names_do_not_clash():
    answers = read_answers(
        [task(2**70, annotation(1, "a"), n=2**70, mixed=1, item="clash"), task("x", annotation(1, "a"), mixed="y")]
    )
    assert answers.items[answers.key].to_list() == [str(2**70), "x"]
    assert answers.items["n"].to_list() == [str(2**70), None]
    assert answers.items["mixed"].to_list() == ["1", "y"]
    assert answers.items["item"].to_list() == ["clash", None]


@pytest.mark.parametrize("pack", [False, True])
def test_files_of_every_form(tmp_path, pack):
    tasks = [task(1, annotation(1, "a")), task(2, annotation(2, "b"))]
    forms = {"x.json": json.dumps(tasks, indent=1), "x.jsonl": "\n".join(map(json.dumps, tasks))}
    for name, text in forms.items():
        path = tmp_path / (name + ".gz" * pack)
        path.write_bytes(gzip.compress(text.encode()) if pack else text.encode())
        assert said(read_export(path)) == [(1, "1", {"a"}), (2, "2", {"b"})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"id": 1, "data": {}, "annotations": []}', "was not copied whole"),
        ('[{"id": 1,}]', "line 1"),
        ("", "not JSON|empty"),
        ("[]", "empty"),
        ("\x80\x81", "not UTF-8"),
        ("[" * 100_000, "nested too deeply|not copied"),
        ('[{"id": 1, "data": {}, "annotations": []}]', "holds no answers: export"),
        ('[{"id": 1, "data": {}, "annotations": 3}]', "not a list"),
        (json.dumps([task(1, annotation(1, None, kind="rating"))]), "holds no answers .1 without an answer to it"),
        (json.dumps([task(1, annotation(1, "good", kind="rating"))]), "'good': ratings are numbers"),
        (json.dumps([task(1, annotation(1, "a\ud800"))]), r"half of a character .\\ud800"),
        ('[{"id": 1, "data": 5, "annotations": [{"result": 7}, 8]}]', "no answers"),
    ],
)
def test_broken_files_get_a_sentence(tmp_path, content, message):
    path = tmp_path / "export.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_whole_characters_of_two_halves_are_read():
    answers = read_answers([task(1, annotation(1, "\U0001f600", "\\ud800"))])
    assert answers.labels == ["\\ud800", "\U0001f600"]


def test_items_without_a_name_are_not_those_whose_name_is_their_number():
    assert read_answers([task(None, annotation(1, "a")), task(0, annotation(1, "b"))]).item.tolist() == [0, 1]


@pytest.mark.parametrize("suffix", [".json", ".csv", ".txt.csv", ".json.gz"])
def test_a_small_file_does_not_take_a_large_memory(tmp_path, monkeypatch, suffix):
    """As many labels as rows, where the wrong column was named; and blanks that gzip makes nothing of."""
    path, n = tmp_path / f"t{suffix}", 4000
    labels = [f"l{i}" for i in range(n)]
    if suffix == ".json.gz":
        path.write_bytes(gzip.compress(b" " * 40_000_000))
    elif suffix == ".json":
        path.write_text(json.dumps([{"id": i, "text": "t", "label": [label]} for i, label in enumerate(labels)]))
    else:
        path.write_text("item,who,label\n" + "".join(f"{i},{i % 7},{label}\n" for i, label in enumerate(labels)))
    people = {".csv": {"item": "item", "worker": "who", "labels": "label"}, ".txt.csv": {"labels": "label"}}
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "200MB")
    with pytest.raises(ContoneError, match="does not fit into memory|is this the column of the labels"):
        read_table(path, **people.get(suffix, {}))


def test_other_files_are_tables(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('[{"a": 1}]')
    assert read_export(path) is None
