"""Does a rehearsal, which sees no truth, say what the truth says? Order of methods, best parameters, expected KL.

    CONTONE_DATA=... python benchmarks/rehearsal.py                         # goes on where it stopped
    CONTONE_DATA=... python benchmarks/rehearsal.py --sets SJAFFE Yeast_dtt --seeds 1 --out trial.jsonl
    python benchmarks/rehearsal.py --summary --fill   # runs nothing: results/rehearsal.json, docs/fair-comparison.md

Every seed and set has random numbers of its own, also for the sample of rows that everything below is on. Cells:

    SET/SEED/order      all methods at their defaults, KL on the replicates and the true one
    SET/SEED/METHOD     default, rehearsed and oracle parameters, the latter two from the same candidates
    SET/SEED/...+10     the same with the degrees of ten rows known to the rehearsal's model
    SET/SEED/METHOD~cv  parameters by scikit-learn's GridSearchCV, that is by held-out labels; rehearsed; oracle

A cell is a line of the store, written when it is finished. Truth is used to score answers and for the oracle alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import time
import warnings
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.io import loadmat
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import contone
from contone import CumulativeMass, Inversion, Rehearsal, evaluate
from contone.base import Enhancer
from contone.enhance.rescaled import rescale
from contone.runtime.files import replacing
from contone.trust.search import best_temperature, candidates, search
from contone.trust.trial import shared_memory, try_all, try_method
from rehearsal_tables import (
    GRADED_METHODS,
    GRADED_SETS,
    LABEL_METHODS,
    LABEL_SETS,
    RESULTS,
    SETS,
    TUNED,
    fill,
    page_text,
    plain,
    read,
    summarise,
)

ROWS = {"Movie": 200, "Movie/LEMLL": 100, "Movie/LCdr": 100}
"""Rows of a sample, by set or by set and method, where they are not `OTHER_ROWS`: Movie has 1,869 features."""
OTHER_ROWS = 500
SHORT = {"LEMLL": {"tol": 1e-3, "n_components": 50}}
"""Settings that make a method cheaper, for every fit of it here."""
NETWORKS = {"LEVI", "LIBLE", "ConLE"}
"""Methods that train networks: not ordered here, for their time."""


ORDER_REPLICATES = 5
"""As many as `contone.compare` makes."""


def rows_of(stem: str, name: str = "") -> int:
    return ROWS.get(f"{stem}/{name}", ROWS.get(stem, OTHER_ROWS))


def stream_of(stem: str, seed: int, use: int) -> np.random.Generator:
    """Random numbers of a set, a seed and a use: chance in one set is no copy of chance in another."""
    return np.random.default_rng([seed, zlib.crc32(stem.encode()), use])


@lru_cache(maxsize=2)
def load(stem: str, seed: int, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, distributions and labels of the rows that this seed draws."""
    content = loadmat(Path(os.environ["CONTONE_DATA"]) / f"{stem}.mat")
    X, D = (np.asarray(content[key], dtype=float) for key in ("features", "labels"))
    rows = np.sort(stream_of(stem, seed, 0).choice(len(X), min(n_rows, len(X)), replace=False))
    X, D = X[rows], D[rows] / D[rows].sum(axis=1, keepdims=True)
    return X, D, CumulativeMass().apply(D).astype(float)


@lru_cache(maxsize=2)
def rehearse(stem: str, seed: int, n_rows: int, n_replicates: int, n_graded: int) -> Rehearsal:
    X, D, L = load(stem, seed, n_rows)
    degrees = None
    if n_graded:
        degrees = np.full_like(D, np.nan)
        rows = stream_of(stem, seed, 1).choice(len(D), n_graded, replace=False)
        degrees[rows] = D[rows]
    own = int(stream_of(stem, seed, 2).integers(2**31))
    return Rehearsal(X, L, Inversion(random_state=own), degrees=degrees, n_replicates=n_replicates, random_state=own)


def build(name: str, seed: int) -> Enhancer:
    method: Enhancer = getattr(contone, name)(**SHORT.get(name, {}))
    return method.set_params(random_state=seed) if "random_state" in method.get_params() else method


