"""Exports of annotation tools, as they are: one file per tool, recognised by what they hold.

`read_export` gives `Answers`, or None where a file is an ordinary table; `answers_in` the same for a table in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Protocol, cast

import polars as pl

from contone.exceptions import DataError
from contone.tables.answers import Answers
from contone.tables.exports import argilla, doccano, label_studio, lewidi, prodigy
from contone.tables.exports.back import refuse_unless_returnable, write_back
from contone.tables.exports.records import read_records

__all__ = ["Answers", "answers_in", "read_export", "refuse_unless_returnable", "write_back"]


class Tool(Protocol):
    """What a file of this folder holds."""

    def recognise(self, record: object) -> bool:
        """Whether a record comes from this tool."""

    def read(self, records: Iterable[object], question: str | None = None) -> Answers:
        """The answers to one question."""


TOOLS = cast("tuple[Tool, ...]", (label_studio, argilla, prodigy, lewidi, doccano))


def read_export(path: str | Path, question: str | None = None) -> Answers | None:
    """The answers in a file, where it is the export of a tool that is known; None where it is not.

    Parameters
    ----------
    path : path
        A JSON or JSON lines file, or one of them compressed by gzip.
    question : str or None
        Which question (`from_name` of Label Studio, the question of Argilla), where people answered several.
    """
    return _read(read_records(Path(path)), question)


def answers_in(frame: pl.DataFrame, question: str | None = None) -> Answers | None:
    """The same from a table: the CSV of Label Studio, or records of Argilla in a data frame.

    Parameters
    ----------
    frame : DataFrame
        Its columns are the fields of the records; text that is JSON is read as such.
    question : str or None
        Which question, where people answered several.
    """
    if not any(tool.recognise(dict.fromkeys(frame.columns)) for tool in (label_studio, argilla)):
        return None
    rows = ({name: _unpacked(value) for name, value in row.items()} for row in frame.iter_rows(named=True))
    return _read(rows, question)


def _unpacked(value: object) -> object:
    """What a cell of text holds, where that is JSON of a list or a mapping."""
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return cast(object, json.loads(value))
    except ValueError:
        return value


def _read(records: Iterator[object], question: str | None) -> Answers | None:
    first = next(records, None)
    if first is None:
        raise DataError("This export is empty: it holds no records.")
    tool = next((tool for tool in TOOLS if tool.recognise(first)), None)
    if tool is None:
        return None
    return tool.read(chain([first], records), question)
