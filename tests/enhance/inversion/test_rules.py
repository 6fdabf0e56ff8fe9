"""Rules in plain words, how well they explain labels, and a prior of the spread that does not get in the way."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from contone import CumulativeMass, Inversion, Threshold, TopK
from contone.base import InvalidParameterError
from contone.enhance.inversion import logistic_normal, rules
from contone.enhance.inversion.assessment import describe_rule
from contone.exceptions import InputError, LabelWarning
from contone.measurements import Order, Others, parse_rule
from contone.measurements.names import SPOKEN
from contone.numerics.simplex import softmax

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
    others = Others.of(Z, L, 0)
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
    monkeypatch.setattr(rules, "rank_rules", lambda *_: ranked)  # not a second time
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
    found = logistic_normal.spread_posterior(Z, counts, rule.cardinality, SPREAD_PRIOR)
    assert abs(found.mean - spread) < 3 * found.deviation
    assert found.mean == pytest.approx(spread, rel=0.35)
