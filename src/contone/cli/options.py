"""Options that several commands share, as groups: one home for their names, their words and their defaults.

A command says in its signature what its options are called (`flag`) and in its docstring what they mean. It names a
group as one parameter, ``reading: Reading``; `command` turns each field of the group into an option of its own.
"""

import inspect
import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def flag(text: str, **limits: Any) -> Any:
    """An option by its names and its metavar, ``"--labels -l NAMES"``; `limits` as typer has them."""
    *names, last = text.split()
    return typer.Option(*names, *([last] if last.startswith("-") else []),
                        metavar=None if last.startswith("-") else last, **limits)  # fmt: skip


def argument(metavar: str) -> Any:
    """A file that must be there."""
    return typer.Argument(metavar=metavar, exists=True, dir_okay=False)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command for typer: groups are spread, and what its docstring says of parameters is their help."""
    parameters, groups = [], dict[str, Any]()
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        owner: Any = function
        spread = [(name, parameter.default, parameter.annotation)]
        if is_dataclass(parameter.annotation):
            owner = groups[name] = parameter.annotation
            kinds = get_type_hints(owner, include_extras=True)
            spread = [(f.name, f.default, kinds[f.name]) for f in fields(owner)]
        parameters += [
            inspect.Parameter(n, parameter.KEYWORD_ONLY, default=default, annotation=_with_help(kind, owner, n))
            for n, default, kind in spread
        ]

    def call(**given: Any) -> None:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        function(**made, **given)

    call.__name__, call.__module__ = function.__name__, function.__module__
    call.__doc__ = inspect.cleandoc(function.__doc__ or "").partition("\n\nParameters\n")[0]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _meaning(owner: Any, name: str) -> str:
    """What the docstring of a command or group, or of one it derives from, says of a parameter."""
    for place in getattr(owner, "__mro__", (owner,)):
        text = inspect.cleandoc(place.__doc__ or "")
        found = re.search(rf"^{name} : .*\n((?:    .*\n?)+)", text, flags=re.MULTILINE)
        if found is not None:
            return " ".join(found[1].split())
    return ""


def _with_help(kind: Any, owner: Any, name: str) -> Any:
    option = copy(kind.__metadata__[0])
    option.help = _meaning(owner, name)
    return Annotated[kind.__origin__, option]


class Group:
    """A group of options; what was given of them are arguments of the library."""

    def given(self) -> dict[str, Any]:
        """The options by the names of the library's arguments; those left out are left to its defaults."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in found.items() if value is not None}


Names = list[str] | None
File = Annotated[Path, argument("FILE")]
Output = Annotated[str, flag("--output -o OUT")]
Force = Annotated[bool, flag("--force")]
AsJson = Annotated[bool, flag("--json")]
Graded = Annotated[Path | None, flag("--graded GRADED", exists=True, dir_okay=False)]
Trust = Annotated[Names, flag("--trust MODULE:CLASS")]


@dataclass
class NewRows(Group):
    """How rows for a saved model are read.

    Attributes
    ----------
    labels : names
        Label columns: a,b,c; 'genre_*'; last:6; f10:f16; @names.txt; labels.xml. Default: what the format says (ARFF,
        libsvm, exports of annotation tools).
    item : name
        Column of the item, for several rows per item: one per label, or one per answer.
    worker : name
        Column of the person who answered; a pattern such as 'person_*' where each person has a column.
    question : name
        Which question of an export of Label Studio or Argilla.
    embeddings : path
        Features of the items, .npy in their order; or .npz with ids.
    separator : character
        Between columns of a text file. Default: detected.
    decimal : character
        Decimal mark: . or a comma. Default: detected.
    label_separator : text
        Between the labels of one column such as a|b|c.
    """

    labels: Annotated[Names, flag("--labels --label -l NAMES")] = None
    item: Annotated[str | None, flag("--item NAME")] = None
    worker: Annotated[str | None, flag("--worker NAME")] = None
    question: Annotated[str | None, flag("--question NAME")] = None
    embeddings: Annotated[Path | None, flag("--embeddings FILE", exists=True, dir_okay=False)] = None
    separator: Annotated[str | None, flag("--separator CHAR")] = None
    decimal: Annotated[str | None, flag("--decimal CHAR")] = None
    label_separator: Annotated[str | None, flag("--label-separator TEXT")] = None


