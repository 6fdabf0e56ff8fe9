"""`Calibrated`: the map's mathematics, its limits, and containers."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime

from contone import Calibrated, CumulativeMass, Inversion, Temperature
from contone.enhance import calibrated
from contone.enhance.graded import takes_degrees
from contone.exceptions import LabelError
from contone.numerics.simplex import kl_divergence, softmax


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    D = softmax(np.array([0.3, 0.0, -0.3, 0.0]) + 0.5 * rng.normal(size=(300, 4)))
    L = CumulativeMass().apply(D).astype(float)
    G = np.full_like(D, np.nan)
    G[:60] = D[:60]
    return X, L, D, G


@pytest.mark.parametrize("strength", [math.inf, 3.0])
def test_the_gradient_is_that_of_the_objective(strength):
    rng = np.random.default_rng(1)
    Z, G = calibrated.centred_log(softmax(rng.normal(size=(7, 3)))), softmax(rng.normal(size=(7, 3)))
    objective = partial(calibrated.map_objective, Z=Z, degrees=G, variance=0.7, strength=strength)
    free = np.arange(7) < (1 if math.isinf(strength) else 7)  # an infinite strength holds offsets and slopes
    at = np.where(free, 0.3 * rng.normal(size=7), 0.0)
    expected = approx_fprime(at, lambda w: objective(np.where(free, w, 0.0))[0], 1e-7)
    np.testing.assert_allclose(objective(at)[1], expected, atol=1e-4)


@pytest.mark.parametrize("spread", [0.05, 1.0])
@pytest.mark.parametrize("strength", [math.inf, 3.0])
def test_the_map_is_the_minimum_of_the_objective_in_print(strength, spread):
    """The prior counts rows whatever the spread of the answers: v = mean of |z|^2."""
    rng = np.random.default_rng(2)
    D, G = softmax(spread * rng.normal(size=(20, 3))), softmax(rng.normal(size=(20, 3)))
    b, c, s = calibrated.fit_map(D, G, strength)
    Z = np.log(D) - np.log(D).mean(axis=1, keepdims=True)
    v = np.square(Z).sum(axis=1).mean()

    def objective(w):
        R = softmax(w[0] * Z + w[1:4] + w[4:] * Z)
        prior = 0.1 * v / 2 * (w[0] - 1) ** 2
        if strength < math.inf:
            prior += strength / 2 * (w[1:4] @ w[1:4] + v * w[4:] @ w[4:])
        return 3 * np.sum(G * np.log(G / R)) + prior

    slope = approx_fprime(np.concatenate([[b], c, s]), objective, 1e-7)
    assert np.abs(slope[: 1 if math.isinf(strength) else 7]).max() < 1e-4
    assert math.isinf(strength) == (not np.any([c, s]))


def test_a_known_map_is_found_and_none_is_not_invented():
    rng = np.random.default_rng(2)
    answers = softmax(rng.normal(size=(400, 3)))
    true = calibrated.LabelMap(0.5, np.array([0.4, 0.0, -0.4]), np.zeros(3))
    found = calibrated.choose_map(answers, calibrated.apply_map(true, answers))
    mapped = calibrated.apply_map(found.map, answers)
    assert np.mean(kl_divergence(calibrated.apply_map(true, answers), mapped)) < 1e-3 * found.before
    right = calibrated.choose_map(answers[:50], answers[:50])
    assert right.map is None
    assert right.before == pytest.approx(0.0, abs=1e-12)
    # A prior worth infinitely many rows is no change; one row cannot be held out.
    assert np.abs(calibrated.fit_map(answers, answers, 1e9).offsets).max() < 1e-6
    assert calibrated.choose_map(answers[:1], answers[1:2]).map is None


def test_it_gains_where_the_scale_is_off_and_returns_graded_rows(data):
    X, L, D, G = data
    base = Temperature(c=0.05)
    plain = base.fit_enhance(X, L)
    method = Calibrated(base)
    np.testing.assert_allclose(method.fit_enhance(X, L), plain, rtol=1e-12)
    np.testing.assert_allclose(method.fit_enhance(X, L, degrees=np.full_like(G, np.nan)), plain, rtol=1e-12)
    answer = method.fit_enhance(X, L, degrees=G)
    np.testing.assert_allclose(answer[:60], D[:60])
    before, after = (np.mean(kl_divergence(D[60:], A[60:])) for A in (plain, answer))
    assert after < 0.75 * before
    assert method.error_after_ == pytest.approx(after, rel=0.35)
    np.testing.assert_allclose(method.enhance(X[60:], L[60:]), answer[60:])
    few = Calibrated(base).fit_enhance(X, L, degrees=np.where(np.arange(300)[:, None] < 10, D, np.nan))
    assert np.mean(kl_divergence(D[60:], few[60:])) < before


def test_frames_tensors_and_lazy_arrays(data, monkeypatch):
    monkeypatch.setattr(calibrated, "STRENGTHS", (math.inf, 3.0))
    torch, da = pytest.importorskip("torch"), pytest.importorskip("dask.array")
    X, L, D, G = (A[40:140] for A in data)  # 20 of them graded
    names, index = list("abcd"), [f"r{i}" for i in range(100)]
    expected = Calibrated(Temperature()).fit_enhance(X, L, degrees=G)
    assert np.abs(expected - Temperature().fit_enhance(X, L))[20:].max() > 0.01
    Y = pd.DataFrame(L, columns=names, index=index)
    few = pd.DataFrame(D[:20], columns=names, index=index[:20]).iloc[::-1]
    answer = Calibrated(Temperature()).fit_enhance(X, Y, degrees=few)
    assert list(answer.index) == index
    np.testing.assert_allclose(answer.to_numpy(), expected, atol=1e-9)
    tensors = [torch.tensor(A) for A in (X, L, G)]
    answer = Calibrated(Temperature()).fit_enhance(tensors[0], tensors[1], degrees=tensors[2])
    np.testing.assert_allclose(answer.numpy(), expected, atol=1e-6)
    lazy = [da.from_array(A, chunks=(30, -1)) for A in (X, L, G)]
    answer = Calibrated(Temperature()).fit_enhance(lazy[0], lazy[1], degrees=lazy[2])
    np.testing.assert_allclose(answer.compute(scheduler="synchronous"), expected, atol=1e-9)
    with pytest.raises(LabelError, match="which sum to"):
        Calibrated(Temperature()).fit(X, L, degrees=2 * G)


def test_which_methods_take_degrees():
    assert takes_degrees(Inversion())
    assert takes_degrees(Calibrated(Temperature()))
    assert not takes_degrees(Temperature())
    assert not hasattr(Calibrated(Temperature()), "predict")
    assert hasattr(Calibrated(Inversion()), "predict")
