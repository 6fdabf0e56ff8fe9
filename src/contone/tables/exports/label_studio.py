"""Label Studio: the JSON export (a list of tasks with their annotations), JSON-MIN, and the CSV of the same columns.

A task has `id`, `data` and `annotations`; an annotation has `completed_by`, `was_cancelled`, `ground_truth` and
`result`, a list of regions with `from_name` (the question), `type` and `value`. Cancelled annotations do not count.
Those marked as ground truth are no votes: they are kept as the reference.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import chain

from contone.exceptions import DataError
from contone.tables.answers import Answers, Collector, Kind, Question, choose_question

TYPES = ("choices", "taxonomy", "rating", "ranker")
KINDS: dict[str, Kind] = {"rating": "votes", "ranker": "ranks"}
"""What an answer is; to the other types it depends on how many labels people choose."""
MINIMAL = {"annotator", "annotation_id", "lead_time"}
"""Columns that JSON-MIN and CSV exports have beside the data and the answers."""
ABOUT = MINIMAL | {"id", "created_at", "updated_at"}


def recognise(record: object) -> bool:
    """Whether a record is a task of Label Studio, in full or in short."""
    if not isinstance(record, dict):
        return False
    return ("data" in record and "annotations" in record) or len(MINIMAL & record.keys()) >= 2


def read(records: Iterable[object], question: str | None = None) -> Answers:
    """The answers to one question; it must be named where there are several."""
    tasks = (record for record in records if isinstance(record, dict))
    first = next(tasks, None)
    if first is None:
        raise DataError("This Label Studio export holds no tasks.")
    if "annotations" not in first:
        return _read_minimal([first, *tasks], question)
    # One pass, a collector per question: a task is dropped once its answers are known.
    items, found, n_counted = Collector(Question("Label Studio")), dict[tuple[str, str], Collector](), 0
    for task in chain([first], tasks):
        data = task.get("data")
        item = items.item(task.get("id"), data if isinstance(data, dict) else {})
        for annotation in _annotations(task):
            if annotation.get("was_cancelled"):
                items.skip("cancelled")
                continue
            is_reference = bool(annotation.get("ground_truth"))
            n_counted += not is_reference
            for (name, kind), (value, shown) in _answered(annotation).items():
                if (name, kind) not in found:
                    found[name, kind] = items.sharing_items(Question("Label Studio", name, None, kind, shown))
                labels, levels = _labels(value, kind)
                if kind == "rating" and not labels:
                    continue
                if is_reference:
                    found[name, kind].reference.setdefault(item, []).extend(labels)
                else:
                    found[name, kind].add(item, annotation.get("completed_by"), labels, levels)
    if not found and not n_counted:
        return items.finish()
    if not found:
        raise DataError(f"This export holds no answers ({', '.join(TYPES)}), only regions in pictures or texts.")
    name = choose_question("Label Studio", (key[0] for key in found), question)
    answers = max((collector for key, collector in found.items() if key[0] == name), key=len)
    answers.skipped = {**items.skipped, "without an answer to it": n_counted - len(answers)}
    if answers.question.asked == "rating":
        answers.offer_scale()
    return answers.finish(KINDS.get(answers.question.asked))


def _read_minimal(tasks: list[dict[str, object]], question: str | None) -> Answers:
    """The same from rows that hold the data and each answer under its question's name."""
    names = [key for key in tasks[0] if key not in ABOUT]
    values = {name: [task.get(name) for task in tasks] for name in names}
    asked = [name for name in names if any(isinstance(v, dict) and "choices" in v for v in values[name])]
    if question is None and not asked:  # one choice per task is plain text, like the data
        raise DataError(f"Which of the columns {', '.join(names)} of this export holds the answers? (--question)")
    name = question if question in names else choose_question("Label Studio", asked, question)
    found = Collector(Question("Label Studio", name))
    for task in tasks:
        fields = {key: value for key, value in task.items() if key not in ABOUT and key != name}
        item = found.item(task.get("id"), fields)
        value = task.get(name)
        chosen = value.get("choices") if isinstance(value, dict) else value
        if chosen in (None, "", []):
            found.skip("without an answer to it")
            continue
        labels = [str(label) for label in chosen] if isinstance(chosen, list) else [str(chosen)]
        found.add(item, task.get("annotator"), labels)
    return found.finish()


def _annotations(task: Mapping[str, object]) -> list[dict[str, object]]:
    found = task.get("annotations") or task.get("completions") or []
    if not isinstance(found, list):
        raise DataError(f"Task {task.get('id')!r} of this Label Studio export has annotations that are not a list.")
    return [annotation for annotation in found if isinstance(annotation, dict)]


def _answered(annotation: Mapping[str, object]) -> dict[tuple[str, str], tuple[dict[str, object], str]]:
    """What an annotation says to each question, and what it is about; several choices of a question are one answer."""
    found = dict[tuple[str, str], tuple[dict[str, object], str]]()
    for region in _list(annotation.get("result")):
        value = region.get("value") if isinstance(region, dict) and region.get("type") in TYPES else None
        if not isinstance(region, dict) or not isinstance(value, dict):
            continue
        key, kind = (str(region.get("from_name")), str(region["type"])), str(region["type"])
        if key in found and kind in ("choices", "taxonomy"):
            value = {kind: [*_list(found[key][0].get(kind)), *_list(value.get(kind))]}
        found[key] = value, str(region.get("to_name") or "")
    return found


def _labels(value: object, kind: str) -> tuple[list[str], list[float] | None]:
    """Labels that a value holds, with levels where it has them."""
    content = value.get(kind) if isinstance(value, dict) else None
    if kind == "rating" and content is None:
        return [], None
    if kind == "rating":
        if not isinstance(content, (int, float)) or not math.isfinite(content):
            raise DataError(f"A rating of this Label Studio export is {content!r:.80}: ratings are numbers.")
        return [f"{content:g}"], None
    if kind == "ranker":
        ranked: object = next(iter(content.values()), []) if isinstance(content, dict) else content
        names = [str(name) for name in _list(ranked)]
        return names, [float(len(names) - i) for i in range(len(names))]
    if kind == "taxonomy":
        return list(dict.fromkeys(" / ".join(map(str, _list(path))) for path in _list(content))), None
    return list(dict.fromkeys(map(str, _list(content)))), None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]
