"""Where do degrees pay? Learners trained on degrees, on 0/1 labels and on the truth, in the situations of practice.

    CONTONE_DATA=... CONTONE_TABLES=... python benchmarks/pays.py              # goes on where it stopped
    CONTONE_DATA=... python benchmarks/pays.py --situations wrong --sets generated yeast-cold --seeds 2
    python benchmarks/pays.py --summary --fill        # runs nothing: tables, figure and docs/when-it-pays.md

CONTONE_DATA holds the sets with truth, CONTONE_TABLES the multi-label tables in MULAN's format. A cell is
SITUATION/SET/SEED/CONDITION, and a line of results/pays.jsonl, written when it is finished (the last one of a key
counts; a learner that it lacks is computed and added):

    distributions   KL and total variation of predictions for new rows (truth known), by what the learner was trained on
    few, wrong, missing, single    the same with few rows, flipped labels, unasked labels, one positive label per row
    ranking         average precision, ranking loss, Brier, calibration error on held-out 0/1 labels
    finding         flipped labels found by `doubtful_labels` and by cleanlab's scores and filter: precision at k
    annotators      degrees of items from k annotators: Inversion with groups, votes, Dawid and Skene (crowd-kit)

On sets with truth predictions are scored against the distributions of held-out rows, on tables against their 0/1
labels, which nobody flipped. cleanlab and crowd-kit are optional: a peer that is not installed has no column.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import warnings
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, label_ranking_average_precision_score, label_ranking_loss
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contone
from contone import (
    CumulativeMass,
    FromClassifier,
    Inversion,
    Logical,
    doubtful_labels,
    evaluate,
    label_chances,
)
from contone.numerics.simplex import normalise_rows, softmax
from pays_tables import RESULTS, fill, read, write

Scores = dict[str, float]
TRUTH = ["generated", "sjaffe", "yeast-cold", "yeast-spo", "yeast-alpha", "yeast-heat"]
TABLES = ["emotions", "flags", "birds"]
MANY_LABELS = ["Arts1500", "CAL500-30"]
"""Further tables, for the ranking alone: as many classifiers as labels. A number after the name: that many labels, the
most frequent ones (of CAL500's 174)."""
EVERYTHING = TRUTH + TABLES + MANY_LABELS
CONDITIONS = {
    "distributions": [""],
    "few": ["25", "50", "100"],
    "wrong": ["0.05", "0.1", "0.2"],
    "missing": ["0.3", "0.6"],
    "single": [""],
    "ranking": [""],
    "finding": ["0.05", "0.1", "0.2"],
    "annotators": ["3", "5"],
}
LEARNERS = ["linear", "forest", "boosting", "network"]
WITHOUT_LEARNERS = ["finding", "annotators"]
METHODS = ["GLLE", "LP", "LESC", "KM", "FCM", "ML2", "Temperature"]
MAX_TEST = 400
SMOOTHING = 0.01
"""Weight of the uniform distribution in votes: a vote of nobody is not a degree of zero."""


class Problem(NamedTuple):
    """Rows to learn from and rows to score; distributions are None where nobody knows them."""

    X: np.ndarray
    L: np.ndarray
    D: np.ndarray | None
    X_test: np.ndarray
    L_test: np.ndarray
    D_test: np.ndarray | None


# ------------------------------------------------------------------------------------------------------------- data


@lru_cache(maxsize=4)
def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Features, labels and, where they are known, distributions of all rows."""
    if name in TABLES + MANY_LABELS:
        table, _, n_labels = name.partition("-")
        path = Path(os.environ["CONTONE_TABLES"]) / f"{table}.arff.gz"
        problem = contone.read_table(path)
        X, L = problem.X, problem.Y.to_numpy().astype(float)
        if n_labels:
            L = L[:, np.sort(np.argsort(-L.sum(axis=0), kind="stable")[: int(n_labels)])]
        return X, L, None
    if name == "generated":
        rng = np.random.default_rng(0)
        X = rng.normal(size=(2000, 6))
        D = softmax(X @ rng.normal(size=(6, 6)) * 0.5 + 0.5 * rng.normal(size=(2000, 6)))
    else:
        found = contone.datasets.load(name)
        X, D = np.asarray(found.X, dtype=float), np.asarray(found.D, dtype=float)
    return X, CumulativeMass().apply(D).astype(float), D


def split(name: str, seed: int, n_train: int) -> Problem:
    """Disjoint rows to learn from and to score. Rows without any label of a table stay out: nothing ranks them."""
    X, L, D = load(name)
    told = np.flatnonzero(L.any(axis=1))
    order = np.random.default_rng(seed).permutation(told)
    n_train = min(n_train, 2 * len(order) // 3)
    some, rest = order[:n_train], order[n_train:][:MAX_TEST]
    kept = L[some].any(axis=0)  # a label that no training row has is nobody's to learn
    L, D = L[:, kept], D if D is None else normalise_rows(D[:, kept])
    return Problem(X[some], L[some], None if D is None else D[some], X[rest], L[rest], None if D is None else D[rest])


def flip(L: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """L with a share of wrong entries; rows that would lose all labels stay as they are."""
    flipped = np.where(rng.random(L.shape) < rate, 1 - L, L)
    return np.where(flipped.any(axis=1, keepdims=True), flipped, L)


def forget(L: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """L with a share of entries that nobody asked about; every row keeps one of its labels."""
    unasked = rng.random(L.shape) < rate
    unasked[np.arange(len(L)), _one_positive(L, rng)] = False
    return np.where(unasked, np.nan, L)


def keep_one(L: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label of every row, at random; nobody asked about the others."""
    single = np.full_like(L, np.nan)
    single[np.arange(len(L)), _one_positive(L, rng)] = 1.0
    return single


def _one_positive(L: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.argmax(np.where(L > 0, rng.random(L.shape), -1.0), axis=1)


# --------------------------------------------------------------------------------------------------------- learners


def learners(seed: int, names: Collection[str] = LEARNERS) -> dict[str, Any]:
    found = {
        "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "forest": RandomForestClassifier(100, random_state=seed),
        "boosting": HistGradientBoostingClassifier(max_iter=40, random_state=seed),
        "network": make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=60, random_state=seed)),
    }
    return {name: model for name, model in found.items() if name in names}


