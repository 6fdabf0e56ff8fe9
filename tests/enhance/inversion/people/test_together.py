"""The step of all parameters with the items taken along: its slopes are derivatives, and it keeps its energy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_softmax

from contone.enhance.inversion.people.answers import VOTES
from contone.enhance.inversion.people.chain import Chain
from contone.enhance.inversion.people.fit import sort_responses
from contone.enhance.inversion.people.priors import Prior
from contone.enhance.inversion.people.together import Together


class Feature:
    """One that grows with the log of the width."""

    def __init__(self, values):
        self.values = values - values.mean(axis=1, keepdims=True)

    def at(self, width):
        return self.values * (1.0 + 0.3 * math.log(width))


@pytest.fixture
def chain():
    """Six votes on each of 12 items, two features, and two items whose log weights are known."""
    rng = np.random.default_rng(0)
    features = [Feature(rng.normal(size=(12, 3))) for _ in range(2)]
    known = np.full((12, 3), np.nan)
    known[:2] = [[0.5, -0.5, 0.0], [1.0, 0.5, -1.5]]
    votes = rng.multinomial(6, [0.5, 0.3, 0.2], size=12).astype(float)
    chain = Chain(sort_responses(VOTES, votes, 12), features, Prior(), rng, known=known)
    for _ in range(5):
        chain.sweep()
    return chain


def parameters(chain):
    A = chain.spread * np.linalg.cholesky(chain.shape)
    return np.concatenate([chain.intercept, chain.coefficients, A[np.tril_indices(chain.r)]])


def test_slopes_are_derivatives(chain):
    """Also where persons differ, so that an answer sees more than the spread of the items."""
    for tau in (0.0, 0.9):
        chain.tau = tau
        chain.mean = chain.mean_at(chain.spread, tau)
        chain.together.step()
        x = parameters(chain) * 1.05
        _, slope, _ = chain.together.target(x)
        steps = 1e-5 * np.eye(len(x))
        expected = [(chain.together.target(x + e)[0] - chain.together.target(x - e)[0]) / 2e-5 for e in steps]
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4)


def test_the_target_is_the_log_density_of_items_and_parameters(chain):
    """Differences of it are differences of likelihood, prior of coefficients, and density of the known items."""
    chain.together.step()
    x = parameters(chain)
    moved = x + np.array([0.1, -0.2, 0.05, 0.1, *np.zeros(len(x) - 4)])  # b and beta

    def log_density(x):
        value = chain.together.target(x)[0]
        Z, mean = chain.together.Z, chain.together.mean
        rest = chain.likelihood(Z)
        E = (Z - mean)[:2] @ chain.basis
        precision = np.linalg.inv(chain.spread**2 * chain.shape)
        rest -= 0.5 * np.einsum("i,ij,jk,ik->", chain.weight[:2], E, precision, E)
        return value, rest - 0.5 * (x[:2] @ x[:2] + ((x[2:4] - 0.5) ** 2).sum()) / chain.prior.coefficient**2

    (value, expected), (other, expected_other) = log_density(x), log_density(moved)
    assert other - value == pytest.approx(expected_other - expected)


@pytest.mark.parametrize("most_dense", [0, 500])
def test_small_steps_keep_the_energy_and_wild_ones_are_refused(chain, monkeypatch, most_dense):
    monkeypatch.setattr("contone.enhance.inversion.people.together.MOST_DENSE", most_dense)
    chain.together.mass, chain.adapting, taken = None, False, {}
    for length in (1e-3, 30.0):
        chain.together.length, taken[length] = length, 0
        for _ in range(30):
            before = chain.intercept
            chain.together.step()
            taken[length] += bool((chain.intercept != before).any())
    assert taken == {1e-3: 30, 30.0: 0}


class Constant:
    """A feature that is the same at any width."""

    def __init__(self, values):
        self.values = values - values.mean(axis=1, keepdims=True)

    def at(self, width):
        return self.values


def test_the_mass_is_the_information_of_single_items_and_of_the_prior(monkeypatch):
    """J_i by finite differences of the likelihood of item i alone; beyond some parameters the diagonal of it."""
    rng = np.random.default_rng(1)
    features = [Constant(rng.normal(size=(12, 3))) for _ in range(2)]
    votes = rng.multinomial(6, [0.5, 0.3, 0.2], size=12).astype(float)
    chain = Chain(sort_responses(VOTES, votes, 12), features, Prior(), rng)
    for _ in range(3):
        chain.sweep()
    chain.together.step()
    x = parameters(chain)
    _, _, scores = chain.together.target(x)
    noise = chain.together.noise

    def log_likelihoods(x):
        b, beta, A = x[:2], x[2:4], np.zeros((2, 2))
        A[np.tril_indices(2)] = x[4:]
        Z = (
            chain.basis @ b
            + sum(w * f.values for w, f in zip(beta, features, strict=True))
            + noise @ (chain.basis @ A).T
        )
        return (votes * log_softmax(Z, axis=1)).sum(axis=1)

    J = np.array([(log_likelihoods(x + e) - log_likelihoods(x - e)) / 2e-5 for e in 1e-5 * np.eye(7)]).T
    held = np.array([1 / chain.prior.coefficient**2] * 4 + [(1 + chain.prior.shape) / chain.spread**2] * 3)
    found = chain.together._information(scores, 7)
    np.testing.assert_allclose(found, J.T @ J + np.diag(held), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(chain.together._information(scores, 4), found[:4, :4])
    monkeypatch.setattr("contone.enhance.inversion.people.together.MOST_DENSE", 6)
    np.testing.assert_allclose(chain.together._information(scores, 7), np.diag(found))
    together = Together(chain)
    for mass in (found, np.diag(found)):
        together.factor = np.linalg.cholesky(mass) if mass.ndim == 2 else np.sqrt(mass)
        whole, normal = mass if mass.ndim == 2 else np.diag(mass), rng.normal(size=7)
        momentum = together._times(normal)
        np.testing.assert_allclose(together._velocity(momentum), np.linalg.solve(whole, momentum))
        assert together._kinetic(momentum) == pytest.approx(0.5 * normal @ normal)
