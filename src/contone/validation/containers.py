"""Containers, opened and closed: what users hand in becomes an array, and the answer leaves as it came.

NumPy arrays, lists, sparse matrices, pandas or polars frames, torch tensors and dask arrays. A `Border` remembers how
the answer must leave: the same kind of container, with its index and column names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from array_api_compat import is_dask_array, is_torch_array

from contone.backends import get_backend
from contone.exceptions import FeatureError, InputError, InputTypeError, LabelError, ShapeError
from contone.typing import Array, Data, EstimatorLike

SMALLEST_FEATURE = 1e-150
"""Features whose largest entry is below this, or above its inverse, have squares that floating point cannot hold."""
SMALLEST_SINGLE = 1e-16
"""The same in single precision."""


@dataclass(frozen=True)
class Border:
    """How an answer leaves: the container it is wrapped in, its index and its column names."""

    label_names: list[str]
    frame: Data = None
    model: Array = None
    """The tensor or dask array whose kind, device, precision or blocks the answer shares."""

    @property
    def library(self) -> str | None:
        """Whose frames came in: "pandas" or "polars"; None for arrays."""
        return None if self.frame is None else str(self.frame.implementation)

    def wrap(self, D: Array) -> Data:
        """D (n, q) as the kind of container that came in."""
        if self.model is not None and is_torch_array(self.model):
            return _as_tensor(D, self.model)
        if self.model is not None:
            return get_backend(self.model).split_like(D, self.model)
        D = get_backend(D).to_numpy(D)
        if self.frame is None:
            return D
        answer = nw.to_native(nw.from_numpy(D, schema=self.label_names, backend=self.frame.implementation))
        index = nw.maybe_get_index(self.frame)
        if index is not None:  # pandas and its kin only
            answer.index = index
            columns = getattr(nw.to_native(self.frame), "columns", ())
            if [str(c) for c in columns] == self.label_names:  # numbers and tuples are column names too
                answer.columns = columns
        return answer

    def as_frame(self, D: Array, library: Any, X: Data) -> Data:
        """D (n, q) of the rows X as a frame of "pandas" or "polars", whatever came in."""
        if is_dask_array(D):
            raise InputError(
                f"set_output asks for {library} frames, which would bring all rows of a dask array into memory: "
                'use set_output(transform="default") with dask arrays.'
            )
        answer = nw.to_native(nw.from_numpy(get_backend(D).to_numpy(D), schema=self.label_names, backend=library))
        index = index_of(X if self.frame is None else nw.to_native(self.frame))
        if index is not None and library == "pandas":
            answer.index = index
        return answer


def as_table(columns: dict[str, list[object]], library: str | None) -> Data:
    """Columns as a frame of the library ("pandas", "polars"); as they are where there is none."""
    return columns if library is None else nw.to_native(nw.from_dict(columns, backend=cast(Any, library)))


def open_border(container: Data, label_names: Sequence[str]) -> Border:
    """The way out for an answer about the rows of `container` (predict's X)."""
    model = container if is_torch_array(container) or is_dask_array(container) else None
    return Border(list(label_names), as_frame(container), model)


def index_of(container: Data) -> Data:
    """The index of a pandas object; None for anything else."""
    index = getattr(container, "index", None)
    return index if nw.dependencies.is_pandas_index(index) else None


def refuse_other_index(X: Data, Y: Data, name: str = "Y") -> None:
    """Refuse pandas objects of one length whose indexes disagree: rows of one number need not belong together."""
    first, second = index_of(X), index_of(Y)
    if first is None or second is None or len(first) != len(second) or first.equals(second):
        return
    if first.is_unique and second.is_unique and first.isin(second).all():
        raise InputError(f"X and {name} have the same index in another order: pass {name}.loc[X.index].")
    row = first_row(np.asarray(first != second))
    one, other = first[row : row + 1].tolist()[0], second[row : row + 1].tolist()[0]
    raise InputError(
        f"X and {name} have different indexes (row {row} is {one!r} in X and {other!r} in {name}), so "
        f"that their rows may not belong together. Where they do, pass X.reset_index(drop=True) and "
        f"{name}.reset_index(drop=True)."
    )


def open_labels(Y: Data, *, name: str, estimator: EstimatorLike) -> tuple[Array, Border]:
    """Y as a float64 matrix (n, q), or a floating tensor for an estimator that takes them, and its way out."""
    if Y is None:
        raise missing_labels(name, estimator)
    if name == "Y":
        Y = numbers_from_objects(Y)
    check_columns(Y, name)
    refuse_odd_arrays(Y, name)
    frame, tensor = as_frame(Y), Y if is_torch_array(Y) else None
    if tensor is not None and tensor.ndim == 2 and "torch" in getattr(estimator, "kinds", ()):
        labels = get_backend(tensor).check_matrix(tensor, name)
        return labels, Border(default_names(labels.shape[1]), None, tensor)
    array = read_array(Y, name)
    if array.ndim == 1:
        labels, classes = _one_hot(array, name)
        return labels, Border(classes, frame, tensor)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ShapeError(f"{name} must be a matrix, a row per instance and a column per label; got {array.shape}.")
    if array.dtype.kind not in "buif":
        raise InputTypeError(
            f"{name} must hold numbers (0 and 1, or bool); it holds {array.dtype}. "
            "Turn text labels into one column per label first, e.g. with sklearn.preprocessing.MultiLabelBinarizer."
        )
    labels = np.ascontiguousarray(array, dtype=np.float64)
    odd = np.isinf(labels) if name == "Y" else ~np.isfinite(labels)  # NaN in labels: nobody asked
    if odd.any():
        raise infinite_label(name, first_row(odd.any(axis=1)))
    names = [str(c) for c in frame.columns] if frame is not None else default_names(labels.shape[1])
    return labels, Border(names, frame, tensor)


def missing_labels(name: str, estimator: EstimatorLike) -> LabelError:
    return LabelError(
        f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
        f"Pass the labels {name}: one row per instance, one column per label."
    )


def infinite_label(name: str, row: int) -> LabelError:
    return LabelError(f"{name} has a missing (NaN) or infinite entry in row {row}: say 0 or 1 for every label.")


def numbers_from_objects(Y: Data) -> Data:
    """Y with NaN in place of None, pd.NA and nulls, where its other entries are numbers or truth values.

    A column or array of objects that holds anything else stays as it is, for the checks that follow.
    """
    if nw.dependencies.is_pandas_dataframe(Y):
        numbers = _as_floats(Y.to_numpy(dtype=object)) if any(kind.kind == "O" for kind in Y.dtypes) else None
        return Y if numbers is None else type(Y)(numbers, index=Y.index, columns=Y.columns)
    if nw.dependencies.is_polars_dataframe(Y):
        empty = [name for name, kind in Y.schema.items() if str(kind) == "Null"]
        return Y.cast(dict.fromkeys(empty, type(Y)({"x": [0.5]}).schema["x"])) if empty else Y
    if isinstance(Y, list | tuple) and Y and isinstance(Y[0], list | tuple) and any(v is None for r in Y for v in r):
        Y = np.asarray(Y, dtype=object)
    if isinstance(Y, np.ndarray) and Y.dtype == object and Y.ndim == 2:
        numbers = _as_floats(Y)
        return Y if numbers is None else numbers
    return Y


def _as_floats(entries: np.ndarray) -> np.ndarray | None:
    """Objects as float64, missing ones as NaN; None where one of them is neither a number nor missing."""
    is_missing = np.frompyfunc(lambda v: v is None or type(v).__name__ in ("NAType", "NaTType"), 1, 1)
    missing = is_missing(entries).astype(bool)
    rest = entries[~missing]
    if not all(isinstance(v, Real | np.bool_) for v in rest.ravel()):
        return None
    numbers = np.full(entries.shape, np.nan)
    numbers[~missing] = rest.astype(np.float64)
    return numbers


def _one_hot(y: np.ndarray, name: str) -> tuple[np.ndarray, list[str]]:
    """One class per row, as scikit-learn writes single-label targets, becomes one column per class."""
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.round(y))).all():
        bad = first_row(~np.isfinite(y) | (y != np.round(y)))
        raise LabelError(
            f"{name} is one-dimensional, so it must hold one class per row; entry {bad} is {y[bad]!r}. Input contains "
            f"NaN or numbers that are not a class. Pass a matrix with one column per label for multi-label data."
        )
    if y.dtype.kind == "c" or y.size == 0:
        raise LabelError(f"{name} must hold one class per row; it has dtype {y.dtype} and shape {y.shape}.")
    try:
        classes, position = np.unique(y, return_inverse=True)
    except TypeError as error:  # None or NaN among text, or text among numbers: there is no order to put them in
        raise InputTypeError(
            f"{name} must hold one class per row, all of one kind; it mixes kinds ({error}). "
            "Drop rows without a class, and write all classes as text or all as numbers."
        ) from error
    labels = np.zeros((y.size, classes.size))
    labels[np.arange(y.size), position] = 1.0
    return labels, [str(c) for c in classes]