def chances(learner: Any, X: np.ndarray, L: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Chance of each label (m, q), one classifier per label, trained on the rows where it was asked (not NaN)."""
    P = np.full((len(X_new), L.shape[1]), 0.5)
    for j in range(L.shape[1]):
        asked = ~np.isnan(L[:, j])
        share = L[asked, j].mean() if asked.any() else 0.5
        P[:, j] = share
        if 0 < share < 1:
            P[:, j] = clone(learner).fit(X[asked], L[asked, j]).predict_proba(X_new)[:, 1]
    return P


def from_soft(learner: Any, X: np.ndarray, P: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Chance of each label (m, q), one classifier per label, trained on chances P (n, q) instead of 0/1.

    `FromClassifier` gives learners without sample weights whole numbers of copies.
    """
    answer = np.tile(P.mean(axis=0), (len(X_new), 1))
    for j in range(P.shape[1]):
        if 1e-3 < P[:, j].mean() < 1 - 1e-3:
            D = np.column_stack([1 - P[:, j], P[:, j]])
            answer[:, j] = predicted(learner, X, D, X_new)[:, 1]
    return answer


def predicted(learner: Any, X: np.ndarray, D: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    return np.asarray(FromClassifier(clone(learner)).fit(X, D).predict(X_new))


def inversion(seed: int, **settings: Any) -> Inversion:
    return Inversion(random_state=seed, **settings)


# ---------------------------------------------------------------------------------------------------------- scoring


def of_distributions(D: np.ndarray, answer: np.ndarray) -> Scores:
    found = evaluate(D, answer)
    return {"kl": float(found.kl), "tv": float(0.5 * np.abs(D - answer).sum(axis=1).mean())}


def of_ranking(L: np.ndarray, scores: np.ndarray) -> Scores:
    return {
        "lrap": float(label_ranking_average_precision_score(L > 0, scores)),
        "rloss": float(label_ranking_loss(L > 0, scores)),
    }


def of_chances(L: np.ndarray, P: np.ndarray) -> Scores:
    """Brier score, and calibration error in ten bins of equal size, over all entries."""
    p, l = P.ravel(), L.ravel()
    bins = np.array_split(np.argsort(p, kind="stable"), 10)
    error = sum(abs(p[b].mean() - l[b].mean()) * len(b) for b in bins) / len(p)
    return {"brier": float(brier_score_loss(l, p)), "ece": float(error)}


def score(problem: Problem, answer: np.ndarray, *, are_chances: bool = False) -> Scores:
    if problem.D_test is not None:
        return of_distributions(problem.D_test, answer)
    ranked = of_ranking(problem.L_test, answer)
    return {**ranked, **of_chances(problem.L_test, answer)} if are_chances else ranked


# ------------------------------------------------------------------------------------------------------- situations


def distributions(problem: Problem, seed: int, names: Collection[str]) -> dict[str, Any]:
    """A learner trained on the degrees of every method, on 0/1 labels and on the truth."""
    if problem.D is None:
        return {}
    targets = {"degrees": inversion(seed).fit_enhance(problem.X, problem.L), "truth": problem.D}
    targets["0/1"] = Logical().fit_enhance(problem.X, problem.L)
    for name in METHODS:
        targets[name] = getattr(contone, name)().fit_enhance(problem.X, problem.L)
    return {
        learner: {
            arm: score(problem, predicted(model, problem.X, np.asarray(D), problem.X_test))
            for arm, D in targets.items()
        }
        for learner, model in learners(seed, names).items()
    }


def incomplete(problem: Problem, seed: int, names: Collection[str], situation: str, condition: str) -> dict[str, Any]:
    """Few rows, or labels that are wrong, missing or single: degrees against 0/1, with and without `noise`."""
    rng, X, L = np.random.default_rng(1000 + seed), problem.X, problem.L
    if situation == "wrong":
        L = flip(L, float(condition), rng)
    elif situation == "missing":
        L = forget(L, float(condition), rng)
    elif situation == "single":
        L = keep_one(L, rng)
    plain = np.nan_to_num(L)
    models = {"degrees": inversion(seed).fit(X, L)}
    labels, soft = {"0/1": plain}, {}
    if situation == "wrong":
        rate = float(condition)
        models["degrees, noise=0.05"] = inversion(seed, noise=0.05).fit(X, L)
        models["degrees, noise=rate"] = inversion(seed, noise=rate).fit(X, L)
        found = doubtful_labels(models["degrees, noise=0.05"], X, L)
        labels["0/1, doubtful ones turned"] = plain.copy()
        labels["0/1, doubtful ones turned"][found.row, found.label] = 1 - found.given
        if problem.D is None:
            soft = {f"chances, {arm[9:]}": label_chances(models[arm], X, L) for arm in list(models)[1:]}
    elif problem.D is None and np.isnan(L).any():
        soft = {"chances": label_chances(models["degrees"], X, L)}
    found_scores: dict[str, Any] = {}
    for learner, model in learners(seed, names).items():
        here = {
            arm: score(problem, predicted(model, X, np.asarray(m.label_distributions_), problem.X_test))
            for arm, m in models.items()
        }
        for arm, given in labels.items():
            shared = score(problem, predicted(model, X, Logical().fit_enhance(X, given), problem.X_test))
            if problem.D is None:
                here[arm] = score(problem, chances(model, X, given, problem.X_test), are_chances=True)
                here[f"{arm}, one learner"] = shared
            else:
                here[arm] = shared
        if problem.D is None:
            for arm, P in soft.items():
                here[arm] = score(problem, from_soft(model, X, P, problem.X_test), are_chances=True)
            if situation == "missing":
                asked = chances(model, X, L, problem.X_test)
                here["0/1, asked rows only"] = score(problem, asked, are_chances=True)
        found_scores[learner] = here
    found_scores["itself"] = {arm: score(problem, np.asarray(m.predict(problem.X_test))) for arm, m in models.items()}
    return found_scores


def ranking(problem: Problem, seed: int, names: Collection[str]) -> dict[str, Any]:
    """Held-out 0/1 labels: one classifier per label against degrees, under the default rule and the recommended one.

    Degrees are not chances of labels. Both are mapped to chances in one way, on a third of the training rows that the
    learner has not seen; the order of the labels is judged without the map. "0/1, one learner" is trained as on
    degrees, on L / |L|: what separates it from "0/1" is the form of the learner, and not the degrees.
    """
    X, L = problem.X, problem.L
    first, held = train_test_split(np.arange(len(X)), test_size=1 / 3, random_state=seed)
    arms: dict[str, Any] = {
        "0/1": None,
        "degrees": {},
        "degrees, auto": {"degradation": "auto"},
        "0/1, one learner": None,
    }
    shared = [np.asarray(Logical().fit_enhance(X[rows], L[rows])) for rows in (first, slice(None))]
    enhanced = {"0/1, one learner": shared} | {
        arm: [np.asarray(inversion(seed, **s).fit_enhance(X[rows], L[rows])) for rows in (first, slice(None))]
        for arm, s in arms.items()
        if s is not None
    }
    found: dict[str, Any] = {}
    for learner, model in learners(seed, names).items():
        found[learner] = {}
        for arm in arms:
            if arm == "0/1":
                inner, outer = (
                    _logit(chances(model, X[some], L[some], new))
                    for some, new in ((first, X[held]), (slice(None), problem.X_test))
                )
                found[learner]["0/1, as they are"] = of_chances(problem.L_test, 1 / (1 + np.exp(-outer)))
            else:
                inner = np.log(predicted(model, X[first], enhanced[arm][0], X[held]))
                outer = np.log(predicted(model, X, enhanced[arm][1], problem.X_test))
            mapped = _mapped(inner, L[held], outer)
            found[learner][arm] = {**of_ranking(problem.L_test, outer), **of_chances(problem.L_test, mapped)}
    told = label_chances(inversion(seed).fit(X, L), problem.X_test)
    found["itself"] = {"chances": {**of_ranking(problem.L_test, told), **of_chances(problem.L_test, told)}}
    return found


def _logit(P: np.ndarray) -> np.ndarray:
    P = np.clip(P, 1e-3, 1 - 1e-3)
    return np.log(P) - np.log1p(-P)


def _mapped(z: np.ndarray, L: np.ndarray, z_new: np.ndarray) -> np.ndarray:
    """Chances (m, q) = sigmoid(a_j + b z_new), from scores z and labels L of other rows."""
    q = L.shape[1]

    def design(Z: np.ndarray) -> np.ndarray:
        return np.column_stack([Z.ravel(), np.tile(np.eye(q), (len(Z), 1))])

    P: np.ndarray = LogisticRegression(max_iter=500).fit(design(z), L.ravel()).predict_proba(design(z_new))[:, 1]
    return P.reshape(z_new.shape)


def finding(problem: Problem, seed: int, condition: str) -> dict[str, Any]:
    """Precision among the k most doubtful entries (and rows), k the number of flipped ones."""
    rate, X = float(condition), problem.X
    L = flip(problem.L, rate, np.random.default_rng(1000 + seed))
    wrong = problem.L != L
    doubts, flagged = {}, {}
    for arm, noise in {"contone": 0.05, "contone, noise=rate": rate}.items():
        found = doubtful_labels(inversion(seed), X, L, noise=noise, min_probability=0.0)
        doubts[arm] = np.zeros(L.shape)
        doubts[arm][found.row, found.label] = found.probability
    for learner, model in learners(seed, ("linear", "forest")).items():
        P = _out_of_fold(model, X, L)
        doubts[f"held out, {learner}"] = np.abs(L - P)
        answer = _cleanlab(L, P)
        if answer is not None:
            quality, flagged[learner] = answer
            doubts[f"cleanlab, {learner}"] = 1 - quality
    rng = np.random.default_rng(seed)
    found_scores = {arm: _precisions(doubt, wrong, rng) for arm, doubt in doubts.items()}
    for learner, rows in flagged.items():
        # The filter says how many rows it flags; everybody else is asked for as many.
        any_wrong, name = wrong.any(axis=1), f"flagged, {learner}"
        for arm, doubt in doubts.items():
            first = np.argsort(-doubt.max(axis=1), kind="stable")[: len(rows)]
            found_scores[arm][name] = float(any_wrong[first].mean()) if len(rows) else 0.0
        found_scores.setdefault("cleanlab's filter", {})[name] = float(any_wrong[rows].mean()) if len(rows) else 0.0
    return {"none": found_scores}


def _out_of_fold(model: Any, X: np.ndarray, L: np.ndarray) -> np.ndarray:
    """Chances (n, q) of labels by classifiers that have not seen the row."""
    P = np.tile(L.mean(axis=0), (len(L), 1))
    for j in range(L.shape[1]):
        if min(L[:, j].sum(), (1 - L[:, j]).sum()) >= 5:
            P[:, j] = cross_val_predict(model, X, L[:, j], cv=5, method="predict_proba")[:, 1]
    return P


def _cleanlab(L: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """cleanlab's quality (n, q) of every label of every row, and the rows that its multi-label filter flags."""
    try:
        from cleanlab.multilabel_classification.filter import find_label_issues
        from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
    except ImportError:
        return None
    lists = [np.flatnonzero(row).tolist() for row in L]
    quality = np.asarray(get_label_quality_scores_per_class(lists, P, adjust_pred_probs=False))
    return quality, np.flatnonzero(find_label_issues(lists, P, n_jobs=1))


def _precisions(doubt: np.ndarray, wrong: np.ndarray, rng: np.random.Generator) -> Scores:
    jitter = 1e-9 * rng.random(doubt.shape)  # ties in no order
    entries, rows = (doubt + jitter).ravel(), (doubt + jitter).max(axis=1)
    some, any_wrong = np.argsort(-entries)[: wrong.sum()], wrong.any(axis=1)
    return {
        "precision": float(wrong.ravel()[some].mean()),
        "row_precision": float(any_wrong[np.argsort(-rows)[: any_wrong.sum()]].mean()),
        "at_50": float(wrong.ravel()[np.argsort(-entries)[:50]].mean()),
    }


def annotators(problem: Problem, seed: int, condition: str) -> dict[str, Any]:
    """k annotators per item, each of whom sees log degrees with normal noise of deviation 0.5."""
    if problem.D is None:
        return {}
    k, rng = int(condition), np.random.default_rng(1000 + seed)
    n, q = problem.D.shape
    item = np.repeat(np.arange(n), k)
    seen = softmax(np.log(np.maximum(problem.D, 1e-6))[item] + 0.5 * rng.normal(size=(n * k, q)))
    L = CumulativeMass().apply(seen).astype(float)
    share = L.reshape(n, k, q).mean(axis=1)
    majority = (share > 0.5).astype(float)
    majority[np.arange(n), share.argmax(axis=1)] = 1.0
    answers = {
        "degrees, groups": inversion(seed).fit_enhance(problem.X[item], L, groups=item),
        "degrees of the majority": inversion(seed).fit_enhance(problem.X, majority),
        "vote shares": _smooth(share),
        "majority": _smooth(majority),
    }
    answers |= {} if (said := _dawid_skene(L, item, k)) is None else {"Dawid-Skene": _smooth(said)}
    return {"none": {arm: of_distributions(problem.D, np.asarray(D)) for arm, D in answers.items()}}


def _smooth(votes: np.ndarray) -> np.ndarray:
    return normalise_rows((1 - SMOOTHING) * normalise_rows(votes + 1e-12) + SMOOTHING / votes.shape[1])


def _dawid_skene(L: np.ndarray, item: np.ndarray, k: int) -> np.ndarray | None:
    """Chance (n, q) of each label by Dawid and Skene (1979), one label at a time."""
    try:
        import pandas as pd
        from crowdkit.aggregation.classification.dawid_skene import DawidSkene
    except ImportError:
        return None
    P = np.zeros((item.max() + 1, L.shape[1]))
    for j in range(L.shape[1]):
        votes = pd.DataFrame({"task": item, "worker": np.tile(np.arange(k), len(P)), "label": L[:, j].astype(int)})
        said = DawidSkene(n_iter=50).fit_predict_proba(votes)
        P[:, j] = said[1].reindex(range(len(P))).to_numpy() if 1 in said else 0.0
    return P


# -------------------------------------------------------------------------------------------------------------- run


def run(key: str, n_train: int, names: Collection[str]) -> dict[str, Any]:
    """The scores of a cell, by the learners named."""
    situation, name, seed, condition = key.split("/")
    n_train = int(condition) if situation == "few" else n_train
    problem = split(name, int(seed), n_train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of learners that stop early, and of rules that do not fit
        if situation in WITHOUT_LEARNERS:
            return {"finding": finding, "annotators": annotators}[situation](problem, int(seed), condition)
        if situation in ("distributions", "ranking"):
            return {"distributions": distributions, "ranking": ranking}[situation](problem, int(seed), names)
        return incomplete(problem, int(seed), names, situation, condition)


def missing_learners(key: str, cells: dict[str, Any]) -> list[str]:
    """Learners without scores in a stored cell: a cell that lacks one is completed, not done again."""
    if key.split("/")[0] in WITHOUT_LEARNERS:
        return [] if key in cells else [""]
    return [name for name in LEARNERS if name not in cells.get(key, {}).get("scores", {})]


def keys(options: argparse.Namespace) -> list[str]:
    """All cells, those of the first seed first; situations only on the sets that they can be told on."""
    found = []
    for seed in range(options.seeds):
        for situation in options.situations:
            suited = {"distributions": TRUTH, "annotators": TRUTH, "ranking": TABLES + MANY_LABELS}.get(
                situation, TRUTH + TABLES
            )
            for name in (s for s in options.sets if s in suited):
                found += [f"{situation}/{name}/{seed}/{condition}" for condition in CONDITIONS[situation]]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "pays.jsonl")
    parser.add_argument("--situations", nargs="+", default=list(CONDITIONS), choices=CONDITIONS)
    parser.add_argument("--sets", nargs="+", default=EVERYTHING, choices=EVERYTHING)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=300, help="rows to learn from")
    parser.add_argument("--only", nargs="+", default=[""], help="cells whose key holds one of these texts")
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("--fill", action="store_true", help="put the numbers into docs/when-it-pays.md")
    options = parser.parse_args()
    cells = read(options.out)
    todo = (
        []
        if options.summary
        else [key for key in keys(options) if missing_learners(key, cells) and any(o in key for o in options.only)]
    )
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=RESULTS, capture_output=True, text=True, check=False
    )
    start = time.perf_counter()
    for done, key in enumerate(todo, 1):
        began = time.process_time()
        try:
            names = missing_learners(key, cells)
            scores, failed = run(key, options.rows, names), ""
        except Exception as error:  # one cell must not end the others; the next run tries it again
            scores, failed = {}, f"{type(error).__name__}: {error}"
        if not failed:
            n_train = int(key.rsplit("/", 1)[1]) if key.startswith("few/") else options.rows
            before = cells.get(key, {"scores": {}, "seconds": 0.0})
            commit = described.stdout.strip()
            cells[key] = {
                "key": key,
                "commit": f"{before['commit']}, {' '.join(names)} {commit}" if key in cells else commit,
                "scores": {**before["scores"], **scores},
                "rows": n_train,
                "seconds": round(before["seconds"] + time.process_time() - began, 2),
            }
            with options.out.open("a", encoding="utf-8") as store:
                store.write(json.dumps(cells[key]) + "\n")
        spent = time.perf_counter() - start
        left = spent / done * (len(todo) - done)
        print(f"{done}/{len(todo)} {key} {failed} {spent:.0f} s, about {left:.0f} s left", flush=True)
    if options.fill:
        fill(cells)
    print(write(cells, options.out))


if __name__ == "__main__":
    main()
