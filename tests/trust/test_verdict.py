"""The decision table: the worst row decides, and situations with known truth get the right word."""

from __future__ import annotations

import itertools
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from contone import CumulativeMass, Inversion, Threshold, TopK
from contone.enhance.inversion.rules import SHARES
from contone.measurements import Order
from contone.trust import open_rule
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding
from contone.trust.credibility import expected_error_of
from contone.trust.hidden_labels import are_given_away, score_features
from contone.trust.open_rule import allowed_rules, average_over_rules
from contone.trust.verdict import CARE, NEVER, TABLE, USE, decide

ROOT = Path(__file__).parents[2]
situations = SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks" / "verdict.py")))


def found(**verdicts: str) -> list[Finding]:
    return [Finding(name.replace("_", "-"), "title", verdict, 0.0, "A sentence.") for name, verdict in verdicts.items()]


def test_the_worst_row_of_the_table_decides():
    assert decide(found(gain=FINE, features=FINE)).word == USE
    for name, row in TABLE.items():
        for verdict, word in ((FINE, USE), (DOUBTFUL, row.doubtful), (OFF, row.off), (UNTOLD, row.untold)):
            decision = decide([*found(data=FINE, gain=FINE), Finding(name, "", verdict, 0.0, "")])
            assert decision.word == word
            assert decision.names == ((name,) if word != USE else ())
    for one, other in itertools.product((FINE, DOUBTFUL, OFF), repeat=2):
        both, alone = decide(found(gain=one, cardinality=other)).word, decide(found(gain=one)).word
        assert [USE, CARE, NEVER].index(both) >= [USE, CARE, NEVER].index(alone)


def test_reasons_and_things_to_do_are_few_and_in_both_languages():
    decision = decide([Finding(name, "", OFF, 0.0, "") for name in TABLE])
    assert decision.word == NEVER
    assert len(decision.reasons) <= 4
    assert 1 <= len(decision.actions) <= 3
    assert len(decision.commands) <= 3
    for row in TABLE.values():
        assert "--" not in row.python
        assert not re.search(r"(?<!--param )\b\w+=[\"\d]", row.shell)


def test_the_documented_table_is_the_table():
    text = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \|.*?\| ([^|]+ \| [^|]+ \| [^|]+) \|$", text, re.MULTILINE))
    assert {name: tuple(map(str.strip, cells.split("|"))) for name, cells in rows.items()} == {
        name: (row.doubtful, row.off, row.untold) for name, row in TABLE.items()
    }


def test_a_rule_that_makes_no_such_numbers_is_not_allowed_and_a_named_one_counts():
    rng = np.random.default_rng(0)
    D = rng.dirichlet([2.0] * 5, size=200)
    for rule, other in ((CumulativeMass(), TopK(2)), (TopK(2), CumulativeMass(0.9))):
        weights = dict(allowed_rules(rule, rule.apply(D).astype(float), is_named=True))
        assert sum(weights.values()) == pytest.approx(1.0)
        assert weights[rule] > 0.5
        assert other not in weights
    odd = Threshold(0.17)  # on no list
    assert odd in dict(allowed_rules(odd, odd.apply(D).astype(float), is_named=True))
    levels = rng.integers(0, 4, (50, 3)).astype(float)
    assert allowed_rules(CumulativeMass(), levels, is_named=True) == [(CumulativeMass(), 1.0)]


def test_the_order_counts_as_much_as_all_rules_that_say_how_many_labels_there_are():
    D = np.random.default_rng(0).dirichlet([2.0] * 5, size=200)
    weights = dict(allowed_rules(Order(), CumulativeMass().apply(D).astype(float), is_named=True))
    assert len(weights) > 1
    assert weights[Order()] == pytest.approx(0.5, abs=0.03)  # rules under a twentieth are left out


