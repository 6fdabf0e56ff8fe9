"""The command `contone`: its commands put together, and what happens to errors.

Exit codes: 0 success, 1 the work failed (data that cannot be used, a full disk), 2 the command line was wrong.
"""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from contone import __version__
from contone.cli import INTERRUPTED, data, listing, model, terminal
from contone.cli.benchmark import benchmark
from contone.cli.check import check
from contone.cli.compare import compare
from contone.cli.enhance import enhance
from contone.cli.reproduce import report, reproduce
from contone.cli.suggest import plan, suggest
from contone.exceptions import ArgumentError, ContoneError

OPTIONS = {"source": "FILE", "target": "--output", "ids": "--id", "k": "--number"}
"""Arguments whose option has another name."""


class _Group(TyperGroup):
    """Prints the library's own errors as one message; `--debug` shows where they came from."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ArgumentError as error:
            advice = " Use --force to overwrite it." if "exists already" in str(error) else ""
            option = OPTIONS.get(error.argument, f"--{error.argument.replace('_', '-')}")
            raise terminal.usage_error(f"{error}{advice}", option) from error
        except ContoneError as error:
            if ctx.params.get("debug"):
                raise
            terminal.say(f"error: {error}", style="bold red")
            raise typer.Exit(1) from error
        except KeyboardInterrupt:
            terminal.say("interrupted")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"contone {__version__}")
        raise typer.Exit


@app.callback()
def contone(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """From yes/no labels to degrees: label enhancement for tables of features and 0/1 labels.

    Results go to stdout, messages to stderr. Exit codes: 0 success, 1 the work failed, 2 the command line was wrong.

    Example:

    contone benchmark
    """


for command in (enhance, compare, check, suggest, plan, model.fit, model.apply, model.show, model.evaluate):
    app.command()(command)
for command in (benchmark, reproduce, report, listing.methods, listing.measures):
    app.command()(command)
app.add_typer(data.app, name="data")
