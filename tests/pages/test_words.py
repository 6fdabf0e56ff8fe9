"""Numbers, names and rows to grade as people read them, at the places where the words change."""

from __future__ import annotations

import base64
import math

import pytest

from contone.pages import grading, words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (3600, "1 h 00 min"),
     (7325, "2 h 02 min")],
)  # fmt: skip
def test_durations(seconds, said):
    assert words.duration(seconds) == said


@pytest.mark.parametrize(
    ("relative", "said"),
    [(None, ""), (0.00049, "0 %"), (-0.00049, "0 %"), (0.0006, "+0.1 %"), (0.0994, "+9.9 %"), (0.1, "+10 %"),
     (-0.1, "−10 %"), (-0.0994, "−9.9 %"), (2.5, "+250 %")],
)  # fmt: skip
def test_differences(relative, said):
    assert words.difference(relative) == said


def test_shares_and_scores_that_are_none_are_not_said():
    for form in (words.number, words.percent):
        assert [form(value) for value in (None, math.nan, math.inf, -math.inf)] == ["", "", "∞", "−∞"]
    assert (words.percent(0.125), words.percent(0.126), words.number(-0.5)) == ("12 %", "13 %", "-0.5000")


@pytest.mark.parametrize("length", [3, 4, 5, 20, 28])
def test_a_clipped_name_has_its_length_and_both_its_ends(length):
    text = "".join(chr(ord("a") + k) for k in range(26)) * 2
    assert words.clip(text[:length], length) == text[:length]
    start, end = words.clip(text[: length + 1], length).split("…")
    assert len(start) + len(end) == length - 1
    assert 0 <= len(start) - len(end) <= 1
    assert text.startswith(start)
    assert text[: length + 1].endswith(end)


def test_clipped_names_stay_different():
    assert words.clip_all(["a" * 40, "b"], 10) == ["aaaaa…aaaa", "b"]
    assert words.clip_all(["a" * 40, "a" * 41], 10) == ["1: aaaaa…aaaa", "2: aaaaa…aaaa"]
    assert (words.count(1, "row"), words.count(0, "row"), words.count(2000, "row")) == ("1 row", "0 rows", "2,000 rows")


def test_entries_are_running_text_from_some_length_on_and_end_somewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "MOST_TEXT", 60)
    pictures = grading._Pictures(tmp_path)
    for value, kind in (("x" * 40, ""), ("x" * 41, "text"), ("a\nb", "text"), ("x" * 60, "text")):
        assert grading._cell("song", value, pictures) == {"name": "song", "value": value, "kind": kind}
    assert grading._cell("song", "x" * 61, pictures)["value"] == "x" * 60 + "…"
    missing = grading._cell("cover", "x" * 300 + ".jpeg", pictures)
    assert (missing["kind"], missing["source"]) == ("image", "")


def test_pictures_go_into_the_page_as_far_as_there_is_room(tmp_path, monkeypatch):
    content = b"\x89PNG" + bytes(96)
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "other.png").write_bytes(b"GIF8" + bytes(10))
    monkeypatch.setattr(grading, "LARGEST_IMAGE", 100)
    monkeypatch.setattr(grading, "MOST_IMAGES", 200)
    pictures = grading._Pictures(tmp_path)
    found = [pictures.embed(name) for name in ("other.png", "a.png", "b.png", "c.png")]
    whole = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    assert found == ["", whole, whole, ""]
    monkeypatch.setattr(grading, "LARGEST_IMAGE", 99)
    assert grading._Pictures(tmp_path).embed("a.png") == ""


def test_the_page_to_grade_on_holds_the_rows_the_labels_and_what_to_run(monkeypatch, tmp_path):
    filled = {}
    monkeypatch.setattr(grading.render, "fill", lambda template, **values: filled.update(values) or template)
    monkeypatch.setattr(grading.escape, "json_for_html", lambda data: data)
    rows = [grading.RowToGrade(7, ("k", "x"), (("song", "la"),), (True, False)),
            grading.RowToGrade(1200, ("l", "y"), (), (False, False))]  # fmt: skip

    def page(rows=rows, labels=("a", "b"), source="t.csv"):
        assert grading.document(rows, labels, ["row", "id"], source, 5000, tmp_path, "run") == "grading.html.j2"
        return filled["data"]["key"]

    key = page()
    assert filled["data"] == {
        "labels": ["a", "b"], "columns": ["row", "id", "a_degree", "b_degree"], "key": key,
        "rows": [
            {"row": 7, "identity": ["k", "x"], "marked": [1, 0],
             "cells": [{"name": "song", "value": "la", "kind": ""}]},
            {"row": 1200, "identity": ["l", "y"], "marked": [0, 0], "cells": []},
        ],
    }  # fmt: skip
    assert (filled["title"], filled["n_chosen"], filled["n_rows"], filled["command"]) == (
        "Grade 2 rows", 2, "5,000", "run",
    )  # fmt: skip
    assert filled["versions"].startswith("contone ")
    # Work in progress is kept for the same rows and labels, wherever the file lies.
    assert page(source="elsewhere.csv") == key
    assert len({key, page(rows[:1]), page(labels=("b", "a")), page(rows[::-1])}) == 4
    page(source="x" * 60)
    assert filled["source"] == "x" * 60
    page(source="x" * 61)
    assert len(filled["source"]) == 60
