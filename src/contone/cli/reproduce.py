"""`contone reproduce | report`: the paper's experiments on the data available locally, and stored results as a page."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from contone.cli import experiment, options, terminal
from contone.cli.method import find_method, known_methods
from contone.cli.options import flag

DEFAULT_STORE = Path("contone-results")
FORMATS = ("html", "json", "markdown", "latex")


@options.command
def reproduce(
    run: options.Run,
    store: Annotated[Path, flag("--store FOLDER")] = DEFAULT_STORE,
    only: Annotated[str, flag("--only NAMES")] = "",
    datasets: Annotated[str, flag("--datasets NAMES")] = "",
    methods: Annotated[str, flag("--methods NAMES")] = "",
) -> None:
    """Run the paper's experiments on the data available locally.

    Without any data it runs on the built-in artificial set; the folder named by CONTONE_DATA brings the real ones.
    Finished cells are kept: stop it whenever you like and start it again.

    Example:

    contone reproduce --only recovery --datasets artificial --methods LP

    Parameters
    ----------
    run : Run
        How the grid is run.
    store : path
        Folder of the results; a run that stopped resumes from there.
    only : names
        Experiments, with commas: recovery,ranks,augmentation,ablation,sensitivity,prediction.
    datasets : names
        Data sets or groups (paper, yeast), with commas, in place of each experiment's own.
    methods : names
        Methods (or MODULE:CLASS of your own) or rows, with commas; baselines and references are always run.
    """
    from contone.enhance.plugins import is_path
    from contone.experiments.plan import make_plan
    from contone.experiments.store import Store
    from contone.reproduction.specs import GROUPS, sources, specs

    terminal.need_report()
    folder = Store(store).checked()
    known_methods()  # says which packages are left out
    known = specs()
    chosen = experiment.listed(only) or list(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise terminal.usage_error(f"no experiment {', '.join(unknown)}; there are: {', '.join(known)}.", "--only")
    rows = [find_method(n, "--methods").__name__ if is_path(n) else n for n in experiment.listed(methods)]
    names = {"dataset_names": experiment.listed(datasets), "method_names": rows}
    plan = make_plan(sources(chosen), **names, seeds=run.seeds, max_rows=run.max_rows, groups=GROUPS)
    about = {"command": experiment.command(), "missing_data": plan.missing_data, "whole": not methods}
    progress = experiment.carry_out(plan, folder, about, run)
    experiment.print_results(experiment.make_report(folder), progress, store, as_json=run.as_json)


@options.command
def report(
    store: Annotated[Path, flag("--store FOLDER")] = DEFAULT_STORE,
    out: Annotated[Path | None, flag("--out -o FILE", show_default=False)] = None,
    form: Annotated[str, flag("--format FORMAT")] = "",
    show: Annotated[bool, flag("--open/--no-open")] = False,
    force: options.Force = False,
) -> None:
    """Make the report from stored results.

    One self-contained HTML file, report.html unless another is named: published and measured figures side by side,
    pictures, errata of the paper, provenance. It can be made during a run, and says what is missing.

    Examples:

    contone report --open

    contone report --store contone-results -o results.tex

    Parameters
    ----------
    store : path
        Folder of the results that 'reproduce' or 'benchmark' wrote.
    out : path
        File to write; - for stdout.
    form : word
        html, json, markdown, latex; without it, what the file's name says.
    show : bool
        Open the page in the browser.
    force : bool
        Overwrite existing files.
    """
    from contone.exceptions import DataError
    from contone.experiments.store import Store
    from contone.pages import render
    from contone.runtime.files import write_whole
    from contone.tables.targets import check_targets

    terminal.need_report()
    by_name = render.FORMATS.get(out.suffix.lower(), "") if out is not None else ""
    form = form or by_name or "html"
    if form not in FORMATS:
        raise terminal.usage_error(f"no format {form!r}; there are: {', '.join(FORMATS)}.", "--format")
    folder = Store(store)
    if not folder.exists():
        raise DataError(f"{store} holds no results: run 'contone reproduce --store {store}' first, or name another.")
    suffix = next(s for s, f in render.FORMATS.items() if f == form)
    target = out if out is not None else Path(f"report{suffix}")
    if str(target) == "-":
        typer.echo(render.render(experiment.make_report(folder), form), nl=False)
        return
    check_targets(folder.files(), {"out": target}, overwrite=force)
    with terminal.working("reading the results and drawing"):
        text = render.render(experiment.make_report(folder), form)
    write_whole(target, text, overwrite=force)
    terminal.say(f"report: {target}")
    if show:
        webbrowser.open(target.resolve().as_uri())
