"""Where should the next answers go, and how many does it take? Real votes, added where each way says, and judged.

    python benchmarks/next_answers.py FOLDER [--sets chaosnli_snli,cifar10h] [--items 500] [--seeds 3] [--plan]

FOLDER holds .npz files of single votes (`X`, `item`, `label`, `labels`; benchmarks/README.md). Every item starts with
`--start` votes. Then `--share` more votes per item are asked for: of the items that `next_answers` names, of items at
random (each at most once more than any other), or of the items whose votes agree least (ties at random). They are real
votes that were left out so far; the others judge the new fit by their log loss, the mean over the items. Only items
with at least `start` + 4 votes take part, so that what is asked for is there: most items of davidson have three votes.

Sets with "marks" in their name hold all labels that each person marked (`worker`), several rows per answer.

With --plan, the curve that the first fit expects of 1, 2, 4, 8 more votes per item is set beside the log loss of fits
to so many votes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import contone
from contone.enhance.inversion.people.next_answers import AHEAD, counting_losses, expected_losses, next_answers

N_SAMPLES = 100


class Votes:
    """The votes of some items of a set, in random order."""

    def __init__(self, path: Path, n_items: int, seed: int, least: int) -> None:
        with np.load(path) as data:
            X, item, label, self.q = data["X"], data["item"], data["label"], len(data["labels"])
        rng = np.random.default_rng(seed)
        rich = np.flatnonzero(np.bincount(item, minlength=len(X)) >= least)
        kept = np.sort(rich[rng.permutation(len(rich))[:n_items]])
        self.X, self.votes = X[kept], [rng.permutation(label[item == i]) for i in kept]

    def counts(self, given: np.ndarray) -> np.ndarray:
        """Counts (n, q) of the first votes of each item."""
        return np.stack([np.bincount(v[:k], minlength=self.q) for v, k in zip(self.votes, given, strict=True)])

    def fit(self, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shares, and draws of them."""
        method = contone.Inversion(degradation="votes", n_samples=N_SAMPLES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            D = method.fit_enhance(self.X, self.counts(given))
        return np.asarray(D), np.asarray(method.samples_)

    @property
    def sizes(self) -> np.ndarray:
        """How many answers there are of each item."""
        return np.array([len(v) for v in self.votes])

    def loss(self, D: np.ndarray, given: np.ndarray) -> float:
        """Log loss of the votes that were left out, the mean over the items."""
        left = [v[k:] for v, k in zip(self.votes, given, strict=True)]
        logs = np.log(np.maximum(D, 1e-9))
        return float(np.mean([-logs[i, v].mean() for i, v in enumerate(left) if len(v)]))


class Marks(Votes):
    """The same for people who mark all labels that hold: one row per answer; judged by the marks of those left out."""

    def __init__(self, path: Path, n_items: int, seed: int, least: int) -> None:
        with np.load(path) as data:
            X, item, worker, label = (data[name] for name in ("X", "item", "worker", "label"))
            self.q = len(data["labels"])
        rng = np.random.default_rng(seed)
        answered = np.unique(np.stack([item, worker]), axis=1)[0]
        rich = np.flatnonzero(np.bincount(answered, minlength=len(X)) >= least)
        kept = np.sort(rich[rng.permutation(len(rich))[:n_items]])
        self.X, self.votes = X[kept], []
        for i in kept:
            own = item == i
            people = rng.permutation(np.unique(worker[own]))
            self.votes.append(np.stack([np.bincount(label[own & (worker == w)], minlength=self.q) > 0 for w in people]))

    def counts(self, given: np.ndarray) -> np.ndarray:
        """Marks (n, q) in the first answers of each item."""
        return np.stack([v[:k].sum(axis=0) for v, k in zip(self.votes, given, strict=True)])

    def fit(self, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Degrees, and draws of them."""
        method = contone.Inversion(degradation="marks", n_samples=N_SAMPLES)
        groups, Y = (
            np.repeat(np.arange(len(given)), given),
            np.concatenate([v[:k] for v, k in zip(self.votes, given, strict=True)]),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            D = method.fit_enhance(self.X[groups], Y.astype(float), groups=groups)
        return np.asarray(D), np.asarray(method.samples_)

    def loss(self, D: np.ndarray, given: np.ndarray) -> float:
        """Log loss of the marks that were left out."""
        left = np.stack([v[k:].sum(axis=0) for v, k in zip(self.votes, given, strict=True)])
        there = left.sum(axis=1) > 0
        shares = left[there] / left[there].sum(axis=1, keepdims=True)
        return float(-(shares * np.log(np.maximum(D[there], 1e-9))).sum(axis=1).mean())


def places(way: str, votes: Votes, given: np.ndarray, samples: np.ndarray, number: int, seed: int) -> np.ndarray:
    """How many more votes each item gets (n,)."""
    n, rng = len(given), np.random.default_rng(seed)
    if way == "suggested":
        return np.bincount([a.item for a in next_answers(samples, number)], minlength=n)
    if way == "random":
        return number // n + np.bincount(rng.permutation(n)[: number % n], minlength=n)
    counts = votes.counts(given)
    agreement = counts.max(axis=1) / counts.sum(axis=1)
    return np.bincount(np.lexsort((rng.random(n), agreement))[:number], minlength=n)


def next_votes(path: Path, args: argparse.Namespace) -> list[dict[str, object]]:
    found = []
    for seed in range(args.seeds):
        votes = (Marks if "marks" in path.stem else Votes)(path, args.items, seed, args.start + AHEAD + 1)
        given = np.full(len(votes.votes), args.start)
        D, samples = votes.fit(given)
        number, before = int(args.share * len(given)), votes.loss(D, given)
        record: dict[str, object] = {"set": path.stem, "seed": seed, "votes": number, "before": before}
        for way in ("suggested", "random", "least agreed"):
            asked = places(way, votes, given, samples, number, seed)
            # All ways are judged by the same votes: those after the most that any way may use.
            D, _ = votes.fit(given + asked)
            record[way] = votes.loss(D, given + AHEAD)
        record["before"] = votes.loss(votes.fit(given)[0], given + AHEAD)
        found.append(record)
        print(json.dumps(record), flush=True)
    return found


def plan(path: Path, args: argparse.Namespace) -> None:
    for seed in range(args.seeds):
        votes = (Marks if "marks" in path.stem else Votes)(path, args.items, seed, args.start + 9)
        given = np.full(len(votes.votes), args.start)
        D, samples = votes.fit(given)
        numbers = [0, 1, 2, 4, 8]
        expected = expected_losses(samples, numbers).mean(axis=1)
        counting = counting_losses(samples, [args.start + k for k in numbers])
        happened = [votes.loss(D, given)] + [votes.loss(votes.fit(given + k)[0], given + k) for k in numbers[1:]]
        print(json.dumps({
            "set": path.stem, "seed": seed, "votes": [args.start + k for k in numbers],
            "expected": expected.round(4).tolist(), "happened": np.round(happened, 4).tolist(),
            "ratio": np.round(expected / happened, 3).tolist(), "counting expected": counting.round(4).tolist(),
        }), flush=True)  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default="chaosnli_snli,cifar10h")
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--start", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--plan", action="store_true")
    args = parser.parse_args(argv)
    started = time.perf_counter()
    for name in args.sets.split(","):
        (plan if args.plan else next_votes)(args.folder / f"{name}.npz", args)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
