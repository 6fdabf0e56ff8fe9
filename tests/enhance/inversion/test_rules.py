"""Rules in plain words, how well they explain labels, and a prior of the spread that does not get in the way."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from others import others_of

from contone import CumulativeMass, Inversion, Threshold, TopK
from contone.base import InvalidParameterError
from contone.enhance.inversion import logistic_normal, rules
from contone.enhance.inversion.assessment import describe_rule
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Flips
from contone.exceptions import InputError, LabelWarning
from contone.measurements import Order, parse_rule
from contone.measurements.names import SPOKEN
from contone.numerics.simplex import softmax
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees

SPREAD_PRIOR = CumulativeMass.spread_prior
SHORT = {"n_sweeps": 30, "n_burn": 10}


def drawn(spread, n=400, q=6, seed=0):
    """Degrees (n, q) of unrelated labels with unequal means."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, q)) + np.linspace(-1, 1, q)
    return softmax(spread * Z / np.sqrt(np.mean(np.square(Z - Z.mean(axis=1, keepdims=True)))))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("main", CumulativeMass(0.5)),
        ("Main labels,  more than half of the weight.", CumulativeMass(0.5)),
        ("everything that matters", CumulativeMass(0.9)),
        ("cumulative:0.7", CumulativeMass(0.7)),
        ("threshold: 0.2", Threshold(0.2)),
        ("topk:3", TopK(3)),
        ("the 2 best", TopK(2)),
        ("the k best", "best"),
        ("marked above unmarked, no more", Order()),
        ("whatever passes a bar", "bar"),
        ("auto", "auto"),
    ],
)
def test_words_are_rules(text, rule):
    assert parse_rule(text) == rule


@pytest.mark.parametrize("text", ["", "mean", "topk:0", "topk:1.5", "cumulative:", "threshold:nan", "cumulative:1"])
def test_other_words_are_refused_before_any_work(text):
    with pytest.raises(InputError):
        parse_rule(text)
    with pytest.raises(InvalidParameterError, match="more than half of the weight"):
        Inversion(degradation=text).fit(np.zeros((2, 1)), [[0, 1], [1, 0]])


def test_every_short_name_says_its_words():
    for short, (_, spoken) in SPOKEN.items():
        assert parse_rule(short) == parse_rule(spoken.words)
    assert parse_rule("main").in_words() == SPOKEN["main"][1].words
    assert Order().in_words() == SPOKEN["order"][1].words


def test_the_order_alone_holds_for_any_number_of_labels():
    D = drawn(0.5)
    L = CumulativeMass().apply(D).astype(float)
    Z, impossible = Order().start(L)
    assert not impossible.any()
    assert (np.where(L > 0, Z, np.inf).min(axis=1) >= np.where(L > 0, -np.inf, Z).max(axis=1)).all()
    others = others_of(Z, L, 0)
    np.testing.assert_array_equal(Order().interval(others, L[:, 0] > 0), TopK(2).interval(others, L[:, 0] > 0))
    with pytest.raises(InputError, match="TopK"):
        Order().apply(D)


def test_a_bar_is_found_where_it_was():
    D = drawn(1.0, n=800)
    found = rules.choose_rule("whatever passes a bar", Threshold(0.6 / 6).apply(D).astype(float))
    assert isinstance(found, Threshold)
    assert 6 * found.tau == pytest.approx(0.6, rel=0.26)


def test_one_line_says_rule_fit_and_weight():
    D = drawn(0.8)
    L = CumulativeMass().apply(D).astype(float)
    X = np.zeros((len(L), 1))
    method = Inversion(degradation="main", features=False, **SHORT).fit(X, L)
    assert method.rule_report_.explained > 0.9
    weight = (method.label_distributions_ * L).sum(axis=1).mean()
    assert method.rule_report_.yes_weight == pytest.approx(weight)
    assert describe_rule(method).startswith("rule: main labels, more than half of the weight (CumulativeMass(t=0.5));")
    assert f"{weight:.0%} of the weight" in describe_rule(method)
    assert method.annotator_deviation_ == 0.0
    assert "annotator" not in method.summary()
    with pytest.warns(LabelWarning, match="labels that are not marked"):
        order = Inversion(degradation="order", features=False, **SHORT).fit(X, L)
    assert order.n_relaxed_ == 0
    assert order.rule_report_.explained is None
    assert order.rule_report_.yes_weight < 0.5


