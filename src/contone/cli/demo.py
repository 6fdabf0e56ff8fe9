"""`contone demo`: every method on the built-in data, as a table, a picture and a page."""

from __future__ import annotations

import math
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from contone.cli import terminal
from contone.cli.method import find_method, known_methods

if TYPE_CHECKING:
    from contone.demo.run import Outcome

SHORT = ("chebyshev", "kl", "cosine", "intersection")
"""The measures that fit where the terminal is narrow."""

MEDIUM, WIDE = 80, 120
"""From these widths on, all measures are shown, and with their full names."""


def demo(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", file_okay=False, help="Folder for the page, the picture and the scores."),
    ] = Path("contone-demo"),
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON for programs.")] = False,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="MODULE:CLASS",
            help="Show a class of your own beside them, or a method that is left out otherwise; may be repeated.",
        ),
    ] = None,
) -> None:
    """Enhance the labels of the built-in data set with every method and compare.

    The truth is known, so every answer is scored. Baselines and the limit of what the data allow stand beside.

    Examples:

    contone demo

    contone demo --out comparison --no-open
    """
    from contone import datasets
    from contone.demo import page as report
    from contone.demo.run import degraded

    for name in method or []:
        find_method(name, "--method")
    data = datasets.artificial()
    L = degraded(data)
    terminal.say(f"{data.about} ({len(data.X):,} instances, {L.shape[1]} labels, {L.sum(1).mean():.2f} yes a row)")
    outcomes = _run_all(L, data, method or [])
    records = report.summarise(outcomes)
    with terminal.working("drawing"):
        paths = report.write(out, data, L, outcomes, f"contone demo --out {out}")
    if as_json:
        terminal.print_json(report.without_infinities(records))
    else:
        _print_scores(records)
    for what, path in paths.items():
        terminal.say(f"{what + ':':<21}{path}")
    if show:
        webbrowser.open(paths["page"].resolve().as_uri())


def _run_all(L: Any, data: Any, asked: Sequence[str]) -> list[Outcome]:
    """Every method of the library, then the rows to compare with; one message each."""
    from contone.demo.run import LEFT_OUT, attempt, leave_out, oracles

    outcomes: list[Outcome] = []
    for name, cls in known_methods().items():
        with terminal.working(f"  {name}", after=lambda: _line(outcomes[-1])):
            left_out = name in LEFT_OUT and name not in map(str.lower, asked)
            outcomes.append(leave_out(name, cls()) if left_out else attempt(name, cls(), L, data))
    for title, work in zip(("limit", "mean-of-truth"), oracles(L, data), strict=True):
        with terminal.working(f"  {title}", after=lambda: _line(outcomes[-1])):
            outcomes.append(work())
    return outcomes


def _line(outcome: Outcome) -> str:
    said = outcome.error if outcome.error else f"KL {outcome.scores['kl']:.4f}"
    return f"  {outcome.name:<14}{outcome.seconds:6.2f} s  {said}"


def _print_scores(records: Sequence[dict[str, Any]]) -> None:
    """Methods by measures: best in bold, baselines and oracles marked."""
    from contone.measures import MEASURES

    console = terminal.out()
    shown = list(MEASURES) if console.width >= MEDIUM else list(SHORT)
    full = console.width >= WIDE
    table = Table(box=box.SIMPLE_HEAD if full else None, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("Method", no_wrap=True)
    table.add_column("Recovered ↑" if full else "Recov↑", justify="right", no_wrap=True)
    for m in (MEASURES[name] for name in shown):
        table.add_column(f"{m.title} {m.arrow}" if full else f"{m.title[:5]}{m.arrow}", justify="right", no_wrap=True)
    table.add_column("Time", justify="right", no_wrap=True)
    for r in records:
        mark = {"baseline": " *", "oracle": " °"}.get(r["kind"], "")
        if r["scores"]:
            cells = [_percent(r["recovered"]), *(_cell(r["scores"][m], m in r["best"]) for m in shown)]
        else:
            cells = [f"[red]{r['error'].partition(':')[0]}[/]"] + [""] * len(shown)
        table.add_row(escape(r["title"]) + mark, *cells, f"{r['seconds']:.2f}")
    console.print(table)
    console.print("* baseline: uses no features.  ° oracle: has seen the truth.  Best in bold.")
    console.print("Recovered: share of the way from uniform to the limit, in KL.")
    for r in records:
        if r["error"]:
            console.print(f"{r['title']} {r['error']}", markup=False)
        for note in r["notes"]:
            terminal.say(f"warning: {r['title']}: {note}", style="yellow")
    if len(shown) < len(MEASURES):
        terminal.say("The scores in all measures are in the files.")


def _cell(value: float, best: bool) -> str:
    return f"[bold]{value:.4f}[/]" if best else f"{value:.4f}"


def _percent(share: float | None) -> str:
    return "" if share is None or not math.isfinite(share) else f"{share:.0%}"
