"""Which entries of a label matrix are probably wrong?

Where a share `noise` of the entries is wrong, the labels that a row would have without error are unknown, too; their
posterior given the features and the labels that were noted is that of `enhance.inversion.chances`. An entry is doubtful
as far as it differs from them. So a missing label is found where features and the other labels ask for it, and a
superfluous one where they speak against it.

The probability holds for the noise that was assumed, the same for labels that are marked and that are not; the order
depends on it little.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from contone.base import check_whole_numbers
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.chances import chances
from contone.enhance.inversion.logistic_normal import Flips
from contone.enhance.inversion.model import Fit
from contone.exceptions import ArgumentError
from contone.trust.chances import Noise, open_rows, read_noise
from contone.typing import Data
from contone.validation import Border
from contone.validation.containers import index_of

USUAL_NOISE = 0.05
"""Share of wrong entries that is assumed where nobody says one."""


class DoubtfulLabels(NamedTuple):
    """Entries of a label matrix that are probably wrong, the most doubtful first; every array is (k,)."""

    row: np.ndarray
    """Numbers of rows; where the labels came as a pandas object, their index."""
    label: np.ndarray
    """Numbers of columns; where the labels came as a frame, their names."""
    given: np.ndarray
    """Whether the label was marked, bool: a marked entry may be superfluous, another one missing."""
    probability: np.ndarray
    """Posterior probability that the entry is wrong."""


def doubtful_labels(
    method: Inversion,
    X: Data,
    Y: Data,
    *,
    noise: Noise | None = None,
    min_probability: float = 0.5,
    k: int | None = None,
    n_sweeps: int = 200,
    random_state: int = 0,
) -> DoubtfulLabels:
    """The entries of Y that are probably wrong, ranked, with a probability for each.

    Parameters
    ----------
    method : Inversion
        Its model says which labels to expect. Unfitted, a clone is fitted to X and Y with the share `noise` of wrong
        entries; a fitted one is taken as it is, on its own rows or on others.
    X : (n, d)
        Features.
    Y : (n, q)
        Labels in {0, 1}, as for every enhancer. Entries that nobody asked about (NaN) and rows without any label are
        never doubted, except under a `Threshold`, where a row of zeros says something.
    noise : float, (float, float) or None, default=None
        Share of the entries that is assumed to be wrong, in (0, 0.5). None is the method's own, or 0.05 where that is
        0.
    min_probability : float, default=0.5
        Entries with a smaller probability of being wrong are left out; 0 ranks all of them.
    k : int or None, default=None
        The maximum number of entries to return; None returns all that reach `min_probability`.
    n_sweeps : int, default=200
        Sweeps of the sampler, a quarter of them before it counts: probabilities are shares of the others.
    random_state : int, default=0
        Seed of the sampler.

    Returns
    -------
    DoubtfulLabels
        `row`, `label`, `given` and `probability`, each (k,). ``pandas.DataFrame(found._asdict())`` is a table of them.

    Examples
    --------
    >>> from contone import TopK
    >>> X = np.linspace(-2.0, 2.0, 80)[:, None]
    >>> Y = np.hstack([X < 0, X >= 0]).astype(int)
    >>> Y[10] = [1, 1]  # a slip: the rule marks one label per row
    >>> found = doubtful_labels(Inversion(degradation=TopK(1), n_sweeps=50, n_burn=20), X, Y, n_sweeps=40)
    >>> found.row.tolist(), found.label.tolist(), found.given.tolist()
    ([10], [1], [True])
    """
    noise = read_noise("doubtful_labels", method, noise, USUAL_NOISE)
    _check_arguments(noise, min_probability, k)
    check_whole_numbers("doubtful_labels", {"random_state": 0}, random_state=random_state)
    opened = open_rows("doubtful_labels", method, X, Y, noise, n_sweeps)
    rng = np.random.default_rng(random_state)
    P = probability_wrong(opened.method.rule_fit_, opened.X, opened.L, noise, n_sweeps, rng)
    return _ranked(P, opened.L, opened.border, Y, min_probability, k)


def probability_wrong(
    fit: Fit, X: Data, L: np.ndarray, noise: Noise, n_sweeps: int, rng: np.random.Generator
) -> np.ndarray:
    """Posterior probability (n, q) that each entry of L (n, q) is wrong.

    NaN where nobody asked and in rows that say nothing. Parameters of the model are those of the fit; rows are
    independent given them.
    """
    flips = Flips.of(noise)
    known = flips.forget_silent(fit.rule, L)
    marked = chances(fit, X, L, flips, n_sweeps, rng)
    if L.shape[1] == 1:
        return np.zeros(L.shape)
    return np.where(np.isnan(known), np.nan, np.where(known > 0, 1.0 - marked, marked))


def _ranked(
    P: np.ndarray, L: np.ndarray, border: Border, Y: Data, min_probability: float, k: int | None
) -> DoubtfulLabels:
    """Entries of P (n, q) in falling order, those of equal probability in the order of the rows."""
    order = np.argsort(-P, axis=None, kind="stable")
    kept = ~np.isnan(P) & ~(min_probability > P)
    order = order[kept.ravel()[order]][:k]
    row, label = np.unravel_index(order, P.shape)
    answer = border.wrap(P)
    index, names = index_of(Y), getattr(answer, "columns", border.label_names if np.ndim(Y) == 1 else None)
    return DoubtfulLabels(
        row if index is None else np.asarray(index)[row],
        label if names is None else np.asarray(names)[label],
        L[row, label] > 0,
        P[row, label],
    )


def _check_arguments(noise: Noise, min_probability: Any, k: Any) -> None:
    if not Flips.of(noise).any():
        raise ArgumentError("doubtful_labels: with noise=0 no label is wrong; give a share above 0, or None.", "noise")
    if not isinstance(min_probability, Real) or not 0 <= float(min_probability) <= 1:
        raise ArgumentError(
            f"doubtful_labels: min_probability must be from 0 to 1; got {min_probability!r}.", "min_probability"
        )
    check_whole_numbers("doubtful_labels", {"k": 1}, k=1 if k is None else k)
