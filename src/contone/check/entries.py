"""Held-out label entries: hide some, fit, and ask how well the hidden ones are told.

No truth about degrees is needed, and every method that takes unasked entries (NaN) can be asked. The score is the log
loss per entry, -mean(l log p + (1 - l) log(1 - p)). Where p, the chance that a hidden entry is marked, comes from:

- `Inversion`: the completions that its posterior makes by the rule, given the features and the labels that were left;
- other methods and the baselines: their degrees, through the increasing map p = sigmoid(a + b z) with the centred log
  degree z, fitted to one half of the hidden rows and used for the other, so that the map has not seen what it is
  scored on;
- label frequencies: how often the label is marked where it was not hidden.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone

from contone.base import Enhancer
from contone.degrade import Order
from contone.enhance import Inversion, Temperature, Uniform
from contone.enhance.inversion.chances import chances
from contone.enhance.inversion.model import Fit
from contone.exceptions import ArgumentError
from contone.numerics.unasked import asked_frequencies
from contone.typing import Array

SHARE = 0.1
"""Share of the asked entries that are hidden."""
N_SWEEPS = 60
"""Sweeps that chances are averaged over, a quarter of them left out."""
FLOOR = 1e-12


class HiddenEntries(NamedTuple):
    """Log loss per hidden entry."""

    loss: float
    error: float
    """Standard error of the difference to label frequencies."""
    baselines: dict[str, float]
    """The same of label frequencies, temperature and uniform."""
    n_entries: int


def score_hidden_entries(
    method: Enhancer, X: np.ndarray, L: np.ndarray, *, share: float = SHARE, seed: int = 0
) -> HiddenEntries:
    """Hide a share of the entries of labels L (n, q), fit a copy of the method, and score what was hidden."""
    if "unasked" not in method.kinds:
        raise ArgumentError(
            f"{type(method).__name__} does not take unasked entries (NaN), so none can be hidden from it.", "method"
        )
    masked, hidden = hide_entries(L, share, np.random.default_rng(seed))
    labels, rows = L[hidden] > 0, np.nonzero(hidden)[0]
    frequencies = np.broadcast_to(asked_frequencies(masked), L.shape)[hidden]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about entries that were hidden here
        told = _chances(clone(method).fit(X, masked), X, masked, hidden, labels, rows)
        others = {
            "label frequencies": frequencies,
            "temperature": _through_map(Temperature(c=1.0).fit_enhance(X, masked), hidden, labels, rows),
            "uniform": _through_map(Uniform().fit_enhance(X, masked), hidden, labels, rows),
        }
    own, usual = log_losses(labels, told), log_losses(labels, frequencies)
    error = float(np.std(own - usual) / np.sqrt(max(len(own), 1)))
    baselines = {name: float(log_losses(labels, p).mean()) for name, p in others.items()}
    return HiddenEntries(float(own.mean()), error, baselines, len(own))


def hide_entries(L: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n, q) with NaN in a share of the asked entries, and where these are, bool; one is hidden at least."""
    asked = np.flatnonzero(~np.isnan(L))
    chosen = rng.choice(asked, max(round(share * len(asked)), 1), replace=False)
    hidden = np.zeros(L.shape, dtype=bool)
    hidden.ravel()[chosen] = True
    return np.where(hidden, np.nan, L), hidden


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
    fitted: Any, X: np.ndarray, masked: np.ndarray, hidden: np.ndarray, labels: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    if isinstance(fitted, Inversion) and not isinstance(fitted.degradation_, Order):
        return np.asarray(completion_chances(fitted.fit_, X, masked, np.random.default_rng(0))[hidden])
    return _through_map(np.asarray(fitted.label_distributions_), hidden, labels, rows)


def _through_map(D: np.ndarray, hidden: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Chances (m,) of hidden entries from degrees D (n, q), by a map that was fitted to the other half of the rows."""
    Z = np.log(np.maximum(D, FLOOR))
    z = (Z - Z.mean(axis=1, keepdims=True))[hidden]
    scale = float(np.sqrt(np.mean(np.square(z)))) if len(z) else 0.0
    z = z / scale if scale > 1e-9 else np.zeros_like(z)
    told, half = np.empty(len(z)), rows % 2 == 0
    for part in (half, ~half):
        a, b = _fit_map(z[~part], labels[~part])
        told[part] = expit(a + b * z[part])
    return told


def _fit_map(z: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """a and b >= 0 that serve the labels best, with a weak pull to b = 0 and one imagined entry of each kind."""
    share = (labels.sum() + 1.0) / (len(labels) + 2.0)
    start = np.array([np.log(share / (1.0 - share)), 0.0])

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        t = parameters[0] + parameters[1] * z
        miss = expit(t) - labels
        imagined = 2.0 * np.logaddexp(0.0, parameters[0]) - parameters[0]
        value = float(np.sum(np.logaddexp(0.0, t) - labels * t) + imagined + 0.005 * parameters[1] ** 2)
        pull = 2.0 * expit(parameters[0]) - 1.0
        return value, np.array([miss.sum() + pull, (miss * z).sum() + 0.01 * parameters[1]])

    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(None, None), (0.0, 200.0)])
    return float(found.x[0]), float(found.x[1])