@pytest.mark.usefixtures("few_simulated")
def test_auto_says_when_the_labels_do_not_tell(monkeypatch):
    few = CumulativeMass(0.6).apply(drawn(0.8, n=12, q=4)).astype(float)
    many = CumulativeMass(0.5).apply(drawn(0.8, n=400)).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rules.choose_rule("auto", many) == CumulativeMass(0.5)
    ranked = rules.rank_rules(few)
    assert sum(p for _, p in ranked) == pytest.approx(1.0)
    monkeypatch.setattr(rules, "rank_rules", lambda *_, **__: ranked)  # not a second time
    with pytest.warns(LabelWarning, match="probability of only"):
        assert rules.choose_rule("auto", few) == ranked[0][0]


def test_the_prior_of_the_spread_pulls_with_bounded_force():
    grid = np.geomspace(*logistic_normal.RANGE, 500)
    slope = np.gradient(logistic_normal._log_prior(grid, SPREAD_PRIOR), np.log(grid))
    assert np.abs(slope).max() <= logistic_normal.PULL / SPREAD_PRIOR[1] + 1e-9
    near = np.abs(np.log(grid / SPREAD_PRIOR[0])) < 0.9
    np.testing.assert_allclose(slope[near], -np.log(grid[near] / SPREAD_PRIOR[0]) / SPREAD_PRIOR[1] ** 2, atol=0.1)


@pytest.mark.parametrize("spread", [1.0, 2.5, 6.0])
def test_few_rows_that_ask_for_a_large_spread_get_it(spread):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(3000, 8))
    Z -= Z.mean(axis=1, keepdims=True)
    Z /= np.sqrt(np.mean(np.square(Z)))
    rule = Threshold(0.05)
    counts = np.bincount(rule.apply(softmax(spread * Z[:40])).sum(axis=1), minlength=9)[1:]
    found = logistic_normal.spread_posterior(rule, Z, counts)
    assert abs(found.mean - spread) < 3 * found.deviation
    assert found.mean == pytest.approx(spread, rel=0.35)


# ---------------------------------------------------------------- the choice, with evidence that is given


def test_equal_evidence_leaves_the_prior_and_other_evidence_is_bayes_rule(monkeypatch):
    L = CumulativeMass().apply(drawn(0.5, n=50)).astype(float)
    monkeypatch.setattr(rules, "_evidence", lambda rule, *_: -7.0)
    ranked = dict(rules.rank_rules(L))
    assert ranked.pop(CumulativeMass()) == pytest.approx(0.5)
    np.testing.assert_allclose(list(ranked.values()), 0.5 / len(ranked))
    assert {rule.t for rule in ranked if isinstance(rule, CumulativeMass)} == {*rules.SHARES}
    assert {rule.tau for rule in ranked if isinstance(rule, Threshold)} == {r / 6 for r in rules.THRESHOLDS}
    assert [rule for rule in ranked if isinstance(rule, TopK)] == [
        TopK(int(np.bincount(L.sum(axis=1).astype(int)).argmax()))
    ]
    pair = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    for noise, one in ((Flips(), True), (Flips(0.1, 0.0), False)):  # where marks may be missed, a row may have none
        bars = [rule for rule, _ in rules.rank_rules(pair, noise=noise) if isinstance(rule, Threshold)]
        assert {bar.tau for bar in bars} == {r / 2 for r in rules.THRESHOLDS if r < 2}
        assert {bar.at_least_one for bar in bars} == {one}
        marked = [rule for rule, _ in rules.rank_rules(pair[:2], noise=noise) if isinstance(rule, Threshold)]
        assert all(bar.at_least_one for bar in marked)
    favoured = Threshold(1.5 / 6)
    monkeypatch.setattr(rules, "_evidence", lambda rule, *_: 4.0 * (rule == favoured) - 1e5)
    (best, probability), (second, _) = rules.rank_rules(L)[:2]
    assert (best, second) == (favoured, CumulativeMass())
    weight = np.exp(4.0) * 0.5 / len(ranked)
    assert probability == pytest.approx(weight / (weight + 0.5 + 0.5 * (len(ranked) - 1) / len(ranked)))


