"""For files larger than memory: fit on a sample, then apply piece by piece.

Three passes, each with one piece in memory: look at the file (where to cut it, what its columns hold), draw a sample of
rows while every row is checked, and after the fit recover the degrees of each piece. A piece's answer is a file of its
own in a folder beside OUT (`contone.tables.parts`); at the end the parts become OUT in one step, if their rows are as
many as the input has and the input is still the file it was. The fitted method lies there too, as a model file. Run
again after an interruption, the same call goes on with the same model where it stopped; with other options, or another
file, it says so.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from contone import __version__
from contone.base import Enhancer
from contone.exceptions import ArgumentError, ContoneError, DataError, InputError, OutputError
from contone.models import read_model, save_model
from contone.runtime.files import replacing
from contone.tables import answer, columns, formats, kept, pieces, prepare
from contone.tables import parts as work
from contone.tables.encoder import ColumnEncoder, described
from contone.tables.order import STDOUT, EnhancedFile, FittedSample, Order
from contone.tables.reading import LabelReading, decide
from contone.validation import check_new_labels

SAMPLE_ROWS = 50_000
"""Rows that the method is fitted on: neighbours among them are still found exactly."""


@dataclass(frozen=True)
class Job:
    """Everything that the parts depend on, and the token that binds them to it."""

    source: pieces.Pieces
    chosen: columns.Columns
    method: Enhancer
    encoder: ColumnEncoder
    labels: LabelReading
    state: tuple[int, ...]
    token: str
    sample: FittedSample | None = field(default=None, repr=False)
    """The rows of the fit; None where it was that of an earlier run."""


def enhance_in_pieces(order: Order) -> EnhancedFile:
    """Carry out an order with a bounded amount of memory."""
    with _work_folder(order) as folder:
        job = _resumed(order, folder) or _started(order, folder)
        done = _write_parts(order, job, folder)
        formats.refuse_changed(order.source, job.state)
        _merge([done[i] for i in range(len(job.source))], order, job)
        work.empty(folder)
        if order.save_model:
            _save(order, job)
    return EnhancedFile(
        path=None if order.target == STDOUT else Path(order.target),
        n_rows=job.source.n_rows,
        labels=tuple(job.labels.names),
        features=tuple(job.chosen.features),
        carried=tuple(job.chosen.carried),
        degrees=tuple(answer.degree_columns(order, job.chosen, job.labels.names)),
        method=job.method,
        streamed=True,
        sample=partial(_fitted_sample, order, job),
    )


# --------------------------------------------------------------------------------------------------- start or go on


@contextmanager
def _work_folder(order: Order) -> Iterator[Path]:
    """Where the parts lie. Where nothing can be gone on with (bad data, stdout), nothing stays."""
    if order.target == STDOUT:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
        return
    with work.work_folder(Path(order.target)) as folder:
        try:
            yield folder
        except KeyboardInterrupt:
            _say_what_stays(order, folder, "interrupted")
            raise
        except OSError as error:
            if not isinstance(error, ContoneError):
                error = OutputError(f"Cannot write in {folder}: {error.strerror or error}.")
            _say_what_stays(order, folder, "stopped")
            raise error from error.__cause__
        except ContoneError as error:
            if isinstance(error, DataError):  # the input cannot be used as it is: its parts are of no use
                work.empty(folder)
            raise


def _say_what_stays(order: Order, folder: Path, why: str) -> None:
    if work.read_plan(folder) is not None:
        order.progress.warn(f"{why}; what is done lies in {folder}: the same command goes on from there")
    else:
        work.empty(folder)


def _resumed(order: Order, folder: Path) -> Job | None:
    """The job of an interrupted run with the same file and options, if there is one."""
    plan = work.read_plan(folder)
    if plan is None:
        work.empty(folder)
        return None
    if plan.get("fingerprint") == fingerprint(order):
        try:
            stored = read_model(folder / work.MODEL, trusted=[kept.path_of(order.method)])
            return Job(
                source=pieces.Pieces.from_plain(plan["source"]),
                chosen=columns.Columns(**plan["columns"]),
                method=stored.method,
                encoder=stored.details["encoder"],
                labels=LabelReading(**plan["labels"]),
                state=tuple(plan["state"]),
                token=plan["token"],
            )
        except (DataError, KeyError, TypeError) as error:
            order.progress.warn(f"the unfinished run cannot be gone on with ({error}): starting afresh")
            work.empty(folder)
            return None
    if not order.overwrite:
        raise ArgumentError(
            f"{folder} holds an unfinished run with another input, other options or another version. Delete that "
            "folder, or use --force (overwrite=True) to start afresh.",
            "target",
        )
    order.progress.warn("starting afresh: the input or the options are not those of the unfinished run")
    work.empty(folder)
    return None


def _started(order: Order, folder: Path) -> Job:
    """Look at the file, fit the method on a sample, and write down both before the first part."""
    progress = order.progress
    state = formats.state_of(order.source)
    with progress.working(f"looking at {order.source}"):
        source = pieces.cut(
            order.source, order.chunk_rows, note=progress.note, separator=order.separator, decimal=order.decimal
        )
        schema = source.schema()
        chosen = prepare.choose_columns(order, schema, source.kinds)
        formats.refuse_nested(schema, as_text=_format(order) in formats.SEPARATORS)
        read = decide(source, chosen, order.label_separator)
        answer.degree_columns(order, chosen, read.names)
        prepare.ask_about_labels(order, chosen, source.words(chosen.features) if source.kinds else {})
        prepare.say_what_was_read(order, chosen, source.kinds)
    progress.note(
        f"  {source.n_rows:,} rows in {len(source)} parts; {len(read.names)} labels, {len(chosen.features)} features"
    )
    X, L, numbers = _sample(source, chosen, read, order)
    formats.refuse_changed(order.source, state)
    encoder = prepare.encoder_for(order, chosen).fit(X)
    for line in described(encoder, X):
        progress.note(f"  {line}")
    with progress.fitting(f"fitting {type(order.method).__name__} on {len(X):,} rows"):
        encoded = encoder.transform(X)
        order.method.fit(encoded, L)
    sample = FittedSample(encoded, L, numbers, source.n_rows)
    job = Job(source, chosen, order.method, encoder, read, state, secrets.token_hex(8), sample)
    if order.target != STDOUT and _kept(order, encoder, folder):
        work.write_plan(
            folder,
            {
                "fingerprint": fingerprint(order),
                "token": job.token,
                "state": state,
                "source": source.as_plain(),
                "columns": asdict(chosen),
                "labels": asdict(read),
            },
        )
    return job


def _fitted_sample(order: Order, job: Job) -> FittedSample:
    """The rows of the fit; drawn again, the same ones, where an earlier run drew them."""
    if job.sample is not None:
        return job.sample
    formats.refuse_changed(order.source, job.state)
    X, L, numbers = _sample(job.source, job.chosen, job.labels, order)
    return FittedSample(job.encoder.transform(X), L, numbers, job.source.n_rows)


def _kept(order: Order, encoder: ColumnEncoder, folder: Path) -> bool:
    """Keep the fitted method for a run that goes on later; a method that no file can hold starts afresh then."""
    try:
        save_model(order.method, folder / work.MODEL, details={"encoder": encoder})
    except InputError as error:
        order.progress.note(f"  interrupted, this run would start afresh: {error}")
        return False
    return True


def fingerprint(order: Order) -> str:
    """What the parts depend on: the file as it is now, the options, the version."""
    settings = [
        __version__,
        str(order.source.resolve()),
        formats.state_of(order.source),
        _format(order),
        order.labels,
        order.features,
        order.ids,
        order.categorical,
        order.text,
        order.missing,
        order.separator,
        order.decimal,
        order.label_separator,
        order.suffix,
        order.intervals,
        order.top,
        order.degrees_as,
        order.chunk_rows,
        order.sample_rows,
        type(order.method).__name__,
        sorted((key, repr(value)) for key, value in order.method.get_params(deep=True).items()),
    ]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------- sample and fit


def _sample(
    source: pieces.Pieces, chosen: columns.Columns, read: LabelReading, order: Order
) -> tuple[pl.DataFrame, pl.DataFrame, np.ndarray]:
    """Rows drawn evenly from the whole file (the smallest of random keys), while every row of it is checked.

    Their features, their labels and their numbers; the same ones each time.
    """
    wanted = min(order.sample_rows or SAMPLE_ROWS, source.n_rows)
    rng = np.random.default_rng(0)
    keys, numbers, kept = np.empty(0), np.empty(0, dtype=np.int64), pl.DataFrame()
    with order.progress.counting("checking all rows and drawing a sample", len(source)) as step:
        for i, piece in source.read():
            with _located(source, i):
                X, L = prepare.features_of(piece, chosen), read.read(piece)
                _check_rows(order, X, L, chosen)
            frame = pl.concat([X, L], how="horizontal")
            keys = np.concatenate([keys, rng.random(len(frame))])
            numbers = np.concatenate([numbers, source.starts[i] + np.arange(len(frame))])
            kept = pl.concat([kept, frame]) if len(kept) else frame
            if len(keys) > wanted:
                rows = np.sort(np.argpartition(keys, wanted - 1)[:wanted])
                keys, numbers, kept = keys[rows], numbers[rows], kept[rows]
            step()
    return kept.select(chosen.features), kept.select(read.names), numbers


def _check_rows(order: Order, X: pl.DataFrame, L: pl.DataFrame, chosen: columns.Columns) -> None:
    """What the fit would find in its rows must be found in all rows, and before it."""
    if order.missing == "error":
        formats.refuse_missing(X)
    numbers = X.select(pl.col(c).cast(pl.Float64) for c in chosen.features if X.schema[c].is_numeric())
    infinite = [c.name for c in numbers if c.is_infinite().any()]
    if infinite:
        raise DataError(f"The feature {infinite[0]!r} is infinite: drop or correct such rows first.")
    check_new_labels(order.method, np.zeros((len(L), 1)), L, L.columns)


@contextmanager
def _located(source: pieces.Pieces, i: int) -> Iterator[None]:
    """Errors about rows say which part of the file the rows are counted from."""
    try:
        yield
    except ContoneError as error:
        raise DataError(f"{error} (Rows are counted from row {source.starts[i]:,} of {source.path}.)") from error


# -------------------------------------------------------------------------------------------------------- the parts


def _write_parts(order: Order, job: Job, folder: Path) -> dict[int, work.Part]:
    """Make the parts that are not there yet; all of them, by number."""
    n_parts = len(job.source)
    done = work.finished(folder, job.token, _format(order))
    missing = [i for i in range(n_parts) if i not in done or done[i].n_rows != _rows_of(job, i)]
    if len(missing) < n_parts:
        order.progress.note(f"  going on: {n_parts - len(missing)} of {n_parts} parts are there from before")
    message = f"enhancing with {type(job.method).__name__}"
    with order.progress.counting(message, n_parts, n_parts - len(missing)) as step:
        for i, piece in job.source.read(missing):
            done[i] = _write_part(order, job, folder, i, piece)
            step()
    return done


def _write_part(order: Order, job: Job, folder: Path, i: int, piece: formats.Table) -> work.Part:
    suffix = _format(order)
    D, ends = _degrees(order, job, i, piece)
    new = answer.added_columns(order, job.chosen, job.labels.names, D, ends)
    used = [*([] if job.labels.is_set else job.chosen.labels), *job.chosen.features]
    used = [name for name in used if name not in job.chosen.as_written]
    frame = piece.with_columns(new, used, as_text=suffix in formats.SEPARATORS)
    dialect = job.source.dialect if formats.suffix_of(order.source) == ".csv" else None
    write = partial(formats.write_frame, frame, suffix=suffix, header=i == 0, dialect=dialect)
    return work.add_part(folder, i, job.token, frame.height, suffix, write)


def _degrees(order: Order, job: Job, i: int, piece: formats.Table) -> tuple[np.ndarray, answer.Ends | None]:
    """The degrees (m, q) of a piece, by the fitted method, and the ends of their intervals if they are asked for."""
    with _located(job.source, i), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has said what there is to say
        X = job.encoder.transform(prepare.features_of(piece, job.chosen))
        L = job.labels.read(piece)
        return np.asarray(job.method.enhance(X, L)), answer.ends_of_new_rows(order, job.method, X, L)


def _save(order: Order, job: Job) -> None:
    """The method, fitted on the sample, for `contone apply`."""
    assert order.save_model is not None
    n_rows = len(job.method.label_distributions_)
    kept.save(
        order.save_model,
        job.method,
        job.encoder,
        job.chosen,
        job.labels.names,
        is_set=job.labels.is_set,
        n_rows=n_rows,
    )


def _rows_of(job: Job, i: int) -> int:
    return job.source.starts[i + 1] - job.source.starts[i]


def _format(order: Order) -> str:
    return ".csv" if order.target == STDOUT else formats.suffix_of(order.target)


# ------------------------------------------------------------------------------------------------------ one file


def _merge(done: list[work.Part], order: Order, job: Job) -> None:
    """The parts, in order, as one file; the text of the first part brings the header."""
    written = sum(part.n_rows for part in done)
    if written != job.source.n_rows:
        raise OutputError(f"The parts have {written:,} rows, the input has {job.source.n_rows:,}: run again.")
    if order.target == STDOUT:
        for part in done:
            formats.to_stdout(part.read())
        return
    with replacing(order.target, overwrite=order.overwrite) as temporary:
        if _format(order) in formats.PARQUET:
            _merge_parquet(done, temporary, max(part.n_rows for part in done))
            found = int(pl.scan_parquet(temporary, glob=False).select(pl.len()).collect().item())
            if found != job.source.n_rows:
                raise OutputError(f"{found:,} rows were written, the input has {job.source.n_rows:,}: run again.")
            return
        with open(temporary, "wb") as whole:
            for part in done:
                whole.write(part.read())


def _merge_parquet(done: list[work.Part], path: Path, most_rows: int) -> None:
    """One part after the other through polars' writer, which takes the next one when it is ready for it."""
    from polars.io.plugins import register_io_source

    failed: list[Exception] = []

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        for part in done:
            try:
                content = part.read()
            except (ContoneError, OSError) as error:
                failed.append(error)
                raise
            yield pl.read_parquet(content)

    try:
        schema = pl.scan_parquet(done[0].path, glob=False).collect_schema()
        register_io_source(frames, schema=schema).sink_parquet(path, row_group_size=most_rows)
    except pl.exceptions.PolarsError as error:
        if failed:
            raise failed[0] from error
        raise OutputError(f"Cannot merge the parts: {str(error).strip().splitlines()[0]}.") from error