def as_frame(container: Data) -> Data:
    """A narwhals frame or series around a pandas, polars, ... object; None for anything else."""
    opened = nw.from_native(container, eager_only=True, allow_series=True, pass_through=True)
    return opened if isinstance(opened, (nw.DataFrame, nw.Series)) else None


def check_column_names(container: Data, name: str) -> None:
    """Column names of a frame must differ, and it must be there: not lazy."""
    if nw.dependencies.is_polars_lazyframe(container):
        raise InputTypeError(f"{name} is a LazyFrame: collect it into a data frame first.")
    columns = getattr(container, "columns", None)
    if columns is None or isinstance(container, np.ndarray):
        return
    listed = [str(c) for c in columns]
    repeated = sorted({c for c in listed if listed.count(c) > 1}) if len(set(listed)) < len(listed) else []
    if repeated:
        raise InputError(f"{name} has duplicate column names: {', '.join(repeated[:5])}. Rename or drop them.")


def check_columns(container: Data, name: str) -> None:
    """The same, and the columns must hold numbers."""
    check_column_names(container, name)
    frame = None if isinstance(container, np.ndarray) else as_frame(container)
    if isinstance(frame, nw.DataFrame):
        odd = [c for c, t in frame.schema.items() if not _is_number(t)]
        if odd:
            raise InputTypeError(
                f"{name} must hold numbers only; these columns do not: {', '.join(map(repr, odd[:5]))}. "
                "Drop them, or let contone.tables.ColumnEncoder() make numbers of them, in a pipeline."
            )


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric() or kind == nw.Boolean)


