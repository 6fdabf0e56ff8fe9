"""Exports with entries replaced, removed and renamed at random: a problem or a sentence, never a raw error."""

from __future__ import annotations

import copy
import json
import random

import pytest

from contone.exceptions import ContoneError
from contone.tables.reading import read_table


def label_studio(kind, value):
    region = {"from_name": "q", "to_name": "t", "type": kind, "value": {kind: value}}
    given = [{"completed_by": w, "was_cancelled": False, "ground_truth": w == 2, "result": [region]} for w in range(3)]
    return [{"id": i, "data": {"text": f"t {i}", "n": i}, "annotations": given} for i in range(3)]


def argilla(value):
    given = [{"value": value, "user_id": "u", "status": "submitted"}]
    return [{"id": f"r{i}", "fields": {"text": "t"}, "metadata": {}, "responses": {"q": given}} for i in range(3)]


OPTIONS = [{"id": "A"}, {"id": "B"}]
EXPORTS = {
    "choices": label_studio("choices", ["a"]),
    "rating": label_studio("rating", 2),
    "ranker": label_studio("ranker", {"_": ["b", "a"]}),
    "minimal": [{"text": "t", "id": i, "annotator": 3, "lead_time": 1.0, "q": {"choices": ["a"]}} for i in range(3)],
    "label": argilla("a"),
    "ranking": argilla([{"value": "a", "rank": 1}, {"value": "b", "rank": 2}]),
    "flat": [{"id": i, "q.responses": ["a", "b"], "q.responses.users": ["u", "v"]} for i in range(3)],
    "prodigy": [
        {"text": "t", "_input_hash": i, "options": OPTIONS, "accept": ["A"], "answer": "accept"} for i in range(3)
    ],
    "doccano": [{"id": i, "text": "t", "label": ["a"]} for i in range(3)],
    "lewidi": {str(i): {"text": "t", "annotations": "1,0", "annotators": "A,B"} for i in range(3)},
}
JUNK = [None, -1, 2**70, 1.5, float("nan"), "", "\x00", "=1+1", [], {}, [[]], [None], {"a": 1}, True, ["a", 1],
        [{"value": "a", "rank": None}]]  # fmt: skip


def places(found, path=()):
    """Paths of all entries."""
    entries = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def spoilt(export, rng):
    export = copy.deepcopy(export)
    for _ in range(rng.randint(1, 3)):
        *way, last = rng.choice(
            [*places(export), ("new",)] if isinstance(export, dict) else list(places(export)) or [(0,)]
        )
        owner = export
        for key in way:
            owner = owner[key]
        if rng.random() < 0.6 or not owner or last == "new":
            owner[last] = copy.deepcopy(rng.choice(JUNK))
        else:
            del owner[last]
        if not export:
            break
    return export


@pytest.mark.parametrize("name", EXPORTS)
def test_a_spoilt_export_gets_a_sentence(tmp_path, name):
    rng = random.Random(name)
    path = tmp_path / "export.json"
    for _ in range(25):
        path.write_text(json.dumps(spoilt(EXPORTS[name], rng)), encoding="utf-8")
        try:
            problem = read_table(path, question=rng.choice([None, None, "q"]))
        except ContoneError as error:
            said = str(error)
        else:
            said = " ".join(problem.notes)
            assert len(problem.Y) == len(problem.groups if problem.groups is not None else problem.numbers)
        assert len(said) > 15
