"""What a few graded rows are worth: Inversion with `degrees=` against learners that are trained on the same rows.

    CONTONE_DATA=... python benchmarks/evidence.py                          # all sets, 10, 30 and 100 graded rows
    CONTONE_DATA=... python benchmarks/evidence.py --sets SJAFFE --counts 30
    CONTONE_DATA=... python benchmarks/evidence.py --suggest                # suggested rows beside random ones
    CONTONE_DATA=... python benchmarks/evidence.py --sets Yeast_spoem --counts 10 --methods Inversion without --draws 10
    CONTONE_DATA=... python benchmarks/evidence.py --table                  # only print what is stored
    CONTONE_DATA=... python benchmarks/evidence.py --out trial.json         # another store

Every number is the recovered share (`contone.limits`) of the rows that are not graded; three draws of the graded rows,
or `--draws` of them, which says what is chance (the table has standard errors then); one setting for all sets. Cells
are stored in benchmarks/results/evidence.json as they are done, and not computed again. The limit of a set is that of
all its rows (benchmarks/results/inversion.json), in proportion to the uniform distribution's error on the rows that
are left.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV

from contone import GLLE, Calibrated, Inversion, MaxEnt
from contone.enhance.inversion import suggest
from contone.limits import ALPHAS, design_matrix, limit, recovered, to_distributions
from contone.numerics.simplex import softmax
from contone.runtime.files import replacing
from inversion import SETS, load, mean_kl

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "evidence.json"
COUNTS, DRAWS = (10, 30, 100), 3
Answer = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def with_grades(X: np.ndarray, L: np.ndarray, D: np.ndarray, rows: np.ndarray) -> np.ndarray:
    G = np.full_like(D, np.nan)
    G[rows] = D[rows]
    return Inversion().fit_enhance(X, L, degrees=G)


@lru_cache(maxsize=1)
def fit_without(stem: str) -> Inversion:
    """The fit to a set without graded rows: one for all counts and draws."""
    X, _, L = load(stem)
    return Inversion().fit(X, L)


def ridge_on_labels(X: np.ndarray, L: np.ndarray, D: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return to_distributions(RidgeCV(ALPHAS).fit(L[rows], D[rows]).predict(L))


def ridge(X: np.ndarray, L: np.ndarray, D: np.ndarray, rows: np.ndarray) -> np.ndarray:
    inputs = design_matrix(X, L)
    return to_distributions(RidgeCV(ALPHAS).fit(inputs[rows], D[rows]).predict(inputs))


def trees(X: np.ndarray, L: np.ndarray, D: np.ndarray, rows: np.ndarray) -> np.ndarray:
    inputs = design_matrix(X, L)
    forest = ExtraTreesRegressor(n_estimators=200, min_samples_leaf=3, max_features=0.5, random_state=0)
    return to_distributions(forest.fit(inputs[rows], D[rows]).predict(inputs))


def temperature(X: np.ndarray, L: np.ndarray, D: np.ndarray, rows: np.ndarray) -> np.ndarray:
    best = minimize_scalar(lambda c: mean_kl(D[rows], softmax(c * L[rows])), bounds=(0.0, 5.0), method="bounded")
    return softmax(best.x * L)


def maxent(X: np.ndarray, L: np.ndarray, D: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The penalty by three folds of the graded rows; without one, ten rows fit anything."""
    inputs = design_matrix(X, L)
    search = GridSearchCV(MaxEnt(), {"l2": [0.01, 0.1, 1.0, 10.0]}, cv=3)
    return search.fit(inputs[rows], D[rows]).predict(inputs)


