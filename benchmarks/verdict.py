"""Is the verdict of `contone.check` right? On situations whose truth is known, good ones and bad ones.

    python benchmarks/verdict.py --output benchmarks/results/verdict.json
    python benchmarks/verdict.py --only noise --only flips --seeds 3

For every situation: the verdict and the reasons that decided it, the actual KL of the answer beside that of uniform
degrees and of the labels alone (L / |L|, a tenth of it spread evenly). Owed: "use" nowhere where the answer is worse
than one of these, "do not use" in at most one of twenty good ones.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contone import CumulativeMass, Inversion, Threshold, TopK, check
from contone.numerics.simplex import kl_divergence, softmax


@dataclass(frozen=True)
class Situation:
    """Rows with their truth, and the rule that somebody reads the labels by."""

    X: np.ndarray
    L: np.ndarray
    D: np.ndarray
    rule: str = "main"
    is_good: bool = False


def model_rows(
    seed: int, n: int = 300, q: int = 5, spread: float = 0.4, signal: float = 0.6, tail: float = np.inf, d: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) and degrees (n, q): a share `signal` of the variance of the log degrees is the features'."""
    rng = np.random.default_rng([seed, n, q])
    X = rng.normal(size=(n, d))
    told, own = X @ rng.normal(size=(d, q)) / np.sqrt(d), rng.normal(size=(n, q))
    if np.isfinite(tail):
        own /= np.sqrt(rng.chisquare(tail, (n, 1)) / tail)
    Z = np.sqrt(signal) * told + np.sqrt(1 - signal) * own + 0.3 * rng.normal(size=q)
    Z -= Z.mean(axis=1, keepdims=True)
    return X, softmax(spread * Z / np.sqrt(np.mean(Z**2)))


def good(rule: str = "main", make: Callable | None = None, **sizes) -> Callable[[int], Situation]:
    """Labels of the rule by which they are read."""
    apply = make or CumulativeMass().apply

    def situation(seed: int) -> Situation:
        X, D = model_rows(seed, **sizes)
        return Situation(X, apply(D).astype(float), D, rule, is_good=True)

    return situation


def spoilt(make: Callable[[np.ndarray, np.random.Generator], np.ndarray], rule: str = "main", **sizes):
    """Labels made of degrees (n, q) in another way than the rule says."""

    def situation(seed: int) -> Situation:
        X, D = model_rows(seed, **sizes)
        return Situation(X, np.asarray(make(D, np.random.default_rng(seed)), dtype=float), D, rule)

    return situation


