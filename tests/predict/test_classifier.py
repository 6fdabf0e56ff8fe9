"""FromClassifier: copies and their weights, classifiers whose answer is known, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from contone import AAKNN, FromClassifier, MaxEnt, measures
from contone.exceptions import InputError, MemoryEstimateError
from contone.predict.classifier import weight_parameter
from contone.predict.copies import copies_by_count, copies_by_weight


def tenths(n: int = 40, q: int = 3, seed: int = 0) -> np.ndarray:
    """Distributions (n, q) of whole tenths."""
    return np.random.default_rng(seed).multinomial(10, np.ones(q) / q, size=n) / 10


# --------------------------------------------------------------------------------------------------------- copies


def test_weighted_copies_are_the_degrees(small):
    _, _, D = small
    row, label, weight = copies_by_weight(D)
    back = np.zeros_like(D)
    np.add.at(back, (row, label), weight)
    np.testing.assert_allclose(back, D)


def test_small_degrees_make_no_copy_and_a_row_keeps_its_sum():
    row, label, weight = copies_by_weight(np.array([[0.5, 0.4, 0.1], [0.34, 0.33, 0.33]]), 0.2)
    assert row.tolist() == [0, 0, 1, 1, 1]
    assert label.tolist() == [0, 1, 0, 1, 2]
    np.testing.assert_allclose(weight, [5 / 9, 4 / 9, 0.34, 0.33, 0.33])
    row, label, weight = copies_by_weight(np.array([[0.34, 0.33, 0.33]]), 0.9)
    assert (row.tolist(), label.tolist(), weight.tolist()) == ([0], [0], [1.0])


@pytest.mark.parametrize("n_copies", [1, 7, 10])
def test_counted_copies_are_the_nearest_whole_numbers(small, n_copies):
    _, _, D = small
    row, label = copies_by_count(D, n_copies)
    count = np.zeros_like(D)
    np.add.at(count, (row, label), 1)
    np.testing.assert_array_equal(count.sum(axis=1), n_copies)
    assert np.abs(count - n_copies * D).max() < 1.0
    exact = copies_by_count(tenths(), 10)
    again = np.zeros((40, 3))
    np.add.at(again, exact, 0.1)
    np.testing.assert_allclose(again, tenths())


# -------------------------------------------------------------------------------------------------- known answers


def test_logistic_regression_is_maximum_entropy(small):
    X, _, D = small
    classifier = LogisticRegression(C=1 / (0.02 * 60), tol=1e-10, max_iter=1000)
    answer = FromClassifier(classifier, floor=0.0).fit(X, D).predict(X)
    np.testing.assert_allclose(answer, MaxEnt(l2=0.02, tol=1e-8).fit(X, D).predict(X), atol=1e-6)


def test_naive_bayes_has_the_weighted_moments(small):
    X, _, D = small
    model = FromClassifier(GaussianNB()).fit(X, D)
    np.testing.assert_allclose(model.estimator_.class_prior_, D.mean(axis=0))
    np.testing.assert_allclose(model.estimator_.theta_, D.T @ X / D.sum(axis=0)[:, None])


def test_neighbours_of_counted_copies_are_the_mean_of_their_degrees():
    X, D = np.random.default_rng(1).normal(size=(40, 2)), tenths()
    new = np.random.default_rng(2).normal(size=(9, 2))
    model = FromClassifier(KNeighborsClassifier(3), floor=0.0).fit(X, D)
    assert model.targets_ == "counts"
    np.testing.assert_allclose(model.predict(new), AAKNN(n_neighbors=3).fit(X, D).predict(new))


@pytest.mark.parametrize("targets", ["weights", "counts"])
def test_a_leaf_counts_rows_and_not_copies(small, targets):
    X, _, D = small
    for least in (1, 7):
        tree = make_pipeline(StandardScaler(), DecisionTreeClassifier(min_samples_leaf=least, random_state=0))
        fitted = FromClassifier(tree, targets=targets).fit(X, D).estimator_
        rows_in_leaves = np.unique(fitted[-1].apply(fitted[0].transform(X)), return_counts=True)[1]
        assert rows_in_leaves.min() >= least
        assert rows_in_leaves.min() <= 1 or least > 1  # one row is enough where one row was asked for


def test_boosting_does_not_learn_single_rows_by_heart():
    """Twenty labels: a leaf of twenty copies, the least number, would be one row. Here features say nothing."""
    rng = np.random.default_rng(0)
    X, label = rng.normal(size=(80, 3)), rng.integers(20, size=80)
    D = 0.97 * np.eye(20)[label] + 0.03 / 20
    model = FromClassifier(HistGradientBoostingClassifier(max_iter=10)).fit(X, D)
    assert measures.kl(D, model.predict(X)) > 0.3 * measures.kl(D, np.full((80, 20), 0.05))


def test_weights_and_counts_agree_where_degrees_are_tenths():
    X, D = np.random.default_rng(1).normal(size=(40, 2)), tenths()
    weights, counts = (
        FromClassifier(LogisticRegression(C=c, tol=1e-10), targets=t).fit(X, D).predict(X)
        for t, c in (("weights", 1.0), ("counts", 0.1))
    )
    np.testing.assert_allclose(weights, counts, atol=1e-5)


@pytest.mark.parametrize(
    "classifier",
    [
        None,
        RandomForestClassifier(30, min_samples_leaf=5, random_state=0),
        HistGradientBoostingClassifier(max_iter=20),
        KNeighborsClassifier(4),
        make_pipeline(StandardScaler(), GaussianNB()),
    ],
    ids=["default", "forest", "boosting", "neighbours", "pipeline"],
)
def test_classifiers_of_every_kind(small, classifier):
    X, _, D = small
    model = FromClassifier(classifier).fit(X[:40], D[:40])
    assert measures.kl(D[40:], model.predict(X[40:])) < measures.kl(D[40:], np.full((20, 4), 0.25))


class Soft(ClassifierMixin, BaseEstimator):
    """Takes probabilities as targets and answers with their mean."""

    accepts_soft_targets = True

    def fit(self, X, y):
        self.mean_ = np.asarray(y).mean(axis=0)
        return self

    def predict_proba(self, X):
        return np.tile(self.mean_, (len(X), 1))


def test_native_soft_targets(small):
    X, _, D = small
    model = FromClassifier(Soft()).fit(X, D)
    assert model.targets_ == "native"
    np.testing.assert_allclose(model.predict(X), np.tile(D.mean(axis=0), (60, 1)))


# --------------------------------------------------------------------------------------------------- special cases


def test_labels_without_mass_get_the_floor(small):
    X, _, D = small
    wide = np.hstack([D[:, :2], np.zeros((60, 1)), D[:, 2:]])
    answer = FromClassifier(floor=1e-3).fit(X, wide).predict(X)
    np.testing.assert_allclose(answer[:, 2], 1e-3 / 1.001)
    without = np.delete(answer, 2, axis=1)
    np.testing.assert_allclose(without / without.sum(axis=1, keepdims=True), FromClassifier().fit(X, D).predict(X))


def test_one_label_with_all_the_mass():
    model = FromClassifier(floor=0.0).fit([[0.0], [1.0]], [[0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(model.predict([[5.0]]), [[0.0, 1.0]])


def test_labels_that_only_have_small_degrees():
    D = [[0.9, 0.1], [0.8, 0.2]]
    np.testing.assert_array_equal(
        FromClassifier(min_degree=0.5, floor=0.0).fit([[0.0], [1.0]], D).predict([[3.0]]), [[1.0, 0.0]]
    )


def test_where_the_weights_go():
    assert weight_parameter(GaussianNB()) == "sample_weight"
    assert weight_parameter(KNeighborsClassifier()) is None
    assert weight_parameter(make_pipeline(StandardScaler(), GaussianNB())) == "gaussiannb__sample_weight"


def test_the_classifier_is_cloned(small):
    X, _, D = small
    inner = GaussianNB()
    FromClassifier(inner).fit(X, D)
    assert not hasattr(inner, "theta_")


def test_what_cannot_work_is_refused(small, monkeypatch):
    X, _, D = small
    with pytest.raises(ValueError, match="'estimator' parameter of FromClassifier"):
        FromClassifier(LinearSVC()).fit(X, D)
    with pytest.raises(InputError, match='KNeighborsClassifier.fit takes no sample_weight: use targets="counts"'):
        FromClassifier(KNeighborsClassifier(), targets="weights").fit(X, D)
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "1kB")
    with pytest.raises(MemoryEstimateError, match="240 copies of 60 rows"):
        FromClassifier().fit(X, D)
