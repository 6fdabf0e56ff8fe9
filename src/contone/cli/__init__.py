"""Thin commands over the library: one group of commands per file, put together in `app.py`."""

import io
import os
import sys
import traceback
from contextlib import suppress
from typing import NoReturn

from contone.exceptions import MemoryEstimateError
from contone.runtime.addresses import check_addresses

EXTRAS = {
    **dict.fromkeys(("typer", "click", "rich", "polars", "jinja2"), "cli"),
    **dict.fromkeys(("matplotlib", "scikit_posthocs"), "report"),
}
"""Modules that the commands need, and the extra that brings each."""
INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of the signal."""


def main() -> None:
    """Run the command line; say what to install where its dependencies are not there. No traceback without --debug."""
    _prepare_streams()
    try:
        check_addresses("the command line")
        from contone.cli.app import app

        app(prog_name="contone", standalone_mode=True)
    except KeyboardInterrupt:
        _leave("interrupted", code=INTERRUPTED)
    except SystemExit as end:
        _flush(end)
        raise
    except Exception as error:
        missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if missing in EXTRAS:
            _leave(f"contone: this needs {missing}, which is not installed: {install(missing)}", code=2)
        if "--debug" in sys.argv:
            raise
        is_plain = isinstance(error, OSError | MemoryEstimateError)
        _leave(f"error: {error}" if is_plain else _locate(error), code=1)


def install(module: str) -> str:
    """How to get a module that is missing."""
    return f"pip install 'contone[{EXTRAS[module]}]'"


def _locate(error: Exception) -> str:
    """The message of an unexpected error, and where it was raised: in a user's own method, or in contone."""
    from contone.cli.terminal import clean

    *_, raised = traceback.extract_tb(error.__traceback__)
    said = f"{type(error).__name__}: {error}".replace("\n", " ")
    where = f"{os.path.basename(raised.filename)}, line {raised.lineno}, in {raised.name}"
    return (
        f"error: unexpected {clean(said)} ({clean(where)})\n"
        "'contone --debug ...' shows the whole traceback. If this is not in a method of your own, please report it."
    )


class _Closed(io.TextIOBase):
    """In place of a stdout that is closed: an error where something is written, none where nothing is."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError("stdout is closed: a result has nowhere to go")


def _prepare_streams() -> None:
    """Characters that a stream cannot show are escaped; a closed stderr swallows, a closed stdout is an error."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush(end: SystemExit) -> None:
    """A full disk behind stdout shows when the last of it is written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _close_stdout()
        if end.code in (0, None):
            _leave(f"error: cannot write to stdout: {error.strerror or error}", code=1)


def _leave(message: str, *, code: int) -> NoReturn:
    with suppress(OSError):
        print(message, file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        _close_stdout()
    sys.exit(code)


def _close_stdout() -> None:
    """Point stdout elsewhere, so that Python's own flush at the end says nothing."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
