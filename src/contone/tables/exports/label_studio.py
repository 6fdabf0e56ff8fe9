"""Label Studio: the JSON export (a list of tasks with their annotations), JSON-MIN, and the CSV of the same columns.

A task has `id`, `data` and `annotations`; an annotation has `completed_by`, `was_cancelled`, `ground_truth` and
`result`, a list of regions with `from_name` (the question), `type` and `value`. Cancelled annotations do not count.
Those marked as ground truth are no votes: they are kept as the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain

from contone.exceptions import DataError
from contone.tables.answers import Answers, Collector

TYPES = ("choices", "taxonomy", "rating", "ranker")
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
    items, found, n_counted = Collector("Label Studio"), dict[tuple[str, str], Collector](), 0
    for task in chain([first], tasks):
        data = task.get("data")
        item = items.item(_scalar(task.get("id"), len(items.items)), data if isinstance(data, dict) else {})
        for annotation in _annotations(task):
            if annotation.get("was_cancelled"):
                items.skip("cancelled")
                continue
            person, is_reference = _person(annotation.get("completed_by")), bool(annotation.get("ground_truth"))
            n_counted += not is_reference
            for (name, kind), value in _answered(annotation).items():
                if (name, kind) not in found:
                    found[name, kind] = items.sharing_items(name)
                    found[name, kind].shown = _shown(annotation, name)
                labels, levels = _labels(value, kind)
                if is_reference:
                    found[name, kind].reference.setdefault(item, []).extend(labels)
                else:
                    found[name, kind].add(item, person, labels, levels)
    chosen = _choose(Counter({key: len(collector) for key, collector in found.items()}), question)
    answers = found[chosen]
    answers.asked = chosen[1]
    answers.skipped = {**items.skipped, "without an answer to it": n_counted - len(answers)}
    return _finish(answers, chosen[1])


def _read_minimal(tasks: list[dict[str, object]], question: str | None) -> Answers:
    """The same from rows that hold the data and each answer under its question's name."""
    names = [key for key in tasks[0] if key not in ABOUT]
    asked: Counter[tuple[str, str]] = Counter(
        {(name, "choices"): 1 for name in names if any(_looks_chosen(task.get(name)) for task in tasks)}
    )
    if question is None and not asked:  # one choice per task is plain text, like the data: the last column
        raise DataError(
            f"Which of the columns {', '.join(names)} of this Label Studio export holds the answers?"
            " Name it as the question."
        )
    name = question if question in names else _choose(asked, question)[0]
    found = Collector("Label Studio", name)
    for task in tasks:
        fields = {key: value for key, value in task.items() if key not in ABOUT and key != name}
        item = found.item(_scalar(task.get("id"), len(found.items)), fields)
        value = task.get(name)
        chosen = value.get("choices") if isinstance(value, dict) else value
        if chosen in (None, "", []):
            found.skip("without an answer to it")
            continue
        labels = [str(label) for label in chosen] if isinstance(chosen, list) else [str(chosen)]
        found.add(item, _person(task.get("annotator")), labels)
    return found.finish()


def _looks_chosen(value: object) -> bool:
    return isinstance(value, dict) and "choices" in value


def _annotations(task: Mapping[str, object]) -> list[dict[str, object]]:
    found = task.get("annotations") or task.get("completions") or []
    if not isinstance(found, list):
        raise DataError(f"Task {task.get('id')!r} of this Label Studio export has annotations that are not a list.")
    return [annotation for annotation in found if isinstance(annotation, dict)]


def _answered(annotation: Mapping[str, object]) -> dict[tuple[str, str], dict[str, object]]:
    """What an annotation says to each question; several choices of one question are one answer."""
    regions, found = annotation.get("result"), dict[tuple[str, str], dict[str, object]]()
    for region in regions if isinstance(regions, list) else []:
        kind = region.get("type") if isinstance(region, dict) else None
        if kind not in TYPES or not isinstance(region.get("value"), dict):
            continue
        key = str(region.get("from_name")), str(kind)
        before = found.get(key)
        if before is not None and kind in ("choices", "taxonomy"):
            found[key] = {kind: [*_list(before.get(kind)), *_list(region["value"].get(kind))]}
        else:
            found[key] = region["value"]
    return found


def _shown(annotation: Mapping[str, object], question: str) -> str:
    """What a question is about, by its name in the tool."""
    regions = _list(annotation.get("result"))
    names = (r.get("to_name") for r in regions if isinstance(r, dict) and str(r.get("from_name")) == question)
    return str(next(names, None) or "")


def _choose(asked: Counter[tuple[str, str]], question: str | None) -> tuple[str, str]:
    """The question that is meant, and its type."""
    names = sorted({str(name) for name, _ in asked})
    if not names:
        raise DataError(
            f"This Label Studio export holds no answers of the types {', '.join(TYPES)}: regions in pictures and texts"
            " say nothing about whole items."
        )
    if question is None and len(names) > 1:
        raise DataError(f"This Label Studio export has {len(names)} questions: {', '.join(names)}. Name one.")
    chosen = names[0] if question is None else question
    kinds = Counter({kind: count for (name, kind), count in asked.items() if str(name) == chosen})
    if not kinds:
        raise DataError(f"This Label Studio export has no question {chosen!r}; it has {', '.join(names)}.")
    return chosen, str(kinds.most_common(1)[0][0])


def _labels(value: object, kind: str) -> tuple[list[str], list[float] | None]:
    """Labels that a value holds, with levels where it has them."""
    content = value.get(kind) if isinstance(value, dict) else None
    if kind == "rating":
        return [f"{content:g}" if isinstance(content, (int, float)) else str(content)], None
    if kind == "ranker":
        ranked: object = next(iter(content.values()), []) if isinstance(content, dict) else content
        names = [str(name) for name in _list(ranked)]
        return names, [float(len(names) - i) for i in range(len(names))]
    if kind == "taxonomy":
        return list(dict.fromkeys(" / ".join(map(str, _list(path))) for path in _list(content))), None
    return list(dict.fromkeys(map(str, _list(content)))), None


def _finish(found: Collector, kind: str) -> Answers:
    if kind == "rating":
        _in_order(found)
    return found.finish("votes" if kind == "rating" else "ranks" if kind == "ranker" else None)


def _in_order(found: Collector) -> None:
    """Ratings are labels in the order of their numbers: offered from the first to the last, whoever chose them."""
    numbers = [float(label) for label in found.labels if label.replace(".", "", 1).isdigit()]
    if len(numbers) == len(found.labels) and all(number == int(number) for number in numbers):
        found.offer(f"{level:g}" for level in range(1, int(max(numbers)) + 1))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _scalar(value: object, otherwise: int) -> int | str:
    return value if isinstance(value, (int, str)) else otherwise


def _person(value: object) -> int | str | None:
    """A person is a number, or a mapping with an address and a number."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    return value if isinstance(value, (int, str)) and value != "" else None
