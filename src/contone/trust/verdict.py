"""Use, use with care, do not use: what the checks mean for somebody who has to decide.

The decision is `TABLE`. Each check is fine, doubtful, off, or tells nothing here; a row of the table says what each of
these means for the answer, why in plain words, and what to do. The worst of all rows is the verdict; its reasons are
those that speak against use, the worst first and otherwise in the order of the table, and at most three things to do
follow from them. docs/trust.md has
the table with the bounds from which on a check is doubtful or off; `benchmarks/verdict.py` holds it to situations whose
truth is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

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


GRADE = (
    "Grade a few rows by hand, which tells how uneven degrees are: method.suggest() names them, fit(..., degrees=).",
    "Grade a few rows by hand, which tells how uneven degrees are: contone suggest, then --graded.",
)
RULE = (
    'Say how the labels were made: Inversion(degradation="main", "everything", "bar", "best" or "auto"); votes and '
    'levels of people are "votes" and "levels".',
    "Say how the labels were made: --rule main, everything, bar, best or auto; votes and levels of people are --rule "
    "votes and levels.",
)
NOISE = (
    "Look at the labels that look wrong (doubtful_labels); if marks are missing or wrong, say how often: noise=0.1.",
    "Look at the labels that look wrong on the page; if marks are missing or wrong, say how often: --param noise=0.1.",
)
SIMPLER = (
    "Take the labels as they are, or compare methods on data like yours: contone.compare.",
    "Take the labels as they are, or compare methods on data like yours: contone compare.",
)
COUNT = ("Count the answers, or ask more people per item; columns that tell something of the items help, too.",) * 2
ASK = ("Have a second person answer some of the items; where people vote, contone suggest names them.",) * 2
FEATURES = (
    "Check that X and Y are of the same rows; add features that tell something, or use features=False.",
    "Check that labels and features are of the same rows; add columns that tell something.",
)
ROWS = ("Collect more rows with other labels.",) * 2
SWEEPS = ("Let it run longer: n_sweeps=1000.", "Let it run longer: --param n_sweeps=1000.")
INTERVALS = ("Use the degrees, but not their intervals.",) * 2
STEPS = ("Say how many people voted: resolution=10.", "Say how many people voted: --param resolution=10.")
SOLVER = ("Let the solver converge: raise max_iter.", "Let the solver converge: --param max_iter=...")
METHOD = ("Use Inversion, or contone.Tuned around the method.", "Use --method inversion, or --tune.")

TABLE = {
    "data": Consequence(CARE, NEVER, USE, "the rows and labels are too few, or too much alike, to learn from", *ROWS),
    "gain": Consequence(CARE, NEVER, USE, "the answer is hardly expected to be better than a simple one", *SIMPLER),
    "left-out": Consequence(CARE, NEVER, CARE, "answers left out are predicted no better than by counting", *COUNT),
    "people": Consequence(CARE, CARE, CARE, "one answer per item does not tell how far people differ about it", *ASK),
    "shares": Consequence(USE, CARE, USE, "degrees are not the shares that come true", *INTERVALS),
    "cardinality": Consequence(CARE, NEVER, USE, "the rule does not make such numbers of labels per row", *RULE),
    "rule": Consequence(CARE, CARE, USE, "most of the expected error is that nobody knows how labels were made", *RULE),
    "features": Consequence(CARE, CARE, CARE, "the features tell nothing of the labels, or there are none", *FEATURES),
    "entries": Consequence(USE, CARE, USE, "hidden labels are predicted worse than by equal degrees", *NOISE),
    "rehearsal": Consequence(CARE, NEVER, USE, "on data like these a method without features does better", *METHOD),
    "order": Consequence(CARE, NEVER, USE, "labels marked no often get more weight than labels marked yes", *METHOD),
    "spread": Consequence(CARE, CARE, USE, "the labels do not tell how uneven degrees are", *GRADE),
    "co-occurrence": Consequence(USE, CARE, USE, "labels go together in ways that the model does not make", *NOISE),
    "frequency": Consequence(USE, CARE, USE, "the model does not make such frequencies of labels", *NOISE),
    "chain": Consequence(CARE, NEVER, USE, "the sampler has not settled", *SWEEPS),
    "solver": Consequence(CARE, CARE, USE, "the solver has not converged", *SOLVER),
    "calibration": Consequence(USE, CARE, USE, "intervals do not hold what they promise at this size", *INTERVALS),
    "lattice": Consequence(
        CARE, CARE, USE, "graded rows are shares of a few votes, which intervals do not know", *STEPS
    ),
}
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
