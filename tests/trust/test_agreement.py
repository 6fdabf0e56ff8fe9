"""Krippendorff's alpha: his own example, limits, and an interval that covers."""

from __future__ import annotations

import numpy as np
import pytest

from contone.trust.agreement import agreement

NONE = 0
EXAMPLE = np.array(  # four observers, twelve units: Krippendorff (2011), section C
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
        [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
    ]
)
COUNTS = np.stack([(value == EXAMPLE).sum(axis=0) for value in range(1, 6)], axis=1).astype(float)


@pytest.mark.parametrize(("scale", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_published_example(scale, expected):
    found = agreement(COUNTS, scale)
    assert found.alpha == pytest.approx(expected, abs=5e-4)
    assert found.lower <= found.alpha <= found.upper
    assert found.n_items == 11


def test_limits():
    assert agreement(np.eye(3) * 4).alpha == 1.0
    assert agreement(np.eye(3)) is None
    assert np.isnan(agreement(np.array([[3.0, 0.0], [2.0, 0.0]])).alpha)
    # Two values of which each item has one of each: as far below chance as can be.
    assert agreement(np.ones((50, 2))).alpha < 0


def test_chance_is_zero_and_inside_its_interval():
    rng = np.random.default_rng(0)
    inside = 0
    for seed in range(40):
        counts = rng.multinomial(4, [0.5, 0.3, 0.2], size=80).astype(float)
        found = agreement(counts, seed=seed)
        assert abs(found.alpha) < 0.2
        inside += found.lower <= 0.0 <= found.upper
    assert inside >= 33  # of 40 at 95 %: fewer happen once in four thousand


def test_items_in_another_order_and_unasked_values_change_nothing():
    assert agreement(COUNTS[::-1]).alpha == pytest.approx(agreement(COUNTS).alpha)
    gaps = np.where(COUNTS == 0, np.nan, COUNTS)
    assert agreement(gaps).alpha == agreement(COUNTS).alpha
