"""LP, GLLE, KM, FCM, GLERB and GLEMR on inputs that break naive code: answers are on the simplex, without a warning."""

from __future__ import annotations

import numpy as np
import pytest

from contone import FCM, GLEMR, GLERB, GLLE, KM, LP

METHODS = {
    "lp": LP(),
    "lp-knn": LP(graph="knn"),
    "lp-paper": LP.preset("paper"),
    "lp-glle-paper": LP.preset("glle_paper"),
    "glle": GLLE(),
    "glle-raw": GLLE(standardize=False),
    "glle-balanced": GLLE(lambda_="balanced", output="sum"),
    "glle-paper": GLLE.preset("paper", max_iter=20),
    "glle-original": GLLE.preset("original_code", max_iter=20),
    "km": KM(),
    "km-sum": KM(output="sum"),
    "fcm": FCM(),
    "fcm-paper": FCM.preset("paper"),
    "fcm-product": FCM(composition="max-product"),
    "glerb": GLERB(),
    "glerb-learned": GLERB(rate="learned", max_iter=20),
    "glerb-original": GLERB.preset("original_code", max_iter=20),
    "glemr": GLEMR(),
    "glemr-original": GLEMR.preset("original_code", max_iter=20),
}


def hard_inputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    L = (rng.uniform(size=(30, 3)) < 0.4).astype(float)
    L[L.sum(axis=1) == 0, 0] = 1.0
    return {
        "duplicates": (np.repeat(X[:6], 5, axis=0), L),
        "all rows equal": (np.ones((30, 4)), L),
        "constant feature": (np.hstack([X, np.full((30, 1), 7.0)]), L),
        "binary features": ((X > 0).astype(float), L),
        "two rows": (X[:2], L[:2]),
        "fewer rows than neighbours": (X[:5], L[:5]),
        "more features than rows": (rng.normal(size=(30, 200)), L),
        "one label": (X, np.ones((30, 1))),
        "two labels": (X, np.eye(2)[rng.integers(0, 2, 30)]),
        "one relevant label a row": (X, np.eye(3)[rng.integers(0, 3, 30)]),
        "label without positives": (X, np.hstack([L, np.zeros((30, 1))])),
        "all labels relevant": (X, np.ones((30, 3))),
        "confidences": (X, L / L.sum(axis=1, keepdims=True)),
        "large unit": (1e9 * X, L),
        "small unit": (1e-200 * X, L),
        "large offset": (X + 1e10, L),
        "outlier": (np.vstack([X[:-1], np.full((1, 4), 1e8)]), L),
    }


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
@pytest.mark.parametrize("case", hard_inputs())
@pytest.mark.parametrize("name", METHODS)
def test_answer_is_on_the_simplex(name, case):
    X, L = hard_inputs()[case]
    before = X.copy(), L.copy()
    method = METHODS[name]
    D = method.fit_enhance(X, L)
    assert D.shape == L.shape
    assert np.isfinite(D).all()
    np.testing.assert_allclose(D.sum(axis=1), 1.0)
    assert D.min() >= 0.0
    assert np.array_equal(X, before[0])
    assert np.array_equal(L, before[1])
    if hasattr(method, "predict"):
        assert np.isfinite(method.predict(X[:2])).all()
    if L.shape[1] == 1:
        assert np.all(D == 1.0)
