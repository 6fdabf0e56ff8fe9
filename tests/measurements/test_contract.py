"""What every measurement owes, whatever it is: `contone.measurements.base`."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from contone.exceptions import InputError, LabelError
from contone.measurements import (
    CumulativeMass,
    Levels,
    Marks,
    Order,
    Threshold,
    TopK,
    Votes,
    known_rules,
    parse_rule,
)
from contone.measurements.base import asked_frequencies, fill_unasked, has_unasked
from contone.measurements.names import MEASUREMENTS, SPOKEN
from contone.numerics.simplex import softmax

VALUES = [CumulativeMass(), Threshold(0.2), Threshold(0.2, at_least_one=False), TopK(2), Order()]
ANSWERS = [Votes(), Levels((0, 4)), Levels(), Marks()]
D = softmax(np.random.default_rng(0).normal(size=(40, 5)))


def labels_like(measurement):
    """Labels that the measurement can have given for D, with unasked entries and a row that nobody asked about."""
    Y = measurement.simulate(D, np.random.default_rng(1), like=np.argsort(np.argsort(D, axis=1), axis=1).astype(float))
    Y[0], Y[1, 2] = np.nan, np.nan
    return Y


@pytest.mark.parametrize("measurement", VALUES, ids=str)
def test_it_takes_what_it_makes(measurement):
    Y = labels_like(measurement)
    measurement.check_labels(Y)
    again = measurement.simulate(D, np.random.default_rng(2), like=Y)
    np.testing.assert_array_equal(np.isnan(again), np.isnan(Y))
    assert measurement.agrees(D, again).all()


@pytest.mark.parametrize("measurement", ANSWERS, ids=repr)
def test_answers_have_means_in_the_ratio_of_the_degrees(measurement):
    """Many people: what they give on average is what degrees say, as far as no label is at the end of its range."""
    flat = np.full((4000, 4), 0.25) + np.array([0.1, 0.0, 0.0, -0.1])
    top = 1.0 if isinstance(measurement, Marks) else 2.0
    like = np.tile([top, top, 0.0, 0.0], (4000, 1))
    Y = measurement.suited_to(like).simulate(flat, np.random.default_rng(0), like=like)
    measurement.check_labels(Y)
    np.testing.assert_allclose(Y.mean(axis=0) / Y.mean(axis=0).sum(), flat[0], atol=0.02)
    assert measurement.count_answers(Y).min() >= 1


@pytest.mark.parametrize("measurement", [*VALUES, *ANSWERS], ids=repr)
@pytest.mark.parametrize("entry", [0.3, np.inf, -0.5])
def test_it_refuses_what_no_measurement_gives(measurement, entry):
    Y = labels_like(measurement)
    Y[3, 3] = entry
    with pytest.raises(LabelError, match="row 3|Y"):
        measurement.check_labels(Y)


@pytest.mark.parametrize("measurement", [*VALUES, *ANSWERS], ids=repr)
def test_rows_that_nobody_asked_about_are_silent_and_labels_are_not(measurement):
    Y = labels_like(measurement)
    silent = measurement.silent(Y)
    assert silent[0]
    has_label = (Y > 0).any(axis=1)
    assert not silent[has_label].any()
    forgotten = measurement.forget_silent(Y)
    assert np.isnan(forgotten[silent]).all()
    np.testing.assert_array_equal(forgotten[~silent], Y[~silent])


def test_a_row_of_zeros_says_something_only_where_the_rule_can_make_it():
    zeros = np.zeros((1, 5))
    assert [bool(m.silent(zeros)[0]) for m in VALUES] == [m.at_least_one and not m.takes_numbers for m in VALUES]


@pytest.mark.parametrize("measurement", [*VALUES, *ANSWERS], ids=repr)
def test_measurements_are_values_with_words(measurement):
    assert copy.deepcopy(measurement) == measurement
    assert hash(copy.deepcopy(measurement)) == hash(measurement)
    assert measurement.in_words()
    median, deviation = measurement.spread_prior
    assert median > 0
    assert deviation > 0


def test_every_name_is_said_once_and_can_be_typed():
    names = [name for cls in MEASUREMENTS for name in cls.spoken]
    assert len(names) == len({*names})
    for name, (cls, spoken) in SPOKEN.items():
        assert name in known_rules()
        found = parse_rule(spoken.words)
        assert isinstance(found, str) if spoken.parameters is None else type(found) is cls


def test_a_measurement_that_is_not_known_is_refused_with_those_that_are():
    with pytest.raises(InputError, match="whatever passes a bar"):
        parse_rule("guess")


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_labels_that_nobody_asked_about_are_filled_with_how_often_they_are_marked(library):
    L = (np.random.default_rng(3).random((30, 4)) < [0.1, 0.5, 0.9, 0.5]).astype(float)
    assert not has_unasked(L)
    L[::3, :3] = np.nan
    L[:, 3] = np.nan
    asked = ~np.isnan(L)
    expected = (np.nansum(L, axis=0) + 0.5) / (asked.sum(axis=0) + 1.0)  # 1/2 where nobody was asked
    given = pytest.importorskip("torch").from_numpy(L.copy()) if library == "torch" else L
    assert has_unasked(given)
    found = asked_frequencies(given)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert found[3] == 0.5
    np.testing.assert_array_equal(np.asarray(fill_unasked(given, found)), np.where(asked, L, found))
