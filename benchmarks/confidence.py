"""The label-confidence QP: contone's solver against general QP solvers, in one run, on CPU time.

    python benchmarks/confidence.py                       # Yeast-cold and Yeast-alpha, all solvers
    python benchmarks/confidence.py alpha --solvers contone,clarabel --limit 300

Data comes from the folder in CONTONE_DATA. Every solver gets the same problem, already reduced to the variables that
are free (relevant labels of rows with at least two): min 1/2 x^T P x + c^T x, A x = 1, x >= 0, with P block-diagonal,
one block a label. Each is asked for the accuracy of the project's budget, a relative gap of 1e-9, in its own terms;
what it reached is measured on its answer, made feasible by projection, by the Frank-Wolfe gap. The solver's set-up is
counted, the graph is not, and neither is the standard form that general solvers need. The tables go to stdout and, with
the versions of everything, to results/confidence.md and results/confidence.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core each, so that CPU time compares work

import numpy as np
import scipy.sparse as sp
from scipy.io import loadmat

import versions
from contone import CumulativeMass
from contone.augment.confidence import confidence_graph
from contone.augment.simplex_qp import Programme, _certificate, _half_gradient, _Point, minimise_on_simplices
from contone.numerics.graphs import nearest_neighbours
from contone.numerics.simplex import project_masked_simplex

TOLERANCE = 1e-9


class StandardForm(NamedTuple):
    """min 1/2 x^T P x + c^T x, A x = 1, x >= 0, where x are the entries of F on the mask, label by label."""

    P: sp.csc_array
    c: np.ndarray
    A: sp.csc_array


def load_programme(name: str) -> Programme:
    """The label-confidence problem of a Yeast set with the paper's parameters."""
    folder = os.environ.get("CONTONE_DATA")
    if not folder:
        raise SystemExit("CONTONE_DATA is not set: point it at the folder with the Yeast_*.mat files.")
    content = loadmat(Path(folder) / f"Yeast_{name}.mat")
    X, D = np.asarray(content["features"], dtype=float), np.asarray(content["labels"], dtype=float)
    mask = CumulativeMass().apply(D / D.sum(axis=1, keepdims=True)).astype(bool)
    neighbours = nearest_neighbours(X, 10)
    S = confidence_graph(neighbours, float(neighbours.distances[:, -1].mean())).S
    free = np.flatnonzero(mask.sum(axis=1) > 1)
    fixed = np.where((mask.sum(axis=1) == 1)[:, None], mask, False).astype(float)
    S_fixed = S.matmul(fixed)
    constant = float(np.sum(fixed**2) - np.sum(fixed * S_fixed))
    return Programme(S.submatrix(free), S_fixed[free], mask[free], constant)


def standard_form(problem: Programme) -> StandardForm:
    """The same problem as general solvers want it."""
    rows = [np.flatnonzero(column) for column in problem.mask.T]
    T = (2.0 * (sp.eye_array(problem.S.shape[0]) - problem.S.matrix)).tocsr()
    P = sp.block_diag([T[r][:, r] for r in rows if r.size], format="csc")
    c = np.concatenate([-2.0 * problem.C[r, label] for label, r in enumerate(rows)])
    owner = np.concatenate(rows)
    A = sp.csc_array((np.ones(owner.size), (owner, np.arange(owner.size))), shape=(problem.mask.shape[0], owner.size))
    return StandardForm(sp.csc_array(P), c, A)


def matrix_form(problem: Programme, x: np.ndarray) -> np.ndarray:
    """x back as F (m, q)."""
    F = np.zeros(problem.mask.shape)
    F.T[problem.mask.T] = x
    return F


def by_contone(problem: Programme, form: StandardForm) -> np.ndarray:
    """The solver of LabelConfidence."""
    start = problem.mask / problem.mask.sum(axis=1, keepdims=True)
    return minimise_on_simplices(problem, start, tol=TOLERANCE).value


