"""Data frames as they are to numbers, as a step of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from contone.exceptions import ArgumentError, MissingExtraError
from contone.tables.encoder import ColumnEncoder
from contone.tables.settings import as_names


def vectorizer(
    *,
    categorical: Sequence[str] = (),
    text: Sequence[str] = (),
    missing: str = "impute",
    automatic: bool = False,
) -> ColumnEncoder | Pipeline:
    """A transformer from a data frame as it is to a matrix of numbers, as `enhance_file` makes it.

    Missing numbers become the median of their column beside a column that says where, categories one column per class,
    texts a few numbers each, dates days, and constant columns are left out. This is `ColumnEncoder`: what a column is
    comes from its type and from what is named here, so that the same frame gives the same columns whatever its entries
    are, and its fitted state is plain values, which a model file can hold without a pickle:
    ``save_model(contone.make_pipeline(vectorizer(), Inversion()).fit(frame, labels), "m.contone")``.

    With `automatic`, skrub's `TableVectorizer` decides by what the columns hold: strings that are numbers or dates are
    read as such, strings with many values are taken as text, a date becomes its year, month, day and so on. That is the
    better part for a frame nobody has looked at; a model file cannot hold it.

    Parameters
    ----------
    categorical : str or sequence of str, default=()
        Columns of numbers that name classes; columns of strings are categories unless they are `text`.
    text : str or sequence of str, default=()
        Columns of free text.
    missing : {"impute", "error"}, default="impute"
    automatic : bool, default=False
        Let skrub decide (``pip install 'contone[text]'``); the other arguments are then left at their defaults.
    """
    if not automatic:
        return ColumnEncoder(categorical=as_names(categorical), text=as_names(text), missing=missing)
    if categorical or text or missing != "impute":
        raise ArgumentError("skrub decides what each column is: leave the other arguments out.", "automatic")
    try:
        from skrub import TableVectorizer
    except ImportError as error:
        raise MissingExtraError(
            "vectorizer(automatic=True) needs skrub, which is not installed: pip install 'contone[text]'."
        ) from error
    return make_pipeline(TableVectorizer(), SimpleImputer(strategy="median", add_indicator=True))
