"""The command line in this process: what it printed, and how it ended. A traceback is an exception here."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from contone.cli import main


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def run(*arguments: Any) -> Ended:
    """``contone ARGUMENTS``; whatever leaves `main` but SystemExit is raised, as Python would print it."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["contone", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Ended(code, out.getvalue(), err.getvalue())
