"""What a bug report needs to know: contone, its dependencies, the machine, BLAS and the threads."""

import re
from importlib.metadata import PackageNotFoundError, requires, version

import sklearn

from contone.runtime import machine

PACKAGE = "contone"


def show_versions() -> None:
    """Print the versions of contone, Python and the dependencies, and what is known about the machine.

    Please put this into bug reports. Nothing is imported for it, and nothing is sent anywhere.

    Examples
    --------
    >>> import contone
    >>> contone.show_versions()  # doctest: +ELLIPSIS
    contone and what it uses:
    ...
    """
    print("contone and what it uses:")
    for name, found in collect().items():
        print(f"{name:>24}: {found}")
    sklearn.show_versions()


def collect() -> dict[str, str]:
    """Packages that contone declares with their versions, itself first; memory and threads that it may use."""
    try:
        declared = requires(PACKAGE) or []
    except PackageNotFoundError:  # run from a source tree that was never installed
        declared = []
    names = {re.split(r"[^\w.-]", requirement)[0] for requirement in declared} - {PACKAGE}
    return {
        **{name: _version(name) for name in (PACKAGE, *sorted(names, key=str.lower))},
        "memory available": machine.shown(machine.available_bytes()),
        "threads of contone": str(machine.n_threads()),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
