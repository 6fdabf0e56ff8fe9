"""doccano: JSON lines with `text` and `label`, a list of labels. One file per person holds that person's answers."""

from collections.abc import Iterable

from contone.exceptions import DataError
from contone.tables.answers import Answers, Collector, Question

ABOUT = ("id", "label", "labels", "Comments", "comments", "annotator", "username")


def recognise(record: object) -> bool:
    """Whether a record is an example of doccano."""
    if not isinstance(record, dict) or "text" not in record or "options" in record:
        return False
    return isinstance(record.get("label", record.get("labels")), list)


def read(records: Iterable[object], question: str | None = None) -> Answers:
    """The labels of all examples; doccano has one question per project."""
    found = Collector(Question("doccano"))
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict) or "text" not in record:
            raise DataError(f"Line {number} of this doccano export has no text.")
        labels = record.get("label", record.get("labels"))
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise DataError(
                f"Line {number} of this doccano export has the label {labels!r:.80}: labels of whole texts can be read,"
                " those of places in a text say nothing about all of it."
            )
        fields = {key: value for key, value in record.items() if key not in ABOUT}
        item = found.item(str(record["text"]) if record.get("id") is None else record["id"], fields)
        found.add(item, record.get("annotator", record.get("username")), list(dict.fromkeys(labels)))
    return found.finish()
