"""Argilla: records as a list of mappings, flat (`{question}.responses`, `.responses.users`, `.responses.status`) or
nested (`responses`: question -> list of {value, user_id, status}), from JSON or from a Hugging Face `Dataset`.

Responses that were discarded or are drafts do not count. Label, multi-label, rating and ranking questions.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from contone.exceptions import DataError
from contone.tables.answers import Answers, Collector, Kind, Question, choose_question

Response = tuple[object, object, object]
"""Value, person and status."""
FLAT = ".responses"
TAILS = re.compile(r"\.(responses(\.(users|status))?|suggestion(\.(score|agent|type))?)$")
"""How keys end that are about a question, and not about the record."""
ABOUT = ("id", "_server_id", "external_id", "status", "inserted_at", "updated_at")


def recognise(record: object) -> bool:
    """Whether a record is one of Argilla's."""
    if not isinstance(record, dict):
        return False
    nested = isinstance(record.get("responses"), (dict, list)) and isinstance(record.get("fields"), dict)
    return nested or any(str(key).endswith(FLAT) for key in record)


def read(records: Iterable[object], question: str | None = None) -> Answers:
    """The answers to one question; it must be named where there are several."""
    rows = [(record, _responses(record)) for record in records if isinstance(record, dict)]
    names = {name for _, given in rows for name in given}
    name = choose_question("Argilla", names, question) if names or question is not None else ""
    found, kind = Collector(Question("Argilla", name)), None
    for row, given in rows:
        item = found.item(row.get("id", row.get("external_id")), _fields(row))
        for value, person, status in given.get(name, ()):
            if status not in (None, "submitted"):
                found.skip(str(status))
            elif value is None or value == []:
                found.skip("without an answer to it")
            else:
                labels, levels, kind = _labels(value, kind)
                found.add(item, person, labels, levels)
    if kind == "rating":
        found.offer_scale()
    found.question = replace(found.question, asked=kind or "")
    answers: Kind | None = "ranks" if kind == "ranks" else "votes" if kind in ("votes", "rating") else None
    return found.finish(answers)


def _labels(value: object, before: str | None) -> tuple[list[str], list[float] | None, str]:
    """Labels of one response, their levels, and what kind of question it answers."""
    if isinstance(value, str):
        return [value], None, before or "votes"
    if isinstance(value, int) and not isinstance(value, bool):
        return [str(value)], None, "rating"
    if isinstance(value, list) and all(isinstance(v, dict) and "value" in v for v in value):
        ranks = {str(v["value"]): float(v.get("rank", i + 1)) for i, v in enumerate(value)}
        last = max(ranks.values())
        return list(ranks), [last + 1.0 - rank for rank in ranks.values()], "ranks"
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return list(dict.fromkeys(value)), None, "marks"
    raise DataError(f"An Argilla response holds {value!r:.80}: label, rating and ranking questions can be read.")


def _responses(row: Mapping[str, object]) -> dict[str, list[Response]]:
    """The responses of a record, by question."""
    nested, found = row.get("responses"), dict[str, list[Response]]()
    if isinstance(nested, dict):
        for name, entries in nested.items():
            given = [entry for entry in entries or [] if isinstance(entry, dict)]
            found[str(name)] = [(entry.get("value"), entry.get("user_id"), entry.get("status")) for entry in given]
    elif isinstance(nested, list):  # one entry per user, each with the answers to all questions
        for entry in (entry for entry in nested if isinstance(entry, dict)):
            for name, value in (entry.get("values") or {}).items():
                value = value.get("value") if isinstance(value, dict) else value
                found.setdefault(str(name), []).append((value, entry.get("user_id"), entry.get("status")))
    else:
        for key in (key for key in row if key.endswith(FLAT)):
            values, users, status = row[key], row.get(f"{key}.users"), row.get(f"{key}.status")
            given = values if isinstance(values, list) else []
            found[key.removesuffix(FLAT)] = [(value, _at(users, i), _at(status, i)) for i, value in enumerate(given)]
    return {name: given for name, given in found.items() if given}


def _at(values: object, i: int) -> object:
    return values[i] if isinstance(values, list) and i < len(values) else None


def _fields(row: Mapping[str, object]) -> dict[str, object]:
    nested = row.get("fields")
    if isinstance(nested, dict):
        metadata = row.get("metadata")
        return {**nested, **(metadata if isinstance(metadata, dict) else {})}
    return {key: v for key, v in row.items() if key not in ABOUT and not TAILS.search(str(key))}
