"""The two streams: results go to stdout, messages go to stderr.

Names from files are shown with their control characters escaped: a column name must not move the cursor, set the title
of the window or write over what was said before.
"""

import json
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from typing import Any, TypeVar

import typer
from rich import progress as bars
from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from contone.cli import install
from contone.exceptions import MissingExtraError
from contone.runtime.progress import Progress as FileProgress
from contone.runtime.progress import listening

Result = TypeVar("Result")


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


def print_entry(name: str, note: str, *lines: str) -> None:
    """An entry of a listing that fits any terminal: a name with a note in brackets, and lines below it."""
    out().print(Text.assemble((clean(name), "bold"), f" ({clean(note)})"))
    for line in filter(None, lines):
        out().print(Padding(Text(clean(line)), (0, 0, 0, 4)))


def print_record(record: Mapping[str, object]) -> None:
    """Names and values, one line each, lists and mappings with commas; what is None or empty is left out."""
    table = Table.grid(Column(no_wrap=True, style="dim"), Column(overflow="fold"), padding=(0, 2))
    for key, value in record.items():
        if value not in (None, [], {}):
            entries = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
            table.add_row(key, Text(clean(", ".join(map(str, entries)) if isinstance(entries, list) else str(entries))))
    out().print(table)


def print_json(value: Any) -> None:
    """A result for programs; what a terminal would obey is escaped as JSON escapes it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo("".join(f"\\u{ord(c):04x}" if _is_unsafe(c) else c for c in text))


def plain(value: object) -> bool | int | float | str | None:
    """The value of a parameter for JSON: an estimator or a list as Python writes it."""
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


def need_report() -> None:
    """Refuse before any work what would be drawn or tested after it, where the extra `report` is not installed."""
    for module in ("matplotlib", "scikit_posthocs"):
        if find_spec(module) is None:
            raise MissingExtraError(f"Pages and pictures need {module}, which is not installed: {install(module)}.")


def usage_error(message: str, option: str) -> typer.BadParameter:
    """An error in what was typed: exit code 2."""
    return typer.BadParameter(clean(message), param_hint=option)


@contextmanager
def bar(
    message: str, *columns: bars.ProgressColumn, total: float | None = None, done: int = 0
) -> Iterator[tuple[bars.Progress, bars.TaskID]]:
    """A bar with these columns on a terminal, gone at the end."""
    title = bars.TextColumn("{task.description}", markup=False)
    with bars.Progress(
        bars.SpinnerColumn(), title, *columns, bars.TimeElapsedColumn(), console=messages(), transient=True
    ) as progress:
        yield progress, progress.add_task(clean(message), total=total, completed=done)


@contextmanager
def working(message: str) -> Iterator[None]:
    """Show that something goes on: on a terminal a bar, with the time that is left where that is known."""
    if not messages().is_terminal:
        say(message)
        yield
        return
    with (
        bar(message, bars.BarColumn(), bars.TimeRemainingColumn()) as (shown, task),
        listening(lambda report: shown.update(task, completed=report.done, total=report.total)),
    ):
        yield
    say(message)


@contextmanager
def counting(message: str, total: int, done: int = 0) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, lines elsewhere, for `total` steps of which `done` are there; call the result per step."""
    if messages().is_terminal:
        columns = (bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeRemainingColumn())
        with bar(message, *columns, total=total, done=done) as (shown, task):
            yield lambda: shown.advance(task)
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
    counting = staticmethod(counting)

    def warn(self, message: str) -> None:
        say(message, style="yellow")


def run(function: Callable[..., Result], *arguments: Any, **settings: Any) -> Result:
    """What a function of the library gives that works on a file: its progress and its warnings on stderr."""
    with plain_warnings():
        return function(*arguments, progress=TerminalProgress(), **settings)


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
