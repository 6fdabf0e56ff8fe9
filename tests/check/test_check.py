"""`contone.check`: what it says of data from the model, of data from another rule, and its parts."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import contone
from contone import Check, CumulativeMass, Inversion, Temperature, Threshold
from contone.check import predictive
from contone.check.credibility import DOUBTFUL, FINE, OFF
from contone.exceptions import ArgumentError, InputError
from contone.numerics.simplex import softmax

SHORT = {"n_sweeps": 60, "n_burn": 20}
HOSTILE = "<img src=x onerror=alert(1)>"


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
    assert all(v in (FINE, DOUBTFUL, OFF) for v in verdicts.values())
    for name in ("cardinality", "frequency", "patterns", "calibration", "spread"):
        assert verdicts[name] == FINE, name
    assert verdicts["rule"] == DOUBTFUL  # it always matters to labels like these


def test_every_check_is_a_sentence_with_a_number(checked):
    for found in checked.findings:
        assert found.sentence.endswith(".")
        assert np.isfinite(found.value)
        assert len(found.categories) == len(found.observed)
        assert len(found.lower) == len(found.upper) in (0, len(found.observed))


def test_it_prints_and_is_plain_values(checked):
    assert isinstance(checked, Check)
    text = str(checked)
    assert text.count("\n") == len(checked.findings) + len(checked.advice)
    content = json.loads(json.dumps(checked.to_dict()))
    assert content["rule"] == "CumulativeMass(t=0.5)"
    assert len(content["labels"]) == 5
    page = checked._repr_html_()
    assert "<table>" in page
    assert HOSTILE not in page


def test_rows_and_labels_are_named(checked):
    assert {label.name for label in checked.labels} >= {HOSTILE, "b"}
    assert all(label.lower <= label.upper for label in checked.labels)
    assert sum(label.degree for label in checked.labels) == pytest.approx(1.0)
    scores = [row.score for row in checked.ambiguous]
    assert scores == sorted(scores, reverse=True)
    assert len({row.row for row in checked.doubtful}) == len(checked.doubtful)


def test_labels_of_another_rule_are_noticed():
    X, D = drawn(spread=2.0, n=400)
    L = Threshold(0.35).apply(D).astype(float)
    L[:, 0] = 1.0 - L[:, 1]  # and two labels that the model cannot tie together like this
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = contone.check(Inversion(**SHORT), X, L, n_replicates=10)
    assert found.verdict != FINE
    assert any(f.verdict != FINE for f in found.findings if f.name in ("cardinality", "co-occurrence", "frequency"))
    assert found.advice


def test_what_cannot_be_checked_is_refused():
    X, D = drawn(n=20)
    L = CumulativeMass().apply(D)
    with pytest.raises(ArgumentError, match="Inversion"):
        contone.check(Temperature(), X, L)
    fitted = Inversion(n_sweeps=20, n_burn=5).fit(X, L)
    with pytest.raises(InputError, match="fitted to 20 rows"):
        contone.check(fitted, X[:10], L[:10])
    with pytest.raises(ArgumentError, match="n_replicates"):
        contone.check(fitted, X, L, n_replicates=1)


def test_a_summary_of_equal_sets_has_no_distance():
    L = np.eye(4)[np.arange(40) % 4]
    same = np.stack([L] * 5)
    found = predictive.compare_summaries(predictive.frequencies, L, same, "abcd")
    assert found.distance == 0.0
    assert found.p == 1.0
    other = predictive.compare_summaries(predictive.cardinality_shares, np.ones((40, 4)), same, "01234")
    assert other.distance == pytest.approx(1.0)
    assert other.p == 0.0


def test_correlations_and_patterns():
    rng = np.random.default_rng(0)
    L = (rng.random((500, 3)) < 0.4).astype(float)
    first, second = predictive.chosen_pairs(L)
    expected = np.corrcoef(L.T)[first, second]
    np.testing.assert_allclose(predictive.correlations(L, first, second), expected)
    patterns = predictive.frequent_patterns(L, 8)
    shares = predictive.pattern_shares(L, patterns)
    assert shares.sum() == pytest.approx(1.0)
    assert (np.diff(shares) <= 0).all()
    assert predictive.n_patterns(L) == 8


def test_labels_that_the_others_do_not_suggest_surprise():
    L = np.tile([1.0, 0.0, 0.0], (50, 1))
    odd = L.copy()
    odd[7] = [0.0, 0.0, 1.0]
    assert predictive.surprise(odd, np.stack([L] * 10)).argmax() == 7
