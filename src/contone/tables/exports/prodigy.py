"""Prodigy: JSON lines. Choices have `options`, `accept` (the ids that were chosen) and `answer`; binary questions have
`label` and `answer` (accept: it holds, reject: it does not). What was ignored does not count.

Who answered is `_annotator_id` or `_session_id`; the same task has the same `_input_hash`.
"""

from collections.abc import Iterable, Mapping

from contone.exceptions import DataError
from contone.tables.answers import Answers, Collector, Question

CONTENT = ("text", "html", "image", "audio", "video", "title", "url")


def recognise(record: object) -> bool:
    """Whether a record is a task of Prodigy."""
    if not isinstance(record, dict) or record.get("answer") not in ("accept", "reject", "ignore"):
        return False
    return "accept" in record or "options" in record or isinstance(record.get("label"), str)


def read(records: Iterable[object], question: str | None = None) -> Answers:
    """The answers of all sessions; `question` names one view (`_view_id`) where several were used."""
    found, several = Collector(Question("Prodigy", question or "")), False
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise DataError(f"Line {number} of this Prodigy export is no task.")
        if question is not None and record.get("_view_id") != question:
            continue
        item = found.item(_name(record), _fields(record))
        person = record.get("_annotator_id") or record.get("_session_id")
        answer, options = record.get("answer"), record.get("options")
        if answer not in ("accept", "reject"):
            found.skip("ignored")
        elif isinstance(options, list):
            offered = [_option(option) for option in options]
            accepted = record.get("accept") if answer == "accept" else []
            chosen = [str(label) for label in accepted] if isinstance(accepted, list) else [str(accepted)]
            config = record.get("config")
            several = several or (isinstance(config, dict) and config.get("choice_style") == "multiple")
            if chosen or several:
                found.add(item, person, list(dict.fromkeys(chosen)), offered=list(dict.fromkeys([*offered, *chosen])))
            else:
                found.skip("without a choice")
        elif isinstance(record.get("label"), str):
            label, several = str(record["label"]), True
            found.add(item, person, [label] if answer == "accept" else [], offered=[label])
        else:
            raise DataError(f"Line {number} of this Prodigy export has neither options nor a label for the whole task.")
    return found.finish("marks" if several else None)


def _option(option: object) -> str:
    return str(option.get("id", option.get("text"))) if isinstance(option, dict) else str(option)


def _name(record: Mapping[str, object]) -> int | str:
    for key in ("_input_hash", "id", *CONTENT):
        value = record.get(key)
        if isinstance(value, (int, str)):
            return value
    raise DataError("A task of this Prodigy export has neither _input_hash nor a text, so nothing identifies it.")


def _fields(record: Mapping[str, object]) -> dict[str, object]:
    meta = record.get("meta")
    return {**{key: record[key] for key in CONTENT if key in record}, **(meta if isinstance(meta, dict) else {})}
