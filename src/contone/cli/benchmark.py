"""`contone benchmark`: any methods on any data with known truth, side by side."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contone.cli import experiment, options, terminal
from contone.cli.method import find_method, known_methods
from contone.cli.options import flag
from contone.pages import words

if TYPE_CHECKING:
    from contone.experiments.plan import Plan
    from contone.experiments.store import Store
    from contone.typing import Record

DEFAULT_STORE = Path("contone-benchmark")


@options.command
def benchmark(
    run: options.Run,
    methods: Annotated[str, flag("--methods NAMES")] = "all",
    datasets: Annotated[str, flag("--datasets NAMES")] = "artificial",
    spec: Annotated[Path | None, flag("--spec FILE")] = None,
    people: Annotated[Path | None, flag("--people FOLDER", exists=True, file_okay=False)] = None,
    answers: Annotated[str, flag("--answers NUMBERS")] = "1,3",
    degrees: Annotated[str, flag("--degrees NAMES")] = "",
    features: Annotated[str, flag("--features NAMES")] = "",
    store: Annotated[Path, flag("--store FOLDER")] = DEFAULT_STORE,
    out: Annotated[Path | None, flag("--out -o FILE", show_default=False)] = None,
    show: Annotated[bool, flag("--open/--no-open")] = False,
    force: options.Force = False,
    estimate: Annotated[bool, flag("--estimate/--no-estimate")] = True,
    dry_run: Annotated[bool, flag("--dry-run")] = False,
) -> None:
    """Compare methods on data sets whose true degrees are known.

    Every method gets the same features and the same logical labels, made from the truth by one rule, and is scored
    against the truth, beside baselines and references. Without options every method runs on the built-in data
    set, where its answer can be seen. Finished cells are kept: stop it whenever you like and start it again.

    With --people there is no truth: methods get a few answers per item, and the answers that were left out judge them,
    beside counting.

    Examples:

    contone benchmark --max-rows 400 --seeds 1 --open

    contone benchmark --methods glle,lp --datasets artificial

    contone benchmark --methods all --datasets mine.csv --degrees "mood_*" --dry-run

    contone benchmark --methods glle,lp --people folder --answers 1,3

    Parameters
    ----------
    run : Run
        How the grid is run.
    methods : names
        Methods, with commas: NAME, 'NAME (PRESET)' or MODULE:CLASS of your own; 'all' for every one.
    datasets : names
        Data sets with known degrees, with commas: registered names, .mat, .npz, CSV or Parquet files.
    spec : path
        A TOML file that names rows and data sets, in place of --methods.
    people : path
        Judge by answers of people instead: .npz files with X, item, worker, label and labels.
    answers : numbers
        Answers per item that methods are given, with --people.
    degrees : names
        Columns of a table with the true degrees, names or patterns [default: *_degree].
    features : names
        Columns of a table that are features [default: all other numbers].
    store : path
        Folder of the results; a run that stopped resumes from there.
    out : path
        Report to write: .html, .md, .tex or .json [default: report.html in the folder of the results].
    show : bool
        Open the report in the browser.
    force : bool
        Overwrite existing files.
    estimate : bool
        Try each row briefly, and say what the run will take.
    dry_run : bool
        Print the estimate (with --no-estimate: the number of cells) and stop.
    """
    from contone.enhance.plugins import is_path
    from contone.experiments.benchmark import about_run, make_spec
    from contone.experiments.plan import make_plan
    from contone.experiments.store import Store
    from contone.pages.render import FORMATS, save
    from contone.runtime.machine import check_jobs
    from contone.tables.targets import check_targets

    terminal.need_report()
    folder = Store(store).checked()
    known_methods()  # says which packages are left out
    check_jobs(run.jobs)
    if out is not None and out.suffix.lower() not in FORMATS:
        raise terminal.usage_error(f"the suffix must be one of {', '.join(FORMATS)}.", "--out")
    inputs: list[str | Path] = [*([spec] if spec else []), *(n for n in experiment.listed(datasets) if "." in n)]
    inputs += [*folder.files(), *(people.glob("*.npz") if people else ())]
    check_targets(inputs, {"out": out}, overwrite=force)
    target = out if out is not None else store / "report.html"
    typed = experiment.listed(methods)
    for name in filter(is_path, typed):
        find_method(name, "--methods")
    if people is not None:
        plan, about = _plan_people(people, typed, experiment.listed(answers), run)
    else:
        made = make_spec("all" if typed == ["all"] else typed, spec=spec)
        reading: Record = {"degrees": experiment.listed(degrees), "features": experiment.listed(features)}
        reading |= {"folder": folder.root / "data", "seeds": run.seeds, "max_rows": run.max_rows}
        plan = make_plan([made], dataset_names=made.datasets or experiment.listed(datasets), **reading)
        about = about_run(plan, made, experiment.command())
    expected = None
    if estimate and plan.cells:
        expected = _estimate(plan, folder, run.jobs, show=dry_run)
    if dry_run:
        if expected is None:
            terminal.say(f"{words.count(len(plan.cells), 'cell')}, with those that are in the store already")
        experiment.say_what_is_missing(plan)
        return
    progress = experiment.carry_out(plan, folder, about, run, expected=expected)
    report = experiment.make_report(folder)
    with terminal.working("drawing"):
        save(report, target)
    terminal.say(f"report: {target}")
    if show:
        webbrowser.open(target.resolve().as_uri())
    experiment.print_results(report, progress, store, as_json=run.as_json)


def _plan_people(folder: Path, methods: list[str], answers: list[str], run: options.Run) -> tuple[Plan, Record]:
    from contone.enhance import methods as all_methods
    from contone.experiments.people import NAME, plan_people
    from contone.trust.trial import named_methods

    chosen = named_methods(list(all_methods().values()) if methods == ["all"] else methods)
    numbers = [int(k) if k.isdigit() else 0 for k in answers]
    plan = plan_people(folder, chosen, answers=numbers, seeds=run.seeds or 3, max_rows=run.max_rows)
    return plan, {"command": experiment.command(), "report": {"kind": NAME}}


def _estimate(plan: Plan, store: Store, jobs: int, *, show: bool) -> dict[str, float]:
    """Expected seconds per cell; says what the whole run will take."""
    from joblib import effective_n_jobs

    from contone.experiments.run import estimate
    from contone.pages.blocks import Cell, Row

    workers = effective_n_jobs(jobs)
    with terminal.working("trying each row on a few instances"):
        found = estimate(plan.cells, store, jobs=workers)
    if not found.cells:
        terminal.say("everything is in the store already")
        return {}
    terminal.say(
        f"{words.count(len(found.cells), 'cell')} to compute, about {words.duration(found.seconds)} on "
        f"{words.count(workers, 'core')}; the longest: {found.longest}, {words.duration(max(found.cells.values()))}"
    )
    if found.unknown:
        terminal.say(f"no estimate for {', '.join(found.unknown)}: the trial failed", style="yellow")
    if show:
        costs: dict[str, dict[str, float]] = {}
        for cell in plan.cells:
            of_set = costs.setdefault(cell.dataset, {})
            of_set[cell.row] = of_set.get(cell.row, 0.0) + found.cells.get(cell.key, 0.0)
        shown = {d: {row: Cell(words.duration(c) if c else "done") for row, c in costs[d].items()} for d in costs}
        experiment.print_table("expected time, all seeds", shown, [Row(r, ()) for r in next(iter(shown.values()))])
    return found.cells
