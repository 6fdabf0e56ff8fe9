"""What a bug report needs to know: contone, Python, the machine, the dependencies, BLAS and the threads."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version

from threadpoolctl import threadpool_info

from contone.runtime import machine
from contone.runtime.machine import n_threads

PACKAGE = "contone"


def show_versions() -> None:
    """Print the versions of contone, Python and the dependencies, and what is known about the machine.

    Please put this into bug reports. Nothing is imported for it, and nothing is sent anywhere.

    Examples
    --------
    >>> import contone
    >>> contone.show_versions()  # doctest: +ELLIPSIS
    System
      contone ...
    """
    for title, entries in collect().items():
        print(title)
        width = max(map(len, entries), default=0)
        for name, value in entries.items():
            print(f"  {name.ljust(width)}  {value}")


def collect() -> dict[str, dict[str, str]]:
    """Section -> name -> value, all text."""
    needed: set[str] = set()
    optional: set[str] = set()
    for requirement in _requirements():
        name, extra = _name_and_extra(requirement)
        (optional if extra else needed).add(name)
    return {
        "System": _system(),
        "Dependencies": _versions(needed),
        "Optional": _versions(optional - needed - {PACKAGE}),
        "Threads": _threads(),
    }


def _system() -> dict[str, str]:
    return {
        PACKAGE: _version(PACKAGE),
        "python": sys.version.replace("\n", " "),
        "executable": sys.executable,
        "platform": platform.platform(),
        "processors": str(os.cpu_count()),
        "memory available": machine.shown(machine.available_bytes()),
    }


def _threads() -> dict[str, str]:
    pools = {
        f"{pool['internal_api']} ({pool['prefix']})": f"{pool.get('version') or 'version unknown'}, "
        f"{pool['num_threads']} threads"
        for pool in threadpool_info()
    }
    variable = "OMP_NUM_THREADS"
    return {"contone uses": str(n_threads()), variable: os.environ.get(variable, "not set"), **pools}


def _requirements() -> list[str]:
    """What contone's own metadata declares, such as ``numpy>=2.0`` or ``typer>=0.15; extra == 'cli'``."""
    try:
        return requires(PACKAGE) or []
    except PackageNotFoundError:  # run from a source tree that was never installed
        return []


def _name_and_extra(requirement: str) -> tuple[str, str]:
    """The package that a requirement names, and the extra that it belongs to (empty for none).

    Examples
    --------
    >>> _name_and_extra("dask[array,distributed]>=2024.8; extra == 'scale'")
    ('dask', 'scale')
    """
    name = re.match(r"[\w.-]+", requirement)
    extra = re.search(r"""extra\s*==\s*['"]([\w.-]+)['"]""", requirement)
    return name[0] if name else requirement, extra[1] if extra else ""


def _versions(packages: set[str]) -> dict[str, str]:
    return {name: _version(name) for name in sorted(packages, key=str.lower)}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
