"""The order of the rows says nothing: in another order, the answer is the same in that order.

What draws at random per row, or trains on batches of rows, may differ; each has its reason written down.
"""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import contone
from contone import base

ENHANCERS = sorted(
    name
    for name in contone.__all__
    if inspect.isclass(value := getattr(contone, name)) and issubclass(value, base.Enhancer)
)
REASONS = {
    "Inversion": "its chain draws one number per row and sweep, from one stream; another order is another sample "
    "of the same posterior, as far away as another seed",
    "Best": "rehearses on simulated labels, one draw per row; the choice among methods is the same unless they tie",
    "Tuned": "rehearses on simulated labels, one draw per row",
    "ConLE": "trains on batches of rows",
    "DRAM": "draws degrees per row",
    "GLESC": "transforms along the rows, in an order that it draws; see its own tests",
    "LEIC": "draws noise per row",
    "LEVI": "draws noise per row",
    "LIBLE": "trains on batches of rows",
}
"""Methods whose answer moves with the order of the rows, and why."""


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    S = np.exp(X @ rng.normal(size=(4, 3)))
    D = S / S.sum(axis=1, keepdims=True)
    return X, np.maximum(D > 0.25, D.max(axis=1, keepdims=True) == D).astype(float), rng.permutation(60)


@pytest.mark.parametrize("name", [name for name in ENHANCERS if name not in REASONS])
def test_rows_in_another_order_get_the_same_answer(rows, name):
    X, L, order = rows
    around = {"Augmented": contone.GLLE(), "Calibrated": contone.LP(), "Rescaled": contone.LP()}
    method = getattr(contone, name)(*[around[name]] if name in around else [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = method.fit_enhance(X, L), method.fit_enhance(X[order], L[order])
    np.testing.assert_allclose(second, first[order], atol=2e-4)


def test_every_reason_belongs_to_a_method():
    assert set(REASONS) <= set(ENHANCERS)
