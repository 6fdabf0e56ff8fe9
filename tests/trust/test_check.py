"""`contone.check`: what it says of data from the model, of data from another rule, and its parts."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import contone
from contone import LEMLL, LP, Check, CumulativeMass, Inversion, Logical, Temperature, Threshold, TopK
from contone.exceptions import ArgumentError, InputError
from contone.numerics.simplex import softmax
from contone.trust import check, hidden_labels, model_checks
from contone.trust.agreement import mean_over_pairs
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD
from contone.trust.credibility import data_finding, expected_error_of
from contone.trust.rehearsal import cardinality_shares
from contone.trust.verdict import decide

SHORT = {"n_sweeps": 60, "n_burn": 20}
HOSTILE = "<img src=x onerror=alert(1)>"


class Predicting(LEMLL):
    """Takes no unasked entries, but predicts."""

    kinds = frozenset()


def drawn(spread=0.8, n=250, q=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Z = 0.6 * X @ rng.normal(size=(2, q)) + rng.normal(size=(n, q))
    Z -= Z.mean(axis=1, keepdims=True)
    return X, softmax(spread * Z / Z.std())


@pytest.fixture(scope="module")
def checked():
    pd = pytest.importorskip("pandas")
    X, D = drawn()
    names = [HOSTILE, "b", "c", "d", "e"]
    Y = pd.DataFrame(CumulativeMass().apply(D), columns=names)
    return contone.check(Inversion(**SHORT), X, Y, n_replicates=10)


def test_data_from_the_model_pass(checked):
    verdicts = {f.name: f.verdict for f in checked.findings}
    assert all(v in (UNTOLD, FINE, DOUBTFUL, OFF) for v in verdicts.values())
    for name in ("data", "gain", "cardinality", "frequency", "features", "calibration", "spread"):
        assert verdicts[name] == FINE, name
    assert checked.verdict in ("use", "use with care")


def test_every_check_is_a_sentence_with_a_number(checked):
    for found in checked.findings:
        assert found.sentence.endswith(".")
        assert np.isfinite(found.value)
        assert len(found.shown) >= (found.name != "data")
        assert len(found.lower) == len(found.upper) in (0, len(found.shown))


def test_it_prints_and_is_plain_values(checked):
    assert isinstance(checked, Check)
    text = str(checked)
    assert text.startswith(checked.decision.sentence())
    assert text.count("\n") == len(checked.findings) + len(checked.decision.actions) + len(checked.not_checked) + 1
    assert max(map(len, checked.text(width=80).splitlines())) <= 80
    narrow = checked.text(width=50).splitlines()
    assert max(map(len, narrow)) <= 50
    assert not any(line.startswith(" " * 3) for line in narrow)  # no column of verdicts that half of the line goes to
    content = json.loads(json.dumps(checked.to_dict()))
    assert content["rule"] == "CumulativeMass(t=0.5)"
    assert len(content["labels"]) == 5
    page = checked._repr_html_()
    assert page.startswith("<pre>")
    assert HOSTILE not in page


def test_rows_and_labels_are_named(checked):
    assert {label.name for label in checked.labels} >= {HOSTILE, "b"}
    assert all(label.lower <= label.upper for label in checked.labels)
    assert sum(label.degree for label in checked.labels) == pytest.approx(1.0)
    scores = [row.score for row in checked.ambiguous]
    assert scores == sorted(scores, reverse=True)
    assert len({(entry.row, entry.label) for entry in checked.doubtful}) == len(checked.doubtful)


def test_labels_of_another_rule_are_noticed():
    X, D = drawn(spread=2.0, n=150)
    L = Threshold(0.35).apply(D).astype(float)
    L[:, [0, 2]] = 1.0 - L[:, [1, 3]]  # and pairs of labels that the model cannot tie together like this
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = contone.check(Inversion(**SHORT), X, L, n_replicates=10)
    assert found.verdict != "use"
    assert any(f.verdict != FINE for f in found.findings if f.name in ("cardinality", "co-occurrence", "frequency"))
    assert 1 <= len(found.decision.actions) <= 3
    assert not any("--" in said for said in found.decision.actions)


QUICK = Inversion(n_sweeps=30, n_burn=10)


@pytest.mark.parametrize("method", [Temperature(c=1.0), LP(), Predicting(), Logical()], ids=lambda m: type(m).__name__)
def test_any_method_is_checked(method):
    X, D = drawn(n=60)
    L = CumulativeMass().apply(D).astype(float)
    found = contone.check(method, X, L, model=QUICK)
    answer = clone(method).fit_enhance(X, L)
    assert found.yes_weight == pytest.approx((answer * L).sum(axis=1).mean())
    assert [label.degree for label in found.labels] == pytest.approx(answer.mean(axis=0))
    assert all(label.lower is None for label in found.labels)
    names = {f.name for f in found.findings}
    assert names >= {"order", "rehearsal", "solver"}
    assert ("entries" in names) == (type(method) is not LP)
    assert any("no model of how labels are made" in said for said in found.not_checked)
    assert any("degrees are exactly 0" in said for said in found.not_checked) == (type(method) is Logical)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["method"] == type(method).__name__
    assert np.isfinite(found.expected_error.mean) == (type(method) is not Logical)


def test_the_expected_error_of_the_models_own_answer_is_its_own():
    X, D = drawn(n=60)
    L = CumulativeMass().apply(D).astype(float)
    model = Inversion(n_sweeps=30, n_burn=10).fit(X, L)
    own, _ = expected_error_of(model, X, L, model.label_distributions_)
    assert own.mean == pytest.approx(model.expected_error_.mean)
    np.testing.assert_allclose(own.rows, model.expected_error_.rows)
    worse, _ = expected_error_of(model, X, L, np.full_like(L, 0.2))
    assert worse.mean > own.mean


def test_agreement_counts_pairs():
    L = np.array([[1.0, 0.0, np.nan], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    D = np.array([[0.4, 0.6, 0.0], [0.3, 0.5, 0.3], [0.2, 0.3, 0.5]])
    shares, pairs = mean_over_pairs(L, D, lambda a, b: (a > b) + 0.5 * (a == b), axis=0)
    np.testing.assert_allclose(shares, [0.25, 1.0, np.nan])  # 0.4 < 0.6 is wrong, 0.3 and 0.3 are equal
    np.testing.assert_array_equal(pairs, [2, 1, 0])


def test_a_label_against_all_others_is_doubted():
    X = np.linspace(-2.0, 2.0, 80)[:, None]
    L = np.hstack([X < 0, X >= 0]).astype(float)
    L[10] = 1.0
    found = contone.check(Temperature(c=1.0), X, L, model=Inversion(degradation=TopK(1), n_sweeps=40, n_burn=15))
    assert (found.doubtful[0].row, found.doubtful[0].label, found.doubtful[0].given) == (10, "label_1", True)
    assert found.doubtful[0].probability > 0.5


def test_what_cannot_be_checked_is_refused():
    X, D = drawn(n=20)
    L = CumulativeMass().apply(D)
    with pytest.raises(ArgumentError, match="enhancer"):
        contone.check(object(), X, L)
    with pytest.raises(ArgumentError, match="model must be"):
        contone.check(Temperature(), X, L, model=Temperature())
    fitted = Inversion(n_sweeps=20, n_burn=5).fit(X, L)
    for method in (fitted, Temperature().fit(X, L)):
        with pytest.raises(InputError, match="fitted to 20 rows"):
            contone.check(method, X[:10], L[:10])
    with pytest.raises(ArgumentError, match="n_replicates"):
        contone.check(fitted, X, L, n_replicates=1)


def contrast(summary, L, replicates, categories):
    return model_checks.contrast(L, replicates, categories, "n", "t", "Differs by {:.2f}", "share", 0.05, summary)


def test_a_summary_of_equal_sets_has_no_distance():
    L = np.eye(4)[np.arange(40) % 4]
    same = np.stack([L] * 5)
    found = contrast(model_checks.frequencies, L, same, "abcd")
    assert (found.value, found.verdict, tuple(found.shown.values())) == (0.0, FINE, (0.25,) * 4)
    other = contrast(cardinality_shares, np.ones((40, 4)), same, "01234")
    assert other.value == pytest.approx(1.0)
    assert other.verdict == OFF
    assert other.shown == {"1": 0.0, "4": 1.0}


def test_numbers_of_labels_are_named_from_none_to_all():
    replicates = np.stack([np.eye(4)[np.arange(40) % 4]] * 5)
    found = model_checks.predictive_findings(np.ones((40, 4)), replicates, tuple("abcd"), counts_matter=True)
    numbers = next(f for f in found if f.name == "cardinality")
    assert (numbers.verdict, numbers.shown) == (OFF, {"1": 0.0, "4": 1.0})
    silent = model_checks.predictive_findings(np.ones((40, 4)), replicates, tuple("abcd"), counts_matter=False)
    assert "cardinality" not in {f.name for f in silent}


def test_labels_that_vary_are_counted_where_they_were_asked():
    L = np.array([[1.0, 0.0, 1.0, np.nan]] * 30 + [[1.0, 1.0, np.nan, 0.0]] * 30)
    found = data_finding(L, tuple("abcd"))
    assert "60 rows with 2 different sets of labels; 1 of 4 labels are marked in some rows" in found.sentence
    assert (found.verdict, found.value) == (DOUBTFUL, pytest.approx(2.0))
    assert data_finding(L[:, [1, 1]], ("a", "b")).verdict == FINE
    assert data_finding(L[:30], tuple("abcd")).verdict == OFF  # one set of labels
    assert data_finding(L[28:32], tuple("abcd")).verdict == OFF  # four rows


@pytest.mark.parametrize(
    ("n", "varies", "verdict", "value"),
    [(40, 2, FINE, 1.0), (39, 2, DOUBTFUL, 40 / 39), (400, 2, FINE, 1.0), (400, 4, FINE, 0.5), (400, 1, DOUBTFUL, 2.0),
     (5, 4, DOUBTFUL, 8.0), (4, 4, OFF, 10.0), (40, 0, OFF, 1e6)],
)  # fmt: skip
def test_forty_rows_and_half_of_the_labels_are_enough(n, varies, verdict, value):
    """Of four labels these many are marked in every other row; the rest is always marked, or never."""
    L = np.tile([1.0, 1.0, 0.0, 0.0], (n, 1))
    L[:, :varies] = np.arange(n)[:, None] % 2
    L[:, varies:] = [[1.0, 0.0, 1.0, 0.0][: 4 - varies]]
    found = data_finding(L, tuple("abcd"))
    assert (found.verdict, found.value) == (verdict, pytest.approx(value))


def test_a_check_in_words(checked):
    """The headline says what is known; the list what was looked at, with the verdicts below each other."""
    plain = replace(checked, rule="r", rule_words="W", explained=None, yes_weight=0.75, rule_share=0.0049,
                    baselines={"equal": 0.25, "labels": 0.1234}, not_checked=("Not this.",))  # fmt: skip
    said = str(plain.expected_error).capitalize().replace("kl", "KL")
    assert plain.headline() == (
        f"Under the rule “W”, labels marked yes keep 75% of the weight. {said} (equal 0.25, labels 0.123)."
    )
    full = replace(plain, explained=0.9, rule_share=0.005, method="LP").headline()
    assert full.startswith("Under the rule “W”, which explains the number of labels of 90% of rows, with LP labels")
    assert full.endswith("; 0% of it is that nobody knows the rule.")
    for rule in ("Votes()", "Levels(1, 5)", "Marks()"):
        assert replace(plain, rule=rule).headline() == f"Read as: W. {said} (equal 0.25, labels 0.123)."
    lines = plain.text().splitlines()
    actions = len(plain.decision.actions)
    assert lines[0] == plain.decision.sentence()
    assert lines[1 : 1 + actions] == [f"- {action}" for action in plain.decision.actions]
    assert lines[1 + actions] == plain.headline()
    widest = max(len(f.verdict) for f in plain.findings)
    assert lines[2 + actions : -1] == [f"{f.verdict:>{widest}}  {f.sentence}" for f in plain.findings]
    assert lines[-1] == "Not this."
    doubted = replace(plain, decision=decide([replace(plain.findings[0], name="spread", verdict=DOUBTFUL)]))
    for commands, advice in ((True, doubted.decision.commands), (False, doubted.decision.actions)):
        assert [f"- {one}" in doubted.text(commands=commands).splitlines() for one in advice] == [True] * len(advice)


def test_correlations():
    rng = np.random.default_rng(0)
    L = (rng.random((500, 3)) < 0.4).astype(float)
    first, second = model_checks.chosen_pairs(L)
    expected = np.corrcoef(L.T)[first, second]
    np.testing.assert_allclose(model_checks.correlations(L, first, second), expected)


def test_small_tables_say_that_hidden_labels_were_not_tried():
    """Too few can be hidden: no finding, and a sentence; the other checks are made."""
    L = np.vstack([np.eye(2), np.eye(2), np.ones((2, 2))])
    found = check(Temperature(), np.arange(6.0)[:, None], L)
    assert "entries" not in [finding.name for finding in found.findings]
    assert len(found.findings) >= 6
    assert sum("too few to say anything" in said for said in found.not_checked) == 1


@pytest.mark.parametrize("rule", [TopK(2), "order", CumulativeMass()], ids=str)
def test_replicates_have_the_tails_and_the_errors_of_the_fit(rule):
    """Squared lengths of the log degrees' residuals: mean over squared mean is 1 + 2/r for normal rows of r = q - 1.

    For rows of a t distribution with v degrees of freedom it is (v - 2) / (v - 4) times that.
    """
    rng = np.random.default_rng(1)
    X, L = np.zeros((4000, 1)), np.eye(4)[rng.integers(0, 4, 4000)] + np.eye(4)[rng.integers(0, 4, 4000)] > 0
    noise = 0.0 if rule == "order" else 0.1
    fit = Inversion(degradation=rule, features=False, noise=noise, **SHORT).fit(X, L).fit_
    for tail, expected in ((np.inf, 1 + 2 / 3), (9.0, 7 / 5 * (1 + 2 / 3))):
        labels, D = model_checks.replicate_labels(replace(fit, tail=tail), X, L.astype(float), 4, rng)
        Z = np.log(D) - np.log(D).mean(axis=2, keepdims=True)
        e = (Z - Z.mean(axis=1, keepdims=True)) @ np.linalg.svd(np.cov(Z[0], rowvar=False))[0][:, :3]
        whole = np.einsum("rnj,rjk,rnk->rn", e, np.linalg.inv(np.einsum("rnj,rnk->rjk", e, e) / len(X)), e)
        assert (whole**2).mean() / whole.mean() ** 2 == pytest.approx(expected, rel=0.12)
        if noise:  # a tenth of the entries is wrong, so that rows differ from what the rule makes
            assert (labels != np.stack([fit.rule.apply(d) for d in D])).mean() == pytest.approx(0.1, abs=0.01)


def test_a_check_whose_band_holds_everything_says_that_it_tells_nothing():
    """Replicates that differ by half of the rows among themselves: no set of labels could be found to differ."""

    def verdict(*replicates):
        return contrast(cardinality_shares, np.ones((40, 4)), np.stack(replicates), "01234").verdict

    wide = [np.ones((40, 4)) if k % 2 else np.zeros((40, 4)) for k in range(20)]
    assert verdict(*wide) == UNTOLD
    assert verdict(*[np.ones((40, 4))] * 20) == FINE
    assert verdict(*[np.zeros((40, 4))] * 20) == OFF
    found = hidden_labels.HiddenEntries(0.5, 0.3, {"label frequencies": 0.5, "uniform": 0.7}, 20, "entries")
    assert hidden_labels.hidden_finding(found, "it").verdict == UNTOLD
    assert hidden_labels.hidden_finding(replace(found, error=0.01), "it").verdict == FINE
    assert hidden_labels.hidden_finding(replace(found, error=0.01, loss=0.6), "it").verdict == DOUBTFUL
    assert hidden_labels.hidden_finding(replace(found, error=0.01, loss=0.8), "it").verdict == OFF
