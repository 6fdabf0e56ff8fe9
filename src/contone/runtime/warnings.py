"""One way to warn: the warning points at the line outside contone that led to it."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).resolve().parents[1])


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the caller's line, whether it called `fit`, `fit_enhance` or anything else of contone.

    Python's own `skip_file_prefixes` does this from version 3.12 on.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
