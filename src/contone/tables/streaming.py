"""For files larger than memory: fit on a sample, then apply piece by piece.

Three passes, each with one piece in memory: look at the file (where to cut it, what its columns hold), draw a sample of
rows while every row is checked, and after the fit recover the degrees of each piece. A piece's answer is a file of its
own in a folder beside OUT (`contone.tables.checkpoint`); at the end the parts become OUT in one step, if their rows are
as many as the input has and the input is still the file it was. The fitted method lies there too, as a model file. Run
again after an interruption, the same call looks at the file and resumes with the same model where it stopped; with
other options, or another file, it says so.
"""

import hashlib
import json
import secrets
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from contone import __version__
from contone.base import Enhancer
from contone.exceptions import ArgumentError, ContoneError, DataError, InputError, OutputError
from contone.runtime.files import replacing
from contone.runtime.progress import Progress
from contone.tables import checkpoint, formats, pieces
from contone.tables.encoder import ColumnEncoder
from contone.tables.fitting import fit_problem, read_by, refuse_without_features
from contone.tables.model_file import TableModel, degrees_of, load_table_model, path_of
from contone.tables.reading import Problem, are_counts, encoded, features_of, problem_of, rule_of, understand
from contone.tables.settings import STDOUT, Reading, Streaming, Writing
from contone.tables.table import Table, refuse_missing
from contone.tables.writing import answer_frame, check_answer
from contone.validation.training import check_new_labels

SAMPLE_ROWS = 50_000
"""Rows that the method is fitted on: neighbours among them are still found exactly."""


@dataclass(frozen=True)
class Request:
    """What is to be streamed: the file, the method (not fitted), and the three ways."""

    source: Path
    method: Enhancer
    reading: Reading
    writing: Writing
    streaming: Streaming
    progress: Progress

    @property
    def suffix(self) -> str:
        """The format of the answer."""
        return formats.target_suffix(self.writing.target)

    def fingerprint(self) -> str:
        """What the parts depend on: the file as it is now, the options, the version."""
        ways = [asdict(self.reading), asdict(self.writing) | {"target": self.suffix, "overwrite": None}]
        settings = [
            __version__,
            str(self.source.resolve()),
            [formats.state_of(p) for p in (self.source, *map(Path, self.reading.files)) if p.is_file()],
            *ways,
            asdict(self.streaming),
            path_of(self.method),
            sorted((key, repr(value)) for key, value in self.method.get_params(deep=True).items()),
        ]
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


@dataclass(frozen=True)
class Job:
    """A request whose method is fitted: everything that the parts depend on, and the token that binds them to it."""

    request: Request
    source: pieces.Pieces
    blank: Problem
    """What every piece asks, without its rows."""
    model: TableModel
    state: tuple[int, ...]
    token: str
    sample: Problem | None = field(default=None, repr=False)
    """The rows of the fit; None where it was that of an earlier run."""

    def rows(self) -> Problem:
        """The rows of the fit; drawn again, the same ones, where an earlier run drew them."""
        if self.sample is not None:
            return self.sample
        formats.refuse_changed(self.request.source, self.state)
        return draw_sample(self.source, self.blank, self.request, self.model.encoder)


def stream_file(request: Request, save_to: str | None = None) -> Job:
    """Write the answer to a file with a bounded amount of memory, and the model where it is asked for."""
    with _work_folder(request) as folder:
        job = _started(request, folder)
        done = _write_parts(job, folder)
        formats.refuse_changed(request.source, job.state)
        _merge([done[i] for i in range(len(job.source))], job)
        checkpoint.empty(folder)
        if save_to is not None:
            job.model.save(save_to)
    return job


# ------------------------------------------------------------------------------------------------- start or resume


@contextmanager
def _work_folder(request: Request) -> Iterator[Path]:
    """Where the parts lie. Where nothing can be resumed (bad data, stdout), nothing stays."""
    if request.writing.target == STDOUT:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
        return
    with checkpoint.work_folder(Path(request.writing.target)) as folder:
        try:
            yield folder
        except DataError:  # the input cannot be used as it is: its parts are of no use
            checkpoint.empty(folder)
            raise
        except (KeyboardInterrupt, OSError) as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else "stopped"
            if checkpoint.read_plan(folder) is None:
                checkpoint.empty(folder)
            else:
                request.progress.warn(f"{why}; what is done is kept in {folder}: the same command resumes there")
            if isinstance(error, OSError) and not isinstance(error, ContoneError):
                raise OutputError(f"Cannot write in {folder}: {error.strerror or error}.") from error
            raise


