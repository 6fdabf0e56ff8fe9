"""Does a rehearsal of votes, which sees k of them per item, order methods as the truth does?

    python benchmarks/rehearsed_votes.py [FOLDER] --output benchmarks/results/rehearsed_votes.json

Generated items have known degrees. Of FOLDER's sets of one-choice answers (``.npz`` with X, item, label), those with
many votes per item are taken; the shares of the votes that were not given stand for the truth, and their entropy is
corrected for their number. 400 items, seeds 0 to 2. For every cell: the KL of each method as rehearsed and as it is,
Spearman's correlation of the two orders, and how much KL the method that the rehearsal prefers costs over the best.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from contone import KM, Inversion, Uniform, compare
from contone.enhance.counting import Counting
from contone.numerics.simplex import softmax
from contone.trust.trial import try_method

N_ITEMS = 400
MADE = {"features tell much": (1.0, 0.7), "features tell little": (0.3, 1.0), "people agree": (1.5, 2.0)}
"""Generated items: how far z depends on the features, and its own deviation."""
REAL = ("chaosnli_snli", "cifar10h")


def made(name: str, k: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Features, k votes per item, degrees, and minus their entropy."""
    signal, own = MADE[name]
    X = rng.normal(size=(N_ITEMS, 4))
    D = softmax(signal * X @ rng.normal(size=(4, 5)) / 2 + own * rng.normal(size=(N_ITEMS, 5)))
    return X, rng.multinomial(k, D).astype(float), D, (D * np.log(D)).sum(axis=1)


def real(path: Path, k: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The same of real people; the truth is the shares of the other votes."""
    data = np.load(path)
    items = rng.choice(len(data["X"]), N_ITEMS, replace=False)
    counts = np.zeros((len(data["X"]), len(data["labels"])))
    np.add.at(counts, (data["item"], data["label"]), 1.0)
    counts = counts[items]
    given = np.stack([rng.multivariate_hypergeometric(row.astype(int), k) for row in counts]).astype(float)
    left = counts - given
    T, n = left / left.sum(axis=1, keepdims=True), left.sum(axis=1)
    entropy = -(T * np.log(np.maximum(T, 1e-300))).sum(axis=1) + ((T > 0).sum(axis=1) - 1) / (2 * n)  # Miller, Madow
    return data["X"][items].astype(float), given, T, -entropy


def cell(name: str, k: int, seed: int, folder: Path | None) -> dict:
    """One set of items, k votes each."""
    rng = np.random.default_rng([seed, k])
    X, Y, T, minus_entropy = made(name, k, rng) if name in MADE else real(folder / f"{name}.npz", k, rng)
    votes, blind = Inversion(degradation="votes"), Inversion(degradation="votes", features=False)
    found = compare({"Inversion": votes, "without features": blind, "KM": KM()}, X, Y, model=votes, n_splits=0)
    methods = {"Inversion": votes, "without features": blind, "KM": KM(), "Uniform": Uniform(), "Counting": Counting(),
               "Dirichlet": Counting("dirichlet"), "Dirichlet with features": Counting("regression")}  # fmt: skip
    answers = {name: try_method(method, X, Y).answer for name, method in methods.items()}
    true = {
        n: float((minus_entropy - (T * np.log(np.maximum(A, 1e-9))).sum(axis=1)).mean()) for n, A in answers.items()
    }
    told = {name: found[name].scores["kl"] for name in true}
    order = float(spearmanr(list(true.values()), list(told.values())).statistic)
    lost = true[min(told, key=lambda name: told[name])] - min(true.values())
    rounded = {name: [round(told[name], 4), round(true[name], 4)] for name in true}
    return {
        "set": name,
        "k": k,
        "seed": seed,
        "order": round(order, 3),
        "lost": round(lost, 4),
        "told_and_true": rounded,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for name in (*MADE, *(REAL if options.folder else ())):
        for k in (1, 3, 8):
            cells = [cell(name, k, seed, options.folder) for seed in range(options.seeds)]
            found += cells
            order, lost = (np.mean([c[key] for c in cells]) for key in ("order", "lost"))
            ratio = [np.mean([c["told_and_true"]["Inversion"][i] for c in cells]) for i in (0, 1)]
            print(
                f"{name:22s} {k} votes: order {order:.2f}, lost by its choice {lost:.4f}, "
                f"Inversion's KL {ratio[0]:.3f} told, {ratio[1]:.3f} true",
                flush=True,
            )
    if options.output:
        options.output.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
