"""Votes on items whose shares are known: contone beside counting, where nothing was tuned.

    python benchmarks/known_shares.py           # CONTONE_DATA names the folder of published sets
    python benchmarks/known_shares.py --sets few unanimous --answers 1 3 --seeds 1

k votes per item are drawn from its shares D: those of published sets (at most 600 rows, drawn at random), and of
simulated items that are as awkward as real ones. The score is KL(D, answer), mean over items; *behind* is how far
contone is behind the best of the baselines in standard errors of the paired difference over items, and *cover* the
share of true shares inside of its 90 % intervals.

Marks and levels (sets "marks", "alike", "levels"): 300 items, 20 persons with bars of their own, k of whom answer about
an item. Beside contone are sums with 1/q added, beta-binomial chances of each label (of levels, sums with one typical
answer added), and the same without names.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from contone import Inversion, datasets
from contone.enhance.counting import dirichlet_multinomial, regressed, shares
from contone.numerics.simplex import softmax

MOST_ROWS = 600
PUBLISHED = ("yeast-alpha", "yeast-cold", "yeast-spo", "yeast-heat", "sjaffe", "movie")
Items = tuple[np.ndarray, np.ndarray]


def latent(rng: np.random.Generator, n: int, d: int, q: int, told: float, spread: float) -> Items:
    """Features (n, d), and log weights (n, q) of which features tell `told` (a deviation), and not `spread`."""
    X = rng.normal(size=(n, d))
    return X, told * X @ rng.normal(size=(d, q)) / d**0.5 + spread * rng.normal(size=(n, q))


def skewed(rng: np.random.Generator) -> Items:
    """Twenty labels, some of them rare."""
    X, Z = latent(rng, 600, 10, 20, 1.0, 0.7)
    return X, softmax(Z + 1.5 * rng.normal(size=20))


def two(rng: np.random.Generator) -> Items:
    X, Z = latent(rng, 600, 5, 2, 1.0, 0.7)
    return X, softmax(Z)


def embedded(rng: np.random.Generator) -> Items:
    """768 features that are mixtures of 12."""
    U, Z = latent(rng, 600, 12, 5, 1.5, 0.7)
    return U @ rng.normal(size=(12, 768)) + 2.0 * rng.normal(size=(600, 768)), softmax(Z)


def untold(rng: np.random.Generator) -> Items:
    """Features tell nothing."""
    X, Z = latent(rng, 600, 20, 4, 0.0, 1.0)
    return X, softmax(Z)


def words(rng: np.random.Generator) -> Items:
    """Eight of a thousand words per item, a tenth of which tell something."""
    X = np.zeros((600, 1000))
    chance = 1.0 / (10.0 + np.arange(1000))
    for row in X:
        row[rng.choice(1000, size=8, replace=False, p=chance / chance.sum())] = 1.0
    W = rng.normal(size=(1000, 4)) * (rng.random(1000) < 0.1)[:, None]
    return X, softmax(2.0 * X @ W + 0.7 * rng.normal(size=(600, 4)))


def few(rng: np.random.Generator) -> Items:
    X, Z = latent(rng, 60, 6, 4, 1.0, 0.8)
    return X, softmax(Z)


def unanimous(rng: np.random.Generator) -> Items:
    """Nearly everybody agrees about most items."""
    X, Z = latent(rng, 600, 8, 6, 3.0, 2.5)
    return X, softmax(Z)


def either(rng: np.random.Generator) -> Items:
    """People agree about half of the items, and choose anything for the others: as no normal distribution has it."""
    X, Z = latent(rng, 600, 8, 4, 1.5, 0.5)
    return X, softmax(np.where(rng.random((600, 1)) < 0.5, 4.0, 0.2) * Z)


def dirichlet(rng: np.random.Generator) -> Items:
    """What the baseline is right about."""
    X, Z = latent(rng, 600, 6, 5, 1.0, 0.0)
    return X, np.stack([rng.dirichlet(3.0 * p) for p in softmax(Z)])


def exact(rng: np.random.Generator) -> Items:
    """Features tell everything."""
    X, Z = latent(rng, 600, 6, 4, 1.0, 0.0)
    return X, softmax(Z)


SIMULATED: dict[str, Callable[[np.random.Generator], Items]] = {
    f.__name__: f for f in (skewed, two, embedded, untold, words, few, unanimous, either, dirichlet, exact)
}
MARKED = {"marks": (1, 1.5), "alike": (1, 0.3), "levels": (3, 1.5)}
"""The highest level, and the deviation of log weights."""
SETS = (*PUBLISHED, "manifold", *SIMULATED, "uneven", "one each", "spammers", *MARKED)


def items(name: str, seed: int) -> Items:
    rng = np.random.default_rng(seed)
    if name in SIMULATED:
        return SIMULATED[name](rng)
    if name == "manifold":
        data = datasets.artificial("training", n=MOST_ROWS, seed=seed)
    elif name in PUBLISHED:
        data = datasets.load(name)
    else:  # those whose votes are odd
        X, Z = latent(rng, 400, 6, 4, 1.0, 0.8)
        return X, softmax(Z)
    rows = np.sort(rng.permutation(len(data.X))[:MOST_ROWS])
    return data.X[rows], data.D[rows]


def kl(D: np.ndarray, answer: np.ndarray) -> np.ndarray:
    return (D * (np.log(np.maximum(D, 1e-12)) - np.log(np.maximum(answer, 1e-12)))).sum(axis=1)


def ask_persons(D: np.ndarray, k: int, name: str, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Item, label and person of k votes per item, and what all people would choose, (n, q).

    Persons have leanings; "one each" are so many that everybody answers some three times, "spammers" are forty, of whom
    three in ten choose anything.
    """
    n, q = D.shape
    size = max(n * k // 3, k) if name == "one each" else 40
    lean = 0.7 * rng.normal(size=(size, q))
    spam = rng.random(size) < (0.3 if name == "spammers" else 0.0)
    item = np.repeat(np.arange(n), k)
    person = np.concatenate([rng.choice(size, size=k, replace=False) for _ in range(n)])
    Z = np.log(D)
    chances = np.where(spam[person, None], 1.0 / q, softmax(Z[item] + lean[person]))
    label = (chances.cumsum(axis=1) < rng.random(len(item))[:, None]).sum(axis=1)
    everybody = np.mean([softmax(Z + b) for b in 0.7 * rng.normal(size=(500, q))], axis=0)
    share = spam.mean()
    return item, np.minimum(label, q - 1), person, (1.0 - share) * everybody + share / q


def scores(name: str, k: int, seed: int) -> tuple[np.ndarray, float, float, float]:
    """KL of each item (4, n): counting, Dirichlet, with regression, contone; coverage, spread, seconds."""
    X, D = items(name, seed)
    rng = np.random.default_rng(1000 + seed)
    n, q = D.shape
    told: dict[str, np.ndarray] = {}
    if name in ("one each", "spammers"):
        item, label, person, D = ask_persons(D, k, name, rng)
        counts = np.zeros((n, q))
        np.add.at(counts, (item, label), 1.0)
        told = {"groups": item, "annotators": person}
    else:
        counts = rng.multinomial(rng.poisson(k, n) if name == "uneven" else k, D / D.sum(axis=1, keepdims=True))
        counts = counts.astype(float)
    found = [
        shares(counts),
        dirichlet_multinomial(counts),
        dirichlet_multinomial(counts, regressed(X, counts)),
    ]
    start = time.process_time()
    method = Inversion(degradation="votes", random_state=seed)
    found.append(method.fit_enhance(X[item], np.eye(q)[label], **told) if told else method.fit_enhance(X, counts))
    seconds = time.process_time() - start
    lower, upper = method.intervals(level=0.9)
    cover = float(((lower <= D) & (upper >= D)).mean())
    return np.stack([kl(D, A) for A in found]), cover, float(method.solution_.info["spread"]), seconds


def scores_of_marks(name: str, k: int, seed: int) -> tuple[np.ndarray, float, float, float]:
    """As `scores`; the methods are sums, shrunk sums, contone without names and with them."""
    rng, (highest, size) = np.random.default_rng(seed), MARKED[name]
    n, q, persons = 300, 5, 20
    X, Z = latent(rng, n, 6, q, size * 0.7, size * 0.7)
    Z += rng.normal(size=q) - 1.0
    bar = rng.normal(size=(persons, 1)) + 0.5 * rng.normal(size=(persons, q))
    cuts = 1.5 * np.arange(highest)
    mean = (1.0 / (1.0 + np.exp(cuts - Z[:, None, :, None] - bar[:, :, None]))).sum(axis=3).mean(axis=1)
    D = mean / mean.sum(axis=1, keepdims=True)
    item = np.repeat(np.arange(n), k)
    person = np.concatenate([rng.choice(persons, size=k, replace=False) for _ in range(n)])
    seen = Z[item] + bar[person] + rng.logistic(size=(n * k, q))
    Y = (seen[:, :, None] > cuts).sum(axis=2).astype(float)
    sums = np.stack([np.bincount(item, column, n) for column in Y.T], axis=1)
    shrunk = (sums + sums.mean(axis=0) / k) / (k + 1.0)
    if highest == 1 and k > 1:
        shrunk = np.stack([dirichlet_multinomial(np.stack([c, k - c], axis=1))[:, 0] for c in sums.T], axis=1)
    found = [(sums + 1.0 / q) / (sums + 1.0 / q).sum(axis=1, keepdims=True), shrunk / shrunk.sum(axis=1, keepdims=True)]
    start = time.process_time()
    for told in ({}, {"annotators": person}):
        method = Inversion(degradation="marks" if highest == 1 else "levels", random_state=seed)
        found.append(method.fit_enhance(X[item], Y, groups=item, **told))
    seconds = time.process_time() - start
    lower, upper = method.intervals(level=0.9)
    cover = float(((lower <= D) & (upper >= D)).mean())
    return np.stack([kl(D, A) for A in found]), cover, float(method.solution_.info["spread"]), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--answers", nargs="+", type=int, default=[1, 3, 10])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("| set | k | counting | Dirichlet | with regression | contone | behind | cover | spread | CPU s |")
    print("|---" * 10 + "|")
    for name in arguments.sets:
        for k in arguments.answers:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                judge = scores_of_marks if name in MARKED else scores
                found = [judge(name, k, seed) for seed in range(arguments.seeds)]
            losses = np.concatenate([each[0] for each in found], axis=1)
            means = losses.mean(axis=1)
            away = losses[3] - losses[int(means[: 2 if name in MARKED else 3].argmin())]
            behind = away.mean() / (away.std() / len(away) ** 0.5)
            cover, spread, seconds = np.mean([each[1:] for each in found], axis=0)
            shown = " | ".join(f"{value:.4f}" for value in means)
            print(
                f"| {name} | {k} | {shown} | {behind:+.1f} | {cover:.2f} | {spread:.2f} | {seconds:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