def _started(request: Request, folder: Path) -> Job:
    """Look at the file; take the model of an interrupted run, or fit one on a sample and keep it before the first part.

    A file that is what it was is cut and understood as it was.
    """
    progress, note = request.progress, lambda line: request.progress.note(f"  {line}")
    plan, model = _unfinished(request, folder)
    fingerprint = request.fingerprint()
    state = formats.state_of(request.source)
    with progress.working(f"looking at {request.source}"):
        source = pieces.cut(request.source, request.streaming.chunk_rows, request.reading, progress)
        chosen, read = understand(source, request.reading, note)
        blank = problem_of(source.head(), chosen, read, request.reading)
        check_answer(request.writing, blank)
        refuse_without_features(request.method, chosen)
    sizes = f"{len(read.names)} labels, {len(chosen.features)} features"
    progress.note(f"  {source.n_rows:,} rows in {len(source)} parts; {sizes}")
    if model is not None:
        return Job(request, source, blank, model, state, plan["token"])
    first = problem_of(next(source.read([0]))[1], chosen, read, request.reading)
    if are_counts(first.Y.to_numpy()) and (rule := rule_of(first, lambda _: None)) is not None:
        read_by(request.method, rule)  # its rows are checked by the rule
    drawn = draw_sample(source, blank, request)
    formats.refuse_changed(request.source, state)
    sample = encoded(replace(drawn, rule=rule_of(drawn, note)), note)
    model = TableModel.of(fit_problem(sample, request.method, progress))
    job = Job(request, source, blank, model, state, secrets.token_hex(8), sample)
    if request.writing.target != STDOUT:
        try:
            model.save(folder / checkpoint.MODEL)
            checkpoint.write_plan(folder, {"fingerprint": fingerprint, "token": job.token})
        except InputError as error:  # no file can hold such a method: it would be fitted again
            note(f"interrupted, this run would start over: {error}")
    return job


def _unfinished(request: Request, folder: Path) -> tuple[dict[str, str], TableModel | None]:
    """The plan and the model of an interrupted run with the same file and options; no model where there is none."""
    plan, why = checkpoint.read_plan(folder), "the input or the options are not those of the unfinished run"
    if plan is None:
        plan, why = {} if (folder / checkpoint.PLAN).exists() else None, "the unfinished run's files are damaged"
    elif plan.get("fingerprint") == request.fingerprint():
        try:
            return plan, load_table_model(folder / checkpoint.MODEL, trusted=[path_of(request.method)])
        except DataError as error:
            why = f"the unfinished run cannot be resumed ({error})"
    elif not request.writing.overwrite:
        raise ArgumentError(
            f"{folder} holds an unfinished run with another input, other options or another version. Delete that "
            "folder, or use --force (overwrite=True) to start over.",
            "target",
        )
    if plan is not None:
        request.progress.warn(f"starting over: {why}")
    checkpoint.empty(folder)
    return {}, None


# ------------------------------------------------------------------------------------------------------ the sample


def draw_sample(
    source: pieces.Pieces, blank: Problem, request: Request, encoder: ColumnEncoder | None = None
) -> Problem:
    """Rows drawn evenly from the whole file (the smallest of random keys), the same ones each time.

    Without a fitted encoder, features are still to be encoded, and every row of the file is checked on the way.
    """
    chosen, read = blank.columns, blank.label_reading
    wanted = min(request.streaming.sample_rows or SAMPLE_ROWS, source.n_rows)
    rng = np.random.default_rng(0)
    keys, numbers, drawn = np.empty(0), np.empty(0, dtype=np.int64), pl.DataFrame()
    with request.progress.counting("checking all rows and drawing a sample", len(source)) as step:
        for i, piece in source.read():
            if encoder is None:
                with _located(source, i):
                    _check_rows(request, features_of(piece, chosen), read.read(piece))
            frame = piece.stored.select(chosen.labels + chosen.features)
            keys = np.concatenate([keys, rng.random(len(frame))])
            numbers = np.concatenate([numbers, source.starts[i] + np.arange(len(frame))])
            drawn = pl.concat([drawn, frame]) if len(drawn) else frame
            if len(keys) > wanted:
                rows = np.sort(np.argpartition(keys, wanted - 1)[:wanted])
                keys, numbers, drawn = keys[rows], numbers[rows], drawn[rows]
            step()
    made = problem_of(source.table(drawn), chosen, read, request.reading, encoder)
    return replace(made, numbers=numbers, sample_of=source.n_rows)


