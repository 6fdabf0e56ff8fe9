"""Answers of people that were left out: does a fit to the others predict them better than counting?

One answer of every item that has two or more is left out, and the method is fitted to the rest; where hardly any item
has two, the answers to a fifth of the items, whose degrees then come from their features alone. The loss of a vote for
label j of an item with the degrees d is -log d_j; of marks and levels, which put labels in an order, the mean over its
pairs y_j > y_k of -log(d_j / (d_j + d_k)). Beside it stand equal degrees, counting (shares with 1/q of an answer added)
and, for votes, a Dirichlet-multinomial model. Degrees of votes are shares of people, so that among left-out votes with
a degree near p a share p should have come true: `shares` looks whether they did.
"""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from contone.enhance import counting
from contone.enhance.inversion import Inversion
from contone.exceptions import InputError
from contone.measurements import Answers, Votes
from contone.trust.agreement import mean_over_pairs
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded
from contone.typing import Matrix

LEAST_LEFT_OUT, N_BINS = 10, 8
"""Answers that say something, and groups of degrees that are compared with what came true."""


class LeftOut(NamedTuple):
    """Answers (k, q) that were left out, the degrees (k, q) of their items by a fit to the others, and baselines."""

    answers: Matrix
    degrees: Matrix
    baselines: dict[str, Matrix]
    are_votes: bool
    are_beside: bool = True
    """Whether other answers to the same items are known."""


def leave_out(
    method: Inversion,
    X: Matrix,
    L: Matrix,
    item: np.ndarray | None = None,
    person: np.ndarray | None = None,
    seed: int = 0,
) -> LeftOut:
    """Leave out answers L (n, q), one of each item that has two, and fit the others.

    With `item` (n,) a row is an answer, by `person` (n,) where that is known; else a row holds the votes for an item.
    """
    rng, rule = np.random.default_rng(seed), method.degradation_
    assert isinstance(rule, Answers)
    is_vote, lowest = isinstance(rule, Votes), getattr(rule, "lowest", 0.0)
    fresh = clone(method).set_params(degradation=method.degradation_, n_samples=0, verbose=False)
    if item is None:
        given, left = rule.count_answers(L), L.copy()
        places = np.flatnonzero(given >= 2)
        if len(places) >= LEAST_LEFT_OUT:
            votes = np.nan_to_num(L[places])
            up_to = rng.random((len(votes), 1)) * votes.sum(axis=1, keepdims=True)
            answers = np.eye(L.shape[1])[(votes.cumsum(axis=1) > up_to).argmax(axis=1)]
            left[places] -= answers
        else:
            single = np.flatnonzero(given == 1)
            places = np.sort(rng.permutation(single)[: len(single) // 5])
            answers, left[places] = L[places], np.nan
        total, fit = np.nan_to_num(left - lowest), {"X": X, "Y": left}
    else:
        order = rng.permutation(len(L))
        _, first = np.unique(item[order], return_index=True)
        out = order[first]
        out = np.sort(out[np.bincount(item)[item[out]] >= 2])
        kept = np.delete(np.arange(len(L)), out)
        order_of = {name: k for k, name in enumerate(dict.fromkeys(item[kept].tolist()))}  # as the answer has them
        place_of = np.vectorize(order_of.get, otypes=[int])
        total = np.zeros((len(order_of), L.shape[1]))
        np.add.at(total, place_of(item[kept]), np.nan_to_num(L[kept] - lowest))
        answers, places = L[out], place_of(item[out])
        fit = {"X": X[kept], "Y": L[kept], "groups": item[kept]}
        fit |= {} if person is None else {"annotators": person[kept]}
    if len(answers) < LEAST_LEFT_OUT:
        raise InputError(f"only {len(answers)} answers could be left out: too few.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        D = np.asarray(fresh.fit_enhance(**fit))
    others = {"equal degrees": np.full(total.shape, 1.0 / L.shape[1]), "counting": counting.shares(total)}
    others |= {"Dirichlet-multinomial": counting.dirichlet_multinomial(total)} if is_vote else {}
    beside = bool(total[places].any())
    return LeftOut(answers, D[places], {name: A[places] for name, A in others.items()}, is_vote, beside)


def losses(L: Matrix, D: Matrix, *, are_votes: bool) -> Matrix:
    """The loss of each answer L (k, q), given degrees D (k, q); NaN where an answer puts no labels in an order."""
    P = np.maximum(np.where(np.isnan(L), 0.0, D), 1e-9)
    if are_votes:
        return np.asarray(-np.log((np.nan_to_num(L) * P).sum(axis=1) / P.sum(axis=1)))
    return mean_over_pairs(L, P, lambda a, b: -np.log(a / (a + b)), axis=1)[0]


def left_out_findings(found: LeftOut) -> list[Finding]:
    """Is the answer better than counting, and do predicted shares come true?"""
    own = losses(found.answers, found.degrees, are_votes=found.are_votes)
    others = {n: losses(found.answers, A, are_votes=found.are_votes) for n, A in found.baselines.items()}
    means = {name: float(np.nanmean(each)) for name, each in others.items()}
    best = min(means, key=lambda name: means[name])
    value, gap = float(np.nanmean(own)), own - others[best]
    error = float(np.nanstd(gap) / np.sqrt(max(np.isfinite(gap).sum(), 1)))
    verdict = FINE if np.nanmean(gap) <= 2 * error else DOUBTFUL if value <= means["equal degrees"] else OFF
    if verdict == FINE and (
        value >= means["equal degrees"] - error or (not found.are_beside and np.nanmean(gap) > -error)
    ):
        verdict = UNTOLD
    beside = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
    said = (
        f"Answers left out: {len(own)} of them, one per item, are predicted with a log loss of {value:.3f} ({beside}; "
        f"difference to the best of these {float(np.nanmean(gap)):+.3f} ± {error:.3f})."
    )
    title, shown = "Answers that were left out", {"the model": value, **means}
    first = Finding("left-out", title, verdict, value, said, shown, "log loss per answer")
    return [first, *([_share_finding(found)] if found.are_votes else [])]


def _share_finding(found: LeftOut) -> Finding:
    """Among label entries with a degree near p: did a share p of them come true?"""
    asked = ~np.isnan(found.answers)
    p, hit = found.degrees[asked], found.answers[asked]
    groups: dict[str, list[int]] = {}
    for part in np.array_split(np.argsort(p, kind="stable"), N_BINS):  # groups with the same degree are one
        groups.setdefault(f"{p[part].mean():.3f}", []).extend(part)
    shown, low, high = dict[str, float](), list[float](), list[float]()
    for name, one in groups.items():
        mean, half = float(p[one].mean()), 1.645 * float(np.sqrt((p[one] * (1 - p[one])).sum())) / len(one)
        shown[name], low, high = float(hit[one].mean()), [*low, max(mean - half, 0.0)], [*high, min(mean + half, 1.0)]
    inside = float(np.mean([a <= v <= b for v, a, b in zip(shown.values(), low, high, strict=True)]))
    said = (
        f"Predicted shares: in {inside:.0%} of {len(shown)} groups of degrees, the share that came true is in its 90 % "
        "band."
    )
    verdict, axis = graded(1 - inside, 0.3, 0.6), "share that came true"
    return Finding("shares", "Do predicted shares come true?", verdict, inside, said, shown, axis, low, high)
