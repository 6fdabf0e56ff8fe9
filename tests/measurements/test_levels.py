"""Levels: which are told apart, what they are worth, what is refused."""

import numpy as np
import pytest

from contone.exceptions import InputError, LabelError
from contone.measurements import Levels, Marks
from contone.measurements.levels import MOST_STEPS


def test_levels_that_nobody_uses_are_left_out_and_keep_their_worth():
    rule = Levels((1, 5)).suited_to(np.array([[1.0, 5.0, 2.0], [2.0, np.nan, 1.0]]))
    assert rule.numbers == (1.0, 2.0, 5.0)
    assert rule.worth.tolist() == [0.0, 1.0, 4.0]
    np.testing.assert_array_equal(rule.coded(np.array([[5.0, np.nan, 2.0]])), [[2.0, np.nan, 1.0]])


def test_grades_with_heaps_keep_the_heaps_and_the_mean():
    rng = np.random.default_rng(0)
    Y = np.concatenate([np.repeat([0.0, 50.0, 100.0], 500), rng.integers(0, 101, size=300)]).reshape(-1, 4)
    rule = Levels((0, 100)).suited_to(Y)
    assert len(rule.numbers) == MOST_STEPS
    assert list(rule.numbers) == sorted(rule.numbers)
    read = rule.worth[rule.coded(Y).astype(int)]
    for heap in (0.0, 50.0, 100.0):
        np.testing.assert_allclose(read[heap == Y], heap, atol=1.5)
    assert np.abs(read - Y).max() < 100 / 8
    assert read.mean() == pytest.approx(Y.mean(), abs=0.3)


def test_the_range_is_that_of_the_answers_where_none_is_given():
    assert Levels().suited_to(np.array([[-1.0, 0.0, 1.0]])).levels == (-1.0, 1.0)
    assert Levels((0, 3)).suited_to(np.array([[1.0, 2.0]])).levels == (0, 3)


@pytest.mark.parametrize("value", [0.0, 1.0, 3.0])
def test_one_level_alone_stands_beside_the_end_of_the_range(value):
    rule = Levels((0, 3)).suited_to(np.full((2, 2), value))
    assert rule.worth[rule.coded(np.array([[value]])).astype(int)] == value
    assert len(rule.numbers) == 2


def test_what_is_outside_of_the_range_is_refused_in_words():
    with pytest.raises(LabelError, match="from 0 to 3; in row 1, label number 0"):
        Levels((0, 3)).check_labels(np.array([[0.0, 3.0], [4.0, 1.0]]))
    with pytest.raises(LabelError, match="from 0 to 1; in row 0, label number 1"):
        Marks().check_labels(np.array([[0.0, 2.0]]))
    with pytest.raises(InputError, match="lowest, highest"):
        Levels((3, 0))


def test_all_zeros_are_evidence():
    assert not Marks().silent(np.zeros((1, 3)))[0]
    assert Marks().silent(np.full((1, 3), np.nan))[0]
