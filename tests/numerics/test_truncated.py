"""Truncated normal draws against the distribution function and the known moments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from contone.numerics.truncated import reflected_normal, truncated_normal

INTERVALS = [(-1.0, 2.0), (-np.inf, 0.5), (1.5, np.inf), (3.0, 3.5), (-0.01, 0.0), (-np.inf, np.inf), (8.0, np.inf)]


@pytest.mark.parametrize(("lower", "upper"), [*INTERVALS, *((-b, -a) for a, b in INTERVALS)])
def test_draws_follow_the_truncated_distribution(lower, upper):
    u = (np.arange(20000) + 0.5) / 20000
    x = truncated_normal(np.full(u.shape, lower), np.full(u.shape, upper), u)
    assert (x >= lower).all()
    assert (x <= upper).all()
    expected = stats.truncnorm(lower, upper)
    assert x.mean() == pytest.approx(expected.mean(), rel=2e-3, abs=1e-3)
    assert x.std() == pytest.approx(expected.std(), rel=2e-2)


@pytest.mark.parametrize("near", [20.0, 60.0, 1e4])
def test_far_tails_stay_finite_and_inside(near):
    u = np.linspace(1e-9, 1 - 1e-9, 101)
    for lower, upper in ((near, np.inf), (near, near + 1e-3), (-np.inf, -near), (-near - 1.0, -near)):
        x = truncated_normal(np.full(101, lower), np.full(101, upper), u)
        assert np.isfinite(x).all()
        assert (x >= lower).all()
        assert (x <= upper).all()


@pytest.mark.parametrize("width", [1e-4, 0.02, 3.0])
def test_in_the_far_tail_the_density_is_exponential(width):
    """With the rate of the near end, cut at the far one: quantiles of a thousand even numbers."""
    u, near = (np.arange(1000) + 0.5) / 1000, 60.0
    expected = near - np.log1p(-u * -np.expm1(-near * width)) / near
    right = truncated_normal(np.full(1000, near), np.full(1000, near + width), u)
    np.testing.assert_allclose(np.sort(right), expected, atol=1e-6 * width)
    left = truncated_normal(np.full(1000, -near - width), np.full(1000, -near), u)
    np.testing.assert_allclose(np.sort(-left), expected, atol=1e-6 * width)


def test_draws_rise_with_the_uniform_variable_on_the_left_and_keep_the_symmetry():
    u = np.linspace(0.01, 0.99, 50)
    left = truncated_normal(np.full(50, -3.0), np.full(50, -1.0), u)
    right = truncated_normal(np.full(50, 1.0), np.full(50, 3.0), u)
    np.testing.assert_allclose(left, -right)
    assert (np.diff(left) > 0).all()


def test_a_reflection_keeps_the_distribution_and_lies_on_the_other_side():
    """Reflecting draws gives draws: same quantiles; and reflecting twice gives them back."""
    rng = np.random.default_rng(3)
    n = 40_000
    for lower, upper in [(-1.0, 2.0), (0.5, 0.9), (3.0, np.inf), (-np.inf, -2.0)]:
        ends = np.full(n, lower), np.full(n, upper)
        x = truncated_normal(*ends, rng.random(n))
        y = reflected_normal(*ends, x, rng.random(n))
        assert np.quantile(y, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(x, [0.1, 0.5, 0.9]), abs=0.02)
        assert np.corrcoef(x, y)[0, 1] < -0.6
        assert reflected_normal(*ends, y, rng.random(n)) == pytest.approx(x, abs=1e-6)


def test_a_reflection_beyond_floating_point_is_a_fresh_draw_inside_the_interval():
    for near in (30.0, 60.0):  # where Phi has few digits, and where it has none
        lower, upper, u = np.full(1000, near), np.full(1000, near + 1.0), np.random.default_rng(1).random(1000)
        x = truncated_normal(lower, upper, np.random.default_rng(0).random(1000))
        y = reflected_normal(lower, upper, x, u)
        np.testing.assert_allclose(y, truncated_normal(lower, upper, u))
        assert ((y >= lower) & (y <= upper)).all()
        assert y.std() > 0


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_uniform_draws_at_their_ends_leave_finite_numbers(kind):
    """The last number below 1, and 0, where a probability rounds to 1 or 0, of which there is no quantile."""
    u = np.array([0.0, 1.0 - np.finfo(kind).eps / 2], dtype=kind)
    for lower, upper in ((-1.0, np.inf), (-np.inf, 1.0), (-np.inf, np.inf), (1.0, np.inf)):
        x = truncated_normal(np.full(2, lower, dtype=kind), np.full(2, upper, dtype=kind), u)
        assert np.isfinite(x).all()
        assert (np.diff(x) > 0) == (lower <= 0)  # mirrored to the right of 0
    lower = np.linspace(-4.0, 0.0, 2001, dtype=kind)  # of some of these, the sum of probabilities rounds to 1
    assert np.isfinite(truncated_normal(lower, np.full_like(lower, np.inf), np.full_like(lower, u[1]))).all()
