"""Marks and levels of real people: judged by the people who were left out. And rules, as annotators grow in number.

    CONTONE_PEOPLE=... python benchmarks/marks.py                    # goes on where it stopped; --only, --seeds choose
    python benchmarks/marks.py --summary                             # runs nothing: results/marks.md

`CONTONE_PEOPLE` is a folder with brighter_ron.csv.gz (a level from 0 to 3 for each of six emotions) and
medical_marks.npz (all relations that hold, of fourteen). Nothing of the data is kept but the figures.

- brighter: k answers per item given, of 1,200 random items with at least four. KL from the answer to the mean levels of
  the people who were left out, items whose left-out people gave nothing but zeros excepted. Beside it: smoothed shares,
  and out-of-fold ridge on the features as prior mean, both with the smoothing that the *truth* likes best.
- medical: log loss per label of the marks of the persons who were left out. Beside it: the rate of each label,
  beta-binomial shares (maximum likelihood; worth two answers where k = 1), and these with out-of-fold logistic
  regression as mean. `this` is the chance that this very person marks the label, `further` that anybody does. `covers`
  is the share of observed left-out numbers of marks inside their 90 % predictive interval (randomised at its ends).
- rules: 1, 2, 3 and 5 annotators; the left-out people are the same for every k, so that k alone makes the difference.
  brighter: the 299 items with seven answers, two of them left out; medical: 300 items, about ten people left out. And
  generated data, where the rule is true up to noise.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import betaln, expit
from scipy.stats import binom, norm
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict

from contone import CumulativeMass, Inversion, Threshold, TopK, label_chances
from contone.numerics.simplex import softmax

RESULTS = Path(__file__).parent / "results"
FOLDS = KFold(5, shuffle=True, random_state=0)
RULES = ("marks", "levels")
"""Read with `groups=`; stored cells of other rules are of version 0.2, which took them."""


def folder() -> Path:
    """Where the data are."""
    return Path(os.environ["CONTONE_PEOPLE"])


def divergence(T: np.ndarray, P: np.ndarray) -> float:
    """Mean KL(T || P) over rows, T brought to sum one; rows of zeros are left out."""
    keep = T.sum(axis=1) > 0
    T, P = T[keep] / T[keep].sum(axis=1, keepdims=True), P[keep] / P[keep].sum(axis=1, keepdims=True)
    return float(np.where(T > 0, T * np.log(np.maximum(T, 1e-300) / np.maximum(P, 1e-300)), 0.0).sum(axis=1).mean())


def ranks_of_answers(item: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random order of the answers to every item: 0, 1, ..."""
    order = np.lexsort((rng.random(len(item)), item))
    rank = np.empty(len(item), dtype=int)
    rank[order] = np.arange(len(item)) - np.searchsorted(item[order], np.arange(item.max() + 1))[item[order]]
    return rank


def sums(values: np.ndarray, item: np.ndarray, n: int) -> np.ndarray:
    """Of answers (m, q) per item."""
    total = np.zeros((n, values.shape[1]))
    np.add.at(total, item, values)
    return total


def brighter(seed: int, n: int, least: int) -> tuple[np.ndarray, ...]:
    """Levels, items, persons and ranks of the answers to n items with enough of them, and features of the items."""
    table = pd.read_csv(folder() / "brighter_ron.csv.gz")
    rng = np.random.default_rng(seed)
    count = table.groupby("item").size()
    items = np.sort(rng.choice(count.index[count >= least].to_numpy(), n, replace=False))
    table = table[table.item.isin(items)]
    item = np.searchsorted(items, table.item.to_numpy())
    text = table.drop_duplicates("item").text
    X = TruncatedSVD(60, random_state=0).fit_transform(TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(text))
    levels = table.iloc[:, 3:].to_numpy(dtype=float)
    return levels, item, table.annotator.to_numpy(), ranks_of_answers(item, rng), X


def fit(rule: str, X: np.ndarray, Y: np.ndarray, item: np.ndarray, who: np.ndarray | None) -> tuple[Inversion, dict]:
    """A fitted method and the CPU seconds it took."""
    start = time.process_time()
    method = Inversion(degradation=rule).fit(X[item], Y, groups=item, annotators=who)
    return method, {"seconds": round(time.process_time() - start, 1)}


