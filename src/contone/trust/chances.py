"""Chances of labels under the model of `contone.Inversion`, and the entries that are probably wrong.

A degree says how much a label describes a row; a chance says how probable it is that the label would be marked. Where
labels may be wrong, or were not asked about, learners of 0/1 labels are served by chances, not by degrees.

Where a share `noise` of the entries is wrong, the labels that a row would have without error are unknown, too; their
posterior given the features and the labels that were noted is that of `enhance.inversion.chances`. An entry is doubtful
as far as it differs from them. So a missing label is found where features and the other labels ask for it, and a
superfluous one where they speak against it. The probability holds for the noise that was assumed, the same for labels
that are marked and that are not; the order depends on it little.
"""

from collections.abc import Hashable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from contone.backends import get_backend, to_numpy
from contone.base import check_whole_numbers
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.chances import chances
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Flips
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.people.model import PeopleFit
from contone.exceptions import ArgumentError, InputError
from contone.measurements import Order
from contone.typing import Data, EstimatorLike, Record
from contone.validation.containers import Border, index_of, open_border
from contone.validation.groups import check_annotators, check_groups
from contone.validation.training import Training, check_features, check_new_rows

Noise = float | tuple[float, float]
USUAL_NOISE = 0.05
"""Share of wrong entries that is assumed where nobody says one."""


def label_chances(
    method: Inversion,
    X: Data,
    Y: Data = None,
    *,
    noise: Noise | None = None,
    n_sweeps: int = 200,
    random_state: int = 0,
    groups: Data = None,
    annotators: Data = None,
    person: Hashable = None,
) -> Any:
    """How probable it is that each label of each row would be marked, by somebody who makes no errors.

    With labels Y and `noise` it is the posterior of the labels without error: soft 0/1 labels to train a classifier
    per label on. Entries that nobody asked about (NaN) are predicted from the features and the other labels of the row.
    Without Y it is a prediction for new rows.

    Parameters
    ----------
    method : Inversion
        Its model says which labels to expect. Unfitted, a clone is fitted to X and Y with the share `noise` of wrong
        entries; a fitted one is taken as it is, on its own rows or on others.
    X : (n, d)
        Features.
    Y : (n, q) or None, default=None
        Labels in {0, 1}, NaN where nobody asked; None for new rows without labels, which needs a fitted method.
    noise : float, (float, float) or None, default=None
        Share of the entries of Y that is assumed to be wrong, from 0 to below 0.5. None is the method's own. With 0,
        the chances of labels that were asked are 0 or 1.
    n_sweeps : int, default=200
        Sweeps of the sampler, a quarter of them before it counts: chances are shares of the others.
    random_state : int, default=0
        Seed of the sampler.
    groups, annotators : (n,) or None, default=None
        Items and persons of the rows of Y, where these are answers of people ("votes", "marks", "levels"). Chances are
        then those that a further person marks (chooses) the label, one row per item.
    person : name or None, default=None
        One of the annotators that the method was fitted with: the chances that this person does; None is anybody.

    Returns
    -------
    (n, q)
        Chances from 0 to 1 in the kind of container of Y, or of X where there is no Y. Rows do not sum to 1.

    Examples
    --------
    >>> from contone import TopK
    >>> X = np.linspace(-2.0, 2.0, 80)[:, None]
    >>> Y = np.hstack([X < 0, X >= 0]).astype(int)
    >>> Y[10] = [1, 1]  # a slip: the rule marks one label per row
    >>> P = label_chances(Inversion(degradation=TopK(1), n_sweeps=50, n_burn=20), X, Y, noise=0.05, n_sweeps=40)
    >>> P[10].round(1).tolist()
    [1.0, 0.0]
    """
    if isinstance(method, Inversion) and method.reads_answers():
        return _chances_of_answers(method, X, Y, groups, annotators, person)
    if groups is not None or annotators is not None or person is not None:
        raise InputError(
            'label_chances: groups, annotators and person are for answers of people: use Inversion with degradation="'
            'marks", "votes" or "levels", or leave them out.'
        )
    noise = read_noise("label_chances", method, noise)
    rng = _generator("label_chances", method, n_sweeps, random_state)
    fit, rows = _open("label_chances", method, X, Y, noise)
    return rows.border.wrap(
        chances(fit, rows.X, rows.labels, NO_FLIPS if Y is None else Flips.of(noise), n_sweeps, rng)
    )


def read_noise(function: str, method: EstimatorLike, noise: Any, usual: float = 0.0) -> Noise:
    """The share of wrong entries to assume, or two: as given, or else that of the method, or else the usual one."""
    if noise is None:
        own = getattr(method, "noise_", getattr(method, "noise", 0.0))
        noise = own if not isinstance(own, str) and Flips.of(own).any() else usual
    if isinstance(noise, tuple):
        return Flips.of(noise)
    if isinstance(noise, Real) and 0 <= float(noise) < 0.5:
        return float(noise)
    raise ArgumentError(f"{function}: noise must be from 0 to below 0.5, or None; got {noise!r}.", "noise")


