"""Plain classes: one label per row is one vote per item, judged by the true P(y | x) of simulated data.

    python benchmarks/classes.py                    # three settings, 300 and 3,000 rows, six seeds
    python benchmarks/classes.py --rows 300 --seeds 1

Settings: a linear model of few features that is right; many features of which few tell; and a bent boundary with shares
that features do not tell (log weights with noise of deviation 1). The score is the cross entropy to the true P, of
2,000 new rows (`predict`) and of the labelled rows (`label_distributions_`); beside it logistic regression whose
penalty is chosen by cross-validation, and the entropy of P, which nothing beats. *Behind* is the paired difference of
contone and regression with its standard error over seeds.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from contone import Inversion
from contone.numerics.simplex import softmax

NEW = 2000


def linear(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 5))
    return X, softmax(X @ np.random.default_rng(1).normal(size=(5, 4)))


def sparse(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 40))
    return X, softmax(X[:, :4] @ np.random.default_rng(2).normal(size=(4, 5)))


def bent(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 6))
    Z = np.sin(1.5 * X) @ np.random.default_rng(3).normal(size=(6, 5))
    return X, softmax(Z + rng.normal(size=Z.shape))


SETTINGS = {"linear": linear, "sparse": sparse, "bent": bent}


def cross_entropy(P: np.ndarray, D: np.ndarray) -> float:
    return float(-(P * np.log(np.maximum(D, 1e-12))).sum(axis=1).mean())


def scores(name: str, n: int, seed: int) -> list[float]:
    """Of new rows: contone and logistic regression; of labelled rows: the same; the entropy."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, P = SETTINGS[name](np.random.default_rng(100 + seed), n + NEW)
    y = np.array([np.random.default_rng(200 + seed + i).choice(P.shape[1], p=p) for i, p in enumerate(P[:n])])
    method = Inversion(degradation="votes", random_state=seed).fit(X[:n], np.eye(P.shape[1])[y])
    ours = method.predict(X[n:])
    regression = make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=10, scoring="neg_log_loss", max_iter=1000))
    regression.fit(X[:n], y)
    theirs, new = np.zeros((n + NEW, P.shape[1])), P[n:]
    theirs[:, regression.classes_] = regression.predict_proba(X)
    return [
        cross_entropy(new, ours),
        cross_entropy(new, theirs[n:]),
        cross_entropy(P[:n], method.label_distributions_),
        cross_entropy(P[:n], theirs[:n]),
        cross_entropy(new, new),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[300, 3000])
    parser.add_argument("--seeds", type=int, default=6)
    arguments = parser.parse_args()
    print(
        "| setting | rows | new rows: contone | regression | behind | labelled rows: contone | regression | entropy |"
    )
    print("|---" * 8 + "|")
    for name in SETTINGS:
        for n in arguments.rows:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = np.array([scores(name, n, seed) for seed in range(arguments.seeds)])
            away, mean = found[:, 0] - found[:, 1], found.mean(axis=0)
            behind = f"{away.mean():+.4f} ± {away.std(ddof=1) / len(away) ** 0.5:.4f}"
            told = " | ".join(f"{value:.4f}" for value in mean[2:5])
            print(f"| {name} | {n} | {mean[0]:.4f} | {mean[1]:.4f} | {behind} | {told} |", flush=True)


if __name__ == "__main__":
    main()