def in_order(method: Inversion, m: int) -> np.ndarray:
    """The answer, item by item."""
    D = np.full((m, method.label_distributions_.shape[1]), np.nan)
    D[np.asarray(method.groups_)] = method.label_distributions_
    return D


def cell_of_brighter(kind: str, k: int, seed: int, n: int = 1200) -> dict:
    """One kind of answers, k of them per item."""
    levels, item, who, rank, X = brighter(seed, n, 4)
    given, left = rank < k, rank >= k
    T = sums(levels[left], item[left], n)
    Y = (levels > 0).astype(float) if kind == "marks" else levels
    total = sums(Y[given], item[given], n)
    found: dict = {}
    found["smoothed"] = min(divergence(T, total / k + s) for s in (0.05, 0.1, 0.2, 0.3, 0.5))
    M = np.maximum(cross_val_predict(Ridge(2.0), X, total / k, cv=FOLDS), 1e-3)
    M /= M.sum(axis=1, keepdims=True)
    found["with ridge"] = min(divergence(T, total + s * M) for s in (0.5, 1.0, 2.0, 4.0, 8.0))
    for name, persons in (("contone", who[given]), ("contone, no names", None)):
        method, spent = fit(kind, X, Y[given], item[given], persons)
        found[name] = divergence(T, in_order(method, n))
        found |= {f"{key} of {name}": value for key, value in spent.items()}
    return found


def medical() -> tuple[np.ndarray, ...]:
    """Marks, items and persons of the answers, and features."""
    data = np.load(folder() / "medical_marks.npz")
    pairs, row = np.unique(np.stack([data["item"], data["worker"]]), axis=1, return_inverse=True)
    Y = np.zeros((pairs.shape[1], len(data["labels"])))
    Y[row.ravel(), data["label"]] = 1.0
    return Y, pairs[0].astype(int), pairs[1].astype(int), data["X"].astype(float)


def shares_of_betas(C: np.ndarray, N: np.ndarray, M: np.ndarray | None, k: int) -> np.ndarray:
    """Beta-binomial shares: each label its own mean and strength, or the means M (n, q)."""
    rate, out = (C.sum(axis=0) + 0.5) / (N.sum() + 1.0), np.empty_like(C)
    for j in range(C.shape[1]):
        c = C[:, j]

        def beta(t: np.ndarray, j: int = j) -> tuple[np.ndarray, np.ndarray]:
            mean = expit(t[1]) if M is None else M[:, j]
            return np.exp(t[0]) * mean, np.exp(t[0]) * (1.0 - mean)

        def loss(t: np.ndarray, c: np.ndarray = c, beta=beta) -> float:
            a, b = beta(t)
            return float(-(betaln(c + a, N - c + b) - betaln(a, b)).sum())

        start = np.array([np.log(2.0), np.log(rate[j] / (1.0 - rate[j]))])
        a, b = beta(start if k == 1 else minimize(loss, start, method="Nelder-Mead").x)
        out[:, j] = (c + a) / (N + a + b)
    return out


def cross_fitted(X: np.ndarray, C: np.ndarray, N: np.ndarray) -> np.ndarray:
    """Shares of marks (n, q) by logistic regression, out of fold; its penalty by the left-out marks."""
    X, best = (X - X.mean(axis=0)) / X.std(), (np.inf, C)
    for strength in (0.03, 0.1, 0.3, 1.0, 3.0):
        P = np.empty_like(C)
        for train, test in FOLDS.split(X):
            twice, y = np.vstack([X[train]] * 2), np.repeat([1, 0], len(train))
            for j in range(C.shape[1]):
                weight = np.concatenate([C[train, j], (N - C[:, j])[train]]) + 1e-9
                model = LogisticRegression(C=strength, max_iter=300).fit(twice, y, sample_weight=weight)
                P[test, j] = model.predict_proba(X[test])[:, 1]
        P = np.clip(P, 1e-4, 1 - 1e-4)
        loss = float(-(C * np.log(P) + (N[:, None] - C) * np.log1p(-P)).sum())
        best = min(best, (loss, P), key=lambda found: found[0])
    return best[1]