@pytest.mark.parametrize("q", [1, 2, 6])
def test_a_bar_is_looked_for_below_all_of_the_weight(monkeypatch, q):
    tried = []
    monkeypatch.setattr(rules, "_evidence", lambda rule, *_: tried.append(rule) or -abs(rule.tau - 0.1))
    found = rules.likeliest_threshold(np.eye(q).repeat(3, axis=0), at_least_one=False)
    assert all(0 < rule.tau < 1 and not rule.at_least_one for rule in tried)
    assert len(tried) == sum(height < q for height in rules.HEIGHTS)
    assert abs(found.tau - 0.1) == min(abs(rule.tau - 0.1) for rule in tried)


def test_patterns_that_a_rule_cannot_make_are_counted_against_it(monkeypatch):
    """Each costs what a number of labels costs that none of the m simulated rows has: log(1 / 2m)."""
    Z = np.random.default_rng(0).normal(size=(500, 4))
    monkeypatch.setattr(rules, "_draw_under", lambda *_: Z)
    monkeypatch.setattr(logistic_normal, "spread_evidence", lambda *_: -3.0)
    L = np.array([[1.0, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]])  # all of four labels: never more than half
    known = KnownDegrees(
        np.array([1, 2]), np.array([[0.7, 0.1, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1]])
    )  # the second disagrees
    assert rules._evidence(CumulativeMass(), L, NOTHING_KNOWN) == pytest.approx(-3.0 + 2 * np.log(1 / 1000))
    assert rules._evidence(CumulativeMass(), L, known) == pytest.approx(-3.0 + 3 * np.log(1 / 1000))


def test_a_number_of_labels_that_most_rows_do_not_have_is_not_tried(monkeypatch):
    monkeypatch.setattr(rules, "_draw_under", lambda *_: np.zeros((5, 3)))
    monkeypatch.setattr(logistic_normal, "spread_evidence", lambda *_: -3.0)
    L = np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1]])
    assert np.isfinite([rules._evidence(TopK(k), L, NOTHING_KNOWN) for k in (1, 2)]).all()
    assert rules._evidence(TopK(1), L[1:], NOTHING_KNOWN) == -np.inf
    assert rules._evidence(TopK(2), L[:3], NOTHING_KNOWN) == -np.inf
    assert np.isfinite(rules._evidence(TopK(1), L[1:], NOTHING_KNOWN, Flips(0.1, 0.1)))  # others may have been missed
    assert np.isfinite(rules._evidence(CumulativeMass(), L, NOTHING_KNOWN))


def test_names_stand_for_rules_of_these_labels():
    L = np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    assert rules.choose_rule("best", L) == TopK(2)
    assert rules.choose_rule("threshold", L[:3]) == Threshold(0.25)
    assert rules.choose_rule("threshold", L) == Threshold(0.25, at_least_one=False)
    assert rules.choose_rule("threshold", np.ones((3, 1))) == Threshold(0.5)
    assert rules.choose_rule("threshold", np.eye(2)) == Threshold(0.5)
    assert rules.choose_rule("auto", np.ones((3, 1))) == CumulativeMass()
    assert rules.choose_rule("auto", np.full((3, 2), np.nan)) == CumulativeMass()
    known = KnownDegrees(np.array([0, 3, 4]), np.full((3, 2), 0.5))
    some, kept = rules._labelled(np.array([[1.0, 0], [np.nan, np.nan], [0, 1], [np.nan, np.nan], [1, 1]]), known)
    assert some.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert kept.rows.tolist() == [0, 2]


