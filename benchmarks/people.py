"""Votes of real people: what contone makes of k votes per item, judged by the votes that were left out.

    python benchmarks/people.py FOLDER                         # resumed where it stopped
    python benchmarks/people.py FOLDER --sets NAME --answers 1 3 --seeds 1
    python benchmarks/people.py FOLDER --summary               # runs nothing: the tables

FOLDER holds sets of one-choice answers, ``.npz`` files with X, item, worker (-1: unknown), label, labels. For seeds 0,
1, 2 each item gives k votes at random to the fit; the score is the mean over items of the log loss of the others
(natural log, chances clipped at 1e-9). *Worth* is the number of votes with which counting (Dirichlet-multinomial, no
features; at k = 1 shares with 1/q added) has the same log loss. *Cover* is the share of observed shares of left-out
votes inside of 90 % predictive intervals; where an end falls on a tie, chance says on which side.

A cell is SET/k/SEED/METHOD and a line of results/people.jsonl, written when it is finished. crowd-kit (Dawid-Skene,
MACE, GLAD) and cleanlab (CROWDLAB) are optional: ``--methods DawidSkene MACE GLAD CROWDLAB`` asks for them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contone import Inversion
from contone.enhance.counting import dirichlet_multinomial, regressed, shares
from contone.experiments.answers import Answers, read_answers

RESULTS = Path(__file__).parent / "results" / "people.jsonl"
NUMBERS = (1, 2, 3, 5, 10, 20)
LEAST_LEFT = 2
"""Votes that a typical item must have left."""
SAMPLES = 100


def log_loss(D: np.ndarray, left: Answers) -> float:
    counts = left.counts()
    n = counts.sum(axis=1)
    told = n > 0
    return float(-((counts * np.log(np.maximum(D, 1e-9))).sum(axis=1)[told] / n[told]).mean())


def cover(samples: np.ndarray, left: Answers, seed: int) -> float:
    """Share of the observed shares inside of their 90 % predictive intervals, ties at the ends by chance."""
    rng, counts = np.random.default_rng(seed), left.counts().astype(int)
    n = counts.sum(axis=1)
    drawn = np.stack([rng.multinomial(n, D / D.sum(axis=1, keepdims=True)) for D in samples])
    u = rng.random(counts.shape)
    below, same = (drawn < counts).mean(axis=0), (drawn == counts).mean(axis=0)
    rank = below + u * same
    return float(((rank > 0.05) & (rank < 0.95))[n > 0].mean())


def contone(given: Answers, left: Answers, seed: int) -> dict[str, float]:
    """Log loss, seconds, coverage; persons are told apart where they are known."""
    with_persons, q = bool((given.worker >= 0).all()), len(given.labels)
    method = Inversion(degradation="votes", n_samples=SAMPLES, random_state=seed)
    start = time.process_time()
    if with_persons:
        Y, X = np.eye(q)[given.label], given.X[given.item]
        found = method.fit_enhance(X, Y, groups=given.item, annotators=given.worker)
        D, samples = method.predict(given.X), np.full((SAMPLES, len(given.X), q), 1.0 / q)
        D[method.groups_], samples[:, method.groups_] = found, method.samples_
    else:
        D = method.fit_enhance(given.X, given.counts())
        samples = method.samples_
    seconds = time.process_time() - start
    return {"loss": log_loss(D, left), "seconds": seconds, "cover": cover(samples, left, seed)}


def counts_only(given: Answers, left: Answers, seed: int) -> dict[str, float]:
    start = time.process_time()
    D = Inversion(degradation="votes", random_state=seed).fit_enhance(given.X, given.counts())
    return {"loss": log_loss(D, left), "seconds": time.process_time() - start}


def by(answer: Callable[[Answers], np.ndarray]) -> Callable[[Answers, Answers, int], dict[str, float]]:
    def score(given: Answers, left: Answers, seed: int) -> dict[str, float]:
        start = time.process_time()
        return {"loss": log_loss(answer(given), left), "seconds": time.process_time() - start}

    return score


def crowd(name: str) -> Callable[[Answers], np.ndarray]:
    """A method of crowd-kit; votes without a name are by a person each."""

    def answer(given: Answers) -> np.ndarray:
        import pandas as pd
        from crowdkit import aggregation

        worker = np.where(given.worker < 0, -1 - np.arange(len(given.item)), given.worker)
        table = pd.DataFrame({"task": given.item, "worker": worker, "label": given.label})
        found = getattr(aggregation, name)().fit_predict_proba(table)
        D = np.full((len(given.X), len(given.labels)), 1.0 / len(given.labels))
        D[np.ix_(found.index, found.columns)] = found.to_numpy()
        return D / D.sum(axis=1, keepdims=True)

    return answer


def crowdlab(given: Answers) -> np.ndarray:
    """CROWDLAB's chances of each item's label; votes without a name are by a first person, a second and so on."""
    from cleanlab.multiannotator import _get_consensus_stats

    n_before = np.arange(len(given.item)) - np.searchsorted(np.sort(given.item), np.sort(given.item))
    worker = given.worker.copy()
    if (worker < 0).any():
        worker[np.argsort(given.item, kind="stable")] = n_before
    number = np.unique(worker, return_inverse=True)[1]
    table = np.full((len(given.X), int(number.max()) + 1), np.nan)
    table[given.item, number] = given.label
    P, counts = regressed(given.X, given.counts()), given.counts()
    told = counts.sum(axis=1) > 0
    majority = (counts + 1e-6 * P).argmax(axis=1)
    n = counts.sum(axis=1).astype(int)
    found = _get_consensus_stats(table[told], P[told], n[told], majority[told], verbose=False)
    P[told] = found[2]
    return P


METHODS: dict[str, Callable[[Answers, Answers, int], dict[str, float]]] = {
    "counting": by(lambda given: shares(given.counts())),
    "Dirichlet": by(lambda given: dirichlet_multinomial(given.counts())),
    "Dirichlet, regression": by(
        lambda given: dirichlet_multinomial(given.counts(), regressed(given.X, given.counts()))
    ),
    "contone": contone,
    "contone, counts": counts_only,
}
PEERS = {**{name: by(crowd(name)) for name in ("DawidSkene", "MACE", "GLAD")}, "CROWDLAB": by(crowdlab)}


def read_results() -> dict[str, dict[str, float]]:
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {row["key"]: row for row in map(json.loads, lines)}


def compute(folder: Path, sets: list[str], numbers: list[int], seeds: int, methods: list[str]) -> None:
    known = read_results()
    RESULTS.parent.mkdir(exist_ok=True)
    for name in sets:
        answers = read_answers(folder / f"{name}.npz")
        most = int(np.median(answers.n_answers())) - LEAST_LEFT
        for k in [k for k in numbers if k <= most or k <= 2]:
            for seed in range(seeds):
                given, left = answers.split(k, seed)
                for method in methods:
                    key = f"{name}/{k}/{seed}/{method}"
                    if key in known or (method == "contone, counts" and (answers.worker < 0).all()):
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        row = {"key": key, **{**METHODS, **PEERS}[method](given, left, seed)}
                    with RESULTS.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(row, flush=True)


def worth(loss: float, curve: dict[int, float]) -> float:
    """The number of votes with which counting has this log loss, between numbers by straight lines in log k."""
    k, values = np.array(sorted(curve)), np.array([curve[k] for k in sorted(curve)])
    if loss < values[-1]:
        return np.inf
    return float(np.exp(np.interp(-loss, -values, np.log(k))))


def summarise(folder: Path) -> None:
    found: dict[tuple[str, int], dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for key, row in read_results().items():
        name, k, _, method = key.split("/", 3)
        found[name, int(k)][method].append(row)
    columns = [m for m in (*METHODS, *PEERS) if any(m in cells for cells in found.values())]
    print(f"| set | k | {' | '.join(columns)} | worth | cover | CPU s |")
    print("|---" * (len(columns) + 5) + "|")
    curves: dict[str, dict[int, float]] = {}
    for name in sorted({name for name, _ in found}):
        answers = read_answers(folder / f"{name}.npz")
        most = int(np.median(answers.n_answers())) - LEAST_LEFT
        curves[name] = {}
        for k in sorted({1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 28, 40} & set(range(1, most + 1))):
            given, left = answers.split(k, 0)
            curves[name][k] = log_loss((shares if k == 1 else dirichlet_multinomial)(given.counts()), left)
    for (name, k), cells in sorted(found.items()):
        shown = []
        for method in columns:
            losses = [row["loss"] for row in cells.get(method, [])]
            error = np.std(losses, ddof=1) / len(losses) ** 0.5 if len(losses) > 1 else np.nan
            shown.append(f"{np.mean(losses):.4f} ± {error:.4f}" if losses else "")
        ours = cells.get("contone", [])
        loss = np.mean([row["loss"] for row in ours]) if ours else np.nan
        others = (np.mean([row[what] for row in ours]) if ours else np.nan for what in ("cover", "seconds"))
        shown += [f"{worth(float(loss), curves[name]):.1f}", *(f"{value:.3g}" for value in others)]
        print(f"| {name} | {k} | {' | '.join(shown)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--answers", nargs="+", type=int, default=list(NUMBERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    sets = arguments.sets or [p.stem for p in sorted(arguments.folder.glob("*.npz")) if "marks" not in p.stem]
    if not arguments.summary:
        compute(arguments.folder, sets, arguments.answers, arguments.seeds, arguments.methods)
    summarise(arguments.folder)


if __name__ == "__main__":
    main()
