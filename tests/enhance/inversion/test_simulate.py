"""Models and rows drawn from a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t, norm

from contone import CumulativeMass, Inversion
from contone.enhance.inversion import fit as fits
from contone.enhance.inversion.assessment import simulate_labels
from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.logistic_normal import Parameters
from contone.enhance.inversion.simulate import even_scores
from contone.numerics.simplex import softmax

RULE, QUICK = CumulativeMass(), {"n_sweeps": 20, "n_burn": 10}


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_scores_are_evenly_spaced_quantiles_of_variance_1(k):
    for seed in range(3):
        scores = even_scores(k, np.random.default_rng(seed))
        even = norm.ppf((np.arange(k) + 0.5) / k)
        np.testing.assert_allclose(np.sort(scores), even / (even.std() or 1.0), atol=1e-12)
    assert k < 5 or (even_scores(k, np.random.default_rng(3)) != scores).any()


def test_simulated_labels_have_the_tails_of_the_fit():
    """The numbers of labels per row are those of draws from a t distribution, which normal rows do not make."""
    X, L = np.zeros((2000, 1)), RULE.apply(softmax(np.random.default_rng(0).normal(size=(60, 6)))).astype(float)
    model, _ = fits.fit(X[:60], L, RULE, Settings(features=False, **QUICK), np.random.default_rng(0))
    Sigma = 0.25 * (np.eye(6) - 1 / 6)
    model = replace(model, parameters=Parameters(np.zeros((1, 6)), Sigma, 0.5))

    def share_of_few(labels):
        return np.mean(labels.sum(axis=1) < 3)

    normal, heavy = (share_of_few(simulate_labels(replace(model, tail=tail), X, np.random.default_rng(1), 2000))
                     for tail in (np.inf, 2.0))  # fmt: skip
    drawn = multivariate_t(shape=Sigma + 1e-9, df=2).rvs(100_000, random_state=2)
    assert heavy == pytest.approx(share_of_few(RULE.apply(softmax(drawn))), abs=0.03)
    assert heavy > normal + 0.1


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_every_sample_of_a_row_without_labels_has_a_weight_of_its_own(monkeypatch):
    """Else the samples of such a row would be normal, and its tails a matter of which row it is."""
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(60, 2)), softmax(rng.normal(size=(60, 3)))
    L, G = RULE.apply(D).astype(float), np.full_like(D, np.nan)
    L[20:], G[:10] = np.nan, D[:10]
    monkeypatch.setattr(fits, "closest_step", lambda labels, found, *_: found._replace(tail=3.0))
    method = Inversion(n_samples=150, n_sweeps=400, n_burn=100).fit(X, L, degrees=G)
    assert method.fit_.tail == 3
    Z = np.log(method.samples_[:, 20:])
    Z -= Z.mean(axis=2, keepdims=True)
    E = Z - method.fit_.mean(X[20:]).T
    distance = np.einsum("sij,jk,sik->si", E, np.linalg.pinv(method.covariance_), E)
    # Farther than three medians: (1 + 9 m / 3)^(-3/2) = .063 of the draws in two dimensions, .002 of normal ones.
    far = (distance > 9 * np.median(distance, axis=0)).mean()
    assert far == pytest.approx(0.063, abs=0.015)