@dataclass
class Reading(NewRows):
    """Which columns are what, how the file is read, and how its labels were made.

    Attributes
    ----------
    features : names
        Default: every other numeric column that is not an id.
    ids : names
        Columns to carry along, not to learn from; graded rows are found by them.
    categorical : names
        Features whose entries name classes: one column per class.
    text : names
        Columns of free text to learn from; others are carried along.
    missing : word
        Missing features: impute (with an indicator), drop, error.
    rule : text
        How the labels were made: main, everything, bar, best, order, auto; or cumulative:0.9, threshold:0.2, topk:3.
        Answers of people: votes (one label each), marks (all that hold), levels. Default: what such answers look like,
        and main (main labels, more than half of the weight) elsewhere.
    unlabelled : word
        Rows without a label: method (its own way), predict, drop.
    """

    features: Annotated[Names, flag("--features -f NAMES")] = None
    ids: Annotated[Names, flag("--id NAMES")] = None
    categorical: Annotated[Names, flag("--categorical NAMES")] = None
    text: Annotated[Names, flag("--text NAMES")] = None
    missing: Annotated[str, flag("--missing HOW")] = "impute"
    rule: Annotated[str | None, flag("--rule RULE")] = None
    unlabelled: Annotated[str, flag("--unlabelled HOW")] = "method"

    def files(self, *more: Path | None) -> list[str | Path]:
        """All files that are read, for `check_targets`: these, and those that the options name."""
        from contone.tables.settings import Reading as Settings

        return [*filter(None, more), *Settings(**self.given()).files]


@dataclass
class ReadingToPredict(Reading):
    """The same, where rows without a label are predicted unless something else is asked for."""

    unlabelled: Annotated[str, flag("--unlabelled HOW")] = "predict"


@dataclass
class ReadingToCompare(Reading):
    """The same, where rows without a label are left out unless something else is asked for."""

    unlabelled: Annotated[str, flag("--unlabelled HOW")] = "drop"


@dataclass
class Writing(Group):
    """Which columns are added to the table.

    Attributes
    ----------
    suffix : text
        Name of the new columns: label + suffix. '' replaces the labels.
    overwrite : bool
        Overwrite existing files.
    digits : int
        Decimals of the degrees; rows still sum to 1.
    intervals : float
        Add LABEL_low and LABEL_high at this level, e.g. 0.9.
    top : int
        Add the names of the K labels with the largest degrees: top_1, top_2.
    degrees_as : word
        columns; or one column called degrees that holds a list or a struct.
    """

    suffix: Annotated[str, flag("--suffix TEXT")] = "_degree"
    overwrite: Force = False
    digits: Annotated[int | None, flag("--digits N", min=1, max=15)] = None
    intervals: Annotated[float | None, flag("--intervals LEVEL")] = None
    top: Annotated[int | None, flag("--top K", min=1)] = None
    degrees_as: Annotated[str, flag("--degrees-as WAY")] = "columns"


@dataclass
class Run(Group):
    """How a grid of experiments is run.

    Attributes
    ----------
    seeds : int
        Seeds of each random method [default: 3].
    max_rows : int
        A random sample of this many rows stands for every larger data set.
    jobs : int
        Number of processes; -1 for one per core.
    backend : word
        loky (this machine) or dask (a cluster).
    address : text
        Scheduler of the dask cluster, e.g. tcp://host:8786.
    as_json : bool
        Print the whole summary as JSON.
    """

    seeds: Annotated[int | None, flag("--seeds N", min=1)] = None
    max_rows: Annotated[int | None, flag("--max-rows N", min=2)] = None
    jobs: Annotated[int, flag("--jobs N")] = -1
    backend: Annotated[str, flag("--backend NAME")] = "loky"
    address: Annotated[str, flag("--address URL")] = ""
    as_json: AsJson = False
