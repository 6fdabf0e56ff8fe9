"""Held-out labels: hide some, fit, and ask how well the hidden ones are predicted.

No truth about degrees is needed. A method that takes unasked entries (NaN) has single entries hidden; one that only
predicts has whole rows hidden, and tells them from their features. The score is the log loss per hidden entry,
-mean(l log p + (1 - l) log(1 - p)). Where p, the chance that a hidden entry is marked, comes from:

- `Inversion`: the completions that its posterior makes by the rule, given the features and the labels that were left;
- other methods and the baselines: their degrees, through the increasing map p = sigmoid(a + b z) of
  `contone.numerics.label_score`, fitted to one half of the hidden rows and used for the other, so that the map has not
  seen what it is scored on;
- label frequencies: how often the label is marked where it was not hidden.

Nothing is assumed about how labels were made, except by methods that assume it. But labels say which degrees are larger
and not how much: use the score to doubt an answer or an order of methods, not to choose a scale.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from contone.base import Enhancer
from contone.enhance import Inversion, Temperature, Uniform
from contone.enhance.inversion.chances import chances
from contone.enhance.inversion.model import Fit
from contone.exceptions import ArgumentError, InputError
from contone.measurements import Order, asked_frequencies
from contone.numerics.label_score import fit_map, standardized_logs
from contone.typing import Array, EstimatorLike

OWN, FREQUENCIES = "the method", "label frequencies"
SHARE = 0.1
"""Share of the asked entries, or of the rows, that are hidden at a time."""
N_SWEEPS = 60
"""Sweeps that chances are averaged over, a quarter of them left out."""
LEAST_HIDDEN = 5
"""Fewer entries than this say nothing."""


@dataclass(frozen=True)
class HiddenEntries:
    """Log loss per hidden entry.

    Attributes
    ----------
    loss : float
    error : float
        Standard error of the difference to label frequencies.
    baselines : dict
        The loss of label frequencies, temperature and uniform.
    n_entries : int
    hidden : str
        What was hidden: "entries" or "rows".
    """

    loss: float
    error: float
    baselines: dict[str, float]
    n_entries: int
    hidden: str

    @property
    def explained(self) -> float:
        """Share of the loss of label frequencies that is saved: 1 predicts every entry, 0 no more than how frequent."""
        return 1.0 - self.loss / self.baselines[FREQUENCIES]


def can_be_asked(method: EstimatorLike) -> bool:
    """Whether labels can be hidden from a method: it takes unasked entries, or predicts rows from their features."""
    return takes_unasked(method) or hasattr(method, "predict")


def takes_unasked(method: EstimatorLike) -> bool:
    """Whether a method takes labels with NaN, and so does every method inside it."""
    inside = (value for value in method.get_params(deep=False).values() if isinstance(value, Enhancer))
    return "unasked" in method.kinds and all(map(takes_unasked, inside))


def score_hidden_entries(
    method: Enhancer, X: np.ndarray, L: np.ndarray, *, n_splits: int = 1, seed: int = 0
) -> HiddenEntries:
    """Hide a share of the labels L (n, q), fit a copy of the method, and score what was hidden; `n_splits` times.

    No entry is hidden twice.
    """
    if not can_be_asked(method):
        raise ArgumentError(
            f"{type(method).__name__} neither takes unasked entries (NaN) nor predicts new rows, so no label can be "
            "hidden from it.",
            "method",
        )
    by_rows = not takes_unasked(method)
    rng, found = np.random.default_rng(seed), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about entries that were hidden here
        for hidden in hidden_parts(L, SHARE, n_splits, rng, by_rows=by_rows):
            found.append(_chances_of_all(method, X, L, hidden))
    labels = np.concatenate([part.pop("labels") for part in found] or [np.empty(0, dtype=bool)])
    if len(labels) < LEAST_HIDDEN:
        raise InputError(f"only {len(labels)} label entries could be hidden: too few to say anything.")
    losses = {name: log_losses(labels, np.concatenate([part[name] for part in found])) for name in found[0]}
    own = losses.pop(OWN)
    error = float(np.std(own - losses[FREQUENCIES]) / np.sqrt(len(own)))
    means = {name: float(each.mean()) for name, each in losses.items()}
    return HiddenEntries(float(own.mean()), error, means, len(own), "rows" if by_rows else "entries")


def hidden_parts(
    L: np.ndarray, share: float, n_parts: int, rng: np.random.Generator, *, by_rows: bool = False
) -> list[np.ndarray]:
    """Disjoint parts, bool (n, q), of the asked entries of L (n, q), or of its rows; each a share of them."""
    asked = ~np.isnan(L)
    units = np.flatnonzero(asked.any(axis=1) if by_rows else asked)
    size = max(round(share * len(units)), 1)
    order, parts = rng.permutation(units), []
    for k in range(min(n_parts, len(units) // size)):
        hidden = np.zeros(L.shape, dtype=bool)
        chosen = order[k * size : (k + 1) * size]
        if by_rows:
            hidden[chosen] = asked[chosen]
        else:
            hidden.ravel()[chosen] = True
        parts.append(hidden)
    return parts


def _chances_of_all(method: Enhancer, X: np.ndarray, L: np.ndarray, hidden: np.ndarray) -> dict[str, np.ndarray]:
    """Chances (m,) of the hidden entries by the method and by baselines, with the labels (m,), bool."""
    labels, rows, masked = L[hidden] > 0, np.nonzero(hidden)[0], np.where(hidden, np.nan, L)
    if takes_unasked(method):
        own = _chances(clone(method).fit(X, masked), X, masked, hidden, labels, rows)
    else:
        left = ~hidden.any(axis=1)
        D = np.full(L.shape, 1.0 / L.shape[1])
        D[~left] = np.asarray(clone(method).fit(X[left], L[left]).predict(X[~left]))
        own = _through_map(D, hidden, labels, rows)
    return {
        "labels": labels,
        OWN: own,
        FREQUENCIES: np.broadcast_to(asked_frequencies(masked), L.shape)[hidden],
        "temperature": _through_map(Temperature(c=1.0).fit_enhance(X, masked), hidden, labels, rows),
        "uniform": _through_map(Uniform().fit_enhance(X, masked), hidden, labels, rows),
    }


def log_losses(labels: np.ndarray, told: np.ndarray) -> np.ndarray:
    """-log of the chance (m,) that was given to what the labels (m,), bool, turned out to be."""
    p = np.clip(told, 1e-6, 1 - 1e-6)
    losses: np.ndarray = -np.log(np.where(labels, p, 1 - p))
    return losses


def completion_chances(fit: Fit, X: np.ndarray, L: np.ndarray, rng: np.random.Generator) -> Array:
    """The chance (n, q) of every label under a fitted model, given rows X (n, d) and L (n, q) with NaN."""
    n_counted = N_SWEEPS - N_SWEEPS // 4
    # Half a count on either side: no chance is 0 or 1 by the number of sweeps alone.
    return (n_counted * chances(fit, X, L, fit.settings.noise, N_SWEEPS, rng) + 0.5) / (n_counted + 1.0)


def _chances(
    fitted: EstimatorLike, X: np.ndarray, masked: np.ndarray, hidden: np.ndarray, labels: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    if isinstance(fitted, Inversion) and not isinstance(fitted.degradation_, Order):
        return np.asarray(completion_chances(fitted.rule_fit_, X, masked, np.random.default_rng(0))[hidden])
    return _through_map(np.asarray(fitted.label_distributions_), hidden, labels, rows)


def _through_map(D: np.ndarray, hidden: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Chances (m,) of hidden entries from degrees D (n, q), by a map that was fitted to the other half of the rows."""
    z, marked = standardized_logs(D, hidden), labels.astype(float)
    told, half = np.empty(len(z)), np.isin(rows, np.unique(rows)[::2])
    for part in (half, ~half):
        a, b, _ = fit_map(z[~part], marked[~part], pull=1.0) if (~part).any() else (0.0, 0.0, 0.0)
        told[part] = expit(a + b * z[part])
    return told