def dropped(share: float):
    """Positives that were not marked; every row keeps one."""

    def make(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        L = CumulativeMass().apply(D) * (rng.random(D.shape) > share)
        L[np.arange(len(L)), D.argmax(axis=1)] |= L.sum(axis=1) == 0
        return L

    return make


def flipped(share: float):
    def make(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        L = CumulativeMass().apply(D) ^ (rng.random(D.shape) < share)
        L[np.arange(len(L)), D.argmax(axis=1)] |= L.sum(axis=1) == 0
        return L

    return make


def votes(k: int):
    """Labels that any of k people chose."""
    return lambda D, rng: np.stack([rng.multinomial(k, d) for d in D]) > 0


def shuffled(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return CumulativeMass().apply(D)[rng.permutation(len(D))]


def _above(D: np.ndarray, bar: np.ndarray) -> np.ndarray:
    """Degrees above a bar in units of the mean degree, and the largest one."""
    return np.greater(D * D.shape[1], bar) | np.equal(D, D.max(axis=1, keepdims=True))


def random_bar(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every row has a bar of its own."""
    return _above(D, rng.uniform(0.3, 2.0, (len(D), 1)))


def bar_per_label(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return _above(D, rng.uniform(0.4, 2.5, D.shape[1]))


def classes(seed: int, n: int = 300, q: int = 3) -> Situation:
    """Pure noise: random classes; the truth is that nothing is known, which uniform degrees say."""
    rng = np.random.default_rng(seed)
    return Situation(rng.normal(size=(n, 4)), np.eye(q)[rng.integers(0, q, n)], np.full((n, q), 1 / q))


def noise(seed: int, n: int = 300, q: int = 6) -> Situation:
    rng = np.random.default_rng(seed)
    L = (rng.random((n, q)) < 0.35).astype(float)
    L[np.arange(n), rng.integers(0, q, n)] = 1.0
    return Situation(rng.normal(size=(n, 4)), L, np.full((n, q), 1 / q))


def constant(seed: int) -> Situation:
    """The same labels in every row, whatever the degrees."""
    X, D = model_rows(seed)
    L = np.zeros(D.shape)
    L[:, :2] = 1.0
    return Situation(X, L, D)


def clusters(seed: int) -> Situation:
    """Three kinds of rows with degrees of their own; features say which."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, 300)
    D = softmax(np.log(rng.dirichlet([2.0] * 6, 3))[kind] + 0.1 * rng.normal(size=(300, 6)))
    return Situation(rng.normal(size=(3, 4))[kind] * 3 + rng.normal(size=(300, 4)), CumulativeMass().apply(D), D)


def one_class(spread: float):
    return spoilt(lambda D, rng: TopK(1).apply(D), spread=spread)


GOOD: dict[str, Callable[[int], Situation]] = {
    "usual": good(),
    "60 rows": good(n=60),
    "120 rows": good(n=120),
    "600 rows": good(n=600),
    "three labels": good(q=3),
    "eight labels": good(q=8),
    "twenty labels": good(q=20),
    "narrow": good(spread=0.15),
    "narrow, many labels": good(spread=0.2, q=14),
    "middling": good(spread=0.6),
    "wide": good(spread=1.0),
    "strong features": good(signal=0.9),
    "weak features": good(signal=0.35),
    "strong, narrow": good(signal=0.9, spread=0.2),
    "many features": good(d=20, n=400),
    "everything": good("everything", CumulativeMass(0.9).apply, spread=0.8),
    "everything, many labels": good("everything", CumulativeMass(0.9).apply, q=12, spread=0.6),
    "bar": good("bar", lambda D: Threshold(1 / D.shape[1]).apply(D), spread=0.6),
    "best three": good("best", TopK(3).apply, q=8),
    "heavy tails": good(tail=4.0),
    "wide, 600 rows": good(spread=0.9, n=600, q=6),
    "ten labels": good(q=10, spread=0.3, n=500),
}
BAD: dict[str, Callable[[int], Situation]] = {
    "random classes": classes,
    "random classes, few rows": lambda seed: classes(seed, 60, 4),
    "random labels": noise,
    "shuffled labels": spoilt(shuffled),
    "shuffled labels, wide": spoilt(shuffled, spread=1.0),
    "bar read as main": spoilt(lambda D, rng: Threshold(1.6 / D.shape[1]).apply(D), spread=0.6),
    "low bar read as main": spoilt(lambda D, rng: Threshold(0.6 / D.shape[1]).apply(D), spread=0.6),
    "everything read as main": spoilt(lambda D, rng: CumulativeMass(0.9).apply(D)),
    "main read as everything": spoilt(lambda D, rng: CumulativeMass().apply(D), "everything"),
    "best two read as main": spoilt(lambda D, rng: TopK(2).apply(D), q=8),
    "random bar": spoilt(random_bar),
    "bar per label": spoilt(bar_per_label),
    "votes read as marks": spoilt(votes(5)),
    "votes read as marks, wide": spoilt(votes(5), spread=1.0),
    "three votes read as marks": spoilt(votes(3), q=8),
    "a third dropped": spoilt(dropped(0.3)),
    "half dropped": spoilt(dropped(0.5), q=8),
    "a third dropped, strong features": spoilt(dropped(0.3), signal=0.9, q=8),
    "flips": spoilt(flipped(0.1)),
    "many flips": spoilt(flipped(0.25), q=8),
    "flips, strong features": spoilt(flipped(0.1), signal=0.9, q=8),
    "ten rows": good(n=10),
    "twenty rows, many labels": good(n=20, q=12),
    "one label per row": one_class(0.3),
    "one label per row, wide": one_class(1.5),
    "constant labels": constant,
    "huge spread": good(spread=3.0),
    "huge spread, few labels": good(spread=5.0, q=3),
    "clusters": clusters,
    "no signal": good(signal=0.0),
    "very heavy tails": good(tail=1.5),
}
SITUATIONS = {**GOOD, **BAD}


def judge(name: str, seed: int = 0) -> dict:
    """One situation: what the check says, and what is true."""
    warnings.simplefilter("ignore")
    given = SITUATIONS[name](seed)
    start = time.process_time()
    method = Inversion(degradation=given.rule).fit(given.X, given.L)
    fitted = time.process_time()
    found = check(method, given.X, given.L)
    done = time.process_time()
    L, q = given.L, given.L.shape[1]
    alone = 0.9 * L / L.sum(axis=1, keepdims=True) + 0.1 / q
    uniform = np.full(L.shape, 1 / q)
    answers = {"actual": method.label_distributions_, "uniform": uniform, "labels alone": alone}
    actual = {key: float(kl_divergence(given.D, A).mean()) for key, A in answers.items()}
    return {
        "situation": name, "seed": seed, "is_good": name in GOOD, "verdict": found.decision.word,
        "reasons": list(found.decision.names), **actual,
        "is_worse": actual["actual"] > min(actual["uniform"], actual["labels alone"]),
        "expected": found.expected_error.mean, "checks": {f.name: [f.verdict, f.value] for f in found.findings},
        "fit_seconds": fitted - start, "seconds": done - fitted,
    }  # fmt: skip


def _rounded(one: dict) -> dict:
    """Four decimals, and no times, which differ from run to run."""
    plain = json.loads(json.dumps(one), parse_float=lambda text: round(float(text), 4))
    return {key: value for key, value in plain.items() if "seconds" not in key}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="situations whose name holds this")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    chosen = [n for n in SITUATIONS if not arguments.only or any(part in n for part in arguments.only)]
    found = []
    for name in chosen:
        for seed in range(arguments.seeds):
            one = judge(name, seed)
            found.append(one)
            print(
                f"{name:34s} {'good' if one['is_good'] else '':4s} {one['verdict']:13s} KL {one['actual']:.3f} "
                f"(expected {one['expected']:.3f}) uniform {one['uniform']:.3f} alone {one['labels alone']:.3f} "
                f"{'WORSE ' if one['is_worse'] else ''}{', '.join(one['reasons'])}",
                flush=True,
            )
    wrong = [o["situation"] for o in found if o["verdict"] == "use" and o["is_worse"]]
    refused = [o["situation"] for o in found if o["verdict"] == "do not use" and o["is_good"]]
    used = sum(o["verdict"] == "use" for o in found if o["is_good"])
    n_good = sum(o["is_good"] for o in found)
    print(
        f"{len(found)} situations. Worse than a baseline and used: {wrong or 'none'}. Good: {n_good}, used {used}, "
        f"refused {refused or 'none'}."
    )
    if arguments.output:
        lines = ",\n".join(json.dumps(_rounded(one)) for one in found)
        arguments.output.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