def test_the_usual_number_of_labels_is_that_before_marks_were_missed_and_added():
    """(share of marks - false) / (1 - missed - false) of q, between one and all but one; NaN counts nowhere."""
    L = np.array([[1.0, 1, 0, 0, np.nan], [0, 1, 0, 0, np.nan]])  # 3 of 8
    assert rules._usual_number(L, Flips(0.4, 0.0)) == TopK(round(5 * 0.375 / 0.6))
    assert rules._usual_number(L, Flips(0.0, 0.3)) == TopK(round(5 * 0.075 / 0.7))
    assert rules._usual_number(0 * L[:, :4], Flips(0.4, 0.0)) == TopK(1)
    assert rules._usual_number(0 * L[:, :4] + 1, Flips(0.4, 0.0)) == TopK(3)
    assert rules._usual_number(np.ones((2, 1)), Flips(0.4, 0.0)) == TopK(1)
    assert rules._usual_number(np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0]]), NO_FLIPS) == TopK(2)


def test_an_open_choice_is_said_with_the_rules_that_it_could_be():
    ranked = [(CumulativeMass(), 0.6), (TopK(2), 0.3), (Threshold(0.2), 0.099), (TopK(9), 0.001)]
    with pytest.warns(
        LabelWarning, match=r"only 60%.*the 2 best \(30%\); whatever passes a bar of 20 % of the weight \(10%\)\."
    ):
        rules._warn_if_open(ranked)
    many = [(CumulativeMass(), 0.3), *((TopK(k), 0.1) for k in (2, 3, 4, 5))]
    with pytest.warns(LabelWarning, match=r"be the 2 best \(10%\); the 3 best \(10%\); the 4 best \(10%\)\. Degrees"):
        rules._warn_if_open(many)  # three of them
    with pytest.warns(LabelWarning, match=r"only 94%.* be the 2 best \(0%\); the 3 best \(0%\)\."):
        rules._warn_if_open([(CumulativeMass(), 0.94), (TopK(2), 0.004), (TopK(3), 0.004), (TopK(4), 0.001)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rules._warn_if_open([(CumulativeMass(), 0.95), (TopK(2), 0.05)])


def test_trial_draws_have_spread_one_and_the_labels_means():
    L = CumulativeMass().apply(drawn(0.8, n=300)).astype(float)
    Z = rules._draw_under(CumulativeMass(), L)
    assert np.sqrt(np.mean(Z**2)) == pytest.approx(1.0)
    simulated = CumulativeMass()._apply(softmax(0.8 * Z)).mean(axis=0)  # at the spread of the labels
    np.testing.assert_allclose(simulated, L.mean(axis=0), atol=0.06)


def test_a_spread_at_the_end_of_its_range_is_said():
    """One label in every row, told by the features: the labels ask for as uneven degrees as can be."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    L = np.eye(6)[(X @ np.vstack([np.eye(3), -np.eye(3)]).T).argmax(axis=1)]
    method = Inversion(n_sweeps=60, n_burn=30).fit(X, L)
    low, high = logistic_normal.RANGE
    assert low <= method.spread_ <= high
    assert method.fit_.spread.at_edge() == (method.rule_report_.scale_from == "edge")
    assert logistic_normal.Spread(high, 0.1).at_edge()
    assert logistic_normal.Spread(low, 0.001).at_edge()
    assert not logistic_normal.Spread(0.5, 0.1).at_edge()
    assert "end of what is looked at" in str(replace(method.rule_report_, scale_from="edge"))
