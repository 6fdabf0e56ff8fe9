"""Degrees back into the tool that the answers came from, so that people see them beside the items.

Label Studio: tasks with `predictions`. Argilla: records with `suggestions`. What is suggested are the labels that it
takes to pass half of the weight (of votes the first one), with their share of the weight as the score.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from contone import __version__
from contone.exceptions import ArgumentError
from contone.tables.answers import Answers, Question
from contone.typing import Matrix

AGENT = f"contone {__version__}"
TOOLS = ("Label Studio", "Argilla")


def refuse_unless_returnable(answers: Answers | None) -> None:
    """Refuse before any work what goes back into no tool."""
    if answers is None or answers.question.tool not in TOOLS:
        raise ArgumentError(f".json goes back into {' or '.join(TOOLS)}; this is from neither: write .jsonl.", "target")
    if not answers.question.name:
        raise ArgumentError("nobody has answered yet, so the question is not known: write .jsonl.", "target")


def write_back(answers: Answers | None, D: Matrix, path: Path) -> None:
    """Write what the tool imports, one record per item."""
    assert answers is not None
    say = _prediction if answers.question.tool == "Label Studio" else _suggestion
    items = zip(answers.items[answers.key], answers.fields, _said(answers, D), strict=True)
    records = [{"id": name, **say(answers.question, fields, *said)} for name, fields, said in items]
    path.write_text(json.dumps(records, ensure_ascii=False, indent=1), encoding="utf-8")


def _prediction(
    question: Question, fields: Mapping[str, object], labels: list[str], scores: list[float]
) -> dict[str, object]:
    """The rest of a task of Label Studio."""
    values = {
        "rating": lambda: json.loads(labels[0]),
        "taxonomy": lambda: [label.split(" / ") for label in labels],
        "ranker": lambda: {"_": labels},
    }
    value = values.get(question.asked, lambda: labels)()
    about = {"from_name": question.name, "to_name": question.shown, "type": question.asked}
    made = {"model_version": AGENT, "score": round(sum(scores), 6)}
    return {"data": fields, "predictions": [{**made, "result": [{**about, "value": {question.asked: value}}]}]}


def _suggestion(
    question: Question, fields: Mapping[str, object], labels: list[str], scores: list[float]
) -> dict[str, object]:
    """The rest of a record of Argilla."""
    value: object = labels
    score: object = [round(s, 6) for s in scores]
    if question.asked in ("votes", "rating"):
        value, score = int(labels[0]) if question.asked == "rating" else labels[0], round(scores[0], 6)
    suggestion = {"value": value, "score": score, "agent": AGENT}
    return {"fields": fields, "suggestions": {question.name: suggestion}}


def _said(answers: Answers, D: Matrix) -> Iterator[tuple[list[str], list[float]]]:
    """Labels that are suggested for each item, and their degrees."""
    order, kind = np.argsort(-D, axis=1, kind="stable"), answers.question.kind
    for d, first in zip(D, order, strict=True):
        count = 1 + int(np.searchsorted(np.cumsum(d[first]), 0.5, side="right")) if kind == "marks" else 1
        chosen = first if kind == "ranks" else first[:count]
        yield [answers.labels[j] for j in chosen], [float(d[j]) for j in chosen]
