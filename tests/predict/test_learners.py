"""What every learner must do: scikit-learn's checks, pipelines, searches, pickles, data frames."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from contone import AAKNN, LDLLRR, LDLSCL, FromClassifier, FromRegressor, LDLForest, MaxEnt, PTBayes, measures
from contone.exceptions import LabelError, ShapeError
from contone.runtime import machine

LEARNERS = [
    MaxEnt(),
    MaxEnt(solver="iis", l2=1e-3, max_iter=3000),
    AAKNN(),
    AAKNN(weights="distance"),
    PTBayes(),
    FromRegressor(Ridge()),
    FromRegressor(Ridge(), target="logratio"),
    LDLLRR(l2=1e-3),
    FromClassifier(),
    LDLForest(depth=3, max_iter=50),
    LDLSCL(),
]
GRIDS = {
    MaxEnt: {"l2": [0.0, 0.1]},
    AAKNN: {"n_neighbors": [3, 10]},
    PTBayes: {"ridge": [1e-6, 1.0]},
    FromRegressor: {"estimator__alpha": [0.1, 10.0]},
    LDLLRR: {"ranking": [0.0, 0.1]},
    FromClassifier: {"floor": [0.0, 1e-3]},
    LDLForest: {"depth": [0, 2]},
    LDLSCL: {"n_clusters": [2, 5]},
}

each_learner = pytest.mark.parametrize("learner", LEARNERS, ids=str)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([MaxEnt(), MaxEnt(solver="iis", max_iter=50), AAKNN(), PTBayes(), FromRegressor(Ridge())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@each_learner
def test_rows_are_distributions_and_better_than_uniform(small, learner):
    X, _, D = small
    model = clone(learner).fit(X[:40], D[:40])
    answer = model.predict(X[40:])
    assert answer.shape == (20, 4)
    assert answer.min() >= 0
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)
    assert measures.kl(D[40:], answer) < measures.kl(D[40:], np.full((20, 4), 0.25))


@each_learner
def test_score_is_minus_the_mean_kl(small, learner):
    X, _, D = small
    model = clone(learner).fit(X, D)
    assert model.score(X, D) == pytest.approx(-measures.kl(D, model.predict(X)))
    assert model.score(X, D) == pytest.approx(measures.scorer("kl")(model, X, D))


@each_learner
def test_two_fits_are_identical_and_inputs_are_left_alone(small, learner):
    X, _, D = small
    X_before, D_before = X.copy(), D.copy()
    first, second = (clone(learner).fit(X, D).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(D, D_before)


@each_learner
def test_pickle_predicts_the_same(small, learner):
    X, _, D = small
    model = clone(learner).fit(X, D)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@each_learner
def test_pipeline_search_and_cross_validation(small, learner):
    X, _, D = small
    pipe = make_pipeline(StandardScaler(), clone(learner))
    scores = cross_val_score(pipe, X, D, cv=3, scoring=measures.scorer("kl"))
    assert (scores < 0).all()
    assert (cross_val_score(pipe, X, D, cv=3, scoring=measures.scorer("cosine")) > 0).all()
    grid = {f"{type(learner).__name__.lower()}__{k}": v for k, v in GRIDS[type(learner)].items()}
    search = GridSearchCV(pipe, grid, scoring=measures.scorer("kl"), cv=3, error_score="raise").fit(X, D)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.predict(X).shape == D.shape


@each_learner
def test_data_frames_in_and_out(small, learner):
    X, _, D = small
    features, labels = [f"x{k}" for k in range(5)], ["calm", "glad", "sad", "angry"]
    plain = clone(learner).fit(X, D).predict(X)
    index = range(100, 160)
    X_pandas, D_pandas = pd.DataFrame(X, index, features), pd.DataFrame(D, index, labels)
    answer = clone(learner).fit(X_pandas, D_pandas).predict(X_pandas)
    assert list(answer.columns) == labels
    assert list(answer.index) == list(X_pandas.index)
    np.testing.assert_allclose(answer.to_numpy(), plain, atol=1e-12)
    answer = clone(learner).fit(pl.DataFrame(X, features), pl.DataFrame(D, labels)).predict(pl.DataFrame(X, features))
    assert isinstance(answer, pl.DataFrame)
    assert answer.columns == labels
    assert measures.kl(pl.DataFrame(D, labels), answer) == pytest.approx(measures.kl(D, plain))


@each_learner
def test_one_label_and_two_rows(learner):
    np.testing.assert_array_equal(clone(learner).fit([[0.0], [1.0]], [[1.0], [1.0]]).predict([[3.0]]), [[1.0]])
    answer = clone(learner).fit([[0.0], [1.0]], [[0.4, 0.6], [0.6, 0.4]]).predict([[0.5]])
    np.testing.assert_allclose(answer.sum(), 1.0)


def test_score_knows_the_classes_of_fit():
    X, y = [[0.0], [0.2], [1.0], [1.2]], ["a", "a", "c", "c"]
    model = AAKNN(n_neighbors=1).fit(X, y)
    assert model.score([[1.0]], ["c"]) == 0
    assert model.score([[1.0]], ["a"]) == -np.inf
    with pytest.raises(LabelError, match="classes that were not in the fit: b"):
        model.score([[1.0]], ["b"])


def test_score_refuses_another_number_of_labels(small):
    X, _, D = small
    with pytest.raises(ShapeError, match="2 labels; the learner was fitted with 4"):
        AAKNN().fit(X, D).score(X, D[:, :2] / D[:, :2].sum(axis=1, keepdims=True))


@pytest.mark.parametrize("learner", [MaxEnt(l2=1e-3), LDLLRR(ranking=1.0, l2=1e-3)], ids=str)
def test_rows_in_pieces_give_the_same_answer_with_any_number_of_threads(small, learner, monkeypatch):
    X, _, D = small
    whole = learner.fit(X, D).predict(X)
    monkeypatch.setattr(machine, "PIECE_NUMBERS", 1)
    monkeypatch.setattr(machine, "FEWEST_ROWS", 13)  # 60 rows in five pieces
    answers = []
    for n in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", n)
        answers.append(clone(learner).fit(X, D).predict(X))
    np.testing.assert_array_equal(*answers)
    np.testing.assert_allclose(answers[0], whole, atol=1e-5)