def by_clarabel(problem: Programme, form: StandardForm) -> np.ndarray:
    """Interior point."""
    import clarabel

    P, c, A = form
    m, n = A.shape
    G = sp.csc_matrix(sp.vstack([A, -sp.eye_array(n)]))
    h = np.concatenate([np.ones(m), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = TOLERANCE
    cones = [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(n)]
    solver = clarabel.DefaultSolver(sp.csc_matrix(sp.triu(P)), c, G, h, cones, settings)
    return matrix_form(problem, np.asarray(solver.solve().x))


def by_proxqp(problem: Programme, form: StandardForm) -> np.ndarray:
    """Proximal augmented Lagrangian, sparse."""
    import proxsuite

    P, c, A = form
    m, n = A.shape
    qp = proxsuite.proxqp.sparse.QP(n, m, n)
    qp.settings.eps_abs = qp.settings.eps_rel = 1e-8
    bound = np.full(n, 1e20)
    qp.init(sp.csc_matrix(P), c, sp.csc_matrix(A), np.ones(m), sp.csc_matrix(sp.eye_array(n)), np.zeros(n), bound)
    qp.solve()
    return matrix_form(problem, qp.results.x)


def by_scs(problem: Programme, form: StandardForm) -> np.ndarray:
    """Operator splitting."""
    import scs

    P, c, A = form
    m, n = A.shape
    data = {
        "P": sp.csc_matrix(sp.triu(P)),
        "A": sp.csc_matrix(sp.vstack([A, -sp.eye_array(n)])),
        "b": np.concatenate([np.ones(m), np.zeros(n)]),
        "c": c,
    }
    solver = scs.SCS(data, {"z": m, "l": n}, verbose=False, eps_abs=1e-8, eps_rel=1e-8, max_iters=100_000)
    return matrix_form(problem, solver.solve()["x"])


def by_osqp(problem: Programme, form: StandardForm) -> np.ndarray:
    """Operator splitting."""
    import osqp

    P, c, A = form
    m, n = A.shape
    solver = osqp.OSQP()
    solver.setup(
        sp.csc_matrix(sp.triu(P)),
        c,
        sp.csc_matrix(sp.vstack([A, sp.eye_array(n)])),
        np.concatenate([np.ones(m), np.zeros(n)]),
        np.concatenate([np.ones(m), np.full(n, np.inf)]),
        verbose=False,
        eps_abs=1e-8,
        eps_rel=1e-8,
        max_iter=100_000,
    )
    return matrix_form(problem, solver.solve().x)


Solver = Callable[[Programme, StandardForm], np.ndarray]

SOLVERS: dict[str, Solver] = {
    "contone": by_contone,
    "proxqp": by_proxqp,
    "scs": by_scs,
    "clarabel": by_clarabel,
    "osqp": by_osqp,
}


class Result(NamedTuple):
    """CPU seconds, objective and relative gap of one solver's answer, made feasible."""

    seconds: float
    objective: float
    gap: float


def measure(problem: Programme, solve: Solver) -> Result:
    """Run one solver; runs below a tenth of a second are repeated and the fastest counts."""
    form = standard_form(problem)
    best = np.inf
    repeats = 0
    while repeats == 0 or (best < 0.1 and repeats < 10):
        start = time.process_time()
        F = solve(problem, form)
        best = min(best, time.process_time() - start)
        repeats += 1
    F = project_masked_simplex(F, problem.mask)
    objective, gap = _certificate(problem, _Point(F, _half_gradient(problem, F)))
    return Result(best, objective, gap / objective)


def _in_child(connection: object, name: str, solver: str) -> None:
    connection.send(measure(load_programme(name), SOLVERS[solver]))  # type: ignore[attr-defined]


def measure_within(name: str, solver: str, limit: float) -> Result | None:
    """The result, or None where the solver needed more than `limit` seconds of wall time and was stopped."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_in_child, args=(theirs, name, solver))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else None
    except EOFError:
        return None
    finally:
        child.terminate()
        child.join()


def compare(name: str, solvers: list[str], limit: float) -> dict[str, Any]:
    """All solvers on one Yeast set, printed as they finish."""
    problem = load_programme(name)
    found: dict[str, Any] = {"set": name, "variables": int(problem.mask.sum()), "rows": problem.mask.shape[0]}
    print(f"Yeast-{name}: {found['variables']} variables, {found['rows']} rows", flush=True)
    print(f"{'solver':10} {'CPU s':>9} {'x contone':>10} {'objective':>18} {'relative gap':>13}")
    found["solvers"] = {}
    for solver in dict.fromkeys(["contone", *solvers]):
        result = measure_within(name, solver, limit)
        found["solvers"][solver] = result and result._asdict()
        print("{:10} {:>9} {:>10} {:>18} {:>13}".format(*cells(solver, found, limit)), flush=True)
    return found


def cells(solver: str, found: dict[str, Any], limit: float) -> list[str]:
    """Solver, CPU seconds, as a multiple of contone's, objective, gap; for one that was stopped, the limit."""
    result, own = found["solvers"][solver], found["solvers"]["contone"]
    if result is None or own is None:
        return [solver, f"> {limit:.0f}", "-", "not done", "-"]
    ratio = result["seconds"] / own["seconds"]
    return [solver, f"{result['seconds']:.3f}", f"{ratio:.1f}", f"{result['objective']:.9f}", f"{result['gap']:.1e}"]


def page(sets: list[dict[str, Any]], made_with: dict[str, str], limit: float) -> str:
    """The results as Markdown."""
    head = ["solver", "CPU s", "times contone", "objective", "relative gap"]
    parts = [
        "# The label-confidence problem: contone against general QP solvers",
        "Made by `python benchmarks/confidence.py`, which says what is measured. One thread, CPU seconds; `>`: stopped "
        f"after {limit:.0f} s of wall time.",
        f"With: {versions.shown(made_with)}.",
    ]
    for found in sets:
        lines = [head, ["---"] * len(head), *(cells(solver, found, limit) for solver in found["solvers"])]
        parts.append(f"Yeast-{found['set']}, {found['variables']:,} variables, {found['rows']:,} rows:")
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """One table per data set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sets", nargs="*", default=["cold", "alpha"], help="Yeast sets (default: cold alpha)")
    parser.add_argument("--solvers", default=",".join(SOLVERS), help="comma-separated; contone is always run")
    parser.add_argument("--limit", type=float, default=200.0, help="wall seconds a solver may take (default: 200)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    made_with = versions.own("proxsuite", "scs", "clarabel", "osqp")
    sets = [compare(name, arguments.solvers.split(","), arguments.limit) for name in arguments.sets]
    arguments.out.mkdir(parents=True, exist_ok=True)
    stored = {"versions": made_with, "limit_s": arguments.limit, "sets": sets}
    (arguments.out / "confidence.json").write_text(json.dumps(stored, indent=1) + "\n")
    (arguments.out / "confidence.md").write_text(page(sets, made_with, arguments.limit))


if __name__ == "__main__":
    main()
