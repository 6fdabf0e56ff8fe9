"""Answers that were left out: losses by their formula, one per item, and verdicts on people whose ways are known."""

from __future__ import annotations

import numpy as np
import pytest

from contone import Inversion, check
from contone.exceptions import InputError
from contone.trust.left_out import LeftOut, leave_out, left_out_findings, losses

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
        found = leave_out(method, X[item], Y, item)
    else:
        method.fit(X, counts)
        found = leave_out(method, X, counts)
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
        leave_out(few, X[:30], Y[::4][:30])


@pytest.mark.parametrize("features_tell", [True, False])
def test_one_answer_per_item_is_checked_by_items_left_out(features_tell):
    """Rows that are left out are told by their features: better than by how often labels are chosen, or not at all."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    likely = (np.exp(2.0 * X) if features_tell else np.ones((300, 3))) * [1.0, 1.0, 0.3]
    Y = np.stack([rng.multinomial(1, p) for p in likely / likely.sum(axis=1, keepdims=True)]).astype(float)
    method = Inversion(degradation="votes", **QUICK).fit(X, Y)
    left = leave_out(method, X, Y)
    assert len(left.answers) == 60
    assert not left.are_beside
    found = check(method, X, Y)
    assert found.verdict == "use with care"
    assert ("left-out" in found.decision.names) is not features_tell
    assert "people" in found.decision.names


def test_levels_count_from_the_lowest_one():
    """Levels of -2 to 2 are those of 0 to 4: counting, beside which answers are judged, is the same."""
    rng = np.random.default_rng(0)
    item, L = np.repeat(np.arange(30), 2), rng.integers(0, 5, (60, 3)).astype(float)
    L[0], L[1] = [0, 4, 2], [4, 0, 1]
    found = []
    for shift in (0.0, -2.0):
        method = Inversion(degradation="levels", n_sweeps=20, n_burn=5).fit(item[:, None], L + shift, groups=item)
        found.append(leave_out(method, item[:, None].astype(float), L + shift, item).baselines["counting"])
    np.testing.assert_allclose(found[0], found[1])
