"""Places to read from and to write to, checked before any work: nothing is overwritten unasked.

One function compares all targets of a command with all its inputs and with each other. `overwrite` (``--force``) lets a
file that is there be replaced, but never an input: only the table itself may take the place of its source.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from contone.exceptions import ArgumentError, DataError, OutputError
from contone.runtime.files import check_regular, check_target, remove_leftovers
from contone.tables import arff
from contone.tables.settings import STDOUT

Place = str | os.PathLike[str]


def check_source(path: Path) -> None:
    """Refuse what is not a regular file: a pipe could be read only once, and may never end."""
    try:
        if not _is_utf8(path):
            raise DataError(f"{path} has a name that is not UTF-8, which the readers of tables cannot open: rename it.")
        if not path.exists():
            raise DataError(f"{path} does not exist.")
        check_regular(path)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error


def check_targets(
    inputs: Iterable[Place], targets: Mapping[str, Place | None], *, overwrite: bool, over_source: Place | None = None
) -> None:
    """Refuse before any work a target that could not be written after it, that is an input, or that is written twice.

    Parameters
    ----------
    inputs : paths
        Every file that is read; the list of labels beside an ARFF file is among them.
    targets : mapping from argument to path
        Every file that is written, by the argument that names it; None and ``-`` (stdout) are passed over.
    overwrite : bool
        Whether what is there may be replaced.
    over_source : path or None
        The one input that the argument "target" may replace, if `overwrite` says so: the table it is made from.
    """
    sources, seen = list(inputs), dict[str, str]()
    sources += [found for source in sources if (found := arff.list_beside(Path(source)))]
    for argument, place in targets.items():
        if place is None or str(place) == STDOUT:
            continue
        target = os.fspath(place)
        if not _is_utf8(Path(target)):
            raise ArgumentError(f"{target} is a name that is not UTF-8: choose another one.", argument)
        try:
            check_target(target, overwrite=overwrite)
        except OutputError as error:
            raise ArgumentError(str(error), argument) from error
        for source in sources:
            if _is_same(target, source) and not (argument == "target" and over_source is not None
                                                 and _is_same(source, over_source)):  # fmt: skip
                raise ArgumentError(f"{target} is read by this command and is not overwritten: name another.", argument)
        for other, written in seen.items():
            if _is_same(target, written):
                raise ArgumentError(f"{target} is named for two outputs ({other} and {argument}): name two.", argument)
        seen[argument] = target
        remove_leftovers(target)


def _is_same(one: Place, other: Place) -> bool:
    """Whether two names are one file, by whatever links and folders."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there yet
        first, second = (os.path.normcase(os.path.realpath(place)) for place in (one, other))
        return first == second


def _is_utf8(path: Path) -> bool:
    try:
        os.path.realpath(path).encode("utf-8")
    except (UnicodeEncodeError, OSError, ValueError):
        return False
    return True
