"""Records of a JSON file: the entries of a list, of a mapping, or the lines, one at a time."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

from contone.exceptions import DataError

SPACE = re.compile(r"[\s,]*")


def read_records(path: Path) -> Iterator[tuple[str | None, object]]:
    """Every record of a JSON or JSON lines file, with its key where the file is one mapping of records.

    Records are decoded one after the other, so that a large file takes its own size in memory, and not that of all its
    objects.
    """
    raw = path.read_bytes()
    try:
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError, OSError, ValueError) as error:
        raise DataError(f"{path.name} is not UTF-8 text ({error}): export it again as JSON.") from None
    decode = json.JSONDecoder().raw_decode
    at = _skip(text, 0)
    if text[at : at + 1] == "[":
        yield from ((None, record) for record in _entries(text, at + 1, "]", decode, path))
        return
    try:
        first, end = decode(text, at)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path.name} is not JSON: {_place(text, error)}.") from None
    if _skip(text, end) >= len(text) and isinstance(first, dict) and _is_mapping_of_records(first):
        yield from first.items()
        return
    yield None, first
    yield from ((None, record) for record in _entries(text, end, "", decode, path))


def _entries(text: str, at: int, closing: str, decode: object, path: Path) -> Iterator[object]:
    assert callable(decode)
    while True:
        at = _skip(text, at)
        if at >= len(text):
            if closing:
                raise DataError(f"{path.name} ends in the middle of a list: it was not copied whole. Export it again.")
            return
        if closing and text[at] == closing:
            return
        try:
            record, at = decode(text, at)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path.name} is not JSON: {_place(text, error)}.") from None
        yield record


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
