"""Names of labels that lie in a file: one per line, or in the XML that MULAN puts beside its data."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from contone.exceptions import ArgumentError, DataError
from contone.runtime.files import check_regular


class Exact(str):
    """A name that is taken to the letter: no list, no pattern, no range."""


def expand(typed: Sequence[str]) -> list[str]:
    """Entries that name a file become the names in it: ``@names.txt`` (one per line), or a MULAN ``labels.xml``."""
    found: list[str] = []
    for entry in typed:
        if entry.lower().endswith((".xml", ".xml.gz")) and Path(entry).is_file():
            found += [Exact(name) for name in xml_labels(Path(entry))]
        elif entry.startswith("@"):
            try:
                check_regular(entry[1:])
                lines = Path(entry[1:]).read_text(encoding="utf-8").splitlines()
            except (OSError, ValueError) as error:
                reason = str(error).removesuffix(".")
                raise ArgumentError(f"cannot read the names in {entry[1:]}: {reason}.", "labels") from error
            found += [Exact(line.strip()) for line in lines if line.strip()]
        else:
            found.append(entry)
    return found


def xml_labels(path: Path) -> list[str]:
    """The label names of a MULAN XML file, plain or gzip, in its order."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb") as stream:
            root = ElementTree.parse(stream).getroot()
    except Exception as error:  # expat, zlib and codecs fail with errors of their own
        raise DataError(f"Cannot read {path} as a list of labels: {error}.") from error
    found = [element.get("name", "") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    if not all(found):
        raise DataError(f"{path} has a label without a name: MULAN writes <label name='...'>.")
    if not found:
        raise DataError(f"{path} names no labels: MULAN writes <label name='...'>.")
    return found
