"""`contone benchmark --people FOLDER`: methods judged by answers of real people that were left out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from contone.cli import INTERRUPTED, experiment, options, terminal
from contone.pages import words

if TYPE_CHECKING:
    from contone.experiments.store import Store


def benchmark_people(
    folder: Path,
    methods: list[str],
    answers: list[int],
    run: options.Run,
    *,
    store: Store,
    out: Path | None,
) -> None:
    """Run what is missing, and print the table; write it to `out`, as Markdown or JSON."""
    from contone.enhance import methods as all_methods
    from contone.experiments.people import people_table, plan_people, run_people
    from contone.runtime.files import replacing
    from contone.trust.trial import named_methods

    chosen = list(all_methods().values()) if methods == ["all"] else methods
    cells = plan_people(folder, named_methods(chosen), answers=answers, seeds=run.seeds or 3)
    try:
        with experiment.display() as observer:
            progress = run_people(cells, store, jobs=run.jobs, observer=observer)
    except KeyboardInterrupt:
        terminal.say(f"stopped; {len(store)} finished cells are kept in {store.root}. Run the same command to resume.")
        raise typer.Exit(INTERRUPTED) from None
    loss, tempered = people_table(store), people_table(store, "log_loss_tempered")
    record = [
        {"row": row, "set": name, "answers": k, "log_loss": value, "log_loss_tempered": tempered[row][name, k]}
        for row, cells_of_row in loss.items()
        for (name, k), value in cells_of_row.items()
    ]
    if out is not None:
        text = markdown(loss) if out.suffix.lower() == ".md" else json.dumps(record, indent=2) + "\n"
        with replacing(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
    if run.as_json:
        terminal.print_json(record)
    else:
        _print(loss)
    done = f"{progress.done} cells computed, {progress.reused} already there, {progress.failed} failed"
    terminal.say(f"{done}; results in {store.root}")
    if progress.failed:
        raise typer.Exit(1)


def markdown(table: dict[str, dict[tuple[str, int], Any]]) -> str:
    """The table as Markdown, the best of a column in bold."""
    columns = list(next(iter(table.values()))) if table else []
    best = _best(table)
    lines = ["| Method | " + " | ".join(f"{name}, k = {k}" for name, k in columns) + " |"]
    lines.append("|:--|" + "--:|" * len(columns))
    for row, cells in table.items():
        shown = [f"**{_shown(cells[c])}**" if cells[c] == best[c] else _shown(cells[c]) for c in columns]
        lines.append(f"| {row} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def _print(table: dict[str, dict[tuple[str, int], Any]]) -> None:
    best = _best(table)
    for k in dict.fromkeys(k for _, k in best):
        columns = [column for column in best if column[1] == k]
        title = f"log loss of the left-out answers in nats, given {words.count(k, 'answer')} per item"
        shown = Table(title=title, box=None, pad_edge=False)
        shown.add_column("method", no_wrap=True)
        for name, _ in columns:
            shown.add_column(Text(name), justify="right", min_width=6)
        for row, cells in table.items():
            marked = (Text(_shown(cells[c]), style="bold" if cells[c] == best[c] else "") for c in columns)
            shown.add_row(Text(row), *marked)
        terminal.out().print(shown)


def _best(table: dict[str, dict[tuple[str, int], Any]]) -> dict[tuple[str, int], float]:
    columns = list(next(iter(table.values()))) if table else []
    return {c: min((r[c] for r in table.values() if r[c] is not None), default=math.nan) for c in columns}


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
