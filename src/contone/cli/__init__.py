"""Thin commands over the library: one group of commands a file, put together in `app.py`."""

from __future__ import annotations

import sys

EXTRA = frozenset({"typer", "click", "rich", "polars", "jinja2", "matplotlib", "scikit_posthocs"})
"""Modules of the optional dependency group `cli`."""


def main() -> None:
    """Run the command line; say what to install where its dependencies are not there."""
    try:
        from contone.cli.app import app

        app(prog_name="contone")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        print(
            f"contone: the command line needs {error.name}, which is not installed: pip install 'contone[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
