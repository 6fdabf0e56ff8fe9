"""What is known of the published data sets: names, files, shapes, sources, and the hashes that files are held against.

The entries are in registry.toml, beside this file.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """What the registry knows about one data set."""

    name: str
    file: str
    n: int
    d: int
    q: int
    about: str
    citation: str
    licence: str
    base: str
    sha256: str = ""
    blob: str = ""
    in_paper: bool = False
    confirmed: bool = True
    label_prefix: str = "label"

    @property
    def url(self) -> str:
        """The address it is downloaded from; CONTONE_MIRROR replaces the registry's."""
        return (os.environ.get("CONTONE_MIRROR") or self.base).rstrip("/") + "/" + self.file


@cache
def registry() -> dict[str, Entry]:
    """All entries, by the name of the set."""
    content = tomllib.loads(files("contone.datasets").joinpath("registry.toml").read_text(encoding="utf-8"))
    entries = {}
    for name, fields in content["sets"].items():
        citation = " ".join(content["citations"][c] for c in fields.pop("citations"))
        entries[name] = Entry(name=name, citation=citation, licence=content["licence"], base=content["base"], **fields)
    return entries


def mismatch(path: Path, entry: Entry) -> str:
    """How the bytes of the file differ from the registry's hash, in one sentence; empty where they do not."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})."
    if entry.sha256:
        kind, expected, found = "sha256", entry.sha256, hashlib.sha256(content).hexdigest()
    else:
        header = f"blob {len(content)}\0".encode()
        kind, expected = "git blob id", entry.blob
        found = hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
    if found == expected:
        return ""
    return (
        f"this is not the published {entry.file} ({len(content)} bytes, {kind} {found[:12]}..., expected "
        f"{expected[:12]}...): truncated, damaged or another version."
    )
