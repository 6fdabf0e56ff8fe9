"""All compiled loops ahead of their first use: some 25 s that no fit and no test then waits for."""

import numpy as np

from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.people.fit import fit_people
from contone.enhance.inversion.sweeps import Bound, Move
from contone.enhance.inversion.sweeps.compiled import CompiledSweeps, add_draw
from contone.measurements import Region
from contone.measurements.levels import Levels
from contone.measurements.votes import Votes


def compile_loops() -> None:
    """Compile what first fits would, sweeps in both precisions and those for answers; it is kept on this machine."""
    for dtype in (np.float64, np.float32):
        Z = np.zeros((2, 2), dtype=dtype)
        CompiledSweeps(Region("order")).sweep(Z, Bound(Z > 0), Z, np.eye(2), Move(Z, Z[0]))
        add_draw(Z, (np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))), 1e-12, -40.0)
    rng = np.random.default_rng(0)
    item, person = np.repeat(np.arange(20), 2), np.tile([1, 2], 20)
    X, votes = rng.standard_normal((20, 2)), np.eye(3)[rng.integers(3, size=40)]
    levels = votes + votes[:, ::-1]
    for rule, answers in ((Votes(), votes), (Levels().suited_to(levels), levels)):
        fit_people(X, answers, rule, Settings(n_sweeps=8, n_burn=4), rng, None, item, person)


if __name__ == "__main__":
    compile_loops()
