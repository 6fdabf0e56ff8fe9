"""The forward operators D -> L against their definition, row by row, and the published cardinalities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contone import CumulativeMass, Threshold, TopK, datasets, measurements
from contone.exceptions import InputError, LabelError
from contone.numerics.simplex import softmax

CARDINALITIES = {
    "spoem": 1.0061,
    "alpha": 8.9018,
    "spo5": 1.9241,
    "cdc": 7.3615,
    "cold": 2.0,
    "diau": 3.6824,
    "dtt": 2.0,
    "elu": 6.9728,
    "heat": 2.9996,
    "spo": 2.9469,
}
"""Mean labels per row of the logical labels published with the ten Yeast sets."""

RULES = [CumulativeMass(), CumulativeMass(0.0), CumulativeMass(0.9), TopK(1), TopK(3), Threshold(0.1), Threshold(0.9)]
RULES += [Threshold(0.25), CumulativeMass(0.625)]  # bars that eighths reach exactly


@st.composite
def distributions(draw):
    """Rows of eighths (exact in binary, so that ties are ties) that sum to one, zeros included: (3, q)."""
    q = draw(st.integers(1, 6))
    cuts = [sorted(draw(st.lists(st.integers(0, 8), min_size=q - 1, max_size=q - 1))) for _ in range(3)]
    return np.array([np.diff([0, *c, 8]) for c in cuts]) / 8


def one_row(rule, d):
    """The definition, written as a loop over one row."""
    ranked = sorted(range(len(d)), key=lambda j: (-d[j], j))
    if isinstance(rule, TopK):
        chosen = ranked[: rule.k]
    elif isinstance(rule, Threshold):
        chosen = [j for j in ranked if d[j] > rule.tau] or ranked[:1]
    else:
        chosen, mass = [], 0.0
        for j in ranked:
            chosen.append(j)
            mass += d[j]
            if mass > rule.t:
                break
    return [int(j in chosen) for j in range(len(d))]


@given(distributions(), st.sampled_from(RULES))
@settings(max_examples=300, deadline=None)
def test_every_rule_is_its_definition(D, rule):
    assert rule.apply(D).tolist() == [one_row(rule, d) for d in D]


@given(distributions(), st.sampled_from(RULES))
@settings(max_examples=200, deadline=None)
def test_invariants(D, rule):
    before = D.copy()
    L = rule.apply(D)
    assert L.shape == D.shape
    assert set(np.unique(L)) <= {0, 1}
    assert (L.sum(axis=1) >= 1).all()
    np.testing.assert_array_equal(rule.cardinality(-np.sort(-D, axis=1)), L.sum(axis=1))
    for d, l in zip(D, L, strict=True):  # nothing irrelevant is larger than something relevant
        assert not (l == 0).any() or d[l == 1].min() >= d[l == 0].max()
    np.testing.assert_array_equal(D, before)


@given(distributions())
@settings(max_examples=100, deadline=None)
def test_more_mass_and_lower_thresholds_only_add_labels(D):
    for fewer, more in [
        (CumulativeMass(0.3), CumulativeMass(0.6)),
        (TopK(1), TopK(2)),
        (Threshold(0.4), Threshold(0.2)),
    ]:
        assert (fewer.apply(D) <= more.apply(D)).all()


def test_exactly_half_is_not_more_than_half():
    assert CumulativeMass(0.5).apply([[0.5, 0.5]]).tolist() == [[1, 1]]
    assert CumulativeMass(0.5).apply([[0.25, 0.25, 0.25, 0.25]]).tolist() == [[1, 1, 1, 0]]


def test_ties_go_to_the_lower_index():
    assert TopK(1).apply([[0.2, 0.4, 0.4]]).tolist() == [[0, 1, 0]]
    assert CumulativeMass(0.3).apply([[0.2, 0.4, 0.4]]).tolist() == [[0, 1, 0]]
    assert Threshold(0.9).apply([[0.2, 0.4, 0.4]]).tolist() == [[0, 1, 0]]


def test_more_labels_than_there_are_is_all_of_them():
    assert TopK(9).apply([[0.2, 0.8]]).tolist() == [[1, 1]]


def test_cardinality_of_the_artificial_set_is_between_one_and_three():
    L = CumulativeMass().apply(datasets.artificial().D)
    assert L.dtype == np.int8
    assert 1 < L.sum(axis=1).mean() < 3


@pytest.mark.parametrize("name", CARDINALITIES)
def test_cardinalities_of_the_yeast_sets(real, name):
    real(f"Yeast_{name}")
    L = CumulativeMass(0.5).apply(datasets.load(f"yeast-{name}").D)
    assert round(float(L.sum(axis=1).mean()), 4) == CARDINALITIES[name]


@pytest.mark.parametrize("wrong", [-0.1, 1.0, 2.0, float("nan")])
def test_thresholds_outside_their_domain(wrong):
    with pytest.raises(InputError, match=r"t must be in \[0, 1\)"):
        CumulativeMass(wrong)
    with pytest.raises(InputError, match=r"tau must be in \[0, 1\)"):
        Threshold(wrong)


@pytest.mark.parametrize("wrong", [0, -1, 1.5])
def test_k_must_be_a_positive_whole_number(wrong):
    with pytest.raises(InputError, match="k must be a positive whole number"):
        TopK(wrong)


@pytest.mark.parametrize("value", ["x", None, float("nan"), (), 0.5j, True, [0.5]], ids=str)
@pytest.mark.parametrize("rule", [CumulativeMass, TopK, Threshold])
def test_a_parameter_that_is_not_a_number_is_named(rule, value):
    with pytest.raises(InputError, match=rule.__name__):
        rule(value)


def test_whole_numbers_of_any_type_count_labels():
    assert TopK(np.int64(2)).apply([[0.2, 0.5, 0.3]]).tolist() == [[0, 1, 1]]


def test_what_is_not_a_distribution_is_refused():
    with pytest.raises(LabelError, match="row 0 sums to 2"):
        CumulativeMass().apply([[1, 1]])


def test_rules_are_values():
    assert CumulativeMass(0.5) == CumulativeMass() != CumulativeMass(0.6)
    assert measurements.TopK is TopK


@pytest.mark.parametrize("q", [2, 3, 6])
@pytest.mark.parametrize("rule", [*RULES[:1], *RULES[2:4], *RULES[5:], Threshold(0.25, at_least_one=False)], ids=str)
def test_the_support_holds_all_degrees_and_little_more(rule, q):
    """Against the extremes of many distributions with the same number of labels, peaked to nearly even."""
    rng = np.random.default_rng(0)
    D = np.concatenate([softmax(s * rng.normal(size=(40_000, q))) for s in (0.1, 0.3, 1.0, 3.0, 10.0)])
    L = rule.apply(D).astype(float)
    lowest, highest = (rule.confine(np.full_like(D, end), L) for end in (0.0, 1.0))
    assert (lowest - 1e-12 <= D).all()
    assert (highest + 1e-12 >= D).all()
    size = L.sum(axis=1)
    for m in np.unique(size):
        for marked in (L > 0, L == 0):
            some = marked & (size == m)[:, None]
            if some.sum() > 5000:
                assert D[some].min() < lowest[some].min() + 0.1
                assert D[some].max() > highest[some].max() - 0.15
    assert np.isnan(rule.confine(np.full_like(D, np.nan), L)).all()
    L[0, 0] = np.nan  # an entry that nobody asked: nothing is known for sure
    assert (rule.confine(np.zeros_like(D), L)[0] == 0).all()


@pytest.mark.parametrize(("m", "q"), [(2, 4), (3, 4), (4, 8), (7, 8)])
def test_labels_that_only_even_degrees_give(m, q):
    """The m - 1 largest of q have at least (m - 1) / q, and no more where this is t: all degrees are known then."""
    rule = CumulativeMass((m - 1) / q)
    assert rule.apply(np.full((1, q), 1 / q)).sum() == m
    np.testing.assert_allclose(np.stack(rule.support(np.array([float(m)]), q)[:3]), 1 / q, atol=1e-15)


@given(distributions())
@settings(max_examples=100, deadline=None)
def test_a_bar_that_need_not_be_passed(D):
    rule = Threshold(0.25, at_least_one=False)
    L = rule.apply(D)
    np.testing.assert_array_equal(L, D > 0.25)
    np.testing.assert_array_equal(rule.cardinality(-np.sort(-D, axis=1)), L.sum(axis=1))
    assert rule.suited_to(L) == rule
    expected = (L.sum(axis=1) > 0).all()  # a row of zeros says that no label need pass the bar
    assert Threshold(0.25).suited_to(L).at_least_one == expected
