"""The two streams: results go to stdout, messages go to stderr.

Names from files are shown with their control characters escaped: a column name must not move the cursor, set the title
of the window or write over what was said before.
"""

from __future__ import annotations

import json
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from contone.cli import install
from contone.exceptions import MissingExtraError
from contone.runtime.progress import Progress as FileProgress
from contone.runtime.progress import Report, listening

NARROW = 90
"""Below this many columns, listings are stacked instead of set as a table."""


def out() -> Console:
    """Where results go. Made anew each time, so that a redirected stream is seen."""
    return Console(highlight=False)


def messages() -> Console:
    """Where everything else goes."""
    return Console(stderr=True, highlight=False)


def say(message: str, style: str = "") -> None:
    """Print one message to stderr, never wrapped in the middle of a path."""
    messages().print(clean(message), style=style, markup=False, soft_wrap=True)


def clean(text: str) -> str:
    """Text that a terminal shows and does not obey: control characters and broken ones as escapes, line ends kept.

    Examples
    --------
    >>> clean("calm" + chr(27) + "[2J" + chr(0x202E) + "happy")
    'calm\\\\x1b[2J\\\\u202ehappy'
    """
    return "".join(c.encode("unicode_escape").decode("ascii") if _is_unsafe(c) else c for c in text)


def _is_unsafe(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in REORDERING


REORDERING = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
"""Characters that make text run the other way, so that a line does not say what it seems to say."""


def plain_text(text: str) -> Text:
    """Text for a table, without markup and without orders to the terminal."""
    return Text(clean(text))


def print_json(value: Any) -> None:
    """A result for programs."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def need_report() -> None:
    """Refuse before any work what would be drawn or tested after it, where the extra `report` is not installed."""
    for module in ("matplotlib", "scikit_posthocs"):
        if find_spec(module) is None:
            raise MissingExtraError(f"Pages and pictures need {module}, which is not installed: {install(module)}.")


def usage_error(message: str, option: str) -> typer.BadParameter:
    """An error in what was typed: exit code 2."""
    return typer.BadParameter(clean(message), param_hint=option)


@contextmanager
def bar(message: str, *columns: ProgressColumn, total: float | None = None, done: int = 0) -> Iterator[_Task]:
    """A bar with these columns on a terminal, gone at the end."""
    shown = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *columns, TimeElapsedColumn())
    with Progress(*shown, console=messages(), transient=True) as progress:
        yield _Task(progress, progress.add_task(clean(message), total=total, completed=done))


class _Task(NamedTuple):
    progress: Progress
    number: TaskID


@contextmanager
def working(message: str, after: Callable[[], str] | None = None) -> Iterator[None]:
    """Show that something goes on: a spinner and a clock on a terminal; the line that stays is `after()` or message."""
    if messages().is_terminal:
        with bar(message):
            yield
        say(message if after is None else after())
        return
    if after is None:
        say(message)
    yield
    if after is not None:
        say(after())


LONG_FIT = 20.0
"""Seconds from which on a fit is announced with the time that it will take."""
FEW_STEPS = 3
"""Steps after which the time of a fit is estimated."""


@contextmanager
def fitting(message: str) -> Iterator[None]:
    """Around a fit: on a terminal an estimate of a long one and a bar, as soon as its first steps are done."""
    if not messages().is_terminal:
        say(message)
        yield
        return
    with bar(message, BarColumn(), TimeRemainingColumn()) as task:
        announced: list[str] = []

        def hear(report: Report) -> None:
            if report.done >= FEW_STEPS and report.expected_seconds >= LONG_FIT and report.name not in announced:
                announced.append(report.name)
                line = f"  about {shown_time(report.expected_seconds)} for {report.total} steps of {report.name}"
                task.progress.console.print(clean(line), markup=False, soft_wrap=True)
            task.progress.update(task.number, completed=report.done, total=report.total)

        with listening(hear):
            yield
    say(message)


def shown_time(seconds: float) -> str:
    """A rough time in words.

    Examples
    --------
    >>> shown_time(42.3), shown_time(100), shown_time(8000)
    ('42 s', '2 min', '2.2 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def counting(message: str, total: int, done: int = 0) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, lines elsewhere, for `total` steps of which `done` are there; call the result per step."""
    if messages().is_terminal:
        with bar(message, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), total=total, done=done) as task:
            yield lambda: task.progress.advance(task.number)
        say(message)
        return
    say(f"{message} ({total} parts)")
    steps = count(done + 1)

    def advance() -> None:
        step = next(steps)
        if step * 10 // total > (step - 1) * 10 // total:  # at most ten lines
            say(f"  {step} of {total}")

    yield advance


class TerminalProgress(FileProgress):
    """What work on a file says, as messages and bars on stderr."""

    note = staticmethod(say)
    working = staticmethod(working)
    fitting = staticmethod(fitting)
    counting = staticmethod(counting)

    def warn(self, message: str) -> None:
        say(message, style="yellow")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings of the library as one line each on stderr, without the source line that Python shows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for text in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)):
                say(f"warning: {text}", style="yellow")