def read_numbers(container: Data, name: str) -> np.ndarray:
    """Any container as float64; text in it is refused."""
    try:
        return np.asarray(read_array(container, name), dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputTypeError(f"{name} must hold numbers: {error}.") from error


def read_array(container: Data, name: str) -> Array:
    check_column_names(container, name)
    if sp.issparse(container):
        return container.toarray()
    if is_torch_array(container):
        return get_backend(container).to_numpy(container)
    frame = as_frame(container)
    if isinstance(frame, nw.DataFrame) and all(_is_number(t) for t in frame.schema.values()):
        # Column by column, because pandas makes objects of numbers beside truth values, and of nullable types.
        # By position, because names may be anything, NaN among them.
        columns = [np.asarray(c.cast(nw.Float64).to_numpy(), dtype=np.float64) for c in frame.iter_columns()]
        return np.stack(columns, axis=1) if columns else np.zeros(frame.shape)
    if frame is not None:
        return frame.to_numpy()
    try:
        array = np.asarray(container)
    except ValueError as error:
        raise ShapeError(f"{name} is not a rectangular table: {error}.") from error
    if array.ndim == 0:
        raise InputTypeError(f"{name} is a {type(container).__name__}, not a table: pass an array, rows or a frame.")
    return array


def refuse_odd_arrays(A: Array, name: str) -> None:
    """Arrays whose entries would be changed by reading them as numbers: masked, dates, complex."""
    if isinstance(A, np.ma.MaskedArray):
        raise InputTypeError(f"{name} is a masked array: pass A.filled(np.nan) or drop the masked rows.")
    kind = getattr(getattr(A, "dtype", None), "kind", "")
    if kind in "mM" and kind:
        raise InputTypeError(f"{name} holds dates or durations ({A.dtype}): turn them into numbers first.")
    if kind == "c":
        raise InputTypeError(f"{name} is complex: pass real numbers. Complex data not supported.")


def refuse_beyond_squares(name: str, largest: np.ndarray) -> None:
    """Refuse features with a column whose largest entry, (d,), is so small or large that its square is lost."""
    smallest = SMALLEST_SINGLE if largest.dtype.itemsize == 4 else SMALLEST_FEATURE
    for column, entry in enumerate(map(float, largest)):
        if entry and not smallest <= entry <= 1.0 / smallest:
            raise FeatureError(
                f"{name}: the largest entry of X in column {column} is {entry:.3g}; its square, or the coefficient "
                "that it needs, is beyond floating point. Scale the features, e.g. with "
                "sklearn.preprocessing.StandardScaler."
            )


def place_beside(X: Array, labels: Array) -> Array:
    """Labels as the method wants them: a tensor beside a tensor X, else a read-only array."""
    if is_torch_array(X):
        return _as_tensor(labels, X)
    return read_only(np.asarray(get_backend(labels).to_numpy(labels), dtype=np.float64))


def _as_tensor(A: Array, model: Array) -> Array:
    """A on the device of the tensor `model`, and in its precision if that is a floating one."""
    import torch

    precise = model.dtype in (torch.float32, torch.float64)
    return torch.as_tensor(A, device=model.device, dtype=model.dtype if precise else None)


def default_names(q: int) -> list[str]:
    """What labels are called that came without names."""
    return [f"label_{j}" for j in range(q)]


def first_row(condition: Array) -> int:
    return int(np.flatnonzero(condition)[0])


def read_only(A: Array) -> Array:
    """The same array behind a view that cannot be written to: the caller's data is never changed."""
    if isinstance(A, np.ndarray):
        A = A.view()
        A.flags.writeable = False
    return A
