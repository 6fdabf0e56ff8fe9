"""Degrees back into the tool that the answers came from, so that people see them beside the items.

Label Studio: tasks with `predictions`. Argilla: records with `suggestions`. What is suggested are the labels that it
takes to pass half of the weight (of votes the first one), with their share of the weight as the score.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contone import __version__
from contone.exceptions import ArgumentError
from contone.tables.answers import Answers

AGENT = f"contone {__version__}"
TOOLS = ("Label Studio", "Argilla")


def refuse_unless_returnable(answers: Answers | None) -> None:
    """Refuse before any work what goes back into no tool."""
    if answers is None or answers.tool not in TOOLS:
        raise ArgumentError(
            f".json goes back into {' or '.join(TOOLS)}, and this table comes from neither: write .jsonl.", "target"
        )
    if not answers.question:
        raise ArgumentError(
            "nobody has answered yet, and the model was not fitted to this tool's answers, so that the question is not "
            "known: write .jsonl.",
            "target",
        )


def write_back(answers: Answers | None, D: NDArray[np.float64], path: Path) -> None:
    """Write what the tool imports, one record per item."""
    assert answers is not None
    make = _tasks if answers.tool == "Label Studio" else _records
    path.write_text(json.dumps(list(make(answers, D)), ensure_ascii=False, indent=1), encoding="utf-8")


def _tasks(answers: Answers, D: NDArray[np.float64]) -> Iterator[Mapping[str, object]]:
    for name, fields, (labels, scores) in zip(
        answers.items[answers.key], answers.fields, _said(answers, D), strict=True
    ):
        value: object = labels
        if answers.asked == "rating":
            value = int(labels[0])
        elif answers.asked == "taxonomy":
            value = [label.split(" / ") for label in labels]
        elif answers.asked == "ranker":
            value = {"_": labels}
        region = {
            "from_name": answers.question,
            "to_name": answers.shown,
            "type": answers.asked,
            "value": {answers.asked: value},
        }
        score = round(sum(scores), 6)
        yield {
            "id": name,
            "data": fields,
            "predictions": [{"model_version": AGENT, "score": score, "result": [region]}],
        }


def _records(answers: Answers, D: NDArray[np.float64]) -> Iterator[Mapping[str, object]]:
    for name, fields, (labels, scores) in zip(
        answers.items[answers.key], answers.fields, _said(answers, D), strict=True
    ):
        value: object = labels
        score: object = [round(s, 6) for s in scores]
        if answers.asked in ("votes", "rating"):
            value, score = int(labels[0]) if answers.asked == "rating" else labels[0], round(scores[0], 6)
        suggestion = {"value": value, "score": score, "agent": AGENT}
        yield {"id": name, "fields": fields, "suggestions": {answers.question: suggestion}}


def _said(answers: Answers, D: NDArray[np.float64]) -> Iterator[tuple[list[str], list[float]]]:
    """Labels that are suggested for each item, and their degrees."""
    order = np.argsort(-D, axis=1, kind="stable")
    for d, first in zip(D, order, strict=True):
        count = 1 + int(np.searchsorted(np.cumsum(d[first]), 0.5, side="right")) if answers.kind == "marks" else 1
        chosen = first if answers.kind == "ranks" else first[:count]
        yield [answers.labels[j] for j in chosen], [float(d[j]) for j in chosen]
