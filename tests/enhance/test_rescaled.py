"""`Rescaled`: a power of the answer, its floor, and known degrees in their places."""

from __future__ import annotations

import numpy as np
import pytest

from contone import GLLE, LP, Inversion, Logical, Rescaled, Temperature
from contone.enhance.rescaled import FLOOR, rescale


@pytest.mark.parametrize("t", [0.0, 0.5, 1.0, 3.0])
def test_it_is_a_power_of_the_answer_on_rows_old_and_new(small, t):
    X, L, _ = small
    inner = GLLE().fit(X[:40], L[:40])
    method = Rescaled(GLLE(), t=t).fit(X[:40], L[:40])
    for found, answer in (
        (method.label_distributions_, inner.label_distributions_),
        (method.predict(X[40:]), inner.predict(X[40:])),
        (method.enhance(X[40:], L[40:]), inner.enhance(X[40:], L[40:])),
    ):
        np.testing.assert_allclose(found, answer**t / (answer**t).sum(axis=1, keepdims=True))
    assert not hasattr(Rescaled(LP(), t=t), "predict")
    assert method.solution_.info["lambda"] == inner.solution_.info["lambda"]
    assert method._fit_bytes(1000, 10, 5) == GLLE()._fit_bytes(1000, 10, 5)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_zeros_count_as_the_floor():
    D = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    floored = np.where(D == 0, FLOOR, D) ** 0.5
    np.testing.assert_allclose(rescale(D, 0.5), floored / floored.sum(axis=1, keepdims=True))
    X, L = np.zeros((2, 1)), (D > 0).astype(float)
    np.testing.assert_allclose(Rescaled(Logical(), t=0.5).fit_enhance(X, L), rescale(L / L.sum(1, keepdims=True), 0.5))


def test_known_degrees_are_handed_on_and_stay(small):
    X, L, D = small
    known = np.where(np.isin(np.arange(60), (3, 17, 41))[:, None], D, np.nan)
    for inner in (Temperature(c=1.0), Inversion(n_sweeps=20, n_burn=5)):
        method = Rescaled(inner, t=2.0).fit(X, L, degrees=known)
        answer = method.enhancer_.label_distributions_
        expected = rescale(np.asarray(answer), 2.0)
        expected[[3, 17, 41]] = D[[3, 17, 41]]
        np.testing.assert_allclose(method.label_distributions_, expected)
    np.testing.assert_allclose(answer[17], D[17])  # Inversion takes degrees itself


def test_known_degrees_find_their_rows_in_blocks(small):
    da = pytest.importorskip("dask.array")
    X, L, D = small
    known = np.where(np.isin(np.arange(60), (0, 19, 20, 59))[:, None], D, np.nan)
    expected = Rescaled(Temperature(), t=3.0).fit_enhance(X, L, degrees=known)
    lazy = [da.from_array(A, chunks=(20, -1)) for A in (X, L, known)]
    found = Rescaled(Temperature(), t=3.0).fit_enhance(lazy[0], lazy[1], degrees=lazy[2])
    np.testing.assert_allclose(found.compute(scheduler="synchronous"), expected)


def test_levels_are_taken_where_the_method_inside_takes_them():
    assert Rescaled(Inversion(degradation="levels")).takes_levels()
    assert not Rescaled(Temperature()).takes_levels()
