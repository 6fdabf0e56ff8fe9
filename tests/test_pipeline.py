"""scikit-learn to the end: our methods in pipelines, containers, indexes, routed metadata, errors."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn import pipeline as sklearn_pipeline
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import contone
from contone import Inversion, LCdr, Pipeline, Temperature, make_pipeline
from contone.exceptions import InputError
from contone.models import load_model, save_model

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)) * [1.0, 50.0, 0.1]
L = np.eye(3, dtype=int)[RNG.integers(0, 3, 30)] | (RNG.random((30, 3)) < 0.3)
NAMES = ["calm", "happy", "sad"]
SHORT = Inversion(n_sweeps=4, n_burn=2)


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    index = [f"song {i}" for i in range(30)]
    return pd.DataFrame(X, columns=list("xyz"), index=index), pd.DataFrame(L, columns=NAMES, index=index)


def test_the_methods_go_through_all_steps():
    scaler = StandardScaler().fit(X)
    expected = clone(SHORT).fit(scaler.transform(X), L)
    pipeline = make_pipeline(StandardScaler(), clone(SHORT))
    np.testing.assert_array_equal(pipeline.fit_enhance(X, L), expected.label_distributions_)
    np.testing.assert_array_equal(pipeline.enhance(X[:5], L[:5]), expected.enhance(scaler.transform(X[:5]), L[:5]))
    np.testing.assert_array_equal(pipeline.predict(X[:5]), expected.predict(scaler.transform(X[:5])))
    for mine, its in zip(
        pipeline.intervals(X[:5], L[:5]), expected.intervals(scaler.transform(X[:5]), L[:5]), strict=True
    ):
        np.testing.assert_array_equal(mine, its)
    np.testing.assert_array_equal(pipeline.intervals()[0], expected.intervals()[0])  # of the rows of the fit
    alone = make_pipeline(Temperature())
    np.testing.assert_array_equal(alone.fit_enhance(X, L), alone.enhance(X, L))


def test_a_pipeline_of_scikit_learn_keeps_the_degrees_in_its_last_step():
    pipeline = sklearn_pipeline.make_pipeline(StandardScaler(), Temperature()).fit(X, L)
    np.testing.assert_array_equal(pipeline[-1].label_distributions_, Temperature().fit_enhance(X, L))


def test_frames_go_in_and_come_out():
    features, labels = frames()
    pipeline = make_pipeline(StandardScaler(), Temperature())
    found = pipeline.fit_enhance(features, labels)
    assert list(found.columns) == NAMES
    assert found.index.equals(labels.index)
    pd.testing.assert_frame_equal(pipeline.enhance(features[3:5], labels[3:5]), found[3:5])


@pytest.mark.parametrize("make", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m)])
def test_set_output_decides_the_container(make):
    features, _ = frames()
    expected = make(LCdr()).fit(X, L)
    method = clone(make(LCdr()).set_output(transform="pandas")).fit(features, L)
    for found, plain in (
        (clone(method).fit_enhance(features, L), expected[-1] if isinstance(expected, Pipeline) else expected),
        (method.enhance(features, L), expected.enhance(X, L)),
        (method.predict(features), expected.predict(X)),
    ):
        values = plain.label_distributions_ if hasattr(plain, "label_distributions_") else plain
        assert list(found.columns) == ["label_0", "label_1", "label_2"]
        assert found.index.equals(features.index)
        np.testing.assert_allclose(found.to_numpy(), values, atol=1e-9)
    assert isinstance(method.set_output(transform="polars").predict(features), pl.DataFrame)
    assert isinstance(method.set_output(transform="default").predict(X), np.ndarray)
    with pytest.raises((InputError, ValueError), match="transform|Unable to configure"):
        make(LCdr()).set_output(transform="excel")


@pytest.mark.parametrize("make", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m)])
def test_rows_that_do_not_belong_together_are_refused(make):
    features, labels = frames()
    with pytest.raises(InputError, match=r"another order: pass Y.loc\[X.index\]"):
        make(LCdr()).fit(features, labels[::-1])
    with pytest.raises(InputError, match="different indexes .row 0 is 'song 0' in X and 0 in Y"):
        make(LCdr()).fit(features, labels.reset_index(drop=True))
    method = make(LCdr()).fit(features, labels)
    with pytest.raises(InputError, match="another order"):
        method.enhance(features[:2], labels[1::-1])
    method.enhance(features[:2], labels[:2].to_numpy())  # an array has no index to disagree
    with pytest.raises(InputError, match="X and D"):
        contone.AAKNN().fit(features, method.enhance(features, labels)[::-1])


class Listening(Temperature):
    def fit(self, X, Y, degrees=None, groups=None):
        self.heard_ = degrees, groups
        return super().fit(X, Y)


def test_degrees_and_groups_are_routed_to_the_method():
    degrees, groups = np.full(L.shape, np.nan), np.arange(30)
    pipeline = make_pipeline(FunctionTransformer(), Listening())
    pipeline.fit_enhance(X, L, listening__degrees=degrees, listening__groups=groups)
    assert pipeline[-1].heard_ == (degrees, groups)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(FunctionTransformer(), Listening().set_fit_request(degrees=True, groups=True))
        routed.fit_enhance(X, L, degrees=degrees, groups=groups)
        assert routed[-1].heard_ == (degrees, groups)
        assert Inversion().set_fit_request(degrees=True) is not None


def test_one_row_per_item_comes_out_where_rows_are_grouped():
    features, labels = frames()
    items = np.arange(30) % 10
    method = clone(SHORT).set_params(degradation="marks")
    found = make_pipeline(FunctionTransformer(), clone(method)).fit_enhance(features, labels, inversion__groups=items)
    assert list(found.columns) == NAMES
    assert list(found.index) == list(range(10))
    np.testing.assert_array_equal(found.to_numpy(), method.fit_enhance(X, L, groups=items))


@pytest.mark.parametrize("cls", contone.enhance.methods().values())
def test_every_further_argument_of_fit_can_be_requested(cls):
    further = [name for name in inspect.signature(cls.fit).parameters if name not in ("self", "X", "Y")]
    with sklearn.config_context(enable_metadata_routing=True):
        assert not further or cls().set_fit_request(**dict.fromkeys(further, True)) is not None


def test_what_a_method_has_not_it_says_in_words():
    with pytest.raises(AttributeError, match="n_samples > 0"):
        clone(SHORT).fit(X, L).samples_  # noqa: B018
    pipeline = make_pipeline(StandardScaler(), contone.LP()).fit(X, L)
    assert not hasattr(pipeline, "predict")
    with pytest.raises(AttributeError, match="LP has no `predict`"):
        pipeline.predict  # noqa: B018
    with pytest.raises(AttributeError, match="LP has no `enhance`"):
        pipeline.enhance(X, L)
    for name in ("nothing", "label_distributions_"):  # of the pipeline itself, whatever its last step has
        with pytest.raises(AttributeError, match=f"'Pipeline' object has no attribute '{name}'"):
            getattr(pipeline, name)
    with pytest.raises(AttributeError, match="'Pipeline' object has no attribute 'score'"):
        _ = Pipeline.__new__(Pipeline).score  # as while it is unpickled


def test_a_learner_of_scikit_learn_at_the_end_answers_in_its_own_way():
    features, labels = frames()
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(features, labels)
    found = pipeline.predict(features)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, pipeline[-1].predict(pipeline[:-1].transform(features)))


def test_a_pipeline_can_be_kept_in_a_file(tmp_path):
    pipeline = make_pipeline(StandardScaler(), clone(SHORT)).fit(X, L)
    save_model(pipeline, tmp_path / "m.contone")
    again = load_model(tmp_path / "m.contone")
    np.testing.assert_array_equal(again.enhance(X, L), pipeline.enhance(X, L))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_predict_keeps_the_frame_and_its_index():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 2)), columns=["x", "y"], index=[f"r{i}" for i in range(12)])
    labels = pd.DataFrame(np.eye(3, dtype=int)[np.arange(12) % 3], columns=list("abc"), index=frame.index)
    pipeline = make_pipeline(StandardScaler(), LCdr()).fit(frame, labels)
    found = pipeline.predict(frame)
    assert found.index.equals(frame.index)
    assert list(found.columns) == list("abc")
    np.testing.assert_array_equal(found.to_numpy(), pipeline.predict(frame.to_numpy()))
