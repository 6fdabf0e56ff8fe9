"""LeWiDi (Learning with disagreements, SemEval): a mapping of items with `annotations`, `annotators` and `soft_label`.

`annotations` is a text with commas or a mapping from person to answer; whole numbers are levels of one ordered choice.
The item's `soft_label` is what people were counted to say: it is not read, since contone counts them itself.
"""

from collections.abc import Iterable, Mapping

from contone.exceptions import DataError
from contone.tables.answers import Answers, Collector, Question

ABOUT = ("id", "annotations", "annotators", "soft_label", "hard_label", "number of annotations", "annotation task")


def recognise(record: object) -> bool:
    """Whether a record is an item of LeWiDi."""
    return isinstance(record, dict) and "annotations" in record and "annotators" in record


def read(records: Iterable[object], question: str | None = None) -> Answers:
    """All answers; `question` names one split ("train")."""
    found = Collector(Question("LeWiDi", question or ""))
    for record in records:
        if not isinstance(record, dict) or (question is not None and record.get("split") != question):
            continue
        item = found.item(record.get("id"), {name: value for name, value in record.items() if name not in ABOUT})
        people, said = _answers(record)
        if len(people) != len(said):
            raise DataError(
                f"LeWiDi item {record.get('id')!r} has {len(said)} annotations by {len(people)} annotators: one each."
            )
        for person, labels in zip(people, said, strict=True):
            found.add(item, person, labels)
    return found.finish()


def _answers(record: Mapping[str, object]) -> tuple[list[str], list[list[str]]]:
    """People, and the labels that each of them chose."""
    given = record["annotations"]
    if isinstance(given, dict):
        return [str(person) for person in given], [_labels(value) for value in given.values()]
    people = [name.strip() for name in str(record["annotators"]).split(",")]
    if isinstance(given, list):
        return people, [_labels(value) for value in given]
    return people, [[value.strip()] for value in str(given).split(",")]


def _labels(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(label) for label in value]
    return [label.strip() for label in str(value).split(",")] if isinstance(value, str) else [str(value)]
