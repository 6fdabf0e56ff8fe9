"""`contone enhance` for files larger than memory: fit on a sample, then apply piece by piece.

Three passes, each with one piece in memory: look at the file (where to cut it, what its columns hold), draw a sample of
rows while every row is checked, and after the fit recover the degrees of each piece. A piece's answer is a file of its
own in a folder beside OUT, ``.OUT.parts``, written whole or not at all; at the end the parts become OUT in one step.
The fitted method lies there too. Run again after an interruption, the same command goes on with the same model where
it stopped; with other options, or another file, it says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import polars as pl
from sklearn.base import clone

from contone import __version__, enhance
from contone.base import Enhancer
from contone.cli import terminal
from contone.exceptions import ContoneError, DataError, MemoryEstimateError, OutputError
from contone.runtime import memory
from contone.runtime.files import replacing
from contone.tables import columns, pieces
from contone.tables import formats as tables
from contone.validation import check_new_labels

if TYPE_CHECKING:
    from contone.cli.enhance import Order

SAMPLE_ROWS = 50_000
"""Rows that the method is fitted on: neighbours among them are still found exactly."""


@dataclass(frozen=True)
class Job:
    """Everything that the parts depend on."""

    source: pieces.Pieces
    chosen: columns.Columns
    method: Enhancer


def is_wanted(order: Order) -> bool:
    """What was asked for; else by an estimate of the memory that the whole table would take."""
    if order.stream is not None:
        return order.stream
    if order.chunk_rows or order.sample_rows:
        return True
    n, width = pieces.estimated_shape(order.source)
    is_text = tables.suffix_of(order.source) in tables.SEPARATORS
    # Which columns are labels is not known yet; what they are matters little here.
    needed = memory.table_bytes(n, width, is_text=is_text) + order.method._fit_bytes(n, width, max(width // 4, 1))
    available = memory.available_bytes()
    if needed <= available:
        return False
    size = (
        f"{order.source} has about {n:,} rows and would need about {memory.shown(needed)} of memory; "
        f"{memory.shown(available)} are available"
    )
    if can_stream(order.method):
        terminal.say(f"{size}: streaming")
        return True
    raise MemoryEstimateError(
        f"{size}, and {type(order.method).__name__} needs all rows at once. Choose a method that can stream "
        f"({_able()}), take a sample of the rows, or set {memory.LIMIT_VARIABLE}."
    )


def can_stream(method: Enhancer) -> bool:
    """Whether the method can tell the degrees of rows that it was not fitted on."""
    return method.baseline or hasattr(method, "predict")


def refuse_unless_streamable(method: Enhancer) -> None:
    """An error that names the methods that can."""
    if not can_stream(method):
        raise terminal.usage_error(
            f"{type(method).__name__} needs all rows at once and cannot stream; these methods can: {_able()}.",
            "--method",
        )


def _able() -> str:
    return ", ".join(name for name, cls in enhance.methods().items() if cls.baseline or hasattr(cls, "predict"))


def enhance_in_pieces(order: Order) -> None:
    """Carry out an order with a bounded amount of memory."""
    refuse_unless_streamable(order.method)
    with _work_folder(order) as folder:
        job = _resumed(order, folder) or _started(order, folder)
        names = job.chosen.degrees(order.suffix)
        n_parts = len(job.source)
        missing = [i for i in range(n_parts) if not _part(folder, i, order).exists()]
        if len(missing) < n_parts:
            terminal.say(f"  going on: {n_parts - len(missing)} of {n_parts} parts are there from before")
        with terminal.counting(f"enhancing with {type(job.method).__name__}", n_parts, n_parts - len(missing)) as step:
            for i, piece in job.source.read(missing):
                _write_part(piece, _degrees(job, i, piece), names, _part(folder, i, order), order)
                step()
        parts = [_part(folder, i, order) for i in range(n_parts)]
        _merge(parts, order, int(np.diff(job.source.starts).max()))
    if order.target != tables.STDOUT:
        listed = names if len(names) <= 4 else [*names[:2], "…", f"{names[-1]} ({len(names)})"]
        terminal.say(f"wrote {order.target}: {job.source.n_rows:,} rows, new columns {', '.join(listed)}")


# --------------------------------------------------------------------------------------------------- start or go on


@contextmanager
def _work_folder(order: Order) -> Iterator[Path]:
    """Where the parts lie: beside OUT, kept on an interruption, removed at the end."""
    if order.target == tables.STDOUT:  # nothing to go on with later
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
        return
    target = Path(order.target)
    folder = target.with_name(f".{target.name}.parts")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot write {folder}: {error.strerror}.") from error
    try:
        yield folder
    except KeyboardInterrupt:
        terminal.say(f"interrupted; what is done lies in {folder}: the same command goes on from there", style="yellow")
        raise
    shutil.rmtree(folder)


def _resumed(order: Order, folder: Path) -> Job | None:
    """The job of an interrupted run with the same file and options, if there is one."""
    plan = folder / "plan.json"
    if not plan.exists():
        return None
    if json.loads(plan.read_text())["fingerprint"] == fingerprint(order):
        return joblib.load(folder / "job.joblib")
    if not order.force:
        raise terminal.usage_error(
            f"{folder} holds an unfinished run with another input, other options or another version. Delete that "
            "folder, or use --force to start afresh.",
            "--output",
        )
    terminal.say("starting afresh: the input or the options are not those of the unfinished run", style="yellow")
    for path in folder.iterdir():
        path.unlink()
    return None


def _started(order: Order, folder: Path) -> Job:
    """Look at the file, fit the method on a sample, and write down both before the first part."""
    with terminal.working(f"looking at {order.source}"):
        source = pieces.cut(order.source, order.chunk_rows)
        chosen = columns.choose(
            source.names, source.numeric, labels=order.labels, features=order.features, ids=order.ids
        )
        chosen.degrees(order.suffix)
    terminal.say(
        f"  {source.n_rows:,} rows in {len(source)} parts; {len(chosen.labels)} labels, {len(chosen.features)} features"
    )
    X, L = _sample(source, chosen, order)
    with terminal.working(f"fitting {type(order.method).__name__} on {len(X):,} rows"):
        order.method.fit(X, L)
    job = Job(source, chosen, order.method)
    with replacing(folder / "job.joblib") as temporary:
        joblib.dump(job, temporary)
    with replacing(folder / "plan.json") as temporary:  # last: it vouches for the rest
        temporary.write_text(json.dumps({"fingerprint": fingerprint(order), "parts": len(source)}))
    return job


def fingerprint(order: Order) -> str:
    """What the parts depend on: the file as it is now, the options, the version."""
    status = order.source.stat()
    settings = [
        __version__,
        str(order.source.resolve()),
        status.st_size,
        status.st_mtime_ns,
        tables.suffix_of(order.target) or order.target,
        order.labels,
        order.features,
        order.ids,
        order.suffix,
        order.chunk_rows,
        order.sample_rows,
        type(order.method).__name__,
        sorted((key, repr(value)) for key, value in order.method.get_params(deep=True).items()),
    ]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------- sample and fit


def _sample(source: pieces.Pieces, chosen: columns.Columns, order: Order) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows drawn evenly from the whole file (the smallest of random keys), while every row of it is checked."""
    wanted = min(order.sample_rows or SAMPLE_ROWS, source.n_rows)
    rng = np.random.default_rng(0)
    keys, kept = np.empty(0), pl.DataFrame()
    with terminal.counting("checking all rows and drawing a sample", len(source)) as step:
        for i, piece in source.read():
            with _located(source, i):
                X, L = _numbers(piece, chosen)
                check_new_labels(order.method, X, L, chosen.labels)
                if not np.isfinite(X.to_numpy()).all():
                    raise DataError("A feature is NaN or infinite: drop or fill such rows first.")
            frame = pl.concat([X, L], how="horizontal")
            keys = np.concatenate([keys, rng.random(len(frame))])
            kept = pl.concat([kept, frame]) if len(kept) else frame
            if len(keys) > wanted:
                rows = np.sort(np.argpartition(keys, wanted - 1)[:wanted])
                keys, kept = keys[rows], kept[rows]
            step()
    return kept.select(chosen.features), kept.select(chosen.labels)


