"""Which way an order goes: the whole table at once, or piece by piece. The two ways do not know each other."""

from __future__ import annotations

from contone import enhance
from contone.exceptions import ArgumentError, MemoryEstimateError
from contone.runtime import memory
from contone.runtime.files import remove_leftovers
from contone.tables import formats, pieces, streaming, whole
from contone.tables.order import STDOUT, EnhancedFile, Order, check_output, check_source


def carry_out(order: Order) -> EnhancedFile:
    """Check the places, choose the way, and go it."""
    check_source(order.source)
    if not formats.suffix_of(order.source):
        raise ArgumentError(f"{order.source} must end in one of {', '.join(formats.FORMATS)}.", "source")
    if order.target != STDOUT:
        if not formats.suffix_of(order.target) or order.target.lower().endswith(".gz"):
            raise ArgumentError(f"{order.target} must end in one of {', '.join(formats.FORMATS)}.", "target")
        check_output(order.target, overwrite=order.overwrite)
        remove_leftovers(order.target)
    in_pieces = is_streamed(order)
    if in_pieces and not can_stream(order):
        raise ArgumentError(
            f"{type(order.method).__name__} needs all rows at once and cannot stream; these methods can: "
            f"{_able_to_stream()}.",
            "method",
        )
    return streaming.enhance_in_pieces(order) if in_pieces else whole.enhance_whole(order)


def is_streamed(order: Order) -> bool:
    """What was asked for; else by an estimate of the memory that the whole table would take."""
    if order.stream is not None:
        return order.stream
    if order.chunk_rows or order.sample_rows:
        return True
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
