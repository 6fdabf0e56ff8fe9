"""Exports of annotation tools, as they are: one file per tool, recognised by what they hold.

`read_export` gives `Answers`, or None where a file is an ordinary table; `answers_in` the same for a table in memory.
"""

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import polars as pl

from contone.exceptions import DataError
from contone.tables import formats
from contone.tables.answers import Answers
from contone.tables.exports import argilla, doccano, label_studio, lewidi, prodigy
from contone.tables.exports.back import refuse_unless_returnable, write_back

__all__ = ["Answers", "answers_in", "read_export", "refuse_unless_returnable", "write_back"]


SPACE = re.compile(r"[\s,]*")
TOOLS: tuple[Any, ...] = (label_studio, argilla, prodigy, lewidi, doccano)
"""Each says whether a record comes from its tool (`recognise`), and what was answered to one question (`read`)."""


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
    return cast(Answers, tool.read(chain([first], records), question))


def read_records(path: Path) -> Iterator[object]:
    """Every record of a JSON or JSON lines file; where the file is one mapping of records, their keys are their ids.

    Records are decoded one after the other, so that a large file takes its own size in memory, and not that of all its
    objects.
    """
    try:
        text = formats.json_content(path).decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError, OSError, ValueError) as error:
        raise DataError(f"{path.name} is not UTF-8 text ({error}): export it again as JSON.") from None
    at = _skip(text, 0)
    closing = "]" if text.startswith("[", at) else ""
    records = _entries(text, at + len(closing), closing, path)
    first = [] if closing else list(islice(records, 2))
    whole = first[0] if len(first) == 1 and isinstance(first[0], dict) else {}
    if whole and all(isinstance(record, dict) for record in whole.values()):
        yield from ({"id": key, **record} for key, record in whole.items())
    else:
        yield from chain(first, records)


def _entries(text: str, at: int, closing: str, path: Path) -> Iterator[object]:
    decode = json.JSONDecoder().raw_decode
    while (at := _skip(text, at)) < len(text):
        if closing and text[at] == closing:
            return
        try:
            record, at = decode(text, at)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path.name} is not JSON: {_place(text, error)}.") from None
        yield record
    if closing:
        raise DataError(f"{path.name} ends in the middle of a list: it was not copied whole. Export it again.")


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return at if found is None else found.end()


def _place(text: str, error: Exception) -> str:
    """What is wrong and in which line, in words."""
    if isinstance(error, json.JSONDecodeError):
        return f"line {text.count(chr(10), 0, error.pos) + 1}: {error.msg}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
