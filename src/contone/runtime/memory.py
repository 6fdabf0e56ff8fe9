"""How much memory work will take and how much there is, so that it fails before it starts and not hours later.

The estimates are upper ends of what was measured (benchmarks/scale.py), not guarantees. `CONTONE_MEMORY_LIMIT` in the
environment overrides what is found on the machine: a size such as ``8GB``, or ``off`` for no limit.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from contone.exceptions import InputError, MemoryEstimateError

LIMIT_VARIABLE = "CONTONE_MEMORY_LIMIT"
UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def fit_bytes(n: int, d: int, q: int, n_neighbors: int = 0) -> float:
    """What a method that grows with the number of rows takes beyond X (n, d) and L (n, q).

    Two copies of X (scaled, and single precision twice for a neighbour search), about a dozen matrices of the shape of
    L in a solver, and for a graph the neighbours, the edges both ways and their normalised copy: 100 bytes a neighbour.
    """
    return float(n) * (16 * d + 100 * q + 100 * n_neighbors)


def table_bytes(n: int, n_columns: int, *, is_text: bool) -> float:
    """What a table takes that is read whole, with the arrays made from it and the table that is written.

    A cell of a text file is kept as text (16 bytes or more) and as a number.
    """
    return float(n) * n_columns * (64 if is_text else 32)


def refuse_dense(what: object, n: int, n_columns: int) -> None:
    """Refuse a sparse table of n rows and n_columns that does not fit into memory once its zeros are written out."""
    needed, available = table_bytes(n, n_columns, is_text=False), available_bytes()
    if needed > available:
        raise MemoryEstimateError(
            f"{what} is sparse: its {n:,} rows and {n_columns:,} columns with all zeros would take about "
            f"{shown(needed)}, and {shown(available)} are available. Read it in Python (for libsvm: "
            "sklearn.datasets.load_svmlight_file) and hand the sparse matrix to contone.Inversion, which keeps it "
            f"sparse; or set {LIMIT_VARIABLE} if you know better."
        )


def user_limit() -> float | None:
    """The limit that the user has set, in bytes; None where there is none."""
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    return parse_size(given) if given else None


def available_bytes() -> float:
    """Memory that can be taken now without pushing others out; infinite where nothing is known.

    It is the user's limit, or the least that the machine and the process's control group (a container) leave.
    """
    limit = user_limit()
    return min(_machine(), _control_group()) if limit is None else limit


def parse_size(text: str) -> float:
    """A size in bytes from text such as 512MB, 8 GB, 8GiB, 1e9; infinite for "off".

    Examples
    --------
    >>> parse_size("1.5GB"), parse_size("2GiB"), parse_size("off")
    (1500000000.0, 2147483648.0, inf)
    """
    if text.strip().lower() in ("off", "none", "inf"):
        return math.inf
    found = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([kmgt]?i?)b?\s*", text, flags=re.IGNORECASE)
    if found is None or found[2].upper() not in UNITS:
        raise InputError(f"{LIMIT_VARIABLE}={text!r} is not a size: write for example 8GB, or off.")
    return float(found[1]) * UNITS[found[2].upper()]


def shown(size: float) -> str:
    """A size for people.

    Examples
    --------
    >>> shown(1.94e9), shown(3.2e7)
    ('1.9 GB', '32 MB')
    """
    if size >= 1e12:
        return f"{size / 1e12:,.1f} TB"
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _machine() -> float:
    """What the operating system calls available."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), flags=re.MULTILINE)
        if found:
            return float(found[1]) * 1024
    except OSError:
        pass
    try:  # not Linux: all of the memory, for want of anything better
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return math.inf


def _control_group() -> float:
    """What the container leaves; cached file pages count as free, as the kernel drops them on demand."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        if limit == "max":
            return math.inf
        used = float((CGROUP / "memory.current").read_text())
        cached = re.search(r"^inactive_file (\d+)", (CGROUP / "memory.stat").read_text(), flags=re.MULTILINE)
        return float(limit) - used + (float(cached[1]) if cached else 0.0)
    except (OSError, ValueError):
        return math.inf
