"""Answers that were left out: losses by their formula, one per item, and verdicts on people whose ways are known."""

from __future__ import annotations

import numpy as np
import pytest

from contone import Inversion, check
from contone.exceptions import InputError
from contone.measurements import Levels, Votes
from contone.trust.hidden_labels import N_SHUFFLED, against_other_rows
from contone.trust.left_out import Asked, LeftOut, features_findings, leave_out, left_out_findings, losses, one_by_one

QUICK = {"n_sweeps": 40, "n_burn": 15, "verbose": False}


def voted(n=120, q=3, k=4, seed=0):
    """Features, degrees, and votes one by one with their items."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Z = 1.5 * X @ rng.normal(size=(2, q))
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    item = np.repeat(np.arange(n), k)
    return X, D, item, np.eye(q)[[rng.choice(q, p=D[i]) for i in item]]


def test_losses_are_minus_log_degrees_of_votes_and_of_pairs_of_marks():
    D = np.array([[0.5, 0.3, 0.2]] * 2)
    votes = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, np.nan]])
    np.testing.assert_allclose(losses(votes, D, are_votes=True), [-np.log(0.3), -np.log(0.5 / 0.8)])
    marks = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    pairs = -(np.log(0.5 / 0.7) + np.log(0.3 / 0.5)) / 2
    np.testing.assert_allclose(losses(marks, D, are_votes=False), [pairs, np.nan])


def test_true_degrees_are_fine_and_confident_nonsense_is_off():
    _, D, _, Y = voted(n=400, k=1)
    simple = {"equal degrees": np.full(D.shape, 1 / 3), "counting": np.full(D.shape, 1 / 3)}
    assert [f.verdict for f in left_out_findings(LeftOut(Y, D, simple, True))] == ["fine", "fine"]
    wrong = np.roll(D, 1, axis=1) ** 3
    wrong /= wrong.sum(axis=1, keepdims=True)
    assert [f.verdict for f in left_out_findings(LeftOut(Y, wrong, simple, True))] == ["off", "off"]


@pytest.mark.parametrize("grouped", [True, False])
def test_one_answer_of_every_item_is_left_out_and_the_others_are_fitted(grouped):
    X, D, item, Y = voted()
    counts = np.zeros(D.shape)
    np.add.at(counts, item, Y)
    method = Inversion(degradation="votes", **QUICK)
    if grouped:
        method.fit(X[item], Y, groups=item)
        found = leave_out(method, Asked(X[item], Y, item))
    else:
        method.fit(X, counts)
        found = leave_out(method, one_by_one(method.degradation_, X, counts))
    assert found.answers.shape == found.degrees.shape == D.shape
    assert (found.answers.sum(axis=1) == 1).all()
    left = found.baselines["counting"] * 4 - 1 / 3  # three votes and a third each
    np.testing.assert_allclose(left + found.answers, counts, atol=1e-9)
    np.testing.assert_allclose(found.baselines["equal degrees"], 1 / 3)
    own = losses(found.answers, found.degrees, are_votes=True).mean()
    assert own < losses(found.answers, found.baselines["Dirichlet-multinomial"], are_votes=True).mean()


def test_votes_are_checked_by_answers_left_out_and_too_few_are_said():
    X, D, item, Y = voted()
    counts = np.zeros(D.shape)
    np.add.at(counts, item, Y)
    method = Inversion(degradation="votes", **QUICK).fit(X, counts)
    found = check(method, X, counts)
    assert {f.name for f in found.findings} == {"data", "left-out", "shares"}
    assert found.verdict in ("use", "use with care")
    assert "each person chose one label" in str(found)
    assert "rule_fit_" not in dir(method)
    few = Inversion(degradation="votes", **QUICK).fit(X[:30], Y[::4][:30])
    assert "too few" in check(few, X[:30], Y[::4][:30]).not_checked[0]
    with pytest.raises(InputError, match="too few"):
        leave_out(few, one_by_one(few.degradation_, X[:30], Y[::4][:30]))


@pytest.mark.parametrize("features_tell", [True, False])
def test_one_answer_per_item_is_checked_by_items_left_out(features_tell):
    """Rows that are left out are told by their features: better than by how often labels are chosen, or not at all."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    likely = (np.exp(2.0 * X) if features_tell else np.ones((300, 3))) * [1.0, 1.0, 0.3]
    Y = np.stack([rng.multinomial(1, p) for p in likely / likely.sum(axis=1, keepdims=True)]).astype(float)
    method = Inversion(degradation="votes", **QUICK).fit(X, Y)
    left = leave_out(method, one_by_one(method.degradation_, X, Y))
    assert len(left.answers) == 60
    assert not left.are_beside
    found = check(method, X, Y)
    assert found.verdict == "use with care"
    assert ("left-out" in found.decision.names) is not features_tell
    assert "people" in found.decision.names