def _chances_of_answers(method: Inversion, X: Data, Y: Data, groups: Data, annotators: Data, person: Hashable) -> Any:
    """The chances that a further person, or this one, marks or chooses labels, given the answers of others."""
    method = _fitted(method, X, Y, {}, groups=groups, annotators=annotators)
    names = getattr(method, "annotator_names_", None) or []
    numbers = {name: w + 1 for w, name in enumerate(names)}
    if person is not None and person not in numbers:
        raise InputError(f"label_chances: {person!r} is not among the annotators that the method was fitted with.")
    by = numbers.get(person, 0)
    checked, L, border = _read_rows("label_chances", method, X, Y)
    item = who = None
    if groups is not None:
        grouped = check_groups(groups, checked, border)
        order = np.argsort(grouped.item, kind="stable")
        checked, L, item, border = grouped.X, L[order], grouped.item[order], grouped.border
        if annotators is not None:
            named = check_annotators(annotators, grouped.item)
            known = np.array([numbers.get(name, 0) for name in named.names])
            who = known[named.number - 1][order]
    model = method.fit_
    assert isinstance(model, PeopleFit)
    return border.wrap(model.chances(checked, L, item=item, person=who, by=by).mean)


def _open(function: str, method: Inversion, X: Data, Y: Data, noise: Noise) -> tuple[Fit, Training]:
    """The model of the method, fitted with `noise` where it is not, and the rows as arrays."""
    method = _fitted(method, X, Y, {"noise": noise})
    if isinstance(method.fit_.rule, Order):
        raise InputError(
            f'{function}: the rule "order" does not say which labels degrees give, so labels have no chance and no '
            "entry can be wrong. Use another degradation."
        )
    return method.rule_fit_, _read_rows(function, method, X, Y)


def _fitted(method: Inversion, X: Data, Y: Data, settings: Record, **more: Data) -> Inversion:
    """The method, or where it is not fitted a copy with these settings that is."""
    if Y is None:
        check_is_fitted(method, msg="label_chances: without Y the method must have been fitted. Fit it, or pass Y.")
    return method if hasattr(method, "fit_") else clone(method).set_params(**settings).fit(X, Y, **more)


def _read_rows(function: str, fitted: Inversion, X: Data, Y: Data) -> Training:
    """Rows for NumPy, sparse ones as they are, with labels (n, q) that are NaN where there are none."""
    names = fitted.label_names_
    if Y is None:
        checked, border = check_features(fitted, X, reset=False), open_border(X, names)
        labels = np.full((checked.shape[0], len(names)), np.nan)
    else:
        checked, labels, border = check_new_rows(fitted, X, Y, names)
    if not get_backend(checked).in_memory:
        raise InputError(f"{function}: X must be in memory; got a dask array. Pass some of its rows (`compute`).")
    checked = to_numpy(checked) if get_backend(checked).name == "torch" else checked
    return Training(checked, to_numpy(labels), border)


def _generator(function: str, method: EstimatorLike, n_sweeps: Any, random_state: Any) -> np.random.Generator:
    """Random numbers for a sampler of this method, if there is one."""
    if not isinstance(method, Inversion):
        raise ArgumentError(f"{function}: method must be an Inversion; got {type(method).__name__}.", "method")
    check_whole_numbers(function, {"n_sweeps": 4, "random_state": 0}, n_sweeps=n_sweeps, random_state=random_state)
    return np.random.default_rng(random_state)


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
    if not Flips.of(noise).any():
        raise ArgumentError("doubtful_labels: with noise=0 no label is wrong; give a share above 0, or None.", "noise")
    if not isinstance(min_probability, Real) or not 0 <= float(min_probability) <= 1:
        raise ArgumentError(
            f"doubtful_labels: min_probability must be from 0 to 1; got {min_probability!r}.", "min_probability"
        )
    check_whole_numbers("doubtful_labels", {"k": 1}, k=1 if k is None else k)
    rng = _generator("doubtful_labels", method, n_sweeps, random_state)
    fit, rows = _open("doubtful_labels", method, X, Y, noise)
    P = probability_wrong(fit, rows.X, rows.labels, noise, n_sweeps, rng)
    return _ranked(P, rows.labels, rows.border, Y, min_probability, k)


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
    index, names = index_of(Y), getattr(Y, "columns", border.label_names if np.ndim(Y) == 1 else None)
    return DoubtfulLabels(
        row if index is None else np.asarray(index)[row],
        label if names is None else np.asarray(names)[label],
        L[row, label] > 0,
        P[row, label],
    )
