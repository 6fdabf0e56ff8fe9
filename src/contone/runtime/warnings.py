"""One way to warn: the warning points at the line outside contone that led to it, and a call gives three at most."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

PACKAGE = str(Path(__file__).resolve().parents[1])
MOST = 3
"""Warnings of one call; the last of them counts the others."""
held: ContextVar[list[warnings.WarningMessage] | None] = ContextVar("contone_warnings", default=None)
"""What the public call that is under way has warned of; None where warnings are issued at once."""


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the caller's line, whether it called `fit`, `fit_enhance` or anything else of contone.

    Python's own `skip_file_prefixes` does this from version 3.12 on.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    kept = held.get()
    if kept is None:
        warnings.warn(message, category, stacklevel=level)
        return
    with warnings.catch_warnings(record=True) as caught:  # nothing is caught where such a warning is not wanted
        warnings.warn(message, category, stacklevel=level)
    said = {str(entry.message) for entry in kept}
    kept += [entry for entry in caught if str(entry.message) not in said]


@contextmanager
def recorded() -> Iterator[list[warnings.WarningMessage]]:
    """All that is warned of inside, as a list; a call that is under way does not say it."""
    before = held.set(None)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        held.reset(before)


def issue(kept: list[warnings.WarningMessage]) -> None:
    """What a call has warned of: each thing once, three things at most, the rest counted."""
    for number, entry in enumerate(kept[:MOST], start=1):
        more = f" ({len(kept) - MOST} more warnings are not shown.)" * (number == MOST < len(kept))
        warnings.warn_explicit(f"{entry.message}{more}", entry.category, entry.filename, entry.lineno)