def _check_rows(request: Request, features: pl.DataFrame, Y: pl.DataFrame) -> None:
    """What the fit would find in its rows must be found in all rows, and before it."""
    if request.reading.missing == "error":
        refuse_missing(features)
    infinite = [c.name for c in features if c.dtype.is_float() and c.is_infinite().any()]
    if infinite:
        raise DataError(f"The feature {infinite[0]!r} is infinite: drop or correct such rows first.")
    check_new_labels(request.method, np.zeros((len(Y), 1)), Y, Y.columns)


@contextmanager
def _located(source: pieces.Pieces, i: int) -> Iterator[None]:
    """Errors about rows say which part of the file the rows are counted from."""
    try:
        yield
    except ContoneError as error:
        raise DataError(f"{error} (Rows are counted from row {source.starts[i]:,} of {source.path}.)") from error


# -------------------------------------------------------------------------------------------------------- the parts


def _write_parts(job: Job, folder: Path) -> dict[int, checkpoint.Part]:
    """Make the parts that are not there yet; all of them, by number."""
    n_parts, progress = len(job.source), job.request.progress
    done = checkpoint.finished(folder, job.token, job.request.suffix)
    missing = [i for i in range(n_parts) if i not in done or done[i].n_rows != job.source.rows_of(i)]
    if len(missing) < n_parts:
        progress.note(f"  resuming: {n_parts - len(missing)} of {n_parts} parts are done already")
    message = f"enhancing with {type(job.model.method).__name__}"
    with progress.counting(message, n_parts, n_parts - len(missing)) as step:
        for i, piece in job.source.read(missing):
            done[i] = _write_part(job, folder, i, piece)
            step()
    return done


def _write_part(job: Job, folder: Path, i: int, piece: Table) -> checkpoint.Part:
    """The answer to one piece, by the fitted method, as a file."""
    writing, model = job.request.writing, job.model
    with _located(job.source, i), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has said what there is to say
        problem = problem_of(piece, model.columns, job.blank.label_reading, job.request.reading, model.encoder)
        frame = answer_frame(writing, problem, *degrees_of(model, problem, writing.intervals))
    write = partial(formats.write_frame, frame, suffix=job.request.suffix, header=i == 0, dialect=job.source.dialect)
    return checkpoint.add_part(folder, i, job.token, frame.height, job.request.suffix, write)


# ------------------------------------------------------------------------------------------------------ one file


def _merge(done: list[checkpoint.Part], job: Job) -> None:
    """The parts, in order, as one file; the text of the first part brings the header."""
    written = sum(part.n_rows for part in done)
    if written != job.source.n_rows:
        raise OutputError(f"The parts have {written:,} rows, the input has {job.source.n_rows:,}: run again.")
    if job.request.writing.target == STDOUT:
        for part in done:
            formats.to_stdout(part.read())
        return
    with replacing(job.request.writing.target, overwrite=job.request.writing.overwrite) as temporary:
        if job.request.suffix in formats.PARQUET:
            for part in done:
                part.read()  # it must be what was written
            try:  # polars' own reader and writer take one part after the other
                merged, most_rows = pl.scan_parquet([p.path for p in done], glob=False), max(p.n_rows for p in done)
                merged.sink_parquet(temporary, row_group_size=most_rows)
            except pl.exceptions.PolarsError as error:
                raise OutputError(f"Cannot merge the parts: {str(error).strip().splitlines()[0]}.") from error
            found = int(pl.scan_parquet(temporary, glob=False).select(pl.len()).collect().item())
            if found != job.source.n_rows:
                raise OutputError(f"{found:,} rows were written, the input has {job.source.n_rows:,}: run again.")
            return
        with open(temporary, "wb") as whole:
            for part in done:
                whole.write(part.read())
