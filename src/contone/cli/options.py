"""Options that several commands share: one home for their names, their words and their checks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="NAMES",
        help="Label columns: a,b,c; 'genre_*'; last:6; f10:f16; @names.txt; labels.xml. "
        "Default: what the format says (ARFF, libsvm).",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", "-f", metavar="NAMES", help="Default: every other numeric column that is not an id."),
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="NAMES", help="Numeric columns to carry along, not to learn from."),
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
Item = Annotated[
    str | None, typer.Option("--item", metavar="NAME", help="Column of the item, for one row per (item, label).")
]
Worker = Annotated[
    str | None,
    typer.Option("--worker", metavar="NAME", help="Column of the annotator, for one row per (item, annotator, label)."),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option("--categorical", metavar="NAMES", help="Features whose entries name classes: one column per class."),
]
Text = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="NAMES", help="Columns of free text to learn from; others are carried along."),
]
Missing = Annotated[
    str, typer.Option("--missing", metavar="HOW", help="Missing features: impute (with an indicator), drop, error.")
]
Unlabelled = Annotated[
    str,
    typer.Option("--unlabelled", metavar="HOW", help="Rows without a label: method (its own way), predict, drop."),
]

# ------------------------------------------------------------------------------------------------------ the method

Method = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="See: contone methods; best (chosen on a rehearsal); or a class of your own, MODULE:CLASS. "
        "Default: inversion.",
    ),
]
Preset = Annotated[str | None, typer.Option("--preset", metavar="NAME", help="Settings of that name, e.g. paper.")]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="KEY=VALUE", help="A parameter of the method, may be repeated."),
]
Rule = Annotated[
    str | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help="How the labels were made: main, everything, bar, best, order, auto; or cumulative:0.9, "
        "threshold:0.2, topk:3. Default: main (main labels, more than half of the weight).",
    ),
]

Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust", metavar="MODULE:CLASS", help="A method of your own that may be in the model; installed ones may be."
    ),
]

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
Suffix = Annotated[
    str, typer.Option("--suffix", help="Name of the new columns: label + suffix. '' replaces the labels.")
]
Intervals = Annotated[
    float | None,
    typer.Option("--intervals", metavar="LEVEL", help="Add LABEL_low and LABEL_high at this level, e.g. 0.9."),
]
Top = Annotated[
    int | None, typer.Option("--top", metavar="K", min=1, help="Add the names of the first K labels: top_1, top_2.")
]
DegreesAs = Annotated[
    str,
    typer.Option(
        "--degrees-as", metavar="WAY", help="columns; or one column called degrees that holds a list or a struct."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
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
