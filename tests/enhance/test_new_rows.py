"""`enhance(X, Y)`: new rows that have labels, for every method that can tell them."""

from __future__ import annotations

import numpy as np
import pytest

from contone import GLLE, LP, Augmented, LCdr, Temperature, enhance
from contone.base import can_enhance_new_rows

ABLE = [cls for cls in enhance.methods().values() if can_enhance_new_rows(cls)]
UNABLE = [cls for cls in enhance.methods().values() if not can_enhance_new_rows(cls)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", ABLE, ids=lambda c: c.__name__)
def test_a_single_new_row_is_a_distribution(small, cls):
    X, L, _ = small
    method = cls().fit(X, L)
    one = method.enhance(X[:1] + 0.01, L[:1])
    assert one.shape == (1, 4)
    assert np.all(one >= 0)
    assert np.isclose(one.sum(), 1)


@pytest.mark.parametrize("cls", [c for c in ABLE if c.baseline] + [LCdr], ids=lambda c: c.__name__)
@pytest.mark.filterwarnings("ignore")
def test_training_rows_again_give_the_answer_of_the_fit(small, cls):
    X, L, _ = small
    method = cls()
    D = method.fit_enhance(X, L)
    np.testing.assert_allclose(method.enhance(X, L), D, atol=1e-12)


@pytest.mark.parametrize("cls", UNABLE, ids=lambda c: c.__name__)
def test_a_method_that_cannot_has_no_such_verb(cls):
    assert not hasattr(cls(), "enhance")


def test_an_augmented_method_can_what_its_enhancer_can(small):
    X, L, _ = small
    assert not hasattr(Augmented(LP()), "enhance")
    augmented = Augmented(Temperature()).fit(X, L)
    assert hasattr(Augmented(GLLE()), "enhance")
    assert augmented.enhance(X[:3], L[:3]).shape == (3, 4)
