"""The reading of a table follows from how its answers were made, for many random tables of each kind."""

import numpy as np
import pytest

from contone.measurements.proposal import propose_reading


@pytest.mark.parametrize("seed", range(5))
def test_each_kind_of_answers_is_told(seed):
    rng = np.random.default_rng(seed)
    q, people = 5, 3
    D = rng.dirichlet(np.full(q, 0.7), size=80)
    groups = np.repeat(np.arange(80), people)
    chosen = np.array([rng.multinomial(1, d) for d in D[groups]])
    marks = (rng.random((80 * people, q)) < np.minimum(2 * D[groups], 1)).astype(float)
    levels = np.floor(4 * np.minimum(2 * D, 0.999) * rng.random(D.shape))
    assert propose_reading(chosen, groups).rule == "votes"
    assert propose_reading(chosen).rule == "votes"
    assert propose_reading(marks, groups).rule == "marks"
    assert propose_reading(marks).rule == "main"
    assert propose_reading(levels).rule == "levels"
    assert propose_reading(np.array([rng.multinomial(7, d) for d in D])).rule == "votes"
    assert propose_reading(np.array([rng.multinomial(rng.integers(5, 9), d) for d in D])).rule == "votes"
    assert propose_reading(np.round(100 * rng.random(D.shape), -1)).rule == "levels"
    assert propose_reading(np.argsort(np.argsort(D, axis=1), axis=1) + 1).rule == "order"
    assert "already" in propose_reading(D).sentence


def test_levels_of_several_people_are_no_rankings_or_counts():
    """With several answers per item, whole numbers are levels even where a row looks like a ranking."""
    assert propose_reading([[1, 2, 3], [3, 2, 1], [1, 3, 2]], groups=[1, 1, 2]).rule == "levels"


def test_what_nobody_asked_is_left_out():
    Y = np.array([[np.nan, 1, 0], [1, np.nan, 0], [np.nan] * 3])
    assert propose_reading(Y, groups=["a", "a", "b"]).rule == "votes"
    assert propose_reading(np.full((2, 2), np.nan)).rule == "main"