def kl(D: np.ndarray, answer: np.ndarray | None) -> float:
    return math.nan if answer is None else float(evaluate(D, answer).kl)


def order_cell(stem: str, seed: int, n_graded: int) -> dict:
    """Every method at its defaults: KL on the replicates, and the true one."""
    n_rows = rows_of(stem)
    X, D, L = load(stem, seed, n_rows)
    rehearsal = rehearse(stem, seed, n_rows, ORDER_REPLICATES, n_graded)
    found = {}
    for cls in contone.enhance.methods().values():
        if cls.__name__ in NETWORKS:
            continue
        method = build(cls.__name__, seed)
        trials = try_all(method, rehearsal.X, rehearsal.replicates, None)
        rehearsed = [kl(r.distributions, t.answer) for r, t in zip(rehearsal.replicates, trials, strict=True)]
        if cls is Inversion:  # the rehearsal has fitted it to these rows already
            true, error = kl(D, rehearsal.model.label_distributions_), trials[0].error
        else:
            trial = try_method(method, X, L)
            true, error = kl(D, trial.answer), trial.error or trials[0].error
        found[cls.__name__] = {"rehearsed": rehearsed, "true": true, "error": error}
    return {"replicates": ORDER_REPLICATES, "methods": found, **told_by(rehearsal, D)}


def tuned_cell(stem: str, seed: int, name: str, n_graded: int, options: argparse.Namespace) -> dict:
    """One method: default, rehearsed and oracle parameters, the two latter from the same candidates."""
    n_rows = rows_of(stem, name)
    X, D, L = load(stem, seed, n_rows)
    rehearsal = rehearse(stem, seed, n_rows, options.replicates, n_graded)
    method = build(name, seed)
    found = search(method, rehearsal, n_iter=options.candidates, seed=seed)
    best: dict[str, Any] = {"kl": math.inf}
    default = tuned = math.nan
    with shared_memory(method) as able:
        for params in candidates(method, type(method).SEARCH, options.candidates, seed):
            answer = try_method(clone(able).set_params(**params), X, L).answer
            if answer is None:
                continue
            t, _ = best_temperature([D], [answer])
            here = kl(D, rescale(answer, t))
            if not params:
                default = kl(D, answer)
            if here < best["kl"]:
                best = {"kl": here, "params": {**params, "temperature": t}}
            if params == found.best.params:
                tuned = kl(D, rescale(answer, found.best.temperature))
    return {
        "default": default, "rehearsed": tuned, "oracle": best["kl"],
        "rehearsed_params": {**found.best.params, "temperature": found.best.temperature},
        "oracle_params": best["params"],
        "expected_relative_kl": found.best.score,
        **told_by(rehearsal, D),
    }  # fmt: skip


def labels_cell(stem: str, seed: int, name: str, options: argparse.Namespace) -> dict:
    """One method without a temperature: parameters by held-out labels, by a rehearsal and by the truth.

    "labels_tempered" has the parameters that the labels chose and the temperature that the rehearsal gives them.
    """
    n_rows = rows_of(stem, name)
    X, D, L = load(stem, seed, n_rows)
    rehearsal = rehearse(stem, seed, n_rows, options.replicates, 0)
    method = build(name, seed)
    given = candidates(method, type(method).SEARCH, options.candidates, seed)
    full = [{k: [v] for k, v in clone(method).set_params(**params).get_params().items()} for params in given]
    folds = KFold(3, shuffle=True, random_state=seed)
    by_labels = GridSearchCV(method, full, cv=folds, refit=False).fit(X, L)
    plain_search = search(method, rehearsal, temperature=False, n_iter=options.candidates, seed=seed)
    answers = [try_method(clone(method).set_params(**params), X, L).answer for params in given]
    scores = [kl(D, answer) for answer in answers]
    chosen = int(by_labels.best_index_)
    settled = clone(method).set_params(**given[chosen])
    temperature = search(settled, rehearsal, {}, seed=seed).best.temperature
    return {
        "default": scores[0], "labels": scores[chosen], "oracle": float(np.nanmin(scores)),
        "rehearsed": scores[given.index(plain_search.best.params)],
        "labels_tempered": kl(D, rescale(answers[chosen], temperature)),
        "labels_params": given[chosen], "label_scores": by_labels.cv_results_["mean_test_score"].tolist(),
        "true_scores": scores,
        **told_by(rehearsal, D),
    }  # fmt: skip


