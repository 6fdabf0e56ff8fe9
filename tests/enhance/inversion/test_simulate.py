"""Models and rows drawn from a fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from contone.enhance.inversion.simulate import even_scores


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_scores_are_evenly_spaced_quantiles_of_variance_1(k):
    for seed in range(3):
        scores = even_scores(k, np.random.default_rng(seed))
        even = norm.ppf((np.arange(k) + 0.5) / k)
        np.testing.assert_allclose(np.sort(scores), even / (even.std() or 1.0), atol=1e-12)
    assert k < 5 or (even_scores(k, np.random.default_rng(3)) != scores).any()
