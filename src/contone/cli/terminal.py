"""The two streams: results go to stdout, messages to stderr."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

NARROW = 90
"""Below this many columns, listings are stacked instead of set as a table."""


def out() -> Console:
    """Where results go. Made anew each time, so that a redirected stream is seen."""
    return Console(highlight=False)


def talk() -> Console:
    """Where everything else goes."""
    return Console(stderr=True, highlight=False)


def say(message: str, style: str = "") -> None:
    """Print one message to stderr, never wrapped in the middle of a path."""
    talk().print(message, style=style, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """A result for programs."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def usage_error(message: str, option: str) -> typer.BadParameter:
    """An error in what was typed: exit code 2."""
    return typer.BadParameter(message, param_hint=option)


@contextmanager
def working(message: str, after: Callable[[], str] | None = None) -> Iterator[None]:
    """Show that something goes on: a spinner and a clock on a terminal; the line that stays is `after()` or message."""
    console = talk()
    if not console.is_terminal:
        if after is None:
            say(message)
        yield
        if after is not None:
            say(after())
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(message, total=None)
        yield
    say(message if after is None else after())


@contextmanager
def counting(message: str, total: int, done: int = 0) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, lines elsewhere, for `total` steps of which `done` are there; call what it gives a step."""
    console = talk()
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(message, total=total, completed=done)
            yield lambda: progress.advance(task)
        say(message)
        return
    count = done
    say(f"{message} ({total} parts)")

    def advance() -> None:
        nonlocal count
        count += 1
        if count * 10 // total > (count - 1) * 10 // total:  # at most ten lines
            say(f"  {count} of {total}")

    yield advance


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
