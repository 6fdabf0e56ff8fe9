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
from contone.measurements import Votes
from contone.trust.agreement import mean_over_pairs
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded
from contone.trust.hidden_labels import HIDDEN_ROWS, against_other_rows, say_features
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


class Asked(NamedTuple):
    """Features (n, d) and answers (n, q), one per row, with the number of its item and of the person, where known."""

    X: Matrix
    L: Matrix
    item: np.ndarray
    person: np.ndarray | None = None


def one_by_one(rule: object, X: Matrix, L: Matrix) -> Asked:
    """The answers in rows L (n, q) that hold all votes for an item, or the marks or levels of one person."""
    if not isinstance(rule, Votes):
        row = np.flatnonzero(~np.isnan(L).all(axis=1))
        return Asked(X[row], L[row], row)
    votes = np.nan_to_num(L).astype(int)
    row, label = (np.repeat(at, votes[votes > 0]) for at in np.nonzero(votes))
    return Asked(X[row], np.where(np.isnan(L[row]), np.nan, np.eye(L.shape[1])[label]), row)


def leave_out(method: Inversion, asked: Asked, seed: int = 0) -> LeftOut:
    """Leave out one answer of each item that has two, or those to a fifth of the items, and fit the others."""
    rng, is_vote, (_, L, item, _) = np.random.default_rng(seed), isinstance(method.degradation_, Votes), asked
    often, order = np.bincount(item)[item], rng.permutation(len(L))
    out = order[np.unique(item[order], return_index=True)[1]]
    out = np.sort(out[often[out] >= 2])
    if not (are_beside := len(out) >= LEAST_LEFT_OUT):
        single = np.flatnonzero(often == 1)
        out = np.sort(rng.permutation(single)[: len(single) // 5])
    if len(out) < LEAST_LEFT_OUT:
        raise InputError(f"only {len(out)} answers could be left out: too few.")
    kept = np.delete(np.arange(len(L)), out)
    fresh = _fit_some(method, asked, kept)
    if are_beside:
        place = {name: k for k, name in enumerate(fresh.groups_)}
        D = np.asarray(fresh.label_distributions_)[[place[i] for i in item[out]]]
    else:
        D = np.asarray(fresh.predict(asked.X[out]))
    total = np.zeros((item.max() + 1, L.shape[1]))
    np.add.at(total, item[kept], np.nan_to_num(L[kept] - getattr(method.degradation_, "lowest", 0.0)))
    others = {"equal degrees": np.full(total.shape, 1.0 / L.shape[1]), "counting": counting.shares(total)}
    others |= {"Dirichlet-multinomial": counting.dirichlet_multinomial(total)} if is_vote else {}
    return LeftOut(L[out], D, {name: A[item[out]] for name, A in others.items()}, is_vote, are_beside)


def _fit_some(method: Inversion, asked: Asked, kept: np.ndarray) -> Inversion:
    """A copy of the method that is fitted to some of the answers."""
    X, L, item, person = (None if A is None else A[kept] for A in asked)
    fresh: Inversion = clone(method).set_params(degradation=method.degradation_, n_samples=0, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fresh.fit(X, L, groups=item, annotators=person)


def losses(L: Matrix, D: Matrix, *, are_votes: bool) -> Matrix:
    """The loss of each answer L (k, q), given degrees D (k, q) or (q,); NaN where it puts no labels in an order."""
    P = np.maximum(np.where(np.isnan(L), 0.0, D), 1e-9)
    if are_votes:
        return np.asarray(-np.log((np.nan_to_num(L) * P).sum(axis=1) / P.sum(axis=1)))
    return mean_over_pairs(L, P, lambda a, b: -np.log(a / (a + b)), axis=1)[0]


def _compare(found: LeftOut) -> tuple[float, dict[str, float], float, float]:
    """The loss of the answer, those of the baselines, the mean difference to the best one, and its standard error."""
    own = losses(found.answers, found.degrees, are_votes=found.are_votes)
    others = {n: losses(found.answers, A, are_votes=found.are_votes) for n, A in found.baselines.items()}
    means = {name: float(np.nanmean(each)) for name, each in others.items()}
    gap = own - others[min(means, key=lambda name: means[name])]
    error = float(np.nanstd(gap) / np.sqrt(max(np.isfinite(gap).sum(), 1)))
    return float(np.nanmean(own)), means, float(np.nanmean(gap)), error


def left_out_findings(found: LeftOut) -> list[Finding]:
    """Is the answer better than counting, and do predicted shares come true?"""
    value, means, gap, error = _compare(found)
    verdict = FINE if gap <= 2 * error else DOUBTFUL if value <= means["equal degrees"] else OFF
    if verdict == FINE and (value >= means["equal degrees"] - error or (not found.are_beside and gap > -error)):
        verdict = UNTOLD
    beside = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
    said = (
        f"Answers left out: {len(found.answers)} of them, one per item, are predicted with a log loss of {value:.3f} "
        f"({beside}; difference to the best of these {gap:+.3f} ± {error:.3f})."
    )
    title, shown = "Answers that were left out", {"the model": value, **means}
    first = Finding("left-out", title, verdict, value, said, shown, "log loss per answer")
    return [first, *([_share_finding(found)] if found.are_votes else [])]


def find_in_answers(method: Inversion, asked: Asked, seed: int = 0) -> list[Finding]:
    """What answers that were left out say; where that is no more than counting does, whether features help."""
    found = leave_out(method, asked, seed)
    findings, (_, _, gap, error) = left_out_findings(found), _compare(found)
    return findings if gap <= -2 * error else [*findings, *features_findings(method, asked, seed)]


def features_findings(method: Inversion, asked: Asked, seed: int = 0) -> list[Finding]:
    """Do the features help to tell the answers about whole items? Nothing is said without any, or of too few items.

    Answers that were left out do not show it where others about the same item are known. The null is that of
    `contone.trust.hidden_labels.score_features`: what features say of other hidden items.
    """
    rng, is_vote, (X, L, item, _) = np.random.default_rng(seed), isinstance(method.degradation_, Votes), asked
    known, first = np.unique(item, return_index=True)
    hidden = np.sort(rng.permutation(len(known))[: round(HIDDEN_ROWS * len(known))])
    if not method.features or not np.ptp(X, axis=0).any() or len(hidden) < LEAST_LEFT_OUT:
        return []
    out = np.isin(item, known[hidden])
    told = np.asarray(_fit_some(method, asked, ~out).predict(X[first[hidden]]))
    usual = counting.shares(np.nansum(L[~out] - getattr(method.degradation_, "lowest", 0.0), axis=0)[None])
    by_answer = [np.nan_to_num(losses(L[out], d, are_votes=is_vote)) for d in (*told, *usual)]
    by_item = np.zeros((len(hidden), len(by_answer)))
    np.add.at(by_item, np.searchsorted(known[hidden], item[out]), np.transpose(by_answer))
    found = against_other_rows(by_item[:, :-1], float(by_item[:, -1].sum()), float(out.sum()), rng)
    return [say_features(found, "answers to hidden items", "answer")]


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
