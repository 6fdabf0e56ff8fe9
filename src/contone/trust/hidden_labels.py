"""Held-out labels: hide some, fit, and ask how well the hidden ones are predicted.

No truth about degrees is needed. A method that takes unasked entries (NaN) has single entries hidden; one that only
predicts has whole rows hidden, and predicts them from their features, as has every method where one entry of a row
gives away another. The score is the log loss per hidden entry,
-mean(l log p + (1 - l) log(1 - p)). Where p, the chance that a hidden entry is marked, comes from:

- `Inversion`: the completions that its posterior makes by the rule, given the features and the labels that were left;
- other methods and the baselines: their degrees, through the increasing map p = sigmoid(a + b z) of
  `contone.numerics.label_score`, fitted to one half of the hidden rows and used for the other, so that the map has not
  seen what it is scored on;
- label frequencies: how often the label is marked where it was not hidden.

Nothing is assumed about how labels were made, except by methods that assume it. But labels say which degrees are larger
and not how much: use the score to doubt an answer or an order of methods, not to choose a scale.
"""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from contone.base import Enhancer
from contone.enhance import Inversion, Temperature, Uniform
from contone.enhance.inversion.assessment import simulate_labels
from contone.enhance.inversion.chances import chances
from contone.enhance.inversion.model import Fit
from contone.exceptions import ArgumentError, InputError
from contone.measurements import Order, asked_frequencies
from contone.numerics.label_score import fit_map, standardized_logs
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding
from contone.typing import Array, EstimatorLike

OWN, FREQUENCIES = "the method", "label frequencies"
SHARE = 0.1
"""Share of the asked entries, or of the rows, that are hidden at a time."""
N_SWEEPS = 60
"""Sweeps that chances are averaged over, a quarter of them left out."""
LEAST_HIDDEN, LEAST_ROWS = 5, 6
"""Fewer hidden entries, or rows, than this say nothing."""
HIDDEN_ROWS, N_SHUFFLED, N_DRAWS = 0.25, 999, 200
"""Share of the rows that is hidden to see what features tell, how often they are shuffled, and draws of labels."""
HELP = "Do the features help?"
CLEAR = 0.01
"""Probability of a loss as small by chance under which features are said to help."""


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


class FeatureScore(NamedTuple):
    """Log loss per hidden entry with features, without, and with features of other rows; p of the latter."""

    loss: float
    without: float
    shuffled: float
    p: float


def can_be_asked(method: EstimatorLike) -> bool:
    """Whether labels can be hidden from a method: it takes unasked entries, or predicts rows from their features."""
    return takes_unasked(method) or hasattr(method, "predict")


def takes_unasked(method: EstimatorLike) -> bool:
    """Whether a method takes labels with NaN, and so does every method inside it."""
    inside = (value for value in method.get_params(deep=False).values() if isinstance(value, Enhancer))
    return "unasked" in method.kinds and all(map(takes_unasked, inside))


def are_given_away(L: np.ndarray) -> bool:
    """Whether an entry of L (n, q) follows from the others of its row: all rows have the same number of labels."""
    whole = L[~np.isnan(L).any(axis=1)]
    return bool(len(whole)) and bool(np.ptp((whole > 0).sum(axis=1)) == 0)


