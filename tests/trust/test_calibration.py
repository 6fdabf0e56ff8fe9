"""Ranks of the truth: even under the right posterior, telling under a wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, ndtr, ndtri

from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD
from contone.trust.model_checks import histogram, interval_finding, ranks_of


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(0)
    centre, width = rng.normal(size=(4, 200, 5)), rng.uniform(0.2, 2.0, size=(4, 200, 5))
    return centre, width, centre + width * rng.standard_normal((4, 200, 5))


def _ranks(posterior, *, factor=1.0, shift=0.0, level=0.8):
    centre, width, truth = posterior
    half = float(ndtri(0.5 + level / 2)) * factor * width
    return ranks_of(expit(truth), expit(centre + shift * width - half), expit(centre + shift * width + half), level)


def test_ranks_are_the_probability_below_the_truth_whatever_the_level(posterior):
    np.testing.assert_allclose(_ranks(posterior, level=0.5), _ranks(posterior, level=0.95), atol=1e-9)
    centre, width, truth = posterior
    below = ((centre + width * np.random.default_rng(1).standard_normal((4000, 1, 1, 1))) < truth)[:, 0, 0, 0].mean()
    assert _ranks(posterior)[0, 0, 0] == pytest.approx(below, abs=0.03)


def test_the_right_posterior_is_fine(posterior):
    shares, half = histogram(_ranks(posterior))
    assert shares.sum() == pytest.approx(1.0)
    assert np.all(np.abs(shares - 0.1) <= half)
    assert interval_finding(_ranks(posterior)).verdict == "fine"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"factor": 0.4}, "too narrow"), ({"factor": 3.0}, "too wide"), ({"shift": 1.0}, "too high")],
)
def test_a_wrong_posterior_is_named(posterior, wrong, words):
    found = interval_finding(_ranks(posterior, **wrong))
    assert found.verdict != "fine"
    assert words in found.sentence


@pytest.mark.parametrize(("factor", "verdict"), [(0.75, DOUBTFUL), (0.4, OFF)])
def test_how_far_intervals_fall_short_is_graded(posterior, factor, verdict):
    """90 % intervals that are 0.75 times as wide as they should be hold 78 %, of 0.4 times the width 49 %."""
    found = interval_finding(_ranks(posterior, factor=factor))
    assert found.value == pytest.approx(2 * ndtr(factor * ndtri(0.95)) - 1, abs=0.02)
    assert found.verdict == verdict


def test_a_handful_of_rows_tells_nothing():
    """Three standard errors of the share of a bin, 3 sqrt(0.09 / n), are the share itself, 0.1, at n = 81."""
    even = (np.arange(100)[:, None] + 0.5) / 100
    assert interval_finding(np.random.default_rng(0).permutation(even)[:80].reshape(4, 20, 1)).verdict == UNTOLD
    assert interval_finding(even.reshape(4, 25, 1)).verdict == FINE
