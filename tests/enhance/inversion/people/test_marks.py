"""Marks and levels through Inversion: limits, persons, new rows, files."""

import numpy as np
import pytest
from scipy.special import expit

from contone import Inversion, Levels, Marks, label_chances
from contone.exceptions import InputError, LabelError, LabelWarning
from contone.models import load_model, save_model

SHORT = {"n_sweeps": 60, "n_burn": 30}


def make(seed=0, n=120, q=3, n_persons=6, k=3):
    """Features, items, persons, marks, and the chances of marks (n, q) by the mean over all persons."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Z = X @ rng.normal(size=(2, q)) + rng.normal(size=(n, q)) - 0.5
    b = rng.normal(size=(n_persons, q))
    b[0] += 3.0  # marks nearly everything
    item = np.repeat(np.arange(n), k)
    who = np.concatenate([rng.permutation(n_persons)[:k] for _ in range(n)])
    P = expit(Z[:, None, :] + b)
    return X, item, who, (rng.random((n * k, q)) < P[item, who]).astype(float), P


@pytest.fixture(scope="module")
def data():
    return make()


@pytest.fixture(scope="module")
def fitted(data):
    X, item, who, Y, _ = data
    return Inversion(degradation="marks", **SHORT).fit(X[item], Y, groups=item, annotators=who)


def test_levels_of_two_steps_are_marks(data, fitted):
    X, item, who, Y, _ = data
    as_levels = Inversion(degradation=Levels((0, 1)), **SHORT).fit_enhance(X[item], Y, groups=item, annotators=who)
    np.testing.assert_array_equal(as_levels, fitted.label_distributions_)


def test_degrees_are_nearer_to_all_peoples_shares_than_counting_is(data, fitted):
    _, item, _, Y, P = data
    truth = P.mean(axis=1) / P.mean(axis=1).sum(axis=1, keepdims=True)
    counts = np.full_like(truth, 0.3)
    np.add.at(counts, item, Y / 3)
    counts /= counts.sum(axis=1, keepdims=True)

    def kl(D):
        return (truth * np.log(truth / D)).sum(axis=1).mean()

    assert kl(fitted.label_distributions_) < 0.8 * kl(counts)
    assert fitted.expected_error_.mean == pytest.approx(kl(fitted.label_distributions_), rel=0.6)
    lower, upper = fitted.intervals(level=0.9)
    assert 0.8 < np.mean((lower < truth) & (truth < upper)) < 0.99


def test_who_marks_everything_is_known_and_expected_to_go_on(data, fitted):
    X, item, who, Y, P = data
    given = {"groups": item, "annotators": who}
    chance = [label_chances(fitted, X[item], Y, **given, person=w) for w in range(6)]
    off = [np.abs(chance[w] - P[:, w]).mean() for w in range(6)]
    mean = label_chances(fitted, X[item], Y, **given)
    assert np.mean(off) < np.mean([np.abs(mean - P[:, w]).mean() for w in range(6)])
    assert chance[0].mean() > 0.75 > np.mean([c.mean() for c in chance[1:]])
    row = fitted.annotators_
    assert row["too_often"][row["annotator"].index(0)] != ""
    assert sum(row["answers"]) == len(Y)


def test_new_rows_and_files(data, fitted, tmp_path):
    X, _, _, Y, _ = data
    D = fitted.enhance(X, Y[: len(X)])
    save_model(fitted, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.enhance(X, Y[: len(X)]), D)
    np.testing.assert_allclose(fitted.enhance(X[5:9], Y[5:9]), D[5:9], rtol=1e-9)  # each row by itself
    unasked = np.full_like(Y[: len(X)], np.nan)
    np.testing.assert_allclose(fitted.enhance(X, unasked), fitted.predict(X), rtol=1e-9)


def test_no_answer_and_all_zeros_differ(fitted, data):
    """Nothing marked is an answer: chances fall, but for the error of weighing rows at a few points."""
    X = data[0]
    change = label_chances(fitted, X, np.zeros((len(X), 3))) - label_chances(fitted, X)
    assert change.max() < 0.005
    assert (change < 0).mean() > 0.99
    assert change.mean() < -0.02


def test_a_bar_with_persons_is_a_bar_each(data, fitted):
    X, item, who, Y, _ = data
    method = Inversion(degradation="bar", **SHORT).fit(X[item], Y, groups=item, annotators=who)
    assert isinstance(method.degradation_, Marks)
    np.testing.assert_array_equal(method.label_distributions_, fitted.label_distributions_)
    with pytest.warns(LabelWarning, match='"marks" says the same'):
        D = Inversion(degradation="main", **SHORT).fit_enhance(X[item], Y, groups=item, annotators=who)
    np.testing.assert_array_equal(D, fitted.label_distributions_)


def test_grades_of_items_without_persons():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    level = expit(X @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(80, 3)))
    Y = np.clip(np.round(100 * level + 8 * rng.normal(size=level.shape), -1), 0, 100)
    D = Inversion(degradation=Levels((0, 100)), **SHORT).fit_enhance(X, Y)
    truth = level / level.sum(axis=1, keepdims=True)
    assert np.abs(D - truth).mean() < 0.05


def test_persons_are_asked_for_where_the_model_knows_them(fitted, data):
    with pytest.raises(InputError, match="not among the annotators"):
        label_chances(fitted, data[0], person="nobody")
    with pytest.raises(InputError, match="answers of people"):
        label_chances(Inversion(**SHORT), data[0], np.eye(3)[[0] * len(data[0])], person="a")


def test_levels_are_no_marks(data):
    X, _, _, Y, _ = data
    with pytest.raises(LabelError, match="marks, whole numbers from 0 to 1"):
        Inversion(degradation="marks", **SHORT).fit(X, 2 * Y[: len(X)])


def test_known_degrees_come_back(data):
    X, item, _, Y, _ = data
    degrees = np.full((len(X), 3), np.nan)
    degrees[4] = [0.2, 0.5, 0.3]
    D = Inversion(degradation="marks", **SHORT).fit_enhance(X[item], Y, groups=item, degrees=degrees)
    np.testing.assert_allclose(D[4], degrees[4])