def score_hidden_entries(
    method: Enhancer, X: np.ndarray, L: np.ndarray, *, n_splits: int = 1, seed: int = 0
) -> HiddenEntries:
    """Hide a share of the labels L (n, q), fit a copy of the method, and score what was hidden; `n_splits` times.

    No entry is hidden twice. Whole rows are hidden from methods that take no unasked entries, and wherever an entry
    would give away another.
    """
    if not can_be_asked(method):
        raise ArgumentError(
            f"{type(method).__name__} neither takes unasked entries (NaN) nor predicts new rows, so no label can be "
            "hidden from it.",
            "method",
        )
    by_rows = not takes_unasked(method) or are_given_away(L)
    parts = hidden_parts(L, SHARE, n_splits, np.random.default_rng(seed), by_rows=by_rows)
    labels = np.concatenate([L[hidden] > 0 for hidden in parts])
    if len(labels) < LEAST_HIDDEN:
        raise InputError(f"only {len(labels)} label entries could be hidden: too few to say anything.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about entries that were hidden here
        found = [_chances_of_all(method, X, L, hidden) for hidden in parts]
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
    """Chances (m,) of the hidden entries by the method and by baselines."""
    masked, fresh = np.where(hidden, np.nan, L), clone(method)
    D = np.full(L.shape, 1.0 / L.shape[1])
    if takes_unasked(method):
        D = np.asarray(fresh.fit(X, masked).label_distributions_)
    else:
        left = ~hidden.any(axis=1)
        D[~left] = np.asarray(fresh.fit(X[left], L[left]).predict(X[~left]))
    if isinstance(fresh, Inversion) and not isinstance(fresh.degradation_, Order):
        own = completion_chances(fresh.rule_fit_, X, masked, np.random.default_rng(0))[hidden]
    else:
        own = _through_map(D, L, hidden)
    return {
        OWN: own,
        FREQUENCIES: np.broadcast_to(asked_frequencies(masked), L.shape)[hidden],
        "temperature": _through_map(Temperature(c=1.0).fit_enhance(X, masked), L, hidden),
        "uniform": _through_map(Uniform().fit_enhance(X, masked), L, hidden),
    }


def score_features(model: Inversion, X: np.ndarray, L: np.ndarray, seed: int = 0) -> FeatureScore | None:
    """Do the features X (n, d) help to tell the labels L (n, q)? None where too few rows can be hidden.

    A part of the rows is hidden and told from their features by a model that was fitted to the others. If features
    tell nothing, the chances of one hidden row are as good for another one's labels: shuffling the hidden rows gives
    the distribution of the loss under that hypothesis, exactly and without another fit.
    """
    rng = np.random.default_rng(seed)
    hidden = hidden_parts(L, HIDDEN_ROWS, 1, rng, by_rows=True)[0]
    rows = np.flatnonzero(hidden.any(axis=1))
    if len(rows) < LEAST_ROWS:
        return None
    # An order says how large labels are, not how many are marked: the convention stands in for it here.
    told_by = clone(model).set_params(degradation="main") if isinstance(model.degradation, Order) else clone(model)
    L = np.where(np.isnan(L), np.nan, L > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = told_by.fit(np.delete(X, rows, axis=0), np.delete(L, rows, axis=0)).rule_fit_
    drawn = simulate_labels(fit, np.tile(X[rows], (N_DRAWS, 1)), rng, max_rows=N_DRAWS * len(rows))
    told = (drawn.reshape(N_DRAWS, len(rows), -1).sum(axis=0) + 0.5) / (N_DRAWS + 1.0)
    left = np.where(hidden, np.nan, L)
    yes, no = (hidden[rows] & (L[rows] > 0)).astype(float), (hidden[rows] & ~(L[rows] > 0)).astype(float)

    def losses(P: np.ndarray) -> np.ndarray:
        """Of the labels of hidden row i by the chances of each row j of P."""
        p = np.clip(P, 1e-6, 1 - 1e-6)
        found: np.ndarray = -(yes @ np.log(p).T + no @ np.log1p(-p).T)
        return found

    without = losses(asked_frequencies(left)[None]).sum()
    return against_other_rows(losses(told), float(without), float(hidden.sum()), rng)


def against_other_rows(by_row: np.ndarray, without: float, size: float, rng: np.random.Generator) -> FeatureScore:
    """The losses (h, h) of hidden rows by what the features of hidden rows say, beside those of shuffled rows.

    And beside the loss without features; all in `size` parts.
    """
    own, place = float(np.trace(by_row)), np.arange(len(by_row))
    shuffled = np.array([by_row[place, rng.permutation(place)].sum() for _ in range(N_SHUFFLED)])
    p = (1.0 + float(np.sum(shuffled <= own))) / (1.0 + N_SHUFFLED)
    return FeatureScore(own / size, without / size, float(shuffled.mean()) / size, p)


def log_losses(labels: np.ndarray, told: np.ndarray) -> np.ndarray:
    """-log of the chance (m,) that was given to what the labels (m,), bool, turned out to be."""
    p = np.clip(told, 1e-6, 1 - 1e-6)
    return np.asarray(-np.log(np.where(labels, p, 1 - p)))


def completion_chances(fit: Fit, X: np.ndarray, L: np.ndarray, rng: np.random.Generator) -> Array:
    """The chance (n, q) of every label under a fitted model, given rows X (n, d) and L (n, q) with NaN."""
    n_counted = N_SWEEPS - N_SWEEPS // 4
    # Half a count on either side: no chance is 0 or 1 by the number of sweeps alone.
    return (n_counted * chances(fit, X, L, fit.settings.noise, N_SWEEPS, rng) + 0.5) / (n_counted + 1.0)


def _through_map(D: np.ndarray, L: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Chances (m,) of hidden entries from degrees D (n, q), by a map that was fitted to the other half of the rows."""
    z, marked, rows = standardized_logs(D, hidden), (L[hidden] > 0).astype(float), np.nonzero(hidden)[0]
    told, half = np.empty(len(z)), np.isin(rows, np.unique(rows)[::2])
    for part in (half, ~half):
        a, b, _ = fit_map(z[~part], marked[~part], pull=1.0) if (~part).any() else (0.0, 0.0, 0.0)
        told[part] = expit(a + b * z[part])
    return told


def hidden_finding(found: HiddenEntries, who: str) -> Finding:
    """How well hidden labels are predicted, beside baselines; nothing, where even uniform degrees would pass."""
    own, others = found.loss, found.baselines
    best = min(others.values()) + found.error
    verdict = FINE if own <= best else DOUBTFUL if own <= others["uniform"] else OFF
    end = "."
    if verdict == FINE and others["uniform"] <= best:
        verdict, end = UNTOLD, "; uniform degrees would do as well, so this says nothing."
    beside = ", ".join(f"{name} {loss:.2f}" for name, loss in others.items())
    what = "label entries" if found.hidden == "entries" else "rows"
    said = (
        f"Hidden {found.hidden}: with {SHARE:.0%} of the {what} hidden, {who} predicts their labels with a log loss of "
        f"{own:.2f} ± {found.error:.2f} per entry ({beside}){end}"
    )
    return Finding("entries", f"Hidden {what}", verdict, own, said, {who: own, **others}, "log loss per entry")


def feature_finding(model: Inversion, X: np.ndarray, L: np.ndarray, seed: int) -> Finding:
    """Do the features help?"""
    found = None
    if not model.features:
        why = "they are not used (features=False)"
    elif not np.ptp(X, axis=0).any():
        why = "there are none"
    else:
        why, found = "too few rows to hide some", score_features(model, X, L, seed)
    if found is None:
        return Finding("features", HELP, UNTOLD, 1.0, f"Features: whether they help was not tried: {why}.")
    return say_features(found, "labels of hidden rows", "entry")


def say_features(found: FeatureScore, what: str, unit: str) -> Finding:
    """Whether features helped to tell what was hidden, in units that the loss is per."""
    tells, helps = found.p <= CLEAR, found.p <= CLEAR and found.loss < found.without
    else_they_tell = "something, but the model does better without" if tells else "nothing that could be seen"
    said = (
        f"Features: {what} are predicted with a log loss of {found.loss:.3f} per {unit} with features, "
        f"{found.without:.3f} without, {found.shuffled:.3f} with the features of other rows (p = {found.p:.3f}): "
        f"{'they help' if helps else f'they tell {else_they_tell}'}."
    )
    shown = {"with features": found.loss, "without": found.without, "features of other rows": found.shuffled}
    return Finding("features", HELP, FINE if helps else DOUBTFUL, found.p, said, shown, f"log loss per {unit}")
