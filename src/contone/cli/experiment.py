"""What `reproduce` and `benchmark` share: the run with its progress, and what is printed of its results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.progress import BarColumn
from rich.table import Table
from rich.text import Text

from contone.cli import INTERRUPTED, terminal
from contone.cli.options import Run
from contone.pages import words

if TYPE_CHECKING:
    from contone.experiments.plan import Plan
    from contone.experiments.report.make import Report
    from contone.experiments.run import Progress
    from contone.experiments.store import Store
    from contone.pages.blocks import Cell, Grid, Row
    from contone.typing import Record


def listed(text: str) -> list[str]:
    """A list that was typed with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def command() -> str:
    """The command line, to be kept with the run."""
    return " ".join(["contone", *sys.argv[1:]])


def carry_out(plan: Plan, store: Store, about: Record, how: Run, expected: dict[str, float] | None = None) -> Progress:
    """Run a plan with its progress on stderr; what is finished stays in the store when it is stopped."""
    from contone.experiments.run import run

    say_what_is_missing(plan)
    if not plan.cells:
        terminal.say("nothing to run: none of these data sets is available locally.", style="bold red")
        raise typer.Exit(1)
    start = partial(run, plan.cells, store, jobs=how.jobs, backend=how.backend, address=how.address or None)
    try:
        with display() as observer:
            return start(observer=observer, about=about, expected=expected)
    except KeyboardInterrupt:
        terminal.say(f"stopped; {len(store)} finished cells are kept in {store.root}. Run the same command to resume.")
        raise typer.Exit(INTERRUPTED) from None


def make_report(store: Store) -> Report:
    """The report of what a store holds: of a comparison, of answers of people, or of the paper's experiments."""
    from contone.experiments import people
    from contone.experiments.report import make
    from contone.reproduction import report as paper

    kinds = [run.get("report", {}).get("kind", "") for run in store.runs()]
    makers = {"benchmark": make.make_report, people.NAME: people.make_report}
    return makers.get("".join(kinds[-1:]), paper.make_report)(store)


def print_results(report: Report, progress: Progress, store: Path, *, as_json: bool) -> None:
    """What came out, on stdout; what to know about it on stderr. Exit code 1 where a cell failed."""
    from contone.pages.render import as_plain

    done = f"{progress.done} cells computed, {progress.reused} already there, {progress.failed} failed"
    terminal.say(f"{done}; results in {store}")
    if as_json:
        terminal.print_json(as_plain(report))
    else:
        print_tables(report)
    if report.stale:
        terminal.say(f"{report.stale} numbers are of earlier code, data or settings: run their experiments again.")
    for text in report.damaged:
        terminal.say(f"warning: {text}", style="yellow")
    for text in report.failures:
        terminal.say(f"failed: {text}", style="red")
    terminal.say(f"for the whole page: contone report --store {store}")
    if progress.failed:
        raise typer.Exit(1)


def say_what_is_missing(plan: Plan) -> None:
    """Data and methods that were asked for and are left out."""
    if plan.missing_data:
        names = ", ".join(sorted(plan.missing_data))
        terminal.say(f"not available locally, left out: {names}")
        terminal.say("  to include them: put their files into the folder CONTONE_DATA, or 'contone data fetch NAME'")
    for name, same in plan.duplicates.items():
        terminal.say(f"{name} has the content of {same} and is counted once, as {same}.")


# ----------------------------------------------------------------------------------------------------------- progress


@contextmanager
def display() -> Iterator[Callable[[Progress], None]]:
    """A live bar on a terminal; elsewhere one plain line every so often."""
    if not terminal.messages().is_terminal:
        yield _plain_lines()
        return
    with terminal.bar("starting", BarColumn(bar_width=20)) as (bar, task):

        def tell(progress: Progress) -> None:
            said, done = terminal.clean(describe(progress)), progress.total - progress.left
            bar.update(task, completed=done, total=progress.total, description=said)

        yield tell


