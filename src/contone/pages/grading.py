"""Rows to grade -> one page with a slider per label: everything inside the file, no server."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contone.pages import escape, render, words
from contone.typing import Record

LONG = 40
"""Characters from which on an entry is set as running text."""
MOST_TEXT = 20_000
"""Characters of one entry that the page shows."""
LARGEST_IMAGE, MOST_IMAGES = 3_000_000, 60_000_000
"""Bytes of one picture, and of all together, that go into the page; others are shown by their names."""
IMAGES = {
    ".png": ("image/png", (b"\x89PNG",)),
    ".jpg": ("image/jpeg", (b"\xff\xd8\xff",)),
    ".jpeg": ("image/jpeg", (b"\xff\xd8\xff",)),
    ".gif": ("image/gif", (b"GIF8",)),
    ".webp": ("image/webp", (b"RIFF",)),
    ".bmp": ("image/bmp", (b"BM",)),
}
"""Suffixes of pictures, their types, and how their files begin: a file of another kind stays outside the page."""


@dataclass(frozen=True)
class RowToGrade:
    """One row: its number in the file, what identifies it, its other columns as text, and which labels are marked."""

    row: int
    identity: tuple[str, ...]
    cells: tuple[tuple[str, str], ...]
    marked: tuple[bool, ...]


def document(
    rows: Sequence[RowToGrade],
    labels: Sequence[str],
    head: Sequence[str],
    source: str,
    n_rows: int,
    folder: Path,
    command: str,
) -> str:
    """The page as one text.

    Parameters
    ----------
    rows : sequence of RowToGrade
        The rows, in the order in which they are asked for.
    labels : sequence of str
        Names of the labels.
    head : sequence of str
        Names of the entries of `identity`.
    source, n_rows : str, int
        Name of the file, and how many rows it has.
    folder : Path
        Where paths of pictures start.
    command : str
        What to run once the rows are graded.
    """
    import contone

    pictures = _Pictures(folder)
    shown: Record = {
        "labels": [escape.printable(name) for name in labels],
        "columns": [*head, *(f"{name}_degree" for name in labels)],
        "rows": [
            {
                "row": row.row,
                "identity": list(row.identity),
                "marked": [int(m) for m in row.marked],
                "cells": [_cell(name, value, pictures) for name, value in row.cells],
            }
            for row in rows
        ],
    }
    # Work in progress belongs to these rows and labels, wherever the page lies.
    known = repr((labels, [row.identity for row in rows])).encode("utf-8", "replace")
    shown["key"] = hashlib.sha256(known).hexdigest()[:16]
    return render.fill(
        "grading.html.j2",
        title=f"Grade {words.count(len(rows), 'row')}",
        source=words.clip(source, 60),
        command=command,
        n_chosen=len(rows),
        n_rows=f"{n_rows:,}",
        data=escape.json_for_html(shown),
        versions=f"contone {contone.__version__}, Python {platform.python_version()}",
    )


def _cell(name: str, value: str, pictures: _Pictures) -> dict[str, str]:
    text = escape.printable(value)
    shown = text[:MOST_TEXT] + ("…" if len(text) > MOST_TEXT else "")
    cell = {"name": escape.printable(name), "value": shown, "kind": ""}
    if Path(value[-8:]).suffix.lower() in IMAGES:
        cell |= {"kind": "image", "source": pictures.embed(value)}
    elif len(text) > LONG or "\n" in text:
        cell["kind"] = "text"
    return cell


class _Pictures:
    """Pictures from disk as data for the page, as far as there is room.

    Only those in the folder of the table or below it: a table that came from elsewhere must not bring other pictures
    of this computer into a page that is passed on.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.left = folder.resolve(), MOST_IMAGES

    def embed(self, name: str) -> str:
        """The picture of that path as a data address; empty where it is elsewhere, too large, or no picture."""
        kind, starts = IMAGES[Path(name).suffix.lower()]
        try:
            path = (self.folder / name).resolve()
            if not path.is_relative_to(self.folder) or not path.is_file():
                return ""
            if path.stat().st_size > min(LARGEST_IMAGE, self.left):
                return ""
            content = path.read_bytes()
        except (OSError, ValueError):
            return ""
        if not content.startswith(starts):
            return ""
        self.left -= len(content)
        return f"data:{kind};base64,{base64.b64encode(content).decode()}"
