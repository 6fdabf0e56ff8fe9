"""The template: what every method gets for free, and what it cannot get away with."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import Interval

from contone import AAKNN, LP, HSICReducer, Temperature, measures
from contone.base import DistributionLearner, Enhancer, InductiveMixin
from contone.base.template import in_its_kind, on_simplex, refuse_too_large
from contone.base.words import refuse_unasked
from contone.exceptions import AnswerError, ContoneError, InputError, LabelError, MemoryEstimateError
from contone.numerics.solution import Solution

X = np.arange(12.0).reshape(4, 3)
L = np.array([[1, 0], [0, 1], [1, 1], [1, 0]])
D = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])


class Says(InductiveMixin, Enhancer):
    """An enhancer that answers what it is told to."""

    reference = "a test"
    PRESETS: ClassVar[dict[str, Any]] = {"paper": {"answer": "paper"}, "other": {"answer": "other", "scale": 2.0}}
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "answer": "no_validation",
        "scale": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, answer=None, scale=1.0):
        self.answer = answer
        self.scale = scale

    def _fit_enhance(self, X, L):
        return self.answer if isinstance(self.answer, Solution) else Solution(np.asarray(self.answer))

    def _predict(self, X):
        return np.asarray(self.answer)[: len(X)]


class Mean(DistributionLearner):
    """Predicts the mean distribution."""

    def _fit(self, X, D):
        self.mean_ = D.mean(axis=0)
        return Solution(self.mean_)

    def _predict(self, X):
        return np.tile(self.mean_, (len(X), 1))


def test_the_answer_is_stored_with_what_the_solver_says():
    said = Solution(D, objective=3.0, residual=1e-9, n_iter=7)
    method = Says(answer=said)
    assert method.fit(X, L) is method
    np.testing.assert_array_equal(method.label_distributions_, D)
    assert method.solution_ is said
    assert method.n_features_in_ == 3
    np.testing.assert_array_equal(method.fit_enhance(X, L), D)


def test_rounding_in_the_answer_is_repaired():
    method = Says(answer=D * (1 + 1e-8) - [[0, 0], [0, 0], [0, 0], [0, 1e-12]])
    answer = method.fit_enhance(X, L)
    assert answer.min() >= 0
    np.testing.assert_allclose(answer.sum(axis=1), 1, rtol=1e-15)
    single = Says(answer=(D * (1 + 1e-5)).astype(np.float32)).fit_enhance(X, L)  # rounds more
    np.testing.assert_allclose(single, D, rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (D[:3], r"shape \(3, 2\) \(expected \(4, 2\)\)"),
        (D[:, :1], r"shape \(4, 1\)"),
        (D * np.nan, "NaN in it"),
        (D * (1 + 1e-5), "rows that are not distributions"),
        (D + np.array([[0, 0], [0, 0], [0, 0], [1e-8, -1e-8]]), "rows that are not distributions"),
        (D * 2, "rows that are not distributions: a defect in the method"),
        (D - [0.5, -0.5], "rows that are not distributions"),
    ],
)
def test_an_answer_that_is_not_a_distribution_is_a_defect_and_never_stored(wrong, message):
    method = Says(answer=wrong)
    with pytest.raises(AnswerError, match=f"Says gave .*{message}"):
        method.fit(X, L)
    assert not hasattr(method, "label_distributions_")


def test_an_answer_without_its_solution_is_refused():
    method = Says()
    method._fit_enhance = lambda X, L: D
    with pytest.raises(AnswerError, match=r"Says._fit_enhance gave ndarray \(expected a Solution\)"):
        method.fit(X, L)


def test_predictions_are_checked_too():
    method = Says(answer=D).fit(X, L)
    np.testing.assert_array_equal(method.predict(X[:2]), D[:2])
    method.answer = D * 2
    with pytest.raises(AnswerError, match="not distributions"):
        method.predict(X[:2])


def test_lazy_rows_get_lazy_answers():
    """Predicted block by block, and the summary of a lazy answer does not compute it."""
    da = pytest.importorskip("dask.array")
    rows, given = da.from_array(X, chunks=(2, 3)), []

    class Blocks(Mean):
        def _predict(self, X):
            given.append(X)
            return super()._predict(X)

    found = Blocks().fit(X, D).predict(rows)
    assert isinstance(found, da.Array)
    assert all(isinstance(block, np.ndarray) and len(block) <= 2 for block in given)
    assert found.shape == (4, 2)
    np.testing.assert_allclose(found.compute(), np.tile(D.mean(axis=0), (4, 1)))

    class Lazy(Says):
        kinds = frozenset({"dask"})

        def _fit_enhance(self, X, L):
            return Solution(L / L.sum(axis=1, keepdims=True), n_iter=1)

    method = Lazy().fit(rows, da.from_array(L, chunks=(2, 2)))
    assert method.summary() == "Lazy: 4 rows, 2 labels; 1 iterations"
    np.testing.assert_array_equal(method.label_distributions_.compute(), L / L.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kinds", [frozenset(), frozenset({"dask"})])
def test_lazy_rows_come_whole_to_who_takes_them_and_block_by_block_to_others(kinds, monkeypatch):
    """Rows in memory come whole to everybody."""
    lazy = pytest.importorskip("dask.array").from_array(X, chunks=(3, 3))
    monkeypatch.setattr(Says, "kinds", kinds)
    monkeypatch.setattr(Says, "label_names_", ("a", "b", "c"), raising=False)
    seen = []

    def answer(rows):
        seen.append((type(rows), rows.shape[0]))
        return (rows + 1.0) / (rows + 1.0).sum(axis=1, keepdims=True)

    np.testing.assert_allclose(Says()._answer(answer, X), answer(X))
    assert seen == [(np.ndarray, 4)] * 2
    seen.clear()
    found = Says()._answer(answer, lazy).compute()
    assert ((type(lazy), 4) in seen) == bool(kinds)
    assert ((np.ndarray, 3) in seen) != bool(kinds)
    np.testing.assert_allclose(found, answer(X))


def test_a_solver_that_stopped_short_is_told_once_and_where_it_was_called():
    short = Solution(D, residual=0.25, n_iter=9, converged=False)
    with pytest.warns(
        ConvergenceWarning, match=r"Says stopped after 9 iterations with residual 0.25.*raise max_iter"
    ) as w:
        Says(answer=short).fit(X, L)
    assert len(w) == 1
    assert w[0].filename == __file__


@pytest.mark.parametrize("converged", [True, False])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_log_and_the_summary_say_how_a_fit_ended(caplog, converged):
    with caplog.at_level("INFO", logger="contone"):
        method = Says(answer=Solution(D, n_iter=9, converged=converged)).fit(X, L)
    assert caplog.messages == [
        f"Says: 4 rows, 3 features, 2 labels, 9 iterations{'' if converged else ', not converged'}"
    ]
    first, second = method.summary().splitlines()
    assert first == f"Says: 4 rows, 2 labels; 9 iterations{'' if converged else '; it stopped before its end'}"
    assert second == "largest mean degrees: label_0 62%, label_1 38%"


@pytest.mark.parametrize("q", [5, 6])
def test_a_summary_names_the_five_largest_labels_largest_first(q):
    share = np.arange(1.0, q + 1) / sum(range(1, q + 1))
    method = Says(answer=np.tile(share, (q, 1))).fit(np.eye(q), np.eye(q))
    shown = ", ".join(f"label_{j} {share[j]:.0%}" for j in reversed(range(q - 5, q)))
    assert method.summary().endswith(f"degrees: {shown}{', ...' if q > 5 else ''}")


def test_a_notebook_shows_the_summary_of_a_fit_above_the_parameters():
    method = Says(answer=D)
    assert "Says: 4 rows" not in method._repr_mimebundle_()["text/html"]
    assert method.fit(X, L)._repr_mimebundle_()["text/html"].startswith(f"<pre>{method.summary()}</pre><")
    with config_context(display="text"):
        assert set(method._repr_mimebundle_()) == {"text/plain"}


def test_what_a_method_lacks_is_said_in_its_own_words():
    method = LP().fit(X, L)
    said = {
        "predict": "rows without",
        "enhance": "all rows together",
        "score": "no `predict`",
        "intervals": "Inversion",
    }
    for name, why in said.items():
        assert not hasattr(method, name)
        with pytest.raises(AttributeError, match=rf"LP (has no `{name}`|gives no {name}).*{why}"):
            getattr(method, name)
    with pytest.raises(AttributeError, match="'LP' object has no attribute 'nothing'"):
        _ = method.nothing


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_two_labelled_rows_are_enough_and_one_is_not():
    """Rows without a label get what a fit to the others predicts; the others get their degrees."""

    class Rows(Says):
        def _fit_enhance(self, X, L):
            return Solution(D[: len(X)])

    silent = np.array([[0, 0], [1, 0], [0, 0], [0, 1]])
    found = Rows(answer=D).fit_enhance(X, silent)
    np.testing.assert_array_equal(found, [D[0], D[0], D[2], D[1]])
    silent[3] = 0
    with pytest.raises(LabelError, match=r"1 rows with a label \(of 4\), and at least 2 are needed"):
        Rows(answer=D).fit(X, silent)


def test_new_rows_without_a_label_are_predicted_or_refused():
    """By methods that look at the labels of new rows."""

    class Looks(Says):
        def _enhance(self, X, L):
            return L / L.sum(axis=1, keepdims=True)

    new = np.array([[1, 1], [0, 0], [0, 1]])
    method = Looks(answer=D).fit(X, L)
    np.testing.assert_array_equal(method.enhance(X[:3], new), [[0.5, 0.5], D[1], [0.0, 1.0]])
    np.testing.assert_array_equal(method.enhance(X[:2], new[[0, 2]]), [[0.5, 0.5], [0.0, 1.0]])

    class Blind(Enhancer):
        _fit_enhance, _enhance = Says._fit_enhance, Looks._enhance
        answer = D

    without = Blind().fit(X, L)
    with pytest.raises(LabelError, match=r"rows without any label \(1 of 3\)"):
        without.enhance(X[:3], new)


def test_what_a_fit_needs_is_held_to_what_there_is(monkeypatch):
    """Of sparse features, what is stored and a hundred columns; of lazy rows, also the rows themselves."""
    asked = []

    class Needs(Says):
        kinds = frozenset({"sparse"})

        def _fit_bytes(self, n, d, q):
            asked.append((n, d, q))
            return 1000.0

    method, wide = Needs(answer=D), sparse.csr_array(np.eye(4, 300))
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "1000")
    refuse_too_large(method, X, 2)
    refuse_too_large(method, wide, 2)
    assert asked == [(4, 3, 2), (4, wide.nnz // 4 + 100, 2)]
    lazy = pytest.importorskip("dask.array").from_array(X, chunks=(2, 3))
    needed = 1000 + 8 * 4 * (3 + 2)
    for limit in (needed, needed - 1):
        monkeypatch.setenv("CONTONE_MEMORY_LIMIT", str(limit))
        with pytest.raises(MemoryEstimateError, match="4 rows of a dask array") if limit < needed else nullcontext():
            refuse_too_large(method, lazy, 2)
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "0.5")
    with pytest.raises(MemoryEstimateError, match=r"4 rows with 3 features and 2 labels needs about 1 kB.* --stream"):
        refuse_too_large(method, X, 2)
    Needs.kinds = frozenset({"dask"})
    refuse_too_large(method, lazy, 2)


def test_set_output_says_the_container_until_it_is_said_anew():
    method = Says(answer=D)
    for said, kind in ((None, np.ndarray), ("pandas", pd.DataFrame), (None, pd.DataFrame), ("default", np.ndarray)):
        assert isinstance(method.set_output(transform=said).fit_enhance(X, L), kind)
    with pytest.raises(InputError, match="transform must be .*; got 'excel'"):
        method.set_output(transform="excel")


def test_presets_are_documented_settings_that_can_be_overridden():
    assert Says.preset("paper").answer == "paper"
    changed = Says.preset("other", scale=3.0)
    assert (changed.answer, changed.scale) == ("other", 3.0)
    assert Says.PRESETS["other"]["scale"] == 2.0
    with pytest.raises(InputError, match="Says has no preset 'paperr'; it has: other, paper"):
        Says.preset("paperr")
    with pytest.raises(InputError, match="Temperature has no preset 'paper'; it has: none"):
        Temperature.preset("paper")


def test_a_step_that_takes_no_unasked_entries_says_who_does():
    refuse_unasked(Says(), L.astype(float))
    with pytest.raises(LabelError, match="Says does not take labels with NaN; these methods do: .*Inversion"):
        refuse_unasked(Says(), np.array([[0.0, 1.0], [np.nan, 1.0]]))


def test_parameters_are_checked_when_fitted_not_when_built():
    method = Says(answer=D, scale=-1.0)
    with pytest.raises(ValueError, match="'scale' parameter of Says must be"):
        method.fit(X, L)


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        Says(answer=D).predict(X)
    with pytest.raises(NotFittedError):
        Mean().predict(X)
    with pytest.raises(NotFittedError):
        Mean().score(X, D)


def test_a_learner_scores_minus_the_mean_divergence():
    model = Mean().fit(X, D)
    assert model.score(X, D) == pytest.approx(-measures.kl(D, model.predict(X)))


def test_a_learner_takes_classes_too():
    model = Mean().fit(X, ["b", "a", "b", "b"])
    assert model.label_names_ == ["a", "b"]
    np.testing.assert_allclose(model.predict(X[:1]), [[0.25, 0.75]])


def test_estimators_can_be_cloned_and_pickled():
    method = Temperature(c=0.7)
    assert clone(method).get_params() == {"c": 0.7}
    fitted = method.fit(X, L)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.label_distributions_, fitted.label_distributions_)


def test_every_error_of_ours_can_be_caught_as_one():
    import contone.exceptions as ours

    raised = [c for c in vars(ours).values() if isinstance(c, type) and issubclass(c, Exception)]
    for error in raised:
        assert error.__doc__
        assert issubclass(error, ContoneError | Warning)


@pytest.mark.parametrize("estimator", [AAKNN(n_neighbors=True), LP(max_iter=True), HSICReducer(n_components=True)])
def test_true_is_not_a_number(estimator):
    """In Python it is one, and what a library makes of it differs: scikit-learn's neighbour search raises TypeError."""
    with pytest.raises(ValueError, match="must not be True: give a number"):
        estimator.fit([[0.0], [1.0], [2.0]], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    LP(standardize=True).fit([[0.0], [1.0]], [[1, 0], [0, 1]])


@pytest.mark.parametrize(("dtype", "rounding"), [(np.float64, 1e-6), (np.float32, 1e-4)])
def test_rounding_is_what_the_precision_allows(dtype, rounding):
    """Sums may be off by it, and degrees below zero by a thousandth of it; more is a defect of the method."""
    for off in (0.9, -0.9):
        found = on_simplex(np.array([[0.5, 0.5 + off * rounding], [1.0, 0.0]], dtype=dtype), (2, 2), Temperature())
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=4 * np.finfo(dtype).eps)
    found = on_simplex(np.array([[1.0, -0.9e-3 * rounding]], dtype=dtype), (1, 2), Temperature())
    assert found.tolist() == [[1.0, 0.0]]
    for wrong in ([0.5, 0.5 + 1.5 * rounding], [0.5, 0.5 - 1.5 * rounding], [1.0, -1.5e-3 * rounding]):
        with pytest.raises(AnswerError, match="Temperature gave rows that are not distributions"):
            on_simplex(np.array([wrong], dtype=dtype), (1, 2), Temperature())


def test_a_method_computes_in_its_kinds_of_arrays_and_in_numpy_for_all_others():
    torch, dask = pytest.importorskip("torch"), pytest.importorskip("dask.array")
    able, unable = Says(), Says()
    able.kinds = frozenset({"torch"})
    unable.kinds = frozenset()
    tensor, lazy = torch.tensor(X), dask.from_array(X, chunks=(2, -1))
    assert in_its_kind(able, tensor)[0] is tensor
    assert in_its_kind(unable, X, L) == (X, L)
    for method, given in ((unable, tensor), (able, lazy), (unable, lazy)):
        (found,) = in_its_kind(method, given)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, X)
