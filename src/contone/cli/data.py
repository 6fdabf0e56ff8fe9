"""`contone data list | fetch | info`: the data sets and where their files are."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from contone.cli import options, terminal
from contone.cli.options import flag
from contone.exceptions import DataError

if TYPE_CHECKING:
    from contone.datasets import Status
    from contone.typing import Record

app = typer.Typer(no_args_is_help=True, help="Data sets with known distributions: list, fetch, describe them.")


@app.command("list")
@options.command
def list_sets(as_json: options.AsJson = False) -> None:
    """List the data sets: size, what they hold, and where each file is found now.

    Files are looked for in the folder CONTONE_DATA, then in the user's cache (CONTONE_CACHE moves it). Other .mat and
    .npz files in CONTONE_DATA are listed, too, by the name of the file.

    Examples:

    contone data list

    CONTONE_DATA=~/ldl contone data list --json

    Parameters
    ----------
    as_json : bool
        Print JSON for programs.
    """
    from contone import datasets

    found = [datasets.status(name) for name in [*datasets.names(), *datasets.own_names()]]
    if as_json:
        terminal.print_json([_record(s) for s in found])
        return
    for s in found:
        where = f"{s.where}, damaged" if s.problem else s.where
        terminal.print_entry(s.name, f"n={s.n or '?'} d={s.d or '?'} q={s.q or '?'}, {where}", s.about)
    absent = sum(s.where == "missing" for s in found)
    if absent:
        terminal.say(f"{absent} not available locally: 'contone data fetch NAME' (or --all) downloads them.")
    for s in found:
        if s.problem:
            terminal.say(f"warning: {s.path}: {s.problem}", style="yellow")


@app.command()
@options.command
def fetch(
    names: Annotated[options.Names, typer.Argument()] = None, everything: Annotated[bool, flag("--all")] = False
) -> None:
    """Download data sets into the cache, checked; prints the path of each file.

    Files that are there already are not downloaded again. CONTONE_MIRROR names another address with the same files.

    Examples:

    contone data fetch sjaffe movie

    contone data fetch --all

    Parameters
    ----------
    names : names
        Names of data sets, as 'contone data list' shows.
    everything : bool
        Every data set in the registry.
    """
    from contone import datasets

    if bool(names) == everything:
        raise terminal.usage_error("name the data sets to fetch, or say --all (not both).", "NAMES")
    if everything:
        wanted = [name for name in datasets.names() if datasets.status(name).where != "generated"]
    else:
        wanted = [_known(name).name for name in names or ()]
    failed = 0
    for name in wanted:
        where = datasets.status(name).where
        if where == "generated":
            terminal.say(f"{name} is generated: there is nothing to fetch.")
            continue
        try:
            with terminal.working(f"fetching {name}") if where == "missing" else nullcontext():
                path = datasets.fetch(name)
        except DataError as error:
            failed += 1
            terminal.say(f"error: {name}: {error}", style="bold red")
        else:
            typer.echo(f"{name}\t{path}")
    if failed:
        terminal.say(f"{failed} of {len(wanted)} could not be fetched.", style="bold red")
        raise typer.Exit(1)


@app.command()
@options.command
def info(name: Annotated[str, typer.Argument()], as_json: options.AsJson = False) -> None:
    """Describe one data set: size, labels per row, zeros, what to cite, licence.

    "Labels per row" is the mean number of logical labels under the usual degradation, CumulativeMass(0.5). Nothing is
    downloaded: where the file is missing, what the registry knows is shown.

    Examples:

    contone data info artificial

    contone data info yeast-alpha --json

    Parameters
    ----------
    name : name
        Name of a data set, as 'contone data list' shows.
    as_json : bool
        Print JSON for programs.
    """
    record = _describe(_known(name))
    if as_json:
        terminal.print_json(record)
        return
    terminal.print_entry(record["name"], record["where"], record["about"])
    heads = {"n": "instances (n)", "d": "features (d)", "q": "labels (q)", "cardinality": "labels per row"}
    lines = ("n", "d", "q", "cardinality", "zeros", "label_names", "notes", "citation", "licence", "path")
    terminal.print_record({heads.get(key, key.replace("_", " ")): record[key] for key in lines})
    if record["where"] == "missing":
        terminal.say(f"Not available locally: 'contone data fetch {record['name']}' downloads it and shows the rest.")


def _known(name: str) -> Status:
    """The state of the data set; a name that does not exist is a wrong command line, exit code 2."""
    from contone import datasets

    try:
        return datasets.status(name)
    except DataError as error:
        raise terminal.usage_error(str(error), "NAME") from error


def _record(s: Status) -> Record:
    """A state as plain values, null where unknown."""
    known = {key: value or None for key, value in asdict(s).items()}
    return {**known, "path": str(s.path) if s.path else None, "in_paper": s.in_paper}


def _describe(s: Status) -> Record:
    """What `info` says, as plain values: from the data where they are available, else from the registry."""
    from contone import datasets
    from contone.measurements import CumulativeMass

    record = _record(s) | dict.fromkeys(("cardinality", "zeros", "feature_names", "label_names", "notes"))
    if s.where == "missing":
        return record
    data = datasets.load(s.name)
    return record | {
        **{"n": data.X.shape[0], "d": data.X.shape[1], "q": data.D.shape[1]},
        "cardinality": round(float(CumulativeMass(0.5).apply(data.D).sum(axis=1).mean()), 4),
        "zeros": int((data.D == 0).sum()),
        "feature_names": list(data.feature_names),
        "label_names": list(data.label_names),
        "notes": list(data.notes),
    }
