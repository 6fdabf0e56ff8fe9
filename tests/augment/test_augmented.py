"""The augmentation in front of any enhancer, and its ablation variants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from contone import KM, Augmented, HSICReducer, Inversion, LabelConfidence, LCdr, Logical, Temperature, enhance
from contone.enhance.rectified import RectifiedSoftmax
from contone.exceptions import LabelError

FAST = RectifiedSoftmax(beta=1e-3)


def test_without_both_steps_it_is_the_bare_enhancer(small):
    X, L, _ = small
    bare = Augmented(FAST, confidence=None, reducer=None)
    np.testing.assert_array_equal(bare.fit_enhance(X, L), clone(FAST).fit_enhance(X, L))
    assert bare.confidence_ is None
    assert bare.reducer_ is None


def test_the_steps_are_the_public_ones(small):
    X, L, _ = small
    F = LabelConfidence().fit_enhance(X, L)
    reducer = HSICReducer(n_components=3).fit(X, F)
    by_hand = clone(FAST).fit_enhance(reducer.transform(X), F)
    whole = Augmented(FAST, confidence=LabelConfidence(), reducer=HSICReducer(n_components=3)).fit(X, L)
    np.testing.assert_array_equal(whole.label_confidence_, F)
    np.testing.assert_array_equal(whole.label_distributions_, by_hand)


def test_ablation_variants_differ_in_what_they_leave_out(small):
    X, L, _ = small
    reduced = HSICReducer(n_components=3)
    variants = {
        "X+L": Augmented(FAST, confidence=None, reducer=None),
        "X+LC": Augmented(FAST, reducer=None),
        "LF+L": Augmented(FAST, confidence=None, reducer=reduced),
        "LF+LC": Augmented(FAST, reducer=reduced),
    }
    answers = {name: variant.fit_enhance(X, L) for name, variant in variants.items()}
    assert len({answer.tobytes() for answer in answers.values()}) == 4
    np.testing.assert_array_equal(variants["LF+L"].label_confidence_, L)


def test_unasked_entries_are_refused_only_where_a_step_would_see_them(small):
    X, L, _ = small
    L = L.copy()
    L[3, 1] = np.nan
    for reducer, step in ((None, "KM"), ("default", "HSICReducer"), (PCA(2), "KM")):
        with pytest.raises(LabelError, match=f"{step} does not take labels with NaN"):
            Augmented(KM(), confidence=None, reducer=reducer).fit(X, L)
    for able in (Augmented(KM()), Augmented(Temperature(), confidence=None, reducer=None)):
        assert np.isfinite(able.fit_enhance(X, L)).all()


def test_logical_inside_returns_the_confidence(small):
    X, L, _ = small
    found = Augmented(Logical()).fit_enhance(X, L)
    np.testing.assert_allclose(found, LabelConfidence().fit_enhance(X, L), atol=1e-15)


@pytest.mark.filterwarnings("ignore::contone.exceptions.NearUniformWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(enhance.methods()))
def test_every_enhancer_runs_on_augmented_data(small, brief, name):
    X, L, _ = small
    method = enhance.methods()[name]
    D = Augmented(method(**brief(method))).fit_enhance(X, L)
    np.testing.assert_allclose(D.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("confidence", [None, "default"])
def test_labels_of_new_rows_share_equally_where_confidences_were_learnt(small, confidence):
    X, L, _ = small
    method = Augmented(Inversion(n_sweeps=10, n_burn=2), confidence=confidence, reducer=None).fit(X, L)
    seen = L[:9] if confidence is None else L[:9] / L[:9].sum(axis=1, keepdims=True)
    method.enhancer_._enhance = lambda X, L: given.append((X, L)) or np.full(L.shape, 0.25)
    given = []
    method.enhance(X[:9], L[:9])
    np.testing.assert_array_equal(given[0][0], X[:9])
    np.testing.assert_allclose(given[0][1], seen)


def test_predict_exists_where_the_enhancer_is_inductive(small):
    X, L, _ = small
    assert not hasattr(Augmented(Temperature()), "predict")
    found = Augmented(FAST).fit(X, L)
    np.testing.assert_allclose(found.predict(X), found.label_distributions_, atol=1e-12)
    assert found.predict(X[:3]).shape == (3, 4)


def test_frames_keep_index_and_names_also_in_predict(small):
    X, L, _ = small
    index = [f"row {i}" for i in range(60)]
    X, L = pd.DataFrame(X, index=index), pd.DataFrame(L, index=index, columns=list("abcd"))
    found = Augmented(FAST)
    D = found.fit_enhance(X, L)
    assert list(D.columns) == list("abcd")
    assert list(D.index) == index
    assert list(found.predict(X.iloc[:2]).index) == index[:2]


def test_any_transformer_can_reduce(small):
    X, L, _ = small
    found = Augmented(FAST, reducer=PCA(n_components=2)).fit(X, L)
    assert found.enhancer_.n_features_in_ == 2
    assert "reducer" not in found.solution_.info


def test_what_the_steps_did_is_on_record_and_quiet(small):
    X, L, _ = small
    info = Augmented(FAST).fit(X, L).solution_.info
    assert info["reducer"]["n_components"] == 5
    assert info["reducer"]["filled"] == 2
    assert info["confidence"]["flat_directions"] == 0


def test_a_step_that_falls_short_is_reported_once(small):
    X, L, _ = small
    with pytest.warns(ConvergenceWarning) as caught:
        found = Augmented(FAST, confidence=LabelConfidence(max_iter=1)).fit(X, L)
    assert len(caught) == 1
    assert not found.solution_.converged


def test_parameters_are_nested_and_the_given_estimators_stay_unfitted(small):
    X, L, _ = small
    inner = RectifiedSoftmax(beta=1e-3)
    whole = Augmented(inner, confidence=LabelConfidence(), reducer=HSICReducer())
    whole.set_params(confidence__n_neighbors=3, reducer__n_components=2, enhancer__beta=0.01)
    whole.fit(X, L)
    assert whole.confidence_.n_neighbors == 3
    assert whole.enhancer_.n_features_in_ == 2
    assert not hasattr(inner, "weights_")
    with pytest.raises(ValueError, match="confidence"):
        Augmented(inner, confidence="other").fit(X, L)


@pytest.mark.filterwarnings("ignore::contone.exceptions.NearUniformWarning")
def test_lcdr_is_the_preset_of_it(small):
    X, L, _ = small
    whole = Augmented(RectifiedSoftmax(beta=0.02), reducer=HSICReducer(rescale="unit_variance"))
    lcdr = LCdr(beta=0.02, rescale="unit_variance")
    np.testing.assert_array_equal(lcdr.fit_enhance(X, L), whole.fit_enhance(X, L))
