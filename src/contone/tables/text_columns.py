"""Columns of free text to a few numbers each: latent semantic analysis of groups of letters, by scikit-learn.

A text is the tf-idf weights of its groups of three and four letters (inside words), projected on the leading singular
vectors of the texts of the fit. Letters and not words, so that a typing error or another ending changes little and no
list of words of a language is needed. These are the settings of skrub's `StringEncoder`, whose columns are the same up
to their signs; they are made from scikit-learn's parts here because a model file must hold them as plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

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
    idf: np.ndarray
    components: np.ndarray

    @property
    def n_columns(self) -> int:
        return len(self.components)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
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
        svd = TruncatedSVD(k, random_state=0).fit(weights)
        components = svd.components_
    else:  # few terms: all directions, in their order
        components = np.linalg.svd(weights.toarray(), full_matrices=False)[2][:k]
    # A sign of its own for each direction, so that the answer does not depend on the solver.
    largest = np.abs(components).argmax(axis=1)
    components = components * np.sign(components[np.arange(k), largest])[:, None]
    scale = np.sqrt(np.var(weights @ components.T, axis=0).sum())
    return TextMap(tuple(vectorizer.get_feature_names_out().tolist()), vectorizer.idf_, components / (scale or 1.0))
