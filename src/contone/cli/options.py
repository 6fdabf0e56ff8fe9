"""Options that several commands share, as groups: one home for their names, their words and their defaults.

A command names a group as one parameter, ``reading: Reading``; `grouped` turns each field of the group into an option.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters may be groups: each field of a group becomes an option of its own."""
    parameters, groups = [], dict[str, Any]()
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        group = parameter.annotation
        if not is_dataclass(group):
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        groups[name], kinds = group, get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(f.name, parameter.KEYWORD_ONLY, default=f.default, annotation=kinds[f.name])
            for f in fields(group)
        ]

    def call(**given: Any) -> None:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**made, **given)

    call.__name__, call.__doc__, call.__module__ = command.__name__, command.__doc__, command.__module__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


class Group:
    """A group of options; what was given of them are arguments of the library."""

    def given(self) -> dict[str, Any]:
        """The options by the names of the library's arguments; those left out are left to its defaults."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in found.items() if value is not None}


# ------------------------------------------------------------------------------------------------------- the table

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; a row is an instance.",
    ),
]
Names = list[str] | None
Item = Annotated[
    str | None, typer.Option("--item", metavar="NAME", help="Column of the item, for one row per (item, label).")
]
Worker = Annotated[
    str | None,
    typer.Option("--worker", metavar="NAME", help="Column of the annotator, for one row per (item, annotator, label)."),
]
Graded = Annotated[
    Path | None,
    typer.Option(
        "--graded",
        metavar="GRADED",
        exists=True,
        dir_okay=False,
        help="Degrees of some rows, graded by a person: see contone suggest.",
    ),
]
Unlabelled = Annotated[
    str,
    typer.Option("--unlabelled", metavar="HOW", help="Rows without a label: method (its own way), predict, drop."),
]


Separator = Annotated[
    str | None, typer.Option("--separator", metavar="CHAR", help="Between columns of a text file. Default: found out.")
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", metavar="CHAR", help="Decimal mark: . or a comma. Default: found out.")
]
LabelSeparator = Annotated[
    str | None,
    typer.Option("--label-separator", metavar="TEXT", help="Between the labels of one column such as a|b|c."),
]


@dataclass
class ReadingText(Group):
    """How a text file is written."""

    separator: Separator = None
    decimal: Decimal = None
    label_separator: LabelSeparator = None


@dataclass
class Reading(Group):
    """Which columns are what, and how the file is read."""

    labels: Annotated[
        Names,
        typer.Option(
            "--labels",
            "-l",
            metavar="NAMES",
            help="Label columns: a,b,c; 'genre_*'; last:6; f10:f16; @names.txt; labels.xml. "
            "Default: what the format says (ARFF, libsvm).",
        ),
    ] = None
    features: Annotated[
        Names,
        typer.Option(
            "--features", "-f", metavar="NAMES", help="Default: every other numeric column that is not an id."
        ),
    ] = None
    ids: Annotated[
        Names,
        typer.Option(
            "--id", metavar="NAMES", help="Columns to carry along, not to learn from; graded rows are found by them."
        ),
    ] = None
    categorical: Annotated[
        Names,
        typer.Option(
            "--categorical", metavar="NAMES", help="Features whose entries name classes: one column per class."
        ),
    ] = None
    text: Annotated[
        Names,
        typer.Option("--text", metavar="NAMES", help="Columns of free text to learn from; others are carried along."),
    ] = None
    separator: Separator = None
    decimal: Decimal = None
    label_separator: LabelSeparator = None
    item: Item = None
    missing: Annotated[
        str,
        typer.Option("--missing", metavar="HOW", help="Missing features: impute (with an indicator), drop, error."),
    ] = "impute"
    unlabelled: Unlabelled = "method"


@dataclass
class ReadingToPredict(Reading):
    """The same, where rows without a label are predicted unless something else is asked for."""

    unlabelled: Unlabelled = "predict"


@dataclass
class ReadingToCompare(Reading):
    """The same, where rows without a label are left out unless something else is asked for."""

    unlabelled: Unlabelled = "drop"


# ------------------------------------------------------------------------------------------------------ the answer

Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Where to write: .csv, .tsv, .parquet, .arrow, .jsonl or .xlsx; - is CSV on stdout.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust", metavar="MODULE:CLASS", help="A method of your own that may be in the model; installed ones may be."
    ),
]


@dataclass
class Writing(Group):
    """Which columns are added to the table."""

    suffix: Annotated[
        str, typer.Option("--suffix", help="Name of the new columns: label + suffix. '' replaces the labels.")
    ] = "_degree"
    overwrite: Force = False
    digits: Annotated[
        int | None,
        typer.Option("--digits", metavar="N", min=1, max=15, help="Decimals of the degrees; rows still sum to 1."),
    ] = None
    intervals: Annotated[
        float | None,
        typer.Option("--intervals", metavar="LEVEL", help="Add LABEL_low and LABEL_high at this level, e.g. 0.9."),
    ] = None
    top: Annotated[
        int | None, typer.Option("--top", metavar="K", min=1, help="Add the names of the first K labels: top_1, top_2.")
    ] = None
    degrees_as: Annotated[
        str,
        typer.Option(
            "--degrees-as", metavar="WAY", help="columns; or one column called degrees that holds a list or a struct."
        ),
    ] = "columns"


# -------------------------------------------------------------------------------------------------- runs of experiments


@dataclass
class Run(Group):
    """How a grid of experiments is run."""

    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each random method. [default: 3]")] = None
    max_rows: Annotated[
        int | None,
        typer.Option(min=2, help="A random sample of this many rows stands for every larger data set."),
    ] = None
    jobs: Annotated[int, typer.Option(help="Number of processes; -1 for one per core.")] = -1
    backend: Annotated[str, typer.Option(help="loky (this machine) or dask (a cluster).")] = "loky"
    address: Annotated[str, typer.Option(help="Scheduler of the dask cluster, e.g. tcp://host:8786.")] = ""
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole summary as JSON.")] = False
