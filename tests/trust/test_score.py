"""`score`: one meaning for all methods, so that scikit-learn's cross-validation can use it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold

from contone import GLLE, LEMLL, LP, CumulativeMass, Rescaled, Temperature, Tuned, enhance
from contone.exceptions import ShapeError
from contone.numerics.label_score import label_score
from contone.numerics.simplex import softmax


@pytest.fixture(scope="module")
def data():
    """X (120, 8), of which two columns matter, and L (120, 5)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    D = softmax(X[:, :2] @ rng.normal(size=(2, 5)) + 0.2 * rng.normal(size=(120, 5)))
    return X, CumulativeMass().apply(D).astype(float)


@pytest.mark.parametrize("cls", enhance.methods().values(), ids=lambda cls: cls.__name__)
def test_what_predicts_has_a_score(cls):
    assert hasattr(cls(), "score") == hasattr(cls(), "predict")


def test_wrapped_methods_score_as_what_is_in_them(data):
    X, L = data
    plain, tempered = GLLE().fit(X[:80], L[:80]), Rescaled(GLLE(), t=0.3).fit(X[:80], L[:80])
    assert plain.score(X[80:], L[80:]) == label_score(L[80:], plain.predict(X[80:]))
    assert tempered.score(X[80:], L[80:]) == pytest.approx(plain.score(X[80:], L[80:]), abs=1e-6)
    assert hasattr(Tuned(GLLE()), "score")
    assert not hasattr(Rescaled(LP()), "score")
    assert not hasattr(Temperature(), "score")


def test_a_grid_search_takes_the_setting_that_tells_held_out_labels(data):
    X, L = data
    folds = KFold(3, shuffle=True, random_state=0)
    found = GridSearchCV(LEMLL(), {"ridge": [1.0, 1e6]}, cv=folds, error_score="raise").fit(X, L)
    assert found.best_params_ == {"ridge": 1.0}
    by_hand = [LEMLL().fit(X[train], L[train]).score(X[test], L[test]) for train, test in folds.split(X, L)]
    assert found.best_score_ == pytest.approx(np.mean(by_hand))
    assert 0.2 < found.best_score_ < 1.0


@pytest.mark.parametrize("kind", ["torch", "dask"])
def test_other_kinds_of_arrays(data, kind):
    module = pytest.importorskip("torch" if kind == "torch" else "dask.array")
    convert = module.from_numpy if kind == "torch" else lambda A: module.from_array(A, chunks=(50, -1))
    X, L = data
    model = GLLE().fit(X, L)
    assert model.score(convert(X), convert(L)) == pytest.approx(model.score(X, L), abs=1e-6)


def test_labels_of_another_number_of_rows_are_refused(data):
    X, L = data
    with pytest.raises(ShapeError):
        GLLE().fit(X, L).score(X, L[:-1])