def test_counts_are_taken_apart_into_single_answers():
    counts = np.array([[2.0, 0.0, np.nan], [0.0, 0.0, 0.0], [1.0, 3.0, 0.0]])
    asked = one_by_one(Votes(), np.arange(3.0)[:, None], counts)
    assert asked.item.tolist() == asked.X[:, 0].tolist() == [0, 0, 2, 2, 2, 2]
    assert (np.nansum(asked.L, axis=1) == 1).all()
    for i in (0, 2):
        np.testing.assert_array_equal(asked.L[asked.item == i].sum(axis=0), counts[i])
    levels = np.array([[1.0, 0.0], [np.nan, np.nan], [0.0, 2.0]])
    np.testing.assert_array_equal(one_by_one(Levels(), np.zeros((3, 1)), levels).item, [0, 2])


def test_features_are_judged_by_those_of_other_hidden_rows():
    """Among all orders of the rows the own one is the best, or as good as any; losses are per part."""
    rng = np.random.default_rng(0)
    found = against_other_rows(1.0 - np.eye(30), 9.0, 30.0, rng)
    assert (found.loss, found.without, found.p) == (0.0, 0.3, 1 / (1 + N_SHUFFLED))
    assert found.shuffled == pytest.approx(29 / 30, abs=0.01)  # one row of a random order stays where it is, on average
    assert against_other_rows(np.ones((30, 30)), 9.0, 30.0, rng).p == 1.0


@pytest.mark.parametrize("kind", ["counts", "votes", "levels"])
def test_features_of_other_items_tell_nothing_of_answers(kind):
    X, D, item, Y = voted(n=160)
    own, L = X[item], Y if kind == "votes" else np.round(4 * D[item] / D[item].max(axis=1, keepdims=True))
    if kind == "counts":
        item, own, L = np.arange(len(X)), X, np.add.reduceat(Y, np.arange(0, len(Y), 4))
    elsewhere = own[np.random.default_rng(1).permutation(len(X))[item] * (len(own) // len(X))]
    verdicts = []
    for features in (own, elsewhere):
        groups = {} if kind == "counts" else {"groups": item}
        method = Inversion(degradation="votes" if kind == "counts" else kind, **QUICK).fit(features, L, **groups)
        asked = Asked(features, L, item) if groups else one_by_one(method.degradation_, features, L)
        (finding,) = features_findings(method, asked)
        verdicts.append(finding.verdict)
    assert verdicts == ["fine", "doubtful"]
    assert features_findings(method, asked._replace(X=0.0 * asked.X)) == []


def test_levels_count_from_the_lowest_one():
    """Levels of -2 to 2 are those of 0 to 4: counting, beside which answers are judged, is the same."""
    rng = np.random.default_rng(0)
    item, L = np.repeat(np.arange(30), 2), rng.integers(0, 5, (60, 3)).astype(float)
    L[0], L[1] = [0, 4, 2], [4, 0, 1]
    found = []
    for shift in (0.0, -2.0):
        method = Inversion(degradation="levels", n_sweeps=20, n_burn=5).fit(item[:, None], L + shift, groups=item)
        asked = Asked(item[:, None].astype(float), L + shift, item)
        found.append(leave_out(method, asked).baselines["counting"])
    np.testing.assert_allclose(found[0], found[1])
