"""ARFF as MULAN and MEKA distribute it, through liac-arff: dense or sparse, with the labels named by the format.

MULAN names its labels in an XML file beside the data (``NAME.xml``, plain or gzip). MEKA counts them in the name of the
relation: ``-C 6`` are the first six attributes, ``-C -6`` the last.
"""

import re
from pathlib import Path

import polars as pl

from contone.exceptions import DataError, missing_extra
from contone.runtime.machine import refuse_dense
from contone.tables.labels import xml_labels
from contone.tables.table import Table
from contone.tables.text import LONG_NUMBER, refuse_repeated

NUMBERS = ("NUMERIC", "REAL", "INTEGER")


def read_arff(path: Path, content: str) -> Table:
    """A table from the text of an ARFF file; labels from the XML beside `path`, or from the name of the relation."""
    try:
        import arff
    except ImportError as error:
        raise missing_extra("Reading ARFF", "liac-arff", "cli") from error
    kinds: list[str | list[str]] = []

    class Decoder(arff.ArffDecoder):
        """Reads numbers as text, so that whole numbers beyond 2^53 keep all their digits."""

        def _decode_attribute(self, line: str) -> tuple[str, str | list[str]]:
            name, kind = super()._decode_attribute(line)
            kinds.append(kind)
            return name, kind if isinstance(kind, list) else "STRING"

    sparse = re.search(r"^@data\s*(?:%[^\n]*\n|\s)*\{", content, flags=re.IGNORECASE | re.MULTILINE) is not None
    try:
        parsed = Decoder().decode(content, return_type=arff.LOD if sparse else arff.DENSE)
    except arff.ArffException as error:
        raise DataError(f"Cannot read {path}: {str(error).strip()}") from error
    except (ValueError, IndexError, KeyError, StopIteration, RuntimeError, TypeError) as error:
        raise DataError(f"Cannot read {path}: it is not ARFF ({type(error).__name__}: {error}).") from error
    names = [re.sub(r"\\(.)", r"\1", name) for name, _ in parsed["attributes"]]
    refuse_repeated(names, path)
    rows = parsed["data"]
    if sparse:
        refuse_dense(path, len(rows), len(names))
    columns = _sparse_columns(rows, kinds) if sparse else [[row[j] for row in rows] for j in range(len(names))]
    frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String()), orient="col")
    numbers = [name for name, kind in zip(names, kinds, strict=True) if kind in NUMBERS]
    return Table(
        frame.with_columns(_exact_numbers(path, frame.select(numbers))),
        label_names=_labels_beside(path, names) or _labels_in_relation(str(parsed["relation"]), names, path),
        categories=tuple(name for name, kind in zip(names, kinds, strict=True) if isinstance(kind, list)),
    )


def _exact_numbers(path: Path, texts: pl.DataFrame) -> list[pl.Series]:
    """Columns of text as whole numbers or doubles; as text where neither holds every digit."""
    texts = texts.select(pl.all().str.strip_chars())
    doubles = texts.select(pl.all().cast(pl.Float64, strict=False))
    whole = texts.select(pl.all().cast(pl.Int64, strict=False))
    counts = [frame.select(pl.all().count()).row(0) if texts.width else () for frame in (texts, doubles, whole)]
    long = texts.select(pl.all().str.contains(LONG_NUMBER).any()).row(0) if texts.width else ()
    found = []
    for text, double, integer, n, n_doubles, n_whole, is_long in zip(texts, doubles, whole, *counts, long, strict=True):
        if n_doubles < n:
            odd = text.filter(double.is_null() & text.is_not_null())[0]
            raise DataError(f"Cannot read {path}: the attribute {text.name!r} holds {odd!r}, which is not a number.")
        found.append(integer if n_whole == n else text if is_long else double.fill_nan(None))
    return found


def _sparse_columns(rows: list[dict[int, str | None]], kinds: list[str | list[str]]) -> list[list[str | None]]:
    """Columns of a sparse table: what is not written is 0, or the first category."""
    columns: list[list[str | None]] = [[kind[0] if isinstance(kind, list) else "0"] * len(rows) for kind in kinds]
    for i, row in enumerate(rows):
        for j, value in row.items():
            columns[j][i] = value
    return columns


def list_beside(path: Path) -> Path | None:
    """The XML file beside an ARFF file that names its labels, if there is one."""
    stem, count = re.subn(r"\.arff(\.gz)?$", "", path.name, flags=re.IGNORECASE)
    return next((p for end in (".xml", ".xml.gz") if count and (p := path.with_name(stem + end)).is_file()), None)


def _labels_beside(path: Path, names: list[str]) -> tuple[str, ...]:
    if (found := list_beside(path)) is None:
        return ()
    labels = xml_labels(found)
    known = set(names)
    unknown = [label for label in labels if label not in known]
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
