"""`contone reproduce`: run the paper's experiments on the data available locally, and print the results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Column, Table
from rich.text import Text

from contone.cli import terminal
from contone.cli.listing import find_method, known_methods
from contone.enhance.plugins import is_path
from contone.pages import words

if TYPE_CHECKING:
    from contone.experiments.report.schema import Summary

DEFAULT_STORE = Path("contone-results")


def reproduce(
    store: Annotated[Path, typer.Option(help="Folder of the results; a run that stopped goes on from there.")] = (
        DEFAULT_STORE
    ),
    only: Annotated[
        str, typer.Option(help="Experiments, with commas: recovery,ranks,augmentation,ablation,sensitivity,prediction.")
    ] = "",
    datasets: Annotated[
        str, typer.Option(help="Data sets or groups (paper, yeast), with commas, in place of each experiment's own.")
    ] = "",
    methods: Annotated[
        str,
        typer.Option(
            help="Methods (or MODULE:CLASS of your own) or rows, with commas; baselines and references are always run."
        ),
    ] = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each random method.")] = None,
    jobs: Annotated[int, typer.Option(help="Number of processes; -1 for one per core.")] = -1,
    backend: Annotated[str, typer.Option(help="loky (this machine) or dask (a cluster).")] = "loky",
    address: Annotated[str, typer.Option(help="Scheduler of the dask cluster, e.g. tcp://host:8786.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole summary as JSON.")] = False,
) -> None:
    """Run the paper's experiments on the data available locally.

    Without any data it runs on the built-in artificial set; the folder named by CONTONE_DATA brings the real ones.
    Finished cells are kept: stop it whenever you like and start it again.

    Example:

    contone reproduce --only recovery --datasets artificial --methods LP
    """
    from contone.experiments.plan import make_plan
    from contone.experiments.report.schema import plain
    from contone.experiments.run import run
    from contone.experiments.store import Store
    from contone.reproduction.report.summary import summarise
    from contone.reproduction.specs import GROUPS, sources, specs

    known_methods()  # says which packages are left out
    known = specs()
    chosen = _listed(only) or list(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise terminal.usage_error(f"no experiment {', '.join(unknown)}; there are: {', '.join(known)}.", "--only")
    plan = make_plan(
        sources(chosen),
        dataset_names=_listed(datasets),
        method_names=[_method_name(name) for name in _listed(methods)],
        seeds=seeds,
        groups=GROUPS,
    )
    _say_what_is_missing(plan)
    if not plan.cells:
        terminal.say("nothing to run: none of these data sets is available locally.", style="bold red")
        raise typer.Exit(1)
    folder = Store(store)
    about = {
        "command": " ".join(["contone", *sys.argv[1:]]),
        "missing_data": plan.missing_data,
        "missing_methods": plan.missing_methods,
        "whole": not methods,
    }
    try:
        with _display() as observer:
            progress = run(
                plan.cells,
                folder,
                jobs=jobs,
                backend=backend,
                address=address or None,
                observer=observer,
                about=about,
            )
    except KeyboardInterrupt:
        terminal.say(f"stopped; {len(folder)} finished cells are kept in {store}. Run the same command to go on.")
        raise typer.Exit(130) from None
    terminal.say(
        f"{progress.done} cells computed, {progress.reused} already there, {progress.failed} failed; results in {store}"
    )
    summary = summarise(folder)
    if as_json:
        terminal.print_json(plain(summary))
    else:
        _print_tables(summary)
    if summary.counts.stale:
        terminal.say(
            f"{summary.counts.stale} numbers come from an earlier version of the code, the data or the settings; "
            "run their experiments again to renew them."
        )
    for failure in summary.failures:
        terminal.say(f"failed: {failure.row} on {failure.dataset}: {failure.error}", style="red")
    terminal.say(f"for the whole page: contone report --store {store}")
    if progress.failed:
        raise typer.Exit(1)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _method_name(name: str) -> str:
    """The name in the tables; a class given as MODULE:CLASS is loaded and becomes one of the methods."""
    return find_method(name, "--methods").__name__ if is_path(name) else name


def _say_what_is_missing(plan: Any) -> None:
    if plan.missing_data:
        names = ", ".join(sorted(plan.missing_data))
        terminal.say(f"not available locally, left out: {names}")
        terminal.say("  to include them: put their files into the folder CONTONE_DATA, or 'contone data fetch NAME'")
    for name, why in plan.missing_methods.items():
        terminal.say(f"left out: {name} ({why})")


# ----------------------------------------------------------------------------------------------------------- progress


@contextmanager
def _display() -> Iterator[Callable[[Any], None]]:
    """A live bar on a terminal; elsewhere one plain line every so often."""
    console = terminal.talk()
    if not console.is_terminal:
        yield _plain_lines()
        return
    state = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    with Progress(SpinnerColumn(), BarColumn(bar_width=20), state, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def tell(progress: Any) -> None:
            bar.update(task, completed=progress.total - progress.left, total=progress.total)
            bar.update(task, description=describe(progress))

        yield tell


def _plain_lines(steps: int = 20) -> Callable[[Any], None]:
    """Says where the run stands about twenty times, however many cells there are."""

    def tell(progress: Any) -> None:
        finished = progress.done + progress.failed
        if finished in (0, progress.total) or finished % max(1, progress.total // steps) == 0:
            terminal.say(describe(progress))

    return tell


def describe(progress: Any) -> str:
    """Where a run stands, in one line."""
    left = progress.seconds_left()
    parts = [
        f"{progress.done + progress.failed}/{progress.total} cells",
        f"{progress.running} running",
        f"{progress.failed} failed",
    ]
    if progress.reused:
        parts.append(f"{progress.reused} already there")
    if left is not None and progress.left:
        parts.append(f"about {words.duration(left)} left")
    return ", ".join(parts) + (f"  ({progress.last})" if progress.last and progress.left else "")


# ------------------------------------------------------------------------------------------------------------- tables


def _print_tables(summary: Summary) -> None:
    """The recovered share of every row, and the sentences of the summary: compact, on stdout."""
    from contone.experiments.report.matrix import short
    from contone.experiments.report.tables import best_first

    console = terminal.out()
    shares = summary.shares
    if shares.rows:
        table = Table(title="recovered share, %", box=None, pad_edge=False)
        table.add_column("method", no_wrap=True)
        for name in [*shares.datasets, "mean"]:
            table.add_column(Text(short(name)), justify="right", no_wrap=True)
        for row in sorted(shares.rows, key=lambda r: (r.kind != "oracle", *best_first(r.mean))):
            mark = "" if row.kind == "method" else f" [{row.kind}]"
            cells = [Text(c.text.removesuffix(" %"), style="bold" if c.best else "") for c in row.cells]
            table.add_row(Text(row.name + mark), *cells, row.mean_text)
        console.print(table)
        console.print(
            "0 % is the uniform distribution, 100 % the limit: what learners reach that were trained on the truth. It "
            "is a strong reference, not a bound."
        )
        console.print()
    for sentence in summary.headline.sentences:
        console.print(sentence, markup=False)