def spread(D: np.ndarray) -> float:
    """Root mean square of the centred logarithms of degrees D (n, q)."""
    Z = np.log(D)
    return float(np.sqrt(np.mean(np.square(Z - Z.mean(axis=1, keepdims=True)))))


def told_by(rehearsal: Rehearsal, D: np.ndarray) -> dict:
    """What the rehearsal says of itself, beside the KL of the uniform distribution and the spread of the truth."""
    return {
        "rows": len(D),
        "uniform": kl(D, np.full_like(D, 1.0 / D.shape[1])),
        "true_spread": spread(np.maximum(D, 1e-3)),  # as benchmarks/inversion.py measures it: zeros would be all of it
        "spread": rehearsal.model.spread_,
        "spread_deviation": rehearsal.model.spread_deviation_,
        "replicate_spreads": [spread(np.maximum(r.distributions, 1e-300)) for r in rehearsal.replicates],
        "warnings": list(rehearsal.warnings),
    }


def run(key: str, options: argparse.Namespace) -> tuple[str, dict]:
    stem, seed, what = key.split("/")
    name, _, n_graded = what.removesuffix("~cv").partition("+")
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if name == "order":
                cell = order_cell(stem, int(seed), int(n_graded or 0))
            elif what.endswith("~cv"):
                cell = labels_cell(stem, int(seed), name, options)
            else:
                cell = tuned_cell(stem, int(seed), name, int(n_graded or 0), options)
        except Exception as error:  # one cell must not end the others; it is tried again by the next run
            return key, {"failed": f"{type(error).__name__}: {error}"}
    return key, {**cell, "seconds": time.process_time() - start}


def keys(options: argparse.Namespace) -> list[str]:
    """All cells, those of the first seed first."""
    found = []
    for seed in range(options.seeds):
        for stem in options.sets:
            found += [f"{stem}/{seed}/{what}" for what in ["order", *options.methods]]
        graded = [stem for stem in GRADED_SETS if stem in options.sets]
        found += [f"{stem}/{seed}/{name}+10" for stem in graded for name in ["order", *GRADED_METHODS]]
        labels = [stem for stem in LABEL_SETS if stem in options.sets]
        found += [f"{stem}/{seed}/{name}~cv" for stem in labels for name in LABEL_METHODS]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "rehearsal.jsonl")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="*", default=TUNED)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--replicates", type=int, default=2, help="for the choice of parameters")
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("--fill", action="store_true", help="put the numbers into docs/fair-comparison.md")
    options = parser.parse_args()
    cells = read(options.out)
    todo = [] if options.summary else [key for key in keys(options) if key not in cells]
    if todo:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=RESULTS, capture_output=True, text=True, check=False
        )
        made_by = {"commit": described.stdout.strip(), **{k: vars(options)[k] for k in ("replicates", "candidates")}}
    start = time.perf_counter()
    work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for done, (key, cell) in enumerate(work(delayed(run)(key, options) for key in todo), 1):
        if "failed" not in cell:
            cells[key] = plain(cell)
            with options.out.open("a") as store:
                store.write(json.dumps({"key": key, **made_by, **cells[key]}, allow_nan=False) + "\n")
        spent = time.perf_counter() - start
        left = spent / done * (len(todo) - done)
        print(f"{done}/{len(todo)} {key} {cell.get('failed', '')} {spent:.0f} s, about {left:.0f} s left", flush=True)
    if options.fill:
        fill(cells)
        with replacing(RESULTS / "rehearsal.json") as temporary:
            temporary.write_text(json.dumps(plain(summarise(cells)), indent=1, allow_nan=False) + "\n")
    print(page_text(cells))
    print(
        json.dumps(
            {k: v for k, v in summarise(cells).items() if k not in ("gaps", "spearman", "spearman_graded")}, indent=1
        )
    )


if __name__ == "__main__":
    import rehearsal  # by its name: functions of __main__ with a cache do not reach the processes of --jobs

    rehearsal.main()
