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


def ranks_in(*counts: int) -> np.ndarray:
    """Ranks of 4 refits, this many of a thousand in each of the ten bins, in their middles."""
    values = np.repeat((np.arange(10) + 0.5) / 10, counts)
    return np.random.default_rng(0).permutation(np.tile(values, 4)).reshape(4, -1, 1)


@pytest.mark.parametrize(
    ("counts", "coverage", "verdict", "words"),
    [
        ((100,) * 10, 1.0, DOUBTFUL, "the posterior is too"),  # more than 97 % are inside
        ((260, 60, 60, 60, 60, 60, 60, 60, 60, 260), 1.0, DOUBTFUL, "too narrow"),
        ((20, 20, 60, 60, 340, 340, 60, 60, 20, 20), 1.0, DOUBTFUL, "too wide"),
        ((50, 60, 80, 90, 100, 110, 120, 120, 130, 140), 1.0, DOUBTFUL, "too low"),
        ((140, 130, 120, 120, 110, 100, 90, 80, 60, 50), 1.0, DOUBTFUL, "too high"),
    ],
)
def test_the_shape_of_the_ranks_is_named_by_what_is_most_in_excess(counts, coverage, verdict, words):
    found = interval_finding(ranks_in(*counts))
    assert (found.verdict, found.value) == (verdict, coverage)
    assert words in found.sentence
    assert list(found.shown) == [f"0.{k}" for k in range(10)]
    assert list(found.shown.values()) == pytest.approx([n / 1000 for n in counts])
    half = histogram(ranks_in(*counts))[1]
    np.testing.assert_allclose(found.lower, 0.1 - half)
    np.testing.assert_allclose(found.upper, 0.1 + half)
    assert "(4 refits)" in found.sentence


@pytest.mark.parametrize(
    ("outside", "verdict"), [(29, DOUBTFUL), (30, FINE), (180, FINE), (181, DOUBTFUL), (300, DOUBTFUL), (301, OFF)]
)
def test_intervals_may_hold_between_82_and_97_percent(outside, verdict):
    """Of a thousand ranks these many are beyond the 90 % interval; the others lie evenly, as far as they can."""
    inside = 0.05 + 0.9 * (np.arange(1000 - outside) + 0.5) / (1000 - outside)
    ends = np.where(np.arange(outside) % 2, 0.02, 0.98)
    ranks = np.random.default_rng(0).permutation(np.tile(np.concatenate([inside, ends]), 4)).reshape(4, 1000, 1)
    found = interval_finding(ranks)
    assert found.value == pytest.approx(1 - outside / 1000)
    assert found.verdict == verdict
