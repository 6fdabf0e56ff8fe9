"""Use, use with care, do not use: what the checks mean for somebody who has to decide.

The decision is `TABLE`, which stands in verdict.toml. Each check is fine, doubtful, off, or tells nothing here; a row
of the table says what each of these means for the answer, why in plain words, and what to do. The worst of all rows is
the verdict; its reasons are those that speak against use, the worst first and otherwise in the order of the table, and
at most three things to do follow from them. docs/trust.md has the table with the bounds from which on a check is
doubtful or off; `benchmarks/verdict.py` holds it to situations whose truth is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from contone.runtime.files import packaged_toml
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding

USE, CARE, NEVER = "use", "use with care", "do not use"
MOST_REASONS, MOST_ACTIONS = 4, 3


class Consequence(NamedTuple):
    """What a check means for the answer: the verdict where it is doubtful, where it is off, and where it is untold."""

    doubtful: str
    off: str
    untold: str
    because: str
    python: str
    shell: str
    """What to do, in Python and on the command line."""


_KNOWN = packaged_toml("contone.trust", "verdict.toml")
TABLE = {name: Consequence(*row, **_KNOWN["advice"][advice]) for name, (advice, *row) in _KNOWN["checks"].items()}
"""By the name of the check; the order is that of the reasons."""


@dataclass(frozen=True)
class Decision:
    """The verdict with its reasons.

    Attributes
    ----------
    word : str
        "use", "use with care" or "do not use".
    names, reasons : tuple of str
        The checks that decided it, and what they mean in plain words; empty where everything is fine.
    actions, commands : tuple of str
        At most three things to do, in Python and on the command line.
    """

    word: str
    names: tuple[str, ...]
    reasons: tuple[str, ...]
    actions: tuple[str, ...]
    commands: tuple[str, ...]

    def sentence(self) -> str:
        """The verdict and its reasons in one sentence."""
        told = f": {'; '.join(self.reasons)}" if self.reasons else ": no check speaks against it"
        return f"{self.word.capitalize()}{told}."


def decide(findings: Iterable[Finding]) -> Decision:
    """The worst that the table says of any check; of checks that are not in it, nothing."""
    found = {f.name: f for f in findings}
    meant = {
        name: {DOUBTFUL: row.doubtful, OFF: row.off, UNTOLD: row.untold, FINE: USE}[found[name].verdict]
        for name, row in TABLE.items()
        if name in found
    }
    word = max(meant.values(), key=[USE, CARE, NEVER].index, default=USE)
    names = tuple(name for worst in (NEVER, CARE) for name, verdict in meant.items() if verdict == worst)[:MOST_REASONS]
    rows = [TABLE[name] for name in names]
    actions, commands = (
        tuple(dict.fromkeys(getattr(row, language) for row in rows))[:MOST_ACTIONS] for language in ("python", "shell")
    )
    return Decision(word, names, tuple(row.because for row in rows), actions, commands)
