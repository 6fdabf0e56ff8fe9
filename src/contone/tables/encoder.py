"""Columns as they are to a matrix of numbers: missing entries, categories, dates, constant columns.

    number      the number; a missing one is the median of the column, beside a 0/1 column that says so
    category    one 0/1 column per class (one for two classes); a class that was not seen gets zeros
    text        a few numbers: the tf-idf weights of its groups of three and four letters (inside words), projected on
                the leading singular vectors of the texts of the fit (latent semantic analysis)
    date        days since 1970
    constant    left out, as long as another column is left

A scikit-learn transformer on frames of any kind. Its fitted state is plain values, so that a model file can hold it.
Letters and not words, so that a typing error or another ending changes little and no list of words of a language is
needed; these are the settings of skrub's `StringEncoder`, whose columns are the same up to their signs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from contone.base import COUNT, estimator, parameter
from contone.exceptions import FeatureError, InputTypeError
from contone.tables.columns import shown
from contone.tables.settings import as_names
from contone.typing import Matrix

FEW = 10
"""Whole numbers with so many different values or fewer may be names of classes."""
LETTERS = (3, 4)
MOST_TERMS = 50_000
"""Different groups of letters that are kept, the most frequent ones."""


@dataclass(frozen=True)
class TextMap:
    """What a text becomes: weights of its terms, projected.

    Attributes
    ----------
    terms : tuple of str
        Groups of letters, in the order of the columns.
    idf : (v,)
        Weight of each term: the rarer, the more.
    components : (k, v)
        Directions, scaled so that the texts of the fit have a total variance of 1.
    """

    terms: tuple[str, ...]
    idf: Matrix
    components: Matrix

    @property
    def n_columns(self) -> int:
        return len(self.components)

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """The numbers (n, k) of texts; one without any known term is 0."""
        counter = CountVectorizer(analyzer="char_wb", ngram_range=LETTERS, vocabulary=self.terms)
        weights = normalize(sp.csr_array(counter.transform(texts), dtype=float) @ sp.diags_array(self.idf))
        return np.asarray(weights @ self.components.T)


def fit_text(texts: Sequence[str], n_components: int) -> TextMap | None:
    """The map that texts ask for; None where they have nothing in them, or all say the same."""
    if len(set(texts)) < 2 or not any(text.strip() for text in texts):
        return None
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=LETTERS, max_features=MOST_TERMS)
    weights = vectorizer.fit_transform(texts)
    k = min(n_components, *weights.shape)
    if k < min(weights.shape):
        components = TruncatedSVD(k, random_state=0).fit(weights).components_
    else:  # few terms: all directions, in their order
        components = np.linalg.svd(weights.toarray(), full_matrices=False)[2][:k]
    # A sign of its own for each direction, so that the answer does not depend on the solver.
    largest = np.abs(components).argmax(axis=1)
    components = components * np.sign(components[np.arange(k), largest])[:, None]
    scale = np.sqrt(np.var(weights @ components.T, axis=0).sum())
    return TextMap(tuple(vectorizer.get_feature_names_out().tolist()), vectorizer.idf_, components / (scale or 1.0))


@dataclass(frozen=True)
class ColumnStep:
    """What is done with one column.

    Attributes
    ----------
    name : str
    kind : str
        "number", "category", "text", "date" or "constant".
    fill : float
        What stands for a missing number.
    indicator : bool
        Whether a 0/1 column says where an entry was missing.
    classes : tuple of str
        Of a category; the first is left out where there are two.
    n_missing : int
        In the rows of `fit`.
    text : TextMap or None
        Of a text.
    """

    name: str
    kind: str
    fill: float = 0.0
    indicator: bool = False
    classes: tuple[str, ...] = ()
    n_missing: int = 0
    text: TextMap | None = None

    @property
    def outputs(self) -> list[str]:
        """Names of the columns that come out."""
        if self.kind == "constant":
            return []
        if self.text is not None:
            return [f"{self.name}_{k}" for k in range(self.text.n_columns)]
        made = [f"{self.name}={c}" for c in self.shown_classes] if self.kind == "category" else [self.name]
        return [*made, f"{self.name} is missing"] if self.indicator else made

    @property
    def shown_classes(self) -> tuple[str, ...]:
        return self.classes[1:] if len(self.classes) == 2 else self.classes


@estimator
class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Columns of a frame (pandas, polars, pyarrow) to a matrix of numbers.

    Parameters
    ----------
    categorical : str or sequence of str, default=()
        Columns of numbers whose values are names of classes. Columns of strings are categories unless they are `text`.
    text : str or sequence of str, default=()
        Columns of free text.
    n_text : int, default=30
        Numbers that stand for a text.
    missing : {"impute", "error"}, default="impute"
        What to do with missing entries (None, NaN).

    Attributes
    ----------
    steps_ : tuple of ColumnStep
    feature_names_in_ : array of str

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"x": [1.0, None, 3.0], "c": ["u", "v", "w"], "k": [7, 7, 7]})
    >>> encoder = ColumnEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['x', 'x is missing', 'c=u', 'c=v', 'c=w']
    >>> encoder.transform(frame).tolist()
    [[1.0, 0.0, 1.0, 0.0, 0.0], [2.0, 1.0, 0.0, 1.0, 0.0], [3.0, 0.0, 0.0, 0.0, 1.0]]
    """

    categorical: Sequence[str] = parameter("array-like", str, default=())
    text: Sequence[str] = parameter("array-like", str, default=())
    n_text: int = parameter(COUNT, default=30)
    missing: str = parameter({"impute", "error"}, default="impute")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians, classes and which columns are constant."""
        self._validate_params()
        frame = _frame(X)
        absent = [name for name in (*as_names(self.categorical), *as_names(self.text)) if name not in frame.columns]
        if absent:
            raise FeatureError(f"there is no column {absent[0]!r}; the frame has {shown(frame.columns, form=str)}.")
        numbers = _numbers(frame, self.categorical)
        steps = tuple(self._step(column, numbers.get(column.name)) for column in frame.iter_columns())
        if all(step.kind == "constant" for step in steps):  # nothing would be left
            steps = tuple(ColumnStep(step.name, "number") for step in steps)
        self.steps_ = steps
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = len(steps)
        return self

    def transform(self, X: Any) -> Matrix:
        """A matrix (n, d) of numbers; columns are found by name, in any order."""
        check_is_fitted(self)
        frame = _frame(X)
        there = set(frame.columns)
        absent = [step.name for step in self.steps_ if step.name not in there]
        if absent:
            raise FeatureError(f"the table lacks {len(absent)} columns: {', '.join(map(repr, absent[:5]))}.")
        columns = {column.name: column for column in frame.iter_columns()}
        numbers = _numbers(frame, [step.name for step in self.steps_ if step.kind in ("category", "text")])
        blocks = [b for s in self.steps_ for b in self._columns(s, columns[s.name], numbers.get(s.name))]
        return np.column_stack(blocks) if blocks else np.empty((len(frame), 0))

    def unseen_classes(self, X: Any) -> dict[str, list[str]]:
        """Classes of a frame that were not in the rows of the fit, by column."""
        frame = _frame(X)
        found = {}
        for step in self.steps_:
            if step.kind == "category":
                classes = {value for value in _classes(frame[step.name]) if value is not None}
                found[step.name] = sorted(classes.difference(step.classes), key=_class_order)
        return {name: unseen for name, unseen in found.items() if unseen}

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns that come out."""
        check_is_fitted(self)
        return np.array([name for step in self.steps_ for name in step.outputs], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _step(self, column: Any, numbers: Matrix | None) -> ColumnStep:
        name = column.name
        if name in as_names(self.text):
            found = fit_text(_texts(column), self.n_text)
            return ColumnStep(name, "constant" if found is None else "text", text=found)
        if numbers is None:
            values = _classes(column)
            missing = sum(v is None for v in values)
            classes = tuple(sorted({v for v in values if v is not None}, key=_class_order))
            self._refuse(name, missing)
            if len(classes) < 2 and not missing:
                return ColumnStep(name, "constant", classes=classes)
            return ColumnStep(name, "category", 0.0, missing > 0, classes, missing)
        there = numbers[~np.isnan(numbers)]
        missing = len(numbers) - len(there)
        self._refuse(name, missing)
        kind = "date" if column.dtype.is_temporal() else "number"
        if there.size == 0 or (not missing and (there == there[0]).all()):
            return ColumnStep(name, "constant", n_missing=missing)
        return ColumnStep(name, kind, float(np.median(there)), missing > 0, n_missing=missing)

    def _refuse(self, name: str, missing: int) -> None:
        if missing and self.missing == "error":
            raise FeatureError(
                f"the column {name!r} has {missing} missing entries: fill or drop these rows first, choose other "
                "columns, or let them be filled (missing='impute')."
            )

    def _columns(self, step: ColumnStep, column: Any, numbers: Matrix | None) -> list[Matrix]:
        if step.kind == "constant":
            return []
        if step.text is not None:
            return [step.text(_texts(column))]
        if step.kind == "category":
            values = np.array(_classes(column), dtype=object)
            absent = np.array([v is None for v in values])
            made = [(values == c).astype(float) for c in step.shown_classes]
        elif numbers is None:
            raise FeatureError(f"the column {step.name!r} must hold numbers, as it did in the fit.")
        else:
            absent = np.isnan(numbers)
            made = [np.where(absent, step.fill, numbers)]
        self._refuse(step.name, int(absent.sum()))
        return [*made, absent.astype(float)] if step.indicator else made


def described(encoder: ColumnEncoder, frame: Any, *, ask: bool = True) -> list[str]:
    """What was done with the columns of a frame, one line per kind of treatment; empty where nothing was.

    `ask` names whole numbers with few values, which may be classes; a format that declares classes knows better.
    """
    steps = encoder.steps_
    numbers = _numbers(_frame(frame), [s.name for s in steps if s.kind != "number"]) if ask else {}
    said = {
        "missing entries filled with the median, beside a column that says where: {}": [
            f"{s.name} ({s.n_missing} of {len(frame):,})" for s in steps if s.n_missing
        ],
        "categories, one column per class: {}": [f"{s.name} ({len(s.classes)})" for s in steps if s.kind == "category"],
        "texts, as numbers (groups of letters, tf-idf, truncated SVD): {}": [
            f"{s.name} ({s.text.n_columns})" for s in steps if s.text is not None
        ],
        "constant columns, left out: {}": [s.name for s in steps if s.kind == "constant"],
        "whole numbers with few values, taken as quantities: {} (--categorical if they name classes)": [
            name for name, column in numbers.items() if _has_few_whole_numbers(column)
        ],
    }
    return [line.format(shown(entries, 5, str)) for line, entries in said.items() if entries]


def _frame(X: Any) -> Any:
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError as error:
        raise InputTypeError(f"X is a {type(X).__name__}: pass a data frame (pandas, polars, pyarrow).") from error


def _numbers(frame: Any, others: Sequence[str]) -> dict[str, Matrix]:
    """Columns of numbers, truth values and dates (days since 1970) as numbers, but for the `others`."""
    schema, taken = frame.schema, set(as_names(others))
    plain = [n for n, kind in schema.items() if n not in taken and (kind.is_numeric() or kind == nw.Boolean)]
    dates = [n for n, kind in schema.items() if n not in taken and kind.is_temporal()]
    found = {}
    for name in dates:
        days = np.asarray(frame[name].cast(nw.Datetime("us")).to_numpy(), dtype="datetime64[us]")
        found[name] = np.where(np.isnat(days), np.nan, days.astype(np.int64) / 86_400_000_000)
    if frame.implementation.is_polars() and plain:  # all at once: a wide table has many columns
        matrix = np.asarray(frame.select(nw.col(*plain).cast(nw.Float64)).to_numpy(), dtype=float)
        return found | dict(zip(plain, matrix.T, strict=True))
    return found | {name: np.asarray(frame[name].cast(nw.Float64).to_numpy(), dtype=float) for name in plain}


def _texts(column: Any) -> list[str]:
    return ["" if value is None or value != value else str(value) for value in column.to_list()]


def _classes(column: Any) -> list[str | None]:
    return [_class(value) for value in column.to_list()]


def _class(value: Any) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    return text if text and text != "?" else None


def _class_order(name: str) -> tuple[bool, float, str]:
    """Whole numbers in their order, then text in its own."""
    return (not name.lstrip("-").isdecimal(), float(name) if name.lstrip("-").isdecimal() else 0.0, name)


def _has_few_whole_numbers(column: Matrix) -> bool:
    numbers = column[~np.isnan(column)]
    return bool((numbers == np.round(numbers)).all()) and 2 < len(np.unique(numbers)) <= FEW