@pytest.mark.parametrize(("rule", "is_open"), [(CumulativeMass(), False), (TopK(1), True)])
def test_what_the_rule_is_worth_is_what_knowing_it_would_save(rule, is_open):
    """One label in every row, read as its main labels, may as well be the best one: then most of the error is that."""
    rng = np.random.default_rng(0)
    L, X = rule.apply(rng.dirichlet([3.0] * 4, size=150)).astype(float), rng.normal(size=(150, 2))
    method = Inversion(n_sweeps=60, n_burn=20).fit(X, L)
    over = average_over_rules(method, X, L, method.posterior_, method.label_distributions_, method.expected_error_)
    assert (over.share > 0.5) == is_open
    assert 0.0 <= over.share < 1.0
    if len(over.weights) == 1:
        assert over.share == 0.0
        assert over.error.mean == pytest.approx(method.expected_error_.mean)
    uniform = np.full(L.shape, 0.25)
    beside = average_over_rules(method, X, L, method.posterior_, uniform, expected_error_of(method, X, L, uniform)[0])
    assert beside.error.mean == pytest.approx(over.baselines["equal degrees"], rel=0.2)
    assert sum(over.weights.values()) == pytest.approx(1.0)
    assert over.error.lower <= over.error.mean <= over.error.upper
    assert (over.lower < over.upper).all()


def test_features_are_told_apart_from_features_of_other_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    L = np.eye(3)[np.argmax(np.c_[X, np.zeros(160)] + 0.3 * rng.normal(size=(160, 3)), axis=1)]
    model = Inversion(degradation=TopK(1), n_sweeps=30, n_burn=10)
    helps, shuffled = score_features(model, X, L), score_features(model, rng.permutation(X), L)
    assert helps.p <= 0.01
    assert helps.loss < helps.without
    assert shuffled.p > 0.01
    assert score_features(model, X[:12], L[:12]) is None
    assert are_given_away(L)
    assert not are_given_away(np.vstack([L, np.ones((1, 3))]))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("120 rows", {USE, CARE}),  # chains of the suite are short
        ("random classes, few rows", {CARE, NEVER}),
        ("shuffled labels", {CARE, NEVER}),
        ("constant labels", {NEVER}),
        ("ten rows", {CARE, NEVER}),
    ],
)
def test_situations_get_the_right_word(name, words):
    assert situations.judge(name)["verdict"] in words


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", situations.SITUATIONS)
def test_nothing_worse_than_a_simple_answer_is_to_be_used(name):
    one = situations.judge(name)
    assert not (one["verdict"] == USE and one["is_worse"])
    assert not (one["verdict"] == NEVER and one["is_good"])


def test_a_rule_is_beside_the_two_most_likely_others_with_weights_that_sum_to_one(monkeypatch):
    own, a, b, c = CumulativeMass(), *(CumulativeMass(t) for t in (0.6, 0.7, 0.8))
    asked = []

    def weights(*ranked, rule=own, q=3, **how):
        monkeypatch.setattr(open_rule, "rank_rules", lambda *given: asked.append(given) or list(ranked))
        return allowed_rules(rule, np.eye(q), **{"is_named": True, **how})

    assert weights((a, 0.5), (own, 0.2), (b, 0.1), (c, 0.06)) == [
        (own, pytest.approx(0.25)), (a, pytest.approx(0.625)), (b, pytest.approx(0.125)),
    ]  # fmt: skip
    assert weights((own, 0.95), (a, 0.05)) == [(own, pytest.approx(0.95)), (a, pytest.approx(0.05))]
    assert weights((own, 0.951), (a, 0.049)) == [(own, 1.0)]
    assert weights((a, 0.6), (b, 0.4)) == [(own, 0.0), (a, pytest.approx(0.6)), (b, pytest.approx(0.4))]
    assert weights((a, 0.6), (b, 0.4), rule=Order()) == [
        (Order(), pytest.approx(0.5)), (a, pytest.approx(0.3)), (b, pytest.approx(0.2)),
    ]  # fmt: skip
    asked.clear()
    weights(), weights(is_named=False), weights(q=60), weights(q=61)
    assert [given[2] for given in asked] == [own, None, own, own]
    assert [len(given[3]) for given in asked] == [len(SHARES)] * 3 + [1]
    assert asked[3][3:5] == ((0.9,), (1.0,))  # of many labels, rules that have a name only
