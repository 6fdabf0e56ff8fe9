"""Records of a JSON file: the entries of a list, of a mapping, or the lines, one at a time."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from contone.exceptions import DataError

SPACE = re.compile(r"[\s,]*")


def read_records(path: Path) -> Iterator[object]:
    """Every record of a JSON or JSON lines file; where the file is one mapping of records, their keys are their ids.

    Records are decoded one after the other, so that a large file takes its own size in memory, and not that of all its
    objects.
    """
    raw = path.read_bytes()
    try:
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError, OSError, ValueError) as error:
        raise DataError(f"{path.name} is not UTF-8 text ({error}): export it again as JSON.") from None
    at = _skip(text, 0)
    closing = "]" if text.startswith("[", at) else ""
    records = _entries(text, at + len(closing), closing, path)
    first = [] if closing else list(islice(records, 2))
    if len(first) == 1 and isinstance(first[0], dict) and _is_mapping_of_records(first[0]):
        yield from ({"id": key, **record} for key, record in first[0].items())
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


def _is_mapping_of_records(found: dict[str, object]) -> bool:
    return bool(found) and all(isinstance(value, dict) for value in found.values())
