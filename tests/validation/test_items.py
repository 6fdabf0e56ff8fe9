"""Items in place of rows, lazy rows, and numbers that cannot be computed with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from contone import Temperature
from contone.base import Enhancer
from contone.exceptions import (
    ArgumentError,
    FeatureError,
    InputError,
    InputTypeError,
    LabelError,
    LabelWarning,
    ShapeError,
)
from contone.numerics.solution import Solution
from contone.validation.containers import (
    SMALLEST_FEATURE,
    SMALLEST_SINGLE,
    Border,
    as_frame,
    as_table,
    refuse_beyond_squares,
)
from contone.validation.degrees import check_degrees
from contone.validation.distributions import check_pair
from contone.validation.domains import check_whole_numbers
from contone.validation.groups import check_annotators, check_groups
from contone.validation.training import check_features, check_new_rows, check_training, examine, judge_labels

X = np.arange(12.0).reshape(4, 3)
L = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
NAMES = ["u", "v"]


class Lazy(Enhancer):
    """A method that takes lazy rows, and fewer rows than others in tensors."""

    kinds = frozenset({"dask", "torch"})

    def _fit_enhance(self, X, L):
        return Solution(L / L.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("groups", [["b", "a", "b", "a"], np.array([7, 3, 7, 3]), pd.Series(list("baba"))])
def test_items_are_numbered_by_their_first_row_and_have_the_mean_of_their_features(groups):
    with pytest.warns(LabelWarning, match=r"rows of 2 of 2 items differ in their features .first item .*, row 0"):
        found = check_groups(groups, X, Border(NAMES))
    np.testing.assert_array_equal(found.item, [0, 1, 0, 1])
    assert list(map(str, found.names)) == [str(name) for name in list(groups)[:2]]
    np.testing.assert_allclose(found.X, [X[[0, 2]].mean(axis=0), X[[1, 3]].mean(axis=0)])


def test_only_the_items_that_differ_are_counted_and_equal_rows_stay_to_the_bit():
    features = np.array([[0.1, 0.7], [5.0, 1.0], [0.1, 0.7], [5.0, 3.0], [0.1, 0.7]])
    with pytest.warns(LabelWarning, match=r"rows of 1 of 2 items differ .*first item 'b', row 1"):
        found = check_groups(list("ababa"), features, Border(NAMES))
    np.testing.assert_array_equal(found.X, [[0.1, 0.7], [5.0, 2.0]])
    # rounding is no difference, whatever the size of the features
    for size in (1e-6, 1.0, 1e6):
        same = size * features[[0, 0, 2]]
        same[1] *= 1.0 + 1e-10
        check_groups([1, 1, 1], same, Border(NAMES))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_answers_about_items_leave_in_the_frame_that_came_in(library):
    frame = pl.DataFrame(L, schema=NAMES) if library == "polars" else pd.DataFrame(L, columns=NAMES)
    grouping = check_groups(["b", "a", "b", "a"], X[[0, 1, 0, 1]], Border(NAMES, as_frame(frame)))
    answer = grouping.border.wrap(np.array([[0.5, 0.5], [0.1, 0.9]]))
    assert type(answer) is type(frame)
    assert list(answer.columns) == NAMES
    if library != "polars":
        assert list(answer.index) == ["b", "a"]


def test_what_names_no_items_is_refused():
    da = pytest.importorskip("dask.array")
    for groups, error, said in (
        (["a", None, "b", "a"], InputError, "no name in row 1"),
        ([1.0, 2.0, np.nan, 1.0], InputError, "no name in row 2"),
        (["a"] * 3, ShapeError, "it has 3 entries, X has 4 rows"),
        ([["a"]] * 4, ShapeError, "must be one-dimensional"),
        ("abcd", ShapeError, "must be one-dimensional"),
        (pd.DataFrame({"g": list("abca")}), InputError, "it is a frame: pass the column"),
        (da.from_array(np.arange(4)), InputTypeError, "groups needs all rows in memory"),
    ):
        with pytest.raises(error, match=said):
            check_groups(groups, X, Border(NAMES))
    with pytest.raises(InputTypeError, match="groups needs all rows in memory"):
        check_groups(list("abca"), da.from_array(X), Border(NAMES))


def test_persons_without_a_name_are_somebody_each():
    found = check_annotators(["p", None, "q", np.nan, "p"], np.array([0, 0, 0, 0, 1]))
    np.testing.assert_array_equal(found.number, [1, 2, 3, 4, 1])
    assert found.names == ["p", None, "q", None]
    with pytest.warns(LabelWarning, match="1 of 3 answers are by a person who answered the same item before"):
        check_annotators(["p", "q", "p"], np.zeros(3, int))
    with pytest.warns(LabelWarning, match="names one person only"):
        check_annotators(["p", "p"], np.arange(2))
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(check_annotators(torch.tensor([5, 6]), np.arange(2)).number, [1, 2])


@pytest.mark.parametrize("lazy", ["X", "Y", "X and Y"])
def test_lazy_rows_are_checked_like_others(lazy):
    da = pytest.importorskip("dask.array")

    def rows(A, name, chunk=2):
        return da.from_array(A, chunks=(chunk, A.shape[1])) if name in lazy.split(" and ") else A

    method = Lazy()
    training = check_training(method, rows(X, "X"), rows(L, "Y"))
    assert method.n_features_in_ == 3
    assert training.X.chunks == ((2, 2), (3,))
    assert training.labels.chunks == ((2, 2), (2,))
    assert training.border.label_names == ["label_0", "label_1"]
    np.testing.assert_array_equal(training.labels.compute(), L)
    with pytest.raises(FeatureError, match="nothing can be learnt from one row"):
        check_training(Lazy(), rows(X[:1], "X", 1), rows(L[:1], "Y", 1))
    with pytest.raises(ShapeError, match="must have the same number of rows"):
        check_training(Lazy(), rows(X, "X"), rows(L[:3], "Y"))
    wrong = X.copy()
    wrong[3, 1] = np.nan
    with pytest.raises(FeatureError, match="NaN or infinity in row 3"):
        check_training(Lazy(), rows(wrong, "X"), rows(L, "Y"))
    new = check_new_rows(method, rows(X, "X"), rows(L, "Y"), NAMES)
    np.testing.assert_array_equal(new.labels.compute(), L)
    with pytest.raises(FeatureError, match="X has 2 features, but Lazy is expecting 3"):
        check_new_rows(method, rows(X[:, :2], "X"), rows(L, "Y"), NAMES)
    with pytest.raises(ShapeError, match="Y has 2 labels; the enhancer was fitted with 3"):
        check_new_rows(method, rows(X, "X"), rows(L, "Y"), [*NAMES, "w"])
    # what is in new rows is seen when they are computed, under the number that the row has in all
    late = check_new_rows(method, rows(wrong, "X"), rows(np.where([[0], [0], [0], [1]], 3.0, L), "Y"), NAMES)
    with pytest.raises(FeatureError, match="row 3"):
        late.X.compute()
    with pytest.raises(LabelError, match="in row 3, label 'u' is 3"):
        late.labels.compute()


@pytest.mark.parametrize("reset", [True, False])
def test_tensors_have_as_many_rows_as_can_be_used(reset):
    torch = pytest.importorskip("torch")
    method = Lazy()
    method.n_features_in_ = 3
    least = 2 if reset else 1
    assert check_features(method, torch.tensor(X[:least]), reset=reset).shape == (least, 3)
    with pytest.raises(FeatureError, match="one row" if reset else "0 sample"):
        check_features(method, torch.tensor(X[: least - 1]), reset=reset)
    with pytest.raises(FeatureError, match="0 sample"):
        check_features(method, torch.tensor(X[:0]), reset=reset)
    for row in (0, 1):
        wrong = torch.zeros((2, 3))
        wrong[row, 2] = np.inf
        with pytest.raises(FeatureError, match=f"infinity in row {row}"):
            check_features(method, wrong, reset=reset)


@pytest.mark.parametrize(("kind", "smallest"), [(np.float64, SMALLEST_FEATURE), (np.float32, SMALLEST_SINGLE)])
def test_features_whose_squares_are_lost_are_refused_by_column(kind, smallest):
    refuse_beyond_squares("GLLE", np.array([0.0, 1.01 * smallest, 1.0, 0.99 / smallest], dtype=kind))
    for entry in (0.99 * smallest, 1.01 / smallest):
        with pytest.raises(
            FeatureError, match=f"GLLE: the largest entry of X in column 2 is {entry:.3g}".replace("+", ".")
        ):
            refuse_beyond_squares("GLLE", np.array([0.0, 1.0, entry], dtype=kind))


def test_whole_numbers_have_a_least():
    check_whole_numbers("suggest", {"n": 1, "seed": 0}, n=1, seed=np.int64(0))
    for value in (0, True, 1.0, "1", None):
        with pytest.raises(ArgumentError, match=r"suggest: n must be a whole number, 1 or more; got"):
            check_whole_numbers("suggest", {"n": 1}, n=value)


def test_two_distributions_have_one_shape():
    D = L / L.sum(axis=1, keepdims=True)
    for found in check_pair(D, D[::-1]):
        assert found.shape == (4, 2)
    with pytest.raises(ShapeError, match=r"D and D_hat must have the same shape; they have \(4, 2\) and \(3, 2\)"):
        check_pair(D, D[:3])


def test_labels_that_nobody_was_asked_about_get_a_warning():
    """Beside those that are always the same, five by name at most."""
    Y = np.column_stack([np.full((4, 6), np.nan), L])
    names = [f"l{j}" for j in range(8)]
    with pytest.warns(LabelWarning, match=r"6 of 8 labels are unasked .*: 'l0', 'l1', 'l2', 'l3', 'l4'\. Consider"):
        judge_labels(examine(None, Y), names)
    always = np.column_stack([np.ones(4), np.zeros(4), np.full(4, 0.5), np.full(4, 0.5)])[:, [0, 1]]
    with pytest.warns(
        LabelWarning, match=r"2 of 2 labels are the same .*'u' \(always 1\), 'v' \(always 0\)\. Consider"
    ):
        judge_labels(examine(None, always), NAMES)
    judge_labels(examine(None, np.full((4, 2), 0.5)), NAMES)  # confidences may be


def test_degrees_of_no_row_are_no_degrees_and_lazy_ones_are_looked_for():
    assert len(check_degrees(np.full((4, 2), np.nan), NAMES, 4, X, L).rows) == 0
    da = pytest.importorskip("dask.array")
    some = np.full((4, 2), np.nan)
    some[[1, 3]] = [[0.25, 0.75], [1.0, 0.0]]
    found = check_degrees(da.from_array(some, chunks=(2, 2)), NAMES, 4, X, L)
    np.testing.assert_array_equal(found.rows, [1, 3])
    np.testing.assert_array_equal(found.degrees, some[[1, 3]])


def test_columns_become_a_table_of_the_library_that_came_in():
    columns = {"a": [1, 2], "b": ["x", "y"]}
    assert as_table(columns, None) is columns
    assert isinstance(as_table(columns, "pandas"), pd.DataFrame)
    assert isinstance(as_table(columns, "polars"), pl.DataFrame)
    assert Border(NAMES).library is None
    assert [Border(NAMES, as_frame(f(columns))).library for f in (pd.DataFrame, pl.DataFrame)] == ["pandas", "polars"]


def test_tensors_of_whole_numbers_give_degrees_in_double_precision():
    torch = pytest.importorskip("torch")
    for kind, expected in ((torch.int64, torch.float64), (torch.float32, torch.float32)):
        found = Temperature().fit_enhance(torch.tensor(X), torch.tensor(L).to(kind))
        assert found.dtype == expected
