"""ARFF as MULAN and MEKA distribute it, through liac-arff: dense or sparse, with the labels named by the format.

MULAN names its labels in an XML file beside the data (``NAME.xml``, plain or gzip). MEKA counts them in the name of the
relation: ``-C 6`` are the first six attributes, ``-C -6`` the last.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl

from contone.exceptions import DataError, MissingExtraError
from contone.runtime.memory import refuse_dense


@dataclass(frozen=True)
class ArffTable:
    """The rows, which attributes are categories, and which are labels (none where the file does not say)."""

    frame: pl.DataFrame
    categories: tuple[str, ...]
    labels: tuple[str, ...]


def read_arff(path: Path, content: str) -> ArffTable:
    """A table from the text of an ARFF file; labels from the XML beside `path`, or from the name of the relation."""
    try:
        import arff
    except ImportError as error:
        raise MissingExtraError(
            "Reading ARFF needs liac-arff, which is not installed: pip install 'contone[cli]'."
        ) from error
    sparse = re.search(r"^@data\s*(?:%[^\n]*\n|\s)*\{", content, flags=re.IGNORECASE | re.MULTILINE) is not None
    try:
        parsed = arff.loads(content, return_type=arff.LOD if sparse else arff.DENSE)
    except arff.ArffException as error:
        raise DataError(f"Cannot read {path}: {str(error).strip()}") from error
    except (ValueError, IndexError, KeyError, StopIteration, RuntimeError, TypeError) as error:
        raise DataError(f"Cannot read {path}: it is not ARFF ({type(error).__name__}: {error}).") from error
    names = [re.sub(r"\\(.)", r"\1", name) for name, _ in parsed["attributes"]]
    kinds = [kind for _, kind in parsed["attributes"]]
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated is not None:
        raise DataError(f"{path} has columns of the same name: {repeated!r}.")
    rows = parsed["data"]
    if sparse:
        refuse_dense(path, len(rows), len(names))
    columns = _sparse_columns(rows, kinds) if sparse else [[row[j] for row in rows] for j in range(len(names))]
    frame = pl.DataFrame([_series(*entry) for entry in zip(names, kinds, columns, strict=True)])
    labels = _labels_beside(path, names) or _labels_in_relation(str(parsed["relation"]), names, path)
    categories = tuple(name for name, kind in zip(names, kinds, strict=True) if isinstance(kind, list))
    return ArffTable(frame, categories, labels)


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


def _sparse_columns(rows: list[dict[int, Any]], kinds: list[Any]) -> list[list[Any]]:
    """Columns of a sparse table: what is not written is 0, or the first category."""
    empty = [kind[0] if isinstance(kind, list) else 0.0 for kind in kinds]
    columns = [[value] * len(rows) for value in empty]
    for i, row in enumerate(rows):
        for j, value in row.items():
            columns[j][i] = value
    return columns


def _series(name: str, kind: Any, values: list[Any]) -> pl.Series:
    if isinstance(kind, list) or str(kind).upper() == "STRING":
        return pl.Series(name, values, dtype=pl.String)
    return pl.Series(name, np.array([np.nan if v is None else v for v in values], dtype=float)).fill_nan(None)


def _labels_beside(path: Path, names: list[str]) -> tuple[str, ...]:
    stem = re.sub(r"\.arff(\.gz)?$", "", path.name, flags=re.IGNORECASE)
    found = next((p for end in (".xml", ".xml.gz") if (p := path.with_name(stem + end)).is_file()), None)
    if found is None:
        return ()
    labels = xml_labels(found)
    unknown = [label for label in labels if label not in names]
    if unknown:
        raise DataError(f"{found} names the label {unknown[0]!r}, which is not an attribute of {path}.")
    return tuple(labels)


def _labels_in_relation(relation: str, names: list[str], path: Path) -> tuple[str, ...]:
    found = re.search(r"(?:^|[\s:])-[Cc]\s+(-?\d+)", relation)
    if found is None:
        return ()
    count = int(found[1])
    if not 0 < abs(count) <= len(names):
        raise DataError(f"{path} claims {abs(count)} labels (-C {count}), but it has {len(names)} attributes.")
    return tuple(names[:count] if count > 0 else names[count:])
