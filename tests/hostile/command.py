"""The command line in this process: what it printed, and how it ended. An error that nobody foresaw is an exception."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from contone import cli


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def _raise(error: Exception) -> str:
    raise error


def run(*arguments: Any) -> Ended:
    """``contone ARGUMENTS``; an error that has no sentence of its own is raised."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["contone", *map(str, arguments)]),
        patch.object(cli, "_locate", _raise),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Ended(code, out.getvalue(), err.getvalue())
