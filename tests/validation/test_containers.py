"""Bad input gets a named error that says what to do, good input of any kind is taken, and nothing is ever changed."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from contone import AAKNN, ML2, HSICReducer, Temperature
from contone.base import Enhancer
from contone.exceptions import (
    ContoneError,
    FeatureError,
    InputError,
    InputTypeError,
    LabelError,
    LabelWarning,
    ShapeError,
)
from contone.numerics.solution import Solution
from contone.validation.containers import numbers_from_objects, open_border, refuse_other_index
from contone.validation.degrees import check_degrees, check_degrees_of_items
from contone.validation.distributions import check_distributions, check_shares, check_truth
from contone.validation.groups import check_annotators
from contone.validation.training import SIMPLEX_TOLERANCE, examine, judge_labels

X = np.arange(12.0).reshape(4, 3)
L = np.array([[1, 0], [0, 1], [1, 1], [1, 0]])


class Dense(Enhancer):
    """A method that needs dense features and remembers what it was given."""

    def _fit_enhance(self, X, L):
        self.given_ = X, L
        return Solution(L / L.sum(axis=1, keepdims=True))


def changed(A, row, column, value):
    A = A.astype(float)
    A[row, column] = value
    return A


def frame(columns, A=X):
    return pd.DataFrame(A, columns=columns)


REFUSED_BY_SOME = ("NaN in Y", "null in Y", "a row without labels")
"""What most methods take; the others name them."""

text_column = pd.DataFrame({"a": [1, 2, 3, 4], "b": list("wxyz")})

BAD = {
    "NaN in X": (changed(X, 1, 1, np.nan), L, FeatureError, "contains NaN.*impute or drop such rows"),
    "inf in X": (changed(X, 1, 1, np.inf), L, FeatureError, "infinity.*impute or drop such rows"),
    "null in X": (pl.DataFrame({"a": [1, None, 3, 4]}), L, FeatureError, "contains NaN.*impute or drop"),
    "label 2": (X, L * 2, LabelError, "0 and 1 only.*in row 0, label 'label_0' is 2. Turn the labels into 0 and 1"),
    "label -1": (X, np.where(L == 0, -1, 1), LabelError, "in row 0, label 'label_1' is -1"),
    "NaN in Y": (
        X,
        changed(L, 2, 0, np.nan),
        LabelError,
        "missing .NaN.*row 2: say 0 or 1 for every label, or use a method that takes NaN.*Inversion.*Temper",
    ),
    "inf in Y": (X, changed(L, 2, 0, np.inf), LabelError, "infinite entry in row 2: say 0 or 1"),
    "NaN among confidences": (X, [[0.5, 0.5], [1, 0], [np.nan, 1], [0, 1]], LabelError, "NaN.*row 2 beside numbers"),
    "null in Y": (
        X,
        pl.DataFrame({"a": [1, 0, None, 1], "b": [0, 1, 1, 0]}),
        LabelError,
        "missing .*row 2: say 0 or 1",
    ),
    "confidences that do not add up": (
        X,
        [[0.5, 0.5], [1, 0], [0.2, 0.7], [0, 1]],
        LabelError,
        "in row 2, label 'label_0' is 0.2.*divide each row of confidences by its sum",
    ),
    "labels among confidences": (X, [[0.5, 0.5], [1, 0], [1, 1], [0, 1]], LabelError, "in row 2, the sum is 2"),
    "a row without labels": (
        X,
        L * [[1], [0], [1], [1]],
        LabelError,
        "without any label .1 of 4, first row 1.*Drop these rows, or give them their labels, or .*Inversion.*Uniform",
    ),
    "row counts differ": (X, L[:3], ShapeError, "same number of rows; they have 4 and 3"),
    "empty": (X[:0], L[:0], FeatureError, "0 sample.*X is empty: pass at least two rows"),
    "no labels at all": (X, L[:0], ShapeError, "they have 4 and 0"),
    "no features": (X[:, :0], L, FeatureError, "0 feature.*pass at least one feature"),
    "no label columns": (X, L[:, :0], ShapeError, "a column per label; got .4, 0."),
    "one row": (X[:1], L[:1], FeatureError, "nothing can be learnt from one row; pass more rows"),
    "text column in X": (text_column, L, InputTypeError, "these columns do not: 'b'. Drop them, or let .*Encoder"),
    "text column in X, polars": (
        pl.DataFrame(text_column.to_dict("list")),
        L,
        InputTypeError,
        "these columns do not: 'b'. Drop them, or let .*ColumnEncoder",
    ),
    "text column in Y": (X, text_column, InputTypeError, "Y must hold numbers only; these columns do not: 'b'"),
    "object column": (frame(list("abc")).astype({"c": object}), L, InputTypeError, "do not: 'c'. Drop them, or"),
    "categories": (pd.DataFrame({"a": pd.Categorical(list("xyxy"))}), L, InputTypeError, "these columns do not: 'a'"),
    "text in X": ([["a", "b"]] * 4, L, FeatureError, "could not convert string.*drop or encode text columns"),
    "text in Y": (X, [["a", "b"]] * 4, InputTypeError, "must hold numbers.*MultiLabelBinarizer"),
    "objects in Y": (
        X,
        np.where(L > 0, "yes", "no").astype(object),
        InputTypeError,
        "must hold numbers .0 and 1, or bool.; it holds object",
    ),
    "duplicate columns in X": (
        frame(["a", "b", "a"]),
        L,
        InputError,
        "X has duplicate column names: a. Rename",
    ),
    "duplicate columns in Y": (X, frame(["p", "p"], L), InputError, "Y has duplicate column names: p. Rename or drop"),
    "column names of mixed kinds": (frame([0, "b", 1]), L, InputTypeError, "string names"),
    "ragged Y": (X, [[1, 0], [1], [1, 0], [0, 1]], ShapeError, "Y is not a rectangular table"),
    "ragged X": ([[1, 0], [1], [1, 0], [0, 1]], L, FeatureError, "sequence"),
    "Y of three dimensions": (X, np.ones((4, 2, 2)), ShapeError, "a column per label; got .4, 2, 2."),
    "X of one dimension": (X[:, 0], L, FeatureError, "Expected 2D array"),
    "complex Y": (X, L + 0j, InputTypeError, "Y is complex: pass real numbers"),
    "complex X": (X + 0j, L, InputTypeError, "Complex data not supported"),
    "masked Y": (X, np.ma.masked_array(L, L == 0), InputTypeError, "Y is a masked array.*filled"),
    "masked X": (np.ma.masked_array(X, X > 1), L, InputTypeError, "X is a masked array.*filled"),
    "dates as X": (X.astype("datetime64[s]"), L, InputTypeError, "X holds dates or durations"),
    "durations as Y": (X, L.astype("timedelta64[s]"), InputTypeError, "Y holds dates or durations"),
    "no Y": (X, None, LabelError, "requires y to be passed.*Pass the labels Y"),
    "a dict as Y": (X, {"a": [1, 0, 1, 1]}, InputTypeError, "Y is a dict, not a table"),
    "a lazy frame as Y": (X, pl.DataFrame(L).lazy(), InputTypeError, "Y is a LazyFrame: collect it"),
    "a lazy frame as X": (pl.DataFrame(X).lazy(), L, InputTypeError, "X is a LazyFrame: collect it"),
    "numbers that are no class": (
        X,
        [0.5, 1.5, 2, 1],
        LabelError,
        "one class per row; entry 0 is.*one column per label",
    ),
    "NaN among classes": (X, [0, np.nan, 1, 1], LabelError, "entry 1 is .*nan"),
    "inf among classes": (X, [0, np.inf, 1, 1], LabelError, "entry 1 is .*inf"),
    "None among classes": (X, ["a", None, "b", "a"], InputTypeError, "mixes kinds.*Drop rows without a class"),
    "text and numbers as classes": (X, np.array(["a", 1, 2, "b"], dtype=object), InputTypeError, "all as numbers"),
}


def same(a, b):
    if isinstance(a, pd.DataFrame | pl.DataFrame):
        return a.equals(b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return type(a) is type(b) and str(a) == str(b)


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_named_error_that_says_what_to_do(case):
    features, labels, kind, message = BAD[case]
    kept = copy.deepcopy((features, labels))
    method = ML2() if case in REFUSED_BY_SOME else Temperature()
    with pytest.raises(kind, match=f"(?s){message}") as caught:
        method.fit_enhance(features, labels)
    assert isinstance(caught.value, ContoneError)
    assert isinstance(caught.value, ValueError)
    assert not hasattr(method, "label_distributions_")
    assert same(kept[0], features)
    assert same(kept[1], labels)


@pytest.mark.parametrize("value", [0, 1])
def test_a_label_that_is_always_the_same_gets_a_warning(value):
    Y = pd.DataFrame({"p": L[:, 0], "same": value, "q": L[:, 1]})
    with pytest.warns(LabelWarning, match=f"1 of 3 labels are the same in every row.*'same' .always {value}.*dropping"):
        D = Temperature().fit_enhance(X, Y)
    np.testing.assert_allclose(D.sum(axis=1), 1)


def test_the_warning_points_at_the_line_of_the_user():
    Y = np.column_stack([L, np.ones(4)])
    with pytest.warns(LabelWarning) as caught:
        Temperature().fit(X, Y)
    assert caught[0].filename == __file__


def test_a_single_label_is_certain():
    with pytest.warns(LabelWarning):
        D = Temperature().fit_enhance(X, np.ones((4, 1)))
    np.testing.assert_array_equal(D, np.ones((4, 1)))


# -------------------------------------------------------------------------------------------------- what is accepted


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.float32, float])
def test_bool_and_whole_number_labels_are_the_same_labels(kind):
    np.testing.assert_array_equal(Temperature().fit_enhance(X, L.astype(kind)), Temperature().fit_enhance(X, L))


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint8, bool, object])
def test_features_of_any_number_type(kind):
    given, _ = Dense().fit(X.astype(kind), L).given_
    assert given.dtype == np.float64
    np.testing.assert_array_equal(given, X.astype(kind).astype(float))


def test_read_only_and_non_contiguous_arrays_are_taken_and_never_written_to():
    big_X, big_L = np.repeat(X, 2, axis=1), np.asfortranarray(np.repeat(L, 2, axis=0))
    views = big_X[::-1, ::2], big_L[::-2]
    big_X.flags.writeable = big_L.flags.writeable = False
    method = Dense()
    D = method.fit_enhance(*views)
    np.testing.assert_array_equal(method.given_[0], X[::-1])
    np.testing.assert_array_equal(method.given_[1], L[::-1])
    np.testing.assert_allclose(D.sum(axis=1), 1)


def test_a_method_gets_c_ordered_float64_that_it_cannot_write_to():
    features, labels = X.copy(), L.astype(float)
    given_X, given_L = Dense().fit(features, labels).given_
    for given in (given_X, given_L):
        assert given.dtype == np.float64
        assert given.flags.c_contiguous
        assert not given.flags.writeable
    assert features.flags.writeable  # the caller's own arrays keep their flags
    assert labels.flags.writeable


def test_lists_and_tuples():
    expected = Temperature().fit_enhance(X, L)
    np.testing.assert_array_equal(Temperature().fit_enhance(X.tolist(), L.tolist()), expected)
    np.testing.assert_array_equal(Temperature().fit_enhance(tuple(map(tuple, X)), tuple(map(tuple, L))), expected)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_features_where_the_method_allows_them(kind):
    np.testing.assert_array_equal(Temperature().fit_enhance(kind(X), L), Temperature().fit_enhance(X, L))
    with pytest.raises(InputTypeError, match=r"Dense needs dense features: pass X.toarray\(\)"):
        Dense().fit(kind(X), L)


def test_sparse_labels():
    np.testing.assert_array_equal(Temperature().fit_enhance(X, sp.csr_array(L)), Temperature().fit_enhance(X, L))


def test_confidences_are_taken_as_they_are():
    F = np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75], [0.125, 0.875]])
    np.testing.assert_array_equal(Dense().fit(X, F).given_[1], F)


# -------------------------------------------------------------------------------------------- containers in and out


def test_pandas_in_pandas_out_with_index_and_names():
    index = pd.Index(list("wxyz"), name="id")
    Y = pd.DataFrame(L, columns=["calm", "loud"], index=index)
    method = Temperature()
    D = method.fit_enhance(pd.DataFrame(X, columns=list("abc"), index=index), Y)
    assert isinstance(D, pd.DataFrame)
    pd.testing.assert_index_equal(D.index, index)
    assert list(D.columns) == method.label_names_ == ["calm", "loud"]
    assert list(method.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(D.to_numpy(), Temperature().fit_enhance(X, L))
    assert isinstance(method.label_distributions_, np.ndarray)


@pytest.mark.parametrize(
    "columns",
    [pd.RangeIndex(2), pd.Index([10, 20]), pd.MultiIndex.from_tuples([("mood", "calm"), ("mood", "loud")])],
)
def test_pandas_column_names_that_are_not_text_come_back_as_they_were(columns):
    D = Temperature().fit_enhance(X, pd.DataFrame(L, columns=columns))
    pd.testing.assert_index_equal(D.columns, columns)


@pytest.mark.parametrize("kind", ["Int64", "boolean", "bool", "float64[pyarrow]"])
def test_pandas_types_of_other_kinds(kind):
    D = Temperature().fit_enhance(pd.DataFrame(X, dtype="float64[pyarrow]"), pd.DataFrame(L).astype(kind))
    np.testing.assert_array_equal(D.to_numpy(), Temperature().fit_enhance(X, L))


def test_truth_values_beside_numbers():
    Y = pd.DataFrame({"calm": L[:, 0].astype(bool), "loud": L[:, 1]})
    features = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 3})
    np.testing.assert_array_equal(Temperature().fit_enhance(features, Y).to_numpy(), Temperature().fit_enhance(X, L))
    polars = Temperature().fit_enhance(pl.DataFrame(features.to_dict("list")), pl.DataFrame(Y.to_dict("list")))
    np.testing.assert_array_equal(polars.to_numpy(), Temperature().fit_enhance(X, L))


def test_polars_in_polars_out():
    D = Temperature().fit_enhance(pl.DataFrame(X, schema=list("abc")), pl.DataFrame(L, schema=["calm", "loud"]))
    assert isinstance(D, pl.DataFrame)
    assert D.columns == ["calm", "loud"]
    np.testing.assert_array_equal(D.to_numpy(), Temperature().fit_enhance(X, L))


def test_the_labels_decide_the_container():
    assert isinstance(Temperature().fit_enhance(pd.DataFrame(X), L), np.ndarray)
    assert isinstance(Temperature().fit_enhance(pd.DataFrame(X), pl.DataFrame(L)), pl.DataFrame)


def test_a_learner_predicts_in_the_container_of_its_features():
    D = pd.DataFrame([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75], [0.5, 0.5]], columns=["calm", "loud"], index=[9, 8, 7, 6])
    features = pd.DataFrame(X, columns=list("abc"), index=[9, 8, 7, 6])
    model = AAKNN(n_neighbors=1).fit(features, D)
    predicted = model.predict(features)
    pd.testing.assert_index_equal(predicted.index, features.index)
    assert list(predicted.columns) == ["calm", "loud"]
    assert isinstance(AAKNN(n_neighbors=1).fit(X, D).predict(X), np.ndarray)


def test_one_class_a_row_becomes_one_column_a_class():
    for y in (["b", "a", "c", "a"], np.array([5, 2, 9, 2]), np.array([1.0, 0.0, 2.0, 0.0])):
        method = Dense().fit(X, y)
        np.testing.assert_array_equal(method.given_[1], [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]])
    assert Dense().fit(X, ["b", "a", "c", "a"]).label_names_ == ["a", "b", "c"]
    D = Temperature().fit_enhance(X, pd.Series(["b", "a", "c", "a"], index=[4, 3, 2, 1]))
    assert list(D.columns) == ["a", "b", "c"]
    assert list(D.index) == [4, 3, 2, 1]


def test_names_of_the_features_must_be_the_same_at_predict():
    D = [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75], [0.5, 0.5]]
    model = AAKNN(n_neighbors=1).fit(frame(list("abc")), D)
    with pytest.raises(FeatureError, match="feature names should match"):
        model.predict(frame(list("abd")))
    with pytest.raises(FeatureError, match="2 features, but AAKNN is expecting 3"):
        AAKNN(n_neighbors=1).fit(X, D).predict(X[:, :2])


# ------------------------------------------------------------------------------------------------------ distributions


def test_distributions_off_by_rounding_are_renormalised_and_the_input_left_alone():
    D = np.array([[0.5, 0.5 + SIMPLEX_TOLERANCE / 2]])
    kept = D.copy()
    np.testing.assert_allclose(check_distributions(D).sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_array_equal(D, kept)


@pytest.mark.parametrize(
    ("D", "message"),
    [
        ([[0.5, 0.4]], "row 0 sums to 0.9 .1 such rows.. Divide each row by its sum"),
        ([[0.5, 0.5], [1.5, -0.5]], "negative degree in row 1"),
        ([[np.nan, 1.0]], "NaN or infinite entries in row 0"),
    ],
)
def test_what_is_not_a_distribution(D, message):
    with pytest.raises(LabelError, match=message):
        check_distributions(D)


# ---------------------------------------------------------------- what is found, how answers leave


@pytest.mark.parametrize("seed", range(30))
def test_what_is_found_in_pieces_is_what_is_found_in_all_rows(seed):
    """Findings of parts add up to those of the whole, wherever it is cut and whatever is wrong where."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(12, 2)), rng.integers(0, 2, size=(12, 3)).astype(float)
    if seed % 2:
        Y = rng.dirichlet(np.ones(3), 12)  # confidences, some of which may be rows of 0 and 1
        Y[rng.integers(12)] = [1, 1, 0]
    for odd in rng.choice([0.4, 2.0, -1.0, np.nan, np.inf], size=rng.integers(3)):
        Y[rng.integers(12), rng.integers(3)] = odd
    Y[rng.integers(12)] = rng.choice([0.0, np.nan])
    X[rng.integers(12), 0] = rng.choice([0.0, np.inf])
    whole = examine(X, Y)
    for cut in (1, 5, 11):
        parts = examine(X[:cut], Y[:cut]) + examine(X[cut:], Y[cut:])
        for name in vars(whole) if hasattr(whole, "__dict__") else whole.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_answer_leaves_as_the_frame_that_was_asked_for(library):
    D = np.array([[0.2, 0.8], [0.5, 0.5]])
    given = pd.DataFrame([[1.0], [2.0]], index=["a", "b"])
    found = open_border(given, ["yes", "no"]).as_frame(D, library, given)
    assert type(found).__module__.split(".")[0] == library
    assert [*found.columns] == ["yes", "no"]
    np.testing.assert_array_equal(found.to_numpy(), D)
    if library == "pandas":
        assert [*found.index] == ["a", "b"]
        plain = open_border(given.to_numpy(), ["yes", "no"]).as_frame(D, library, given.to_numpy())
        assert [*plain.index] == [0, 1]
    da = pytest.importorskip("dask.array")
    with pytest.raises(InputError, match="into memory"):
        open_border(given, ["yes", "no"]).as_frame(da.from_array(D), library, given)


