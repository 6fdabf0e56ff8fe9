"""What work on a file tells whoever watches: the library is silent, the command line derives its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext


class Progress:
    """Hears of notes, warnings and steps, and says nothing. Derive from it and override what you want to show."""

    def note(self, message: str) -> None:
        """Something worth knowing."""

    def warn(self, message: str) -> None:
        """Something that the user may want to act on."""

    def working(self, message: str) -> AbstractContextManager[None]:
        """Around a step of unknown length."""
        return nullcontext()

    def fitting(self, message: str) -> AbstractContextManager[None]:
        """Around a fit, which may tell how far it is (`contone.runtime.progress`)."""
        return self.working(message)

    def counting(self, message: str, total: int, done: int = 0) -> AbstractContextManager[Callable[[], None]]:
        """Around `total` equal steps of which `done` are there; call what it gives after each."""
        return nullcontext(lambda: None)
