"""How a command begins: the command line is read first, then what there is to work with is imported."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from contone.runtime.interrupts import interrupt_again
from contone.runtime.lazy import import_now


class Command(TyperCommand):
    """Help and errors in the command line need not wait for the import; Ctrl-C ends it quietly."""

    def invoke(self, ctx: Any) -> Any:
        import_now("contone")
        interrupt_again()
        return super().invoke(ctx)