def test_objects_become_numbers_only_where_all_of_them_are():
    mixed = pd.DataFrame({"a": [1, None], "b": [True, pd.NA]}, dtype=object, index=[7, 8])
    found = numbers_from_objects(mixed)
    np.testing.assert_array_equal(found.to_numpy(dtype=float), [[1, 1], [np.nan, np.nan]])
    assert [*found.index] == [7, 8]
    words = pd.DataFrame({"a": ["x", None]})
    numbers = pd.DataFrame({"a": [0.5, 1.0]})
    assert numbers_from_objects(words) is words
    assert numbers_from_objects(numbers) is numbers
    nulls = pl.DataFrame({"a": [1, 0], "b": [None, None]})
    np.testing.assert_array_equal(numbers_from_objects(nulls).to_numpy().astype(float), [[1, np.nan], [0, np.nan]])


@pytest.mark.parametrize("kind", ["array", "dask", "index of Y", "row numbers", "items"])
def test_graded_rows_are_the_same_however_they_are_given(kind):
    D = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    rows, names, labels = np.array([4, 0, 2]), ["u", "v"], [*"abcde"]
    whole = np.full((5, 2), np.nan)
    whole[rows] = 2 * D / 2
    Y = pd.DataFrame(np.ones((5, 2)), columns=names, index=labels)
    some = pd.DataFrame(D[:, ::-1], columns=names[::-1])
    if kind == "array":
        found = check_degrees(whole, names, 5, X, Y)
    elif kind == "dask":
        found = check_degrees(pytest.importorskip("dask.array").from_array(whole, chunks=(2, 2)), names, 5, X, Y)
    elif kind == "index of Y":
        found = check_degrees(some.set_axis([labels[i] for i in rows]), names, 5, X, Y)
    elif kind == "row numbers":
        found = check_degrees(some.set_axis(rows), names, 5, X, Y.to_numpy())
    else:
        found = check_degrees_of_items(some.set_axis([labels[i] for i in rows]), names, labels)
        with pytest.raises(LabelError, match="'z' that is not in groups"):
            check_degrees_of_items(some.set_axis(["a", "z", "b"]), names, labels)
        with pytest.raises(LabelError, match="twice"):
            check_degrees_of_items(some.set_axis(["a", "a", "b"]), names, labels)
    np.testing.assert_array_equal(found.rows, [0, 2, 4])
    np.testing.assert_allclose(found.degrees, D[[1, 2, 0]])


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("label", [0, 1])
def test_the_place_of_a_wrong_label_is_named_wherever_it_is(row, label):
    def judge(Y, **options):
        judge_labels(examine(None, Y), ["u", "v"], constant=False, **options)

    with pytest.raises(LabelError, match=f"in row {row}, label '{'uv'[label]}' is 3"):
        judge(changed(L, row, label, 3.0))
    with pytest.raises(LabelError, match=f"in row {row}"):
        judge(changed(L, row, label, np.nan), unasked=False)
    judge(changed(L, row, label, np.nan))
    with pytest.raises(LabelError, match=f"row {row}: say 0 or 1"):
        judge(changed(L, row, label, np.inf))
    with pytest.raises(LabelError, match=f"row {row} has others"):
        judge(changed(2 * L, row, label, 0.5), levels=True)
    judge(changed(2 * L, row, label, 5.0), levels=True)
    confidences = np.tile([0.5, 0.5], (4, 1))
    judge(confidences)
    with pytest.raises(LabelError, match=f"NaN. entry in row {row} beside numbers other than 0 and 1"):
        judge(changed(confidences, row, label, np.nan))
    with pytest.raises(LabelError, match=f"row {row}"):
        judge(changed(confidences, row, label, 0.2))


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_targets_of_a_supervised_step_are_any_finite_numbers(row, value):
    HSICReducer(n_components=1).fit(X, changed(L, row, 1, -7.5))
    with pytest.raises(LabelError, match=f"row {row}"):
        HSICReducer(n_components=1).fit(X, changed(L, row, 1, value))


