"""Is the verdict right about answers of people, tiny tables and odd marks? Situations that no threshold was chosen by.

    python benchmarks/verdict_answers.py --seeds 411 412 413

As `verdict.py`: the verdict beside the actual KL of the answer, of equal degrees and of the simplest answer (counting
with 1/q of an answer added; for 0/1 labels L / |L|, a tenth of it spread evenly). Owed: "use" nowhere where the answer
is worse than one of these.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from contone import CumulativeMass, Inversion, check
from contone.enhance import counting
from contone.numerics.simplex import kl_divergence, softmax
from contone.trust.people import look_at_people
from contone.trust.verdict import Decision
from verdict import model_rows


class Judged(NamedTuple):
    """The truth, the answer and the simplest answer, each (n, q), and what the checks decided."""

    D: np.ndarray
    answer: np.ndarray
    simple: np.ndarray
    decision: Decision


def counts(k: int, *, spam: float = 0.0, other_rows: bool = False, **sizes) -> Callable[[int], Judged]:
    """k votes per item, a share of them at random; or with features of other rows."""

    def judge(seed: int) -> Judged:
        rng, (X, D) = np.random.default_rng(seed + 7000), model_rows(seed, **sizes)
        Y = np.stack([rng.multinomial(k, p) for p in (1 - spam) * D + spam / D.shape[1]]).astype(float)
        X = X[rng.permutation(len(X))] if other_rows else X
        method = Inversion(degradation="votes").fit(X, Y)
        return Judged(D, method.label_distributions_, counting.shares(Y), check(method, X, Y).decision)

    return judge


def answered(
    D: np.ndarray, rng: np.random.Generator, k: int, n_people: int, kind: str, spammers: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, persons and answers: k of the people, who lean and have bars of their own, say what an item is."""
    n, q = D.shape
    bars, lean = rng.normal(1.0, 0.25, n_people).clip(0.3, 2.0), 0.3 * rng.normal(size=(n_people, q))
    item, who, Y = [], [], []
    for i in range(n):
        for w in rng.choice(n_people, k, replace=False):
            d = softmax((np.log(D[i]) + lean[w] + 0.25 * rng.normal(size=q))[None])[0]
            d = rng.dirichlet(np.ones(q)) if w < spammers else d
            if kind == "votes":
                y = np.eye(q)[rng.choice(q, p=d)]
            else:
                y = d * q > bars[w] if kind == "marks" else np.clip(np.floor(1.5 * d * q / bars[w]), 0, 3)
            item, who, Y = [*item, i], [*who, int(w)], [*Y, y]
    return np.array(item), np.array(who), np.array(Y, dtype=float)


def people(k: int, n_people: int, kind: str, spammers: int = 0, **sizes) -> Callable[[int], Judged]:
    """Named people, k of them per item, the first of them at random; judged by their page."""

    def judge(seed: int) -> Judged:
        rng, (X, D) = np.random.default_rng(seed + 8000), model_rows(seed, **sizes)
        item, who, Y = answered(D, rng, k, n_people, kind, spammers)
        method = Inversion(degradation=kind).fit(X[item], Y, groups=item, annotators=who)
        found = look_at_people(method, Y, item.tolist(), who.tolist(), X[item])
        total = np.zeros(D.shape)
        np.add.at(total, item, Y)
        order = np.argsort(method.groups_)
        return Judged(D, np.asarray(method.label_distributions_)[order], counting.shares(total), found.decision)

    return judge


def labels(make: Callable[[np.ndarray, np.random.Generator], np.ndarray], **sizes) -> Callable[[int], Judged]:
    """0/1 labels, read by the default rule."""

    def judge(seed: int) -> Judged:
        rng, (X, D) = np.random.default_rng(seed + 9000), model_rows(seed, **sizes)
        L = np.asarray(make(D, rng), dtype=float)
        method = Inversion().fit(X, L)
        alone = 0.9 * L / L.sum(axis=1, keepdims=True) + 0.1 / L.shape[1]
        return Judged(D, method.label_distributions_, alone, check(method, X, L).decision)

    return judge


def main_labels(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return CumulativeMass().apply(D)


def two_rules(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Half of the rows by one rule, half by another."""
    return np.where(rng.random((len(D), 1)) < 0.5, CumulativeMass().apply(D), CumulativeMass(0.9).apply(D))


def nearly_always(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label is marked in nearly every row, whatever its degree."""
    L = CumulativeMass().apply(D)
    L[:, 0] |= rng.random(len(L)) < 0.95
    return L


FEW = {"n": 150, "q": 6, "spread": 0.7}
VOTED = {"n": 150, "q": 4, "spread": 1.2}
COUNTED = {"n": 250, "q": 4, "spread": 1.0}
SITUATIONS: dict[str, tuple[bool, Callable[[int], Judged]]] = {
    "three votes": (True, counts(3, **COUNTED)),
    "three votes, half of them at random": (False, counts(3, spam=0.5, **COUNTED)),
    "three votes, features of other rows": (False, counts(3, other_rows=True, **COUNTED)),
    "one vote, no signal": (False, counts(1, n=200, q=4, spread=0.8, signal=0.0)),
    "eight items, two votes": (False, counts(2, n=8, q=3, spread=1.0)),
    "named votes, two of six at random": (True, people(4, 6, "votes", 2, **VOTED)),
    "named votes, all at random": (False, people(3, 6, "votes", 6, **VOTED)),
    "marks of three": (True, people(3, 5, "marks", **FEW)),
    "marks, all at random": (False, people(3, 5, "marks", 5, **FEW)),
    "levels of three": (True, people(3, 5, "levels", **FEW)),
    "levels, three of five at random": (False, people(3, 5, "levels", 3, **FEW)),
    "twelve rows": (False, labels(main_labels, n=12, q=3)),
    "45 rows": (True, labels(main_labels, n=45, q=4, spread=0.5)),
    "two rules mixed": (False, labels(two_rules, n=300, q=6, spread=0.7)),
    "one label nearly always": (False, labels(nearly_always, n=300, q=6)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[411, 412, 413])
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    n_wrong = 0
    for name, (is_good, judge) in SITUATIONS.items():
        for seed in seeds:
            found = judge(seed)
            uniform = np.full(found.D.shape, 1 / found.D.shape[1])
            own, equal, simple = (
                float(kl_divergence(found.D, np.asarray(A)).mean()) for A in (found.answer, uniform, found.simple)
            )
            is_worse = own > min(equal, simple)
            n_wrong += is_worse and found.decision.word == "use"
            print(
                f"{name:38s} {'good' if is_good else '':4s} {seed} {found.decision.word:13s} KL {own:.3f} uniform "
                f"{equal:.3f} simple {simple:.3f} {'WORSE ' if is_worse else ''}{', '.join(found.decision.names)}",
                flush=True,
            )
    print(f"{len(SITUATIONS) * len(seeds)} cases. Worse than a simple answer and used: {n_wrong}.")


if __name__ == "__main__":
    main()
