"""What tables need beside the library itself."""

from __future__ import annotations

from contone.exceptions import MissingExtraError


def need_polars() -> None:
    """Say what to install where the package that reads and writes tables is missing."""
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "Reading and writing tables needs polars, which is not installed: pip install 'contone[cli]'."
        ) from error
