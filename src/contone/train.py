"""Boosting on degrees without copying rows: objectives for LightGBM and XGBoost.

Both libraries take one class per row. A row with degrees d can be given as one copy per label, weighted by its degree
(`FromClassifier` does); with q labels that is q times the rows. The sum over the copies needs no copies: with scores f
and p = softmax(f), the cross entropy - sum_j d_j log p_j has

    gradient p - d,   second derivatives p (1 - p) on the diagonal,

and boosting uses nothing else. Each library multiplies the second derivatives by a number of its own; so do we, so
that the trees are those of the weighted copies.
"""

from collections.abc import Callable

import numpy as np

from contone.exceptions import InputError
from contone.numerics.simplex import softmax
from contone.typing import Matrix
from contone.validation.distributions import check_distributions

Objective = Callable[[object, object], tuple[Matrix, Matrix]]
SMALLEST = 1e-16
"""XGBoost's own lower end of a second derivative."""


def lightgbm_objective(D: object, sample_weight: object = None) -> Objective:
    """Cross entropy with degrees D (n, q), for ``lightgbm.train`` and ``LGBMModel``.

    Set ``num_class`` to q and give any classes as labels, say ``D.argmax(axis=1)``: they are not looked at. The booster
    predicts scores; ``scipy.special.softmax(scores, axis=1)`` are the degrees.

    Parameters
    ----------
    D : array, (n, q)
        Degrees of the training rows, in the order of these rows.
    sample_weight : array, (n,), or None
        Weights of the rows.

    Returns
    -------
    callable
        For ``params["objective"]``, or for ``LGBMModel(objective=...)``.
    """
    return _objective(D, sample_weight, lambda q: q / max(q - 1.0, 1.0))


def xgboost_objective(D: object, sample_weight: object = None) -> Objective:
    """The same for ``xgboost.train(obj=...)``; ``base_score`` 0 starts at equal degrees.

    Parameters
    ----------
    D : array, (n, q)
        Degrees of the training rows, in the order of these rows.
    sample_weight : array, (n,), or None
        Weights of the rows.

    Returns
    -------
    callable
        For ``xgboost.train(obj=...)``, or for ``XGBModel(objective=...)``.
    """
    return _objective(D, sample_weight, lambda q: 2.0)


def _objective(D: object, sample_weight: object, factor_of: Callable[[int], float]) -> Objective:
    degrees: Matrix = np.asarray(check_distributions(D), dtype=np.float64)
    factor = factor_of(degrees.shape[1])
    weight = np.ones(len(degrees)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(degrees),) or not np.all(np.isfinite(weight) & (weight >= 0)):
        raise InputError(f"sample_weight must hold one weight, not negative, for each of the {len(degrees)} rows of D.")

    def objective(first: object, second: object) -> tuple[Matrix, Matrix]:
        # train() passes (scores, data), the scikit-learn classes pass (labels, scores).
        scores = np.asarray(second if isinstance(second, np.ndarray) else first, dtype=np.float64)
        if scores.shape != degrees.shape:
            raise InputError(
                f"The booster has scores of shape {scores.shape} and D has the shape {degrees.shape}: set num_class to"
                f" {degrees.shape[1]}, and train on the rows of D, all of them and in their order."
            )
        P = softmax(scores)
        second_derivative = np.maximum(factor * P * (1.0 - P), SMALLEST)
        return (P - degrees) * weight[:, None], second_derivative * weight[:, None]

    return objective