@pytest.mark.parametrize("q", [1, 3])
def test_new_rows_have_the_labels_of_the_fit(q):
    method = Temperature().fit(X, L)
    with pytest.raises(ShapeError, match=f"Y has {q} labels; the enhancer was fitted with 2"):
        method.enhance(X, np.ones((4, q)))


def test_tensors_stay_tensors_for_a_method_that_takes_them():
    torch = pytest.importorskip("torch")

    class Torch(Dense):
        kinds = frozenset({"torch"})

    features, labels = torch.tensor(X), torch.tensor(L, dtype=torch.float32)
    for method, kind in ((Torch(), torch.Tensor), (Dense(), np.ndarray)):
        found = method.fit_enhance(features, labels)
        assert isinstance(found, torch.Tensor)
        assert all(isinstance(given, kind) for given in method.given_)
        np.testing.assert_allclose(found.numpy(), L / L.sum(axis=1, keepdims=True))
    classes = Torch().fit(features, torch.tensor([2, 0, 2, 1]))  # one class per row
    assert classes.label_names_ == ["0", "1", "2"]


def test_names_of_items_and_persons_are_one_per_row():
    item = np.array([0, 0, 1, 1, 2])
    with pytest.raises(ShapeError, match="5 rows"):
        check_annotators(["a", "b"], item)
    with pytest.raises(ShapeError, match="one-dimensional"):
        check_annotators([["a", "b"]] * 5, item)
    with pytest.raises(InputError, match="it is a frame"):
        check_annotators(pd.DataFrame({"who": [*"abcde"]}), item)
    found = check_annotators(pd.Series(["b", "a", "b", None, "a"]), item)  # without a name: somebody else
    assert found.number.tolist() == [1, 2, 1, 3, 2]
    assert found.names == ["b", "a", None]
    with pytest.warns(LabelWarning, match="^2 of 5 answers are by a person who answered the same item before"):
        check_annotators([*"aabbc"], item)
    with pytest.warns(LabelWarning, match="one person only"):
        check_annotators([*"aaa"], np.arange(3))


