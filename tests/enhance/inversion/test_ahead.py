"""What is compiled ahead is all that fits use."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import numpy as np
from numba.core import event
from contone import Inversion
from compile_loops import compile_loops

asked = []
compile_loops()
event.register("numba:compile", type("Listener", (event.Listener,), {
    "on_start": lambda self, event: asked.append(event.data["dispatcher"]), "on_end": lambda self, event: None})())
rng = np.random.default_rng(0)
X, groups, people = rng.standard_normal((80, 3)), np.repeat(np.arange(20), 4), np.tile(np.arange(4), 20)
for rule, Y in [
    ("votes", np.eye(4)[rng.integers(4, size=80)]),
    ("marks", rng.integers(2, size=(80, 4))),
    ("levels", np.asfortranarray(rng.integers(4, size=(80, 4)), dtype=float)),
]:
    method = Inversion(degradation=rule, n_sweeps=12, n_burn=4)
    method.fit_enhance(X, Y, groups=groups, annotators=people)
    method.fit_enhance(X, Y)
    method.enhance(X, Y), method.predict(X), method.intervals(X, Y)
for dtype in (np.float64, np.float32):
    for rule in ("main", "best", "order"):
        Y = rng.permuted(np.tile([1, 1, 0, 0], (80, 1)), axis=1)
        Inversion(degradation=rule, n_sweeps=12, n_burn=4).fit_enhance(X.astype(dtype), Y.astype(dtype))
assert not asked, asked
"""


def test_what_is_compiled_ahead_is_what_fits_use():
    scripts = Path(__file__).parents[3] / "scripts"
    told = {**os.environ, "PYTHONPATH": os.pathsep.join([str(scripts), *sys.path])}
    program = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=told)
    assert done.returncode == 0, done.stderr