def cell_of_medical(k: int, seed: int) -> dict:
    """k persons per item."""
    Y, item, who, X = medical()
    n, rank = len(X), ranks_of_answers(item, np.random.default_rng(seed))
    given, left = rank < k, rank >= k
    C, N = sums(Y[given], item[given], n), np.bincount(item[given], minlength=n).astype(float)
    about, marks = item[left], Y[left]

    def loss(P: np.ndarray) -> float:
        P = np.clip(P, 1e-9, 1 - 1e-9)
        return float(-(marks * np.log(P) + (1 - marks) * np.log1p(-P)).mean())

    found = {"rate": loss(np.broadcast_to((C.sum(axis=0) + 0.5) / (N.sum() + 1.0), C.shape)[about])}
    found["beta-binomial"] = loss(shares_of_betas(C, N, None, k)[about])
    found["with regression"] = loss(shares_of_betas(C, N, cross_fitted(X, C, N), k)[about])
    method, spent = fit("marks", X, Y[given], item[given], who[given])
    known, P = set(who[given].tolist()), np.empty_like(marks)
    further = chances(method, X, (Y[given], item[given], who[given]), np.arange(n), None)
    for person in np.unique(who[left]):
        rows = np.flatnonzero(who[left] == person)
        P[rows] = further[about[rows]]
        if person in known:
            P[rows] = chances(method, X, (Y[given], item[given], who[given]), about[rows], person)
    found["contone, further"], found["contone, this"] = loss(further[about]), loss(P)
    found["covers"] = coverage(method, (X, Y[given], item[given], who[given]), sums(marks, about, n), about, seed)
    return found | spent


def chances(method: Inversion, X: np.ndarray, given: tuple, items: np.ndarray, person: int | None) -> np.ndarray:
    """Chances that a person, or anybody, marks the labels of some items."""
    Y, item, who = given
    rows = np.isin(item, items)
    told = {"groups": item[rows], "annotators": who[rows], "person": person}
    found = label_chances(method, X[item[rows]], Y[rows], **told)
    return found[pd.Index(pd.unique(item[rows])).get_indexer(items)]


def coverage(method: Inversion, given: tuple, counts: np.ndarray, about: np.ndarray, seed: int) -> float:
    """Share of left-out numbers of marks inside their 90 % predictive interval."""
    X, Y, item, who = given
    numbers = {name: w + 1 for w, name in enumerate(method.annotator_names_)}
    order = np.argsort(item, kind="stable")
    person = np.array([numbers[w] for w in who.tolist()])[order]
    chance = method.fit_.chances(X, Y[order], item=item[order], person=person)
    m = np.bincount(about, minlength=len(X))
    nodes = norm.ppf((np.arange(40) + 0.5) / 40)
    p = expit(chance.logit_centre[..., None] + chance.logit_width[..., None] * nodes)
    below, up_to = (binom.cdf(counts[..., None] - d, m[:, None, None], p).mean(axis=-1) for d in (1, 0))
    rank = below + np.random.default_rng(seed).random(counts.shape) * (up_to - below)
    return float(np.mean((rank > 0.05) & (rank < 0.95)))


def cell_of_rules(data: str, rule: str, seed: int) -> dict:
    """KL with 1, 2, 3 and 5 annotators, the same people left out."""
    who = None
    if data == "made":
        X, T, Y, item = generated(rule, seed)
        rank = ranks_of_answers(item, np.random.default_rng(seed))
    elif data == "brighter":
        levels, item, who, rank, X = brighter(seed, 299, 7)
        T, Y = sums(levels[rank >= 5], item[rank >= 5], len(X)), levels if rule == "levels" else 1.0 * (levels > 0)
    else:
        Y, item, who, X = medical()
        rng = np.random.default_rng(seed)
        items = np.sort(rng.choice(len(X), 300, replace=False))
        keep = np.isin(item, items)
        Y, item, who, X = Y[keep], np.searchsorted(items, item[keep]), who[keep], X[items]
        rank = ranks_of_answers(item, rng)
        T = sums(Y[rank >= 5], item[rank >= 5], len(X))
    found = {}
    for k in (1, 2, 3, 5):
        given = rank < k
        persons = who[given] if who is not None and rule in ("marks", "levels") else None
        method, _ = fit(rule, X, Y[given], item[given], persons)
        found[str(k)] = divergence(T, in_order(method, len(X)))
    return found


