"""The contract that contone asks of every method, and what is true of this one."""

from __future__ import annotations

import numpy as np
from contone_shared_labels import SharedLabels

from contone import Logical
from contone.testing import check_enhancer, problem


def test_contract():
    check_enhancer(SharedLabels())


def test_no_share_leaves_the_labels():
    X, L = problem()
    np.testing.assert_allclose(SharedLabels(share=0).fit_enhance(X, L), Logical().fit_enhance(X, L))


def test_a_label_that_always_comes_with_another_gets_weight():
    L = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]])
    D = SharedLabels().fit_enhance(np.zeros((4, 1)), L)
    assert D[2, 1] > 0
    assert D[2, 2] == 0
