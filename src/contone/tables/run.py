"""Which way an order goes: the whole table at once, or piece by piece. The two ways do not know each other."""

from __future__ import annotations

from pathlib import Path

from contone import enhance
from contone.exceptions import ArgumentError, MemoryEstimateError
from contone.runtime import memory
from contone.runtime.files import remove_leftovers
from contone.tables import answer, excel, formats, pieces, streaming, whole
from contone.tables.order import STDOUT, EnhancedFile, Order, check_output, check_source

CHOICES = {
    "missing": ("impute", "drop", "error"),
    "unlabelled": ("method", "predict", "drop"),
    "decimal": (None, ".", ","),
    "degrees_as": answer.WAYS,
}


def carry_out(order: Order) -> EnhancedFile:
    """Check the places, choose the way, and go it."""
    check_source(order.source)
    check_format(order.source)
    check_settings(order)
    check_target(order)
    if order.save_model:
        check_model_place(order.save_model, overwrite=order.overwrite)
    in_pieces = is_streamed(order)
    if in_pieces:
        refuse_unless_streamable(order)
    if in_pieces and not can_stream(order):
        raise ArgumentError(
            f"{type(order.method).__name__} needs all rows at once and cannot stream; these methods can: "
            f"{_able_to_stream()}.",
            "method",
        )
    return streaming.enhance_in_pieces(order) if in_pieces else whole.enhance_whole(order)


def check_format(path: Path) -> None:
    """Refuse a file whose name says no format that can be read."""
    if not formats.suffix_of(path):
        raise ArgumentError(f"{path} must end in one of {', '.join(formats.READABLE)}.", "source")


def check_target(order: Order) -> None:
    """Refuse before any work what could not be written after it; remove what a killed run left there."""
    if order.target == STDOUT:
        answer.check_way(order)
        return
    if formats.suffix_of(order.target) not in formats.WRITABLE or order.target.lower().endswith(".gz"):
        raise ArgumentError(f"{order.target} must end in one of {', '.join(formats.WRITABLE)}.", "target")
    answer.check_way(order)
    if formats.suffix_of(order.target) == ".xlsx":
        excel.refuse_without_writer()
    check_output(order.target, overwrite=order.overwrite)
    remove_leftovers(order.target)


def check_model_place(path: str, *, overwrite: bool) -> None:
    """The same for the file of the model."""
    try:
        check_output(path, overwrite=overwrite)
    except ArgumentError as error:
        raise ArgumentError(str(error), "save_model") from error


def check_settings(order: Order) -> None:
    """Words and numbers that are none of those allowed."""
    for name, allowed in CHOICES.items():
        if getattr(order, name) not in allowed:
            raise ArgumentError(f"{getattr(order, name)!r} is none of {', '.join(filter(None, allowed))}.", name)
    if order.intervals is not None:
        if not 0 < order.intervals < 1:
            raise ArgumentError(f"the level must be between 0 and 1; got {order.intervals}.", "intervals")
        answer.refuse_intervals(order.method)
    if order.top is not None and order.top < 1:
        raise ArgumentError(f"must be 1 or more; got {order.top}.", "top")
    if order.separator is not None and len(order.separator.encode()) != 1:
        raise ArgumentError(f"must be one character; got {order.separator!r}.", "separator")


def refuse_unless_streamable(order: Order) -> None:
    """What only the whole table can give."""
    for place, argument in ((str(order.source), "source"), (order.target, "target")):
        if place != STDOUT and formats.suffix_of(place) not in formats.STREAMED:
            raise ArgumentError(
                f"{place} cannot be read or written in pieces; these can: {', '.join(formats.STREAMED)}.", argument
            )
    if order.item is not None:
        raise ArgumentError(
            "the rows of an item may be anywhere in the file, so the whole table must be in memory: leave out "
            "--stream, or bring the table to one row per item first.",
            "item",
        )
    if order.graded is not None:
        raise ArgumentError(
            "graded rows must be in the fit, which needs the whole table in memory: leave out --stream.", "graded"
        )
    for name, only in (("missing", ("impute", "error")), ("unlabelled", ("method",))):
        if getattr(order, name) not in only:
            raise ArgumentError(
                f"a streamed table has as many rows out as in and all of them labelled, so {getattr(order, name)!r} "
                "needs the whole table in memory: leave out --stream, or take these rows out of the file first.",
                name,
            )


def is_streamed(order: Order) -> bool:
    """What was asked for; else by an estimate of the memory that the whole table would take."""
    if order.stream is not None:
        return order.stream
    if order.chunk_rows or order.sample_rows:
        return True
    if formats.suffix_of(order.source) not in formats.STREAMED:
        return False
    n, width = pieces.estimated_shape(order.source)
    is_text = formats.suffix_of(order.source) in formats.SEPARATORS
    # Which columns are labels is not known yet; what they are matters little here.
    needed = memory.table_bytes(n, width, is_text=is_text) + order.method._fit_bytes(n, width, max(width // 4, 1))
    available = memory.available_bytes()
    if needed <= available:
        return False
    size = (
        f"{order.source} has about {n:,} rows and would need about {memory.shown(needed)} of memory; "
        f"{memory.shown(available)} are available"
    )
    if can_stream(order):
        order.progress.note(f"{size}: streaming")
        return True
    raise MemoryEstimateError(
        f"{size}, and {type(order.method).__name__} needs all rows at once. Choose a method that can stream "
        f"({_able_to_stream()}), take a sample of the rows, or set {memory.LIMIT_VARIABLE}."
    )


def can_stream(order: Order) -> bool:
    """Whether the method can tell the degrees of rows that it was not fitted on."""
    return hasattr(order.method, "enhance")


def _able_to_stream() -> str:
    return ", ".join(name for name, cls in enhance.methods().items() if hasattr(cls(), "enhance"))