def _numbers(piece: tables.Table, chosen: columns.Columns) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Features and labels of a piece, in one type whatever the piece holds."""
    X, L = piece.numbers(chosen.features), piece.numbers(chosen.labels)
    return X.cast(pl.Float64), L.cast(pl.Float64)


@contextmanager
def _located(source: pieces.Pieces, i: int) -> Iterator[None]:
    """Errors about rows say which part of the file the rows are counted from."""
    try:
        yield
    except ContoneError as error:
        raise DataError(f"{error} (Rows are counted from row {source.starts[i]:,} of {source.path}.)") from error


# -------------------------------------------------------------------------------------------------------- the parts


def _degrees(job: Job, i: int, piece: tables.Table) -> np.ndarray:
    """The degrees (m, q) of a piece, by the fitted method; with its labels, where the method can use them."""
    X, L = _numbers(piece, job.chosen)
    method = job.method
    with _located(job.source, i), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has said what there is to say
        if method.baseline:  # row by row, so that a piece is as good as the whole; two rows are the least that fits
            return clone(method).fit_enhance(pl.concat([X, X[:1]]), pl.concat([L, L[:1]])).to_numpy()[:-1]
        return _as_array(method.enhance(X, L))


def _as_array(D: Any) -> np.ndarray:
    return D.to_numpy() if isinstance(D, pl.DataFrame) else np.asarray(D)


def _part(folder: Path, i: int, order: Order) -> Path:
    return folder / f"part-{i:06d}{_format(order)}"


def _format(order: Order) -> str:
    return ".csv" if order.target == tables.STDOUT else tables.suffix_of(order.target)


def _write_part(piece: tables.Table, D: np.ndarray, names: list[str], path: Path, order: Order) -> None:
    kind = _format(order)
    frame = piece.with_columns(names, D, as_text=kind in tables.SEPARATORS)
    with replacing(path) as temporary:
        if kind in tables.PARQUET:
            frame.write_parquet(temporary)
        else:
            frame.write_csv(temporary, separator=tables.SEPARATORS[kind], include_header=path.stem.endswith("-000000"))


@contextmanager
def _one_part_ahead() -> Iterator[None]:
    """Keep polars from reading many parts ahead of what is written: on a slow disk they would pile up in memory."""
    name = "POLARS_ROW_GROUP_PREFETCH_SIZE"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})


def _merge(parts: list[Path], order: Order, most_rows: int) -> None:
    """The parts, of at most `most_rows` rows, in order, as one file; the text of the first part brings the header."""
    if order.target == tables.STDOUT:
        for part in parts:
            sys.stdout.write(part.read_text(encoding="utf-8"))
        return
    with replacing(order.target, overwrite=order.force) as temporary:
        if _format(order) in tables.PARQUET:
            with _one_part_ahead():
                pl.scan_parquet(parts).sink_parquet(temporary, row_group_size=most_rows)
            return
        with open(temporary, "wb") as whole:
            for part in parts:
                with open(part, "rb") as piece:
                    shutil.copyfileobj(piece, whole, 1 << 20)