def calibrated_glle(X: np.ndarray, L: np.ndarray, D: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What the same rows make of another method: GLLE, calibrated."""
    G = np.full_like(D, np.nan)
    G[rows] = D[rows]
    return Calibrated(GLLE()).fit_enhance(X, L, degrees=G)


WITHOUT, SUGGESTED = "without", "suggested"
"""Inversion with the rows that `suggest` chooses among 500 drawn at random, other ones in every draw."""
METHODS: dict[str, Answer] = {
    WITHOUT: lambda X, L, D, rows: Inversion().fit_enhance(X, L),
    "Inversion": with_grades,
    "ridge on L": ridge_on_labels,
    "ridge": ridge,
    "extra-trees": trees,
    "softmax(c L)": temperature,
    "MaxEnt": maxent,
    "GLLE, calibrated": calibrated_glle,
    SUGGESTED: with_grades,
}


def suggest_rows(stem: str, X: np.ndarray, L: np.ndarray, count: int, draw: int) -> np.ndarray:
    """Rows by `suggest`: the model is fitted to all rows, the candidates are 500 of them."""
    method = fit_without(stem)
    chosen = np.sort(np.random.default_rng(100 + draw).permutation(len(X))[:500])
    graded = np.zeros(len(chosen), dtype=bool)
    parts = {"X": X[chosen], "L": L[chosen], "D": method.label_distributions_[chosen]}
    sample = replace(method._error_sample, **parts, numbers=chosen, graded=graded)
    return np.sort(suggest.suggest_rows(method.fit_, sample, count, seed=draw))


def choose_rows(n: int, count: int, draw: int) -> np.ndarray:
    return np.sort(np.random.default_rng(100 + draw).permutation(n)[:count])


def limits() -> dict[str, float]:
    stored = HERE / "results" / "inversion.json"
    return dict(json.loads(stored.read_text())["limits"]) if stored.exists() else {}


def read(store: Path) -> dict[str, float]:
    return dict(json.loads(store.read_text())) if store.exists() else {}


def run(sets: list[str], counts: list[int], methods: list[str], store: Path, draws: int = DRAWS) -> None:
    cells = read(store)
    known = limits()
    for stem in sets:
        X, D, L = load(stem)
        uniform = np.full_like(D, 1.0 / D.shape[1])
        full = known[stem] if known.get(stem) else min(limit(X, L, D).candidates.values())
        for count in counts:
            for draw in range(draws):
                drawn = choose_rows(len(X), count, draw)
                for name in methods:
                    key = f"{stem}/{count}/{draw}/{name}"
                    if key in cells:
                        continue
                    rows = suggest_rows(stem, X, L, count, draw) if name == SUGGESTED else drawn
                    rest = np.setdiff1d(np.arange(len(X)), rows)
                    bottom = mean_kl(D[rest], uniform[rest])
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        alone = name == WITHOUT
                        answer = fit_without(stem).label_distributions_ if alone else METHODS[name](X, L, D, rows)
                    top = full * bottom / mean_kl(D, uniform)
                    cells[key] = recovered(mean_kl(D[rest], answer[rest]), bottom, top)
                    with replacing(store) as temporary:
                        temporary.write_text(json.dumps(cells, indent=0, sort_keys=True) + "\n")
        print(stem, flush=True)


def table(sets: list[str], counts: list[int], store: Path, draws: int = DRAWS) -> str:
    """Means over the draws in per cent, as Markdown; a dash where nothing is stored. More draws than three: (error)."""
    cells = read(store)
    lines = ["| set | graded | " + " | ".join(METHODS) + " |", "|---" * (2 + len(METHODS)) + "|"]

    def shares(stem: str, count: int, name: str) -> np.ndarray:
        return 100 * np.array([cells.get(f"{stem}/{count}/{draw}/{name}", np.nan) for draw in range(draws)])

    def mean(stem: str, count: int, name: str) -> float:
        return float(shares(stem, count, name).mean())

    def write(stem: str, count: int, name: str) -> str:
        found = shares(stem, count, name)
        error = f" ({found.std(ddof=1) / len(found) ** 0.5:.1f})" if draws > DRAWS else ""
        return "-" if np.isnan(found).any() else f"{found.mean():.1f}{error}"

    def row(title: str, count: int, values: list[str]) -> str:
        return f"| {title} | {count} | " + " | ".join(values) + " |"

    for count in counts:
        lines += [row(stem, count, [write(stem, count, name) for name in METHODS]) for stem in sets]
        yeast = [stem for stem in sets if stem.startswith("Yeast")]
        if yeast:
            means = [float(np.mean([mean(stem, count, name) for stem in yeast])) for name in METHODS]
            lines.append(row("Yeast, mean", count, ["-" if np.isnan(value) else f"{value:.1f}" for value in means]))
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS[:11])
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--suggest", action="store_true", help="only Inversion, with random and with suggested rows")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.suggest:
        arguments.methods, arguments.counts = ["Inversion", SUGGESTED], [10, 30]
    if not arguments.table:
        run(arguments.sets, arguments.counts, arguments.methods, arguments.out, arguments.draws)
    print(table(arguments.sets, arguments.counts, arguments.out, arguments.draws))
