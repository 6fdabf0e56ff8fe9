"""Long work reports how far it is to whoever listens; nobody does unless asked.

A loop says `reported(steps, total, name)`; the command line listens around a fit and shows the time that is left. The
work knows nothing of bars and terminals, and the listener nothing of the work. Every loop is noted once at its end in
the log `contone` of Python's `logging`, at the level INFO, where methods note their fits, too.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

Step = TypeVar("Step")
LOG = logging.getLogger("contone")


@dataclass(frozen=True)
class Report:
    """How far a loop is: `done` of `total` steps."""

    name: str
    done: int
    total: int


Listener = Callable[[Report], None]
listener: ContextVar[Listener | None] = ContextVar("contone_progress", default=None)


@contextmanager
def listening(hears: Listener) -> Iterator[None]:
    """Hear of the loops inside, one report per step."""
    before = listener.set(hears)
    try:
        yield
    finally:
        listener.reset(before)


def reported(steps: Iterable[Step], total: int, name: str) -> Iterator[Step]:
    """The same steps; a listener hears of each when it is done. Loops inside a step are not heard.

    Examples
    --------
    >>> heard = []
    >>> with listening(lambda report: heard.append((report.name, report.done, report.total))):
    ...     total = sum(x for x in reported([3, 4], 2, "sum") for _ in reported([0], 1, "inner"))
    >>> total, heard
    (7, [('sum', 1, 2), ('sum', 2, 2)])
    """
    hears, started, done = listener.get(), time.perf_counter(), 0
    if hears is not None:
        listener.set(None)
    try:
        for done, step in enumerate(steps, start=1):
            yield step
            if hears is not None:
                hears(Report(name, done, total))
    finally:
        if hears is not None:
            listener.set(hears)
        LOG.info("%s: %d of %d steps in %.2f s", name, done, total, time.perf_counter() - started)


def show_progress(steps: Iterable[Step], total: int, name: str, verbose: bool | None) -> Iterator[Step]:
    """The steps, reported to whoever listens, else behind a bar on stderr (None: on a terminal) where rich is there."""
    told: Iterable[Step] = reported(steps, total, name)
    if listener.get() is None and verbose is not False:
        with suppress(ImportError):
            from rich.console import Console
            from rich.progress import track

            console = Console(stderr=True)
            told = track(told, name, total, console=console, disable=verbose is None and not console.is_terminal)
    yield from told


class Progress:
    """Hears of notes, warnings and steps of work on a file, and says nothing.

    The library is silent; derive from it and override what you want to show, as the command line does.
    """

    def note(self, message: str) -> None:
        """Something worth knowing."""

    def warn(self, message: str) -> None:
        """Something that the user may want to act on."""

    def working(self, message: str) -> AbstractContextManager[None]:
        """Around a step, which may report how far it is (`contone.runtime.progress`)."""
        return nullcontext()

    def counting(self, message: str, total: int, done: int = 0) -> AbstractContextManager[Callable[[], None]]:
        """Around `total` equal steps of which `done` are there; call what it gives after each."""
        return nullcontext(lambda: None)