def test_a_learner_is_scored_against_its_own_classes():
    labels = ["a", "b", "c"]
    found = check_truth(AAKNN(), np.array(["c", "a", "c"]), labels)
    assert found.tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    with pytest.raises(LabelError, match="not in the fit: d"):
        check_truth(AAKNN(), np.array(["c", "d"]), labels)
    with pytest.raises(ShapeError, match="2 labels; the learner was fitted with 3"):
        check_truth(AAKNN(), [[0.5, 0.5]], labels)
    np.testing.assert_allclose(check_truth(AAKNN(), [[0.5, 0.5, 0.0]], labels), [[0.5, 0.5, 0.0]])


def test_counts_become_shares_and_rows_without_any_nan():
    np.testing.assert_array_equal(
        check_shares([[0.125, 0.375], [0, 0], [0, 2]]), [[0.25, 0.75], [np.nan, np.nan], [0, 1]]
    )
    with pytest.raises(LabelError, match="negative degree in row 1"):
        check_shares([[0, 3], [-1, 2]])
    assert check_distributions([[0.0, 1.0]]).tolist() == [[0.0, 1.0]]  # zero is a degree


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ([2, 1, 0], "same index in another order"),
        ([0, 1, 9], "row 2 is 2 in X and 9 in Y"),
        ([0, 0, 1], "row 1 is 1 in X and 0 in Y"),
    ],
)
def test_rows_that_need_not_belong_together_are_refused(index, said):
    X, Y = pd.DataFrame({"x": [1.0, 2, 3]}), pd.DataFrame({"a": [1, 0, 1]}, index=index)
    with pytest.raises(InputError, match=said):
        refuse_other_index(X, Y)
    refuse_other_index(X, Y.reset_index(drop=True))
    refuse_other_index(X, Y.to_numpy())
    refuse_other_index(X, Y[:2])  # other lengths are refused elsewhere, by their numbers of rows


@pytest.mark.parametrize(("row", "total"), [(0, 1.5), (2, 0.5)])
def test_confidences_that_do_not_sum_to_one_are_named_by_their_sum(row, total):
    Y = np.tile([0.25, 0.75], (3, 1))
    Y[row] = [1.0, 0.5] if total > 1 else [0.0, 0.5]
    with pytest.raises(LabelError, match=f"in row {row}, label 'v' is 0.5"):
        judge_labels(examine(None, Y), ["u", "v"], constant=False)
    Y[row] = [1.0, 1.0] if total > 1 else [0.0, 0.0]
    with pytest.raises(LabelError, match=f"in row {row}, the sum is {2 if total > 1 else 0}"):
        judge_labels(examine(None, Y), ["u", "v"], constant=False)
