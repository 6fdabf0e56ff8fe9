"""What every estimator must do, whoever wrote it: scikit-learn's checks and the contract of the enhancers.

Estimators are found through the public names, so a new method is covered once it is exported, or offered by an
installed package. The contract itself is public: `contone.testing`.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import contone
from contone import enhance
from contone.base import DistributionLearner, Enhancer, InductiveMixin, InvalidParameterError
from contone.testing import ENHANCER_CHECKS, assert_distributions, problem

# Data this small makes methods say that they did not converge, found no structure, or saw a constant label.
pytestmark = [
    pytest.mark.no_cover,  # what these reach is reached by the tests of each method, too
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.NearUniformWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.RankWarning"),
]

INNER = {"enhancer": contone.Temperature(), "estimator": Ridge()}
"""What an estimator around another one is filled with."""


QUICK = {"n_iter": 1, "n_replicates": 1, "model": contone.Inversion(n_sweeps=12, n_burn=4)}
SHORT = {
    "Best": {"methods": ["uniform", "temperature"], **QUICK},
    "Inversion": {"n_sweeps": 12, "n_burn": 4},
    "Tuned": QUICK,
    "ConLE": {"epochs": 2, "n_hidden": 8, "n_code": 4},
    "DRAM": {"max_iter": 2, "max_steps": 3, "n_draws": 4},
    "LDLForest": {"max_iter": 20},
    "LDLSCL": {"max_iter": 10},
    "LEIC": {"epochs": 2, "n_code": 4},
    "LEMLL": {"max_iter": 10},
    "LEVI": {"epochs": 2, "n_hidden": 8},
    "LIBLE": {"pretrain_epochs": 1, "epochs": 2, "n_hidden": 8, "n_code": 4},
}
"""Networks, chains, rehearsals and slow solvers run for a moment only: what is asked does not depend on how long."""


def build(cls: type) -> BaseEstimator:
    """An instance with default parameters, but for `SHORT`; required ones come from `INNER`."""
    required = [p.name for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    return cls(**{name: clone(INNER[name]) for name in required}, **SHORT.get(cls.__name__, {}))


def public_estimators() -> dict[str, BaseEstimator]:
    """One instance of every estimator class among the public names, by class name."""
    exported = [getattr(contone, name) for name in contone.__all__]
    classes = {c for c in [*exported, *enhance.methods().values()] if isinstance(c, type)}
    classes.discard(contone.Pipeline)  # scikit-learn's, which checks its steps itself: tests/test_pipeline.py
    return {c.__name__: build(c) for c in sorted(classes, key=lambda c: c.__name__) if issubclass(c, BaseEstimator)}


ESTIMATORS = public_estimators()
ENHANCERS = {name: e for name, e in ESTIMATORS.items() if isinstance(e, Enhancer)}

SHAPE = "takes sparse features, and predicts a distribution (n, q) where y names one class per row, not (n,)"
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "Inversion": {"check_estimator_sparse_array": SHAPE, "check_estimator_sparse_matrix": SHAPE}
}
"""By class name: the checks of scikit-learn that cannot pass, each with its reason."""


@parametrize_with_checks(
    list(ESTIMATORS.values()), expected_failed_checks=lambda e: EXPECTED_FAILURES.get(type(e).__name__, {})
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_expected_failure_belongs_to_an_estimator():
    assert set(EXPECTED_FAILURES) <= set(ESTIMATORS)
    assert all(reason for failures in EXPECTED_FAILURES.values() for reason in failures.values())


# ------------------------------------------------------------------------------------- the contract of the enhancers


@pytest.mark.parametrize("check", ENHANCER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ENHANCERS)
def test_contract(name, check):
    check(ENHANCERS[name])


@pytest.mark.parametrize("name", ENHANCERS)
def test_inductive_methods_predict_and_others_do_not_pretend(name):
    method = ENHANCERS[name]
    if hasattr(method, "predict") and not isinstance(method, InductiveMixin):
        assert hasattr(method, "enhancer")  # an estimator around another one has what the inner one has


# -------------------------------------------------------------------------------------------------------- the learners


LEARNERS = {name: e for name, e in ESTIMATORS.items() if isinstance(e, DistributionLearner)}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_predict_distributions_of_rows_never_seen(name):
    X, L = problem()
    D = contone.Temperature(c=1.0).fit_enhance(X, L)
    kept = X.copy(), D.copy()
    model = clone(LEARNERS[name]).fit(X, D)
    new, _ = problem(seed=9)
    assert_distributions(model.predict(new), D.shape)
    assert np.isfinite(model.score(X, D))
    np.testing.assert_array_equal(model.predict(new), clone(LEARNERS[name]).fit(X, D).predict(new))
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(D, kept[1])


WIDTHS = [
    (name, width) for name, made in ESTIMATORS.items() for width in made.get_params() if width.startswith("n_hid")
]
WIDTHS += [("ConLE", "n_code"), ("LEIC", "n_code"), ("LIBLE", "n_code"), ("LEVI", "n_latent")]


@pytest.mark.parametrize(("name", "width"), WIDTHS)
def test_a_layer_of_a_million_units_is_refused_in_a_sentence(name, width):
    """It took 12 GB, or half a minute for a dozen rows, before anything was said."""
    X, L = problem()
    with pytest.raises(InvalidParameterError, match=rf"'{width}' parameter of {name} must be .* range \[1, 10000\]"):
        clone(ESTIMATORS[name]).set_params(**{width: 10**6}).fit(X, L / L.sum(axis=1, keepdims=True))