def generated(rule: str, seed: int, n: int = 300, q: int = 5, k: int = 5) -> tuple[np.ndarray, ...]:
    """Features, degrees, labels and items: k annotators who follow a rule, each with noise in the log degrees."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Z = X @ rng.normal(size=(4, q)) * 0.4 + 0.8 * rng.normal(size=(n, q))
    item = np.repeat(np.arange(n), k)
    noisy = Z[item] + 0.4 * rng.normal(size=(n * k, q))
    if rule == "marks":
        chances = expit(Z - 1.0)
        return X, chances, (rng.random(noisy.shape) < chances[item]).astype(float), item
    if rule == "levels":
        cuts, about = np.array([0.0, 1.0, 2.0]), rng.logistic(size=noisy.shape)
        return X, expit(Z[:, :, None] - cuts).sum(axis=2), ((Z[item] + about)[:, :, None] > cuts).sum(axis=2), item
    if rule == "votes":
        return X, softmax(Z), np.stack([rng.multinomial(1, d) for d in softmax(Z[item])]).astype(float), item
    made = {"main": CumulativeMass(), "everything": CumulativeMass(0.9), "bar": Threshold(0.25)}
    return X, softmax(Z), made.get(rule, TopK(2)).apply(softmax(noisy)).astype(float), item


def cells(seeds: int) -> Iterator[dict]:
    """Everything that is measured."""
    for seed in range(seeds):
        for k in (1, 2, 3):
            yield from ({"part": "brighter", "kind": kind, "k": k, "seed": seed} for kind in ("marks", "levels"))
        yield from ({"part": "medical", "k": k, "seed": seed} for k in (1, 3, 5))
        asked = {"made": (*RULES, "votes"), "brighter": RULES, "medical": RULES[:-1]}
        yield from ({"part": "rules", "data": d, "rule": r, "seed": seed} for d in asked for r in asked[d])


def measure(cell: dict) -> dict:
    """One cell."""
    settings = {name: value for name, value in cell.items() if name != "part"}
    function = {"brighter": cell_of_brighter, "medical": cell_of_medical, "rules": cell_of_rules}[cell["part"]]
    return function(**settings)


def summarise(done: list[dict]) -> str:
    """Tables of means over seeds."""
    tables: dict[tuple, dict] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for entry in done:
        cell = entry["cell"]
        if cell["part"] == "rules":
            where, row = ("rules", cell["data"]), cell["rule"]
            columns = [(f"{k} given", row, value) for k, value in entry["found"].items()]
        else:
            where = (cell["part"], cell.get("kind", "marks"))
            columns = [(f"{cell['k']} given", name, value) for name, value in entry["found"].items()]
        for column, name, value in columns:
            tables[where][name][column].append(value)
    lines = ["# Marks and levels", "", "`python benchmarks/marks.py`; means over seeds, their number in brackets.", ""]
    for where, rows in tables.items():
        names = sorted({column for row in rows.values() for column in row})
        lines += [f"## {', '.join(where)}", "", "| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        for name, row in rows.items():
            shown = [f"{np.mean(row[c]):.3f} ({len(row[c])})" if c in row else "" for c in names]
            lines.append(f"| {name} | " + " | ".join(shown) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="words that a cell must hold: brighter levels")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    store = options.results / "marks.jsonl"
    done = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    warnings.simplefilter("ignore")
    for cell in [] if options.summary else cells(options.seeds):
        words = {str(value) for value in cell.values()}
        if set(options.only) <= words and not any(entry["cell"] == cell for entry in done):
            done.append({"cell": cell, "found": {name: round(v, 4) for name, v in measure(cell).items()}})
            print(json.dumps(done[-1]), flush=True)
            with store.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
    (options.results / "marks.md").write_text(summarise(done))


if __name__ == "__main__":
    main()