def _plain_lines(steps: int = 20) -> Callable[[Progress], None]:
    """Says where the run stands about twenty times, however many cells there are."""

    def tell(progress: Progress) -> None:
        finished = progress.done + progress.failed
        if finished in (0, progress.total) or finished % max(1, progress.total // steps) == 0:
            terminal.say(describe(progress))

    return tell


def describe(progress: Progress) -> str:
    """Where a run stands, in one line."""
    left = progress.seconds_left()
    finished = progress.done + progress.failed
    parts = [f"{finished}/{progress.total} cells", f"{progress.running} running", f"{progress.failed} failed"]
    if progress.reused:
        parts.append(f"{progress.reused} already there")
    if left is not None and progress.left:
        parts.append(f"about {words.duration(left)} left")
    return ", ".join(parts) + (f"  ({progress.last})" if progress.last and progress.left else "")


# ------------------------------------------------------------------------------------------------------------- tables


def print_tables(report: Report) -> None:
    """The recovered share of every row on every set, or all measures where there is one set; and what came out."""
    console, shares = terminal.out(), report.shares
    of_people = [grid for section in report.sections for grid in section.grids() if section.name.startswith("answers-")]
    if of_people:
        for grid in of_people[::2]:
            print_table(grid.title, _of_columns(grid), grid.rows)
        console.print("* reads the counts of the answers.  In nats, less is better; best in bold.", markup=False)
    elif shares.rows:
        is_one = len(shares.columns) == 2
        columns = _of_measures(report, console.width) if is_one else _of_columns(shares)
        title = f"recovered share and scores on {shares.columns[1].title}" if is_one else "recovered share"
        print_table(title, columns, sorted(shares.rows, key=lambda row: row.kind != "oracle"))
        console.print("* baseline: uses no features.  ° oracle: has seen the truth.  Best in bold.", markup=False)
        console.print(
            "0 %: uniform. 100 %: the limit, reached by learners trained on the truth: a reference, no bound."
        )
    console.print()
    for sentence in report.sentences:
        console.print(sentence, markup=False)


def print_table(title: str, columns: dict[str, dict[str, Cell]], rows: Sequence[Row]) -> None:
    """A table of cells by column and row, as wide as the terminal allows."""
    table = Table(title=Text(title), box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    # A head is wrapped and a name is clipped where room is short; a number that is cut off would be another number.
    widths = {name: max((len(c.text) for c in column.values()), default=0) for name, column in columns.items()}
    room = terminal.out().width - sum(widths.values()) - 2 * len(widths)
    marks = {"baseline": " *", "oracle": " °"}
    names = words.clip_all([row.name + marks.get(row.kind, "") for row in rows], max(12, room))
    spare = max(0, room - max(map(len, names), default=0)) // max(1, len(widths))
    for name, width in widths.items():
        table.add_column(Text(name), justify="right", width=min(max(width, len(name)), width + spare))
    for row, name in zip(rows, names, strict=True):
        cells = [column.get(row.name) for column in columns.values()]
        table.add_row(Text(name), *(Text(c.text, style="bold" if c.best else "") if c else Text() for c in cells))
    terminal.out().print(table)


def _of_columns(grid: Grid) -> dict[str, dict[str, Cell]]:
    """The cells of a table by column and row, its mean last."""
    titles = [column.title for column in grid.columns]
    found = {title: {row.name: row.cells[k] for row in grid.rows} for k, title in enumerate(titles)}
    return {**{title: found[title] for title in titles[1:]}, titles[0]: found[titles[0]]}


def _of_measures(report: Report, width: int) -> dict[str, dict[str, Cell]]:
    """The recovered share, as many measures as there is room for, and the seconds, by row."""
    shares, *grids = report.section("recovery").grids()
    room = width - max(len(row.name) for row in shares.rows) - 20
    found = {"share": {row.name: row.cells[1] for row in shares.rows}}
    for grid in grids[: max(1, room // 12)]:
        found[words.clip(grid.title, 11)] = {row.name: row.cells[-1] for row in grid.rows}
    return {**found, "CPU s": {row.name: row.cells[0] for row in report.section("rows").grids()[0].rows}}
