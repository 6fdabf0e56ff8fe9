"""What every enhancer must do, whoever wrote it: one list of checks, for contone's own methods and for yours.

``check_enhancer(MyMethod())`` runs all of them, and scikit-learn's checks of estimators, and says everything that
failed. With pytest, each check can be a test of its own:

    @pytest.mark.parametrize("check", contone.testing.ENHANCER_CHECKS, ids=lambda check: check.__name__)
    def test_contract(check):
        check(MyMethod())

Checks work on copies (`sklearn.base.clone`) of what they are given, and fail by AssertionError.
"""

import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from contone.base import Enhancer
from contone.exceptions import ContoneError, LabelWarning, NearUniformWarning, RankWarning
from contone.typing import Array, Data, EstimatorLike

Check: TypeAlias = Callable[[Enhancer], None]

EXPECTED_WARNINGS = (ConvergenceWarning, LabelWarning, NearUniformWarning, RankWarning)
"""Data as small as here makes methods say that they did not converge, found no structure, or saw a constant label."""


def check_enhancer(enhancer: Enhancer, *, scikit_learn: bool = True) -> None:
    """Run every check of `ENHANCER_CHECKS` and, unless refused, scikit-learn's own checks of estimators.

    Parameters
    ----------
    enhancer : Enhancer
        An instance with the parameters to be tested; it is not changed.
    scikit_learn : bool, default=True
        Also run `sklearn.utils.estimator_checks.check_estimator`, about fifty short fits.

    Raises
    ------
    AssertionError
        With every check that failed, what it asks for and what went wrong.

    Examples
    --------
    >>> from contone import Temperature
    >>> check_enhancer(Temperature(c=0.5), scikit_learn=False)
    """
    checks: list[Check] = [*ENHANCER_CHECKS, *([check_scikit_learn] if scikit_learn else [])]
    failures: list[str] = []
    cause: Exception | None = None
    for check in checks:
        try:
            check(enhancer)
        except Exception as error:
            cause = cause or error
            asked = (check.__doc__ or "").strip().splitlines()[0]
            failures.append(f"{check.__name__} ({asked})\n  {type(error).__name__}: {error}")
    if failures:
        said = "\n".join(failures)
        raise AssertionError(
            f"{type(enhancer).__name__} fails {len(failures)} of {len(checks)} checks:\n{said}"
        ) from cause


def check_scikit_learn(enhancer: Enhancer) -> None:
    """scikit-learn's checks of estimators pass."""
    from sklearn.utils.estimator_checks import check_estimator

    with _quiet(Warning):
        check_estimator(clone(enhancer), on_skip=None)


# --------------------------------------------------------------------------------------------------------- the answer


def check_answer_on_simplex(enhancer: Enhancer) -> None:
    """The answer has rows on the simplex, is returned and stored, with what the solver says."""
    X, L = problem()
    method, D = _fit(enhancer, X, L)
    assert_distributions(D, L.shape)
    np.testing.assert_array_equal(D, method.label_distributions_)
    assert isinstance(method.solution_.converged, bool | np.bool_)
    assert method.label_names_ == ["label_0", "label_1", "label_2"]
    assert method.n_features_in_ == X.shape[1]


def check_deterministic(enhancer: Enhancer) -> None:
    """Two fits with one seed are identical, also on the same instance."""
    X, L = problem()
    method = clone(enhancer)
    if "random_state" in method.get_params():
        method.set_params(random_state=0)
    _, first = _fit(method, X, L)
    again, second = _fit(method, X, L)
    np.testing.assert_array_equal(first, second)
    with _quiet():
        np.testing.assert_array_equal(first, again.fit(X, L).label_distributions_)  # a second fit forgets the first


def check_global_random_state_untouched(enhancer: Enhancer) -> None:
    """Randomness comes from `random_state` only: NumPy's global generator is as it was before."""
    X, L = problem()
    before = np.random.get_state(legacy=False)  # noqa: NPY002  the global one is what is tested
    _fit(enhancer, X, L)
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    np.testing.assert_equal(after, before)


def check_inputs_unchanged(enhancer: Enhancer) -> None:
    """X, Y and the parameters are as they were before."""
    X, L = problem()
    kept_X, kept_L, kept_parameters = X.copy(), L.copy(), str(enhancer.get_params())
    method, _ = _fit(enhancer, X, L)
    np.testing.assert_array_equal(X, kept_X)
    np.testing.assert_array_equal(L, kept_L)
    assert str(method.get_params()) == kept_parameters


def check_order(enhancer: Enhancer) -> None:
    """The order of the rows and of the labels does not matter, where nothing is drawn at random."""
    if "random_state" in enhancer.get_params():
        return  # random numbers are drawn in the order of the rows
    X, L = problem()
    rows, labels = np.random.default_rng(1).permutation(len(X)), [2, 0, 1]
    _, D = _fit(enhancer, X, L)
    np.testing.assert_allclose(_fit(enhancer, X[rows], L[rows])[1], D[rows], atol=1e-5)
    np.testing.assert_allclose(_fit(enhancer, X, L[:, labels])[1], D[:, labels], atol=1e-5)


def check_pickle(enhancer: Enhancer) -> None:
    """A fitted method survives pickle, with the same answers."""
    X, L = problem()
    method, D = _fit(enhancer, X, L)
    again = pickle.loads(pickle.dumps(method))
    np.testing.assert_array_equal(again.label_distributions_, D)
    if hasattr(method, "predict"):
        np.testing.assert_array_equal(again.predict(X), method.predict(X))


# ------------------------------------------------------------------------------------------------------ kinds of data


def check_unusual_data(enhancer: Enhancer) -> None:
    """Data may be unusual in any of the ways of `unusual_problems`; a single label is certain."""
    for what, (X, L) in unusual_problems().items():
        try:
            assert_distributions(_fit(enhancer, X, L)[1], L.shape)
        except Exception as error:
            raise AssertionError(f"{what}: {error}") from error


def unusual_problems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features and labels that are unusual, by what is unusual about them."""
    X, L = problem()
    n = len(X)
    return {
        "confidences in place of labels": (X, L / L.sum(axis=1, keepdims=True)),
        "every row twice": (np.tile(X[:12], (2, 1)), L),
        "all rows equal": (np.tile(X[0], (n, 1)), L),
        "constant features": (X * [1.0, 0.0, 0.0, 1.0] + [0.0, 7.0, 0.0, 0.0], L),
        "features of very different size": (X * [1e-6, 1.0, 1e3, 1e6], L),
        "three rows": (X[:3], np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1]])),
        "two rows": (X[:2], np.array([[1, 0], [0, 1]])),
        "more features than rows": problem(n=12, d=30),
        "a single label": (X, np.ones((n, 1))),
        "two labels": problem(q=2),
        "more labels than features": problem(d=2, q=7),
        "one relevant label in each row": (X, np.eye(L.shape[1])[L.argmax(axis=1)]),
        "every label relevant everywhere": (X, np.ones_like(L)),
        "a label that is never relevant": (X, np.hstack([L, np.zeros((n, 1))])),
    }


# --------------------------------------------------------------------------------------------------------- containers


def check_frames(enhancer: Enhancer) -> None:
    """A frame in gives a frame out, pandas or polars, with the names of the labels and the answer of arrays."""
    X, L = problem()
    _, expected = _fit(enhancer, X, L)
    names = ["calm", "loud", "odd"]
    for package in ("pandas", "polars"):
        if find_spec(package) is None:
            continue
        frames = __import__(package)
        features = frames.DataFrame(dict(zip("abcd", X.T, strict=True)))
        method, D = _fit(enhancer, features, frames.DataFrame(dict(zip(names, L.T, strict=True))))
        assert isinstance(D, frames.DataFrame), f"{package} in, {type(D)} out"
        assert list(D.columns) == names
        assert method.label_names_ == names
        np.testing.assert_allclose(D.to_numpy(), expected, atol=1e-12)


def check_tensors(enhancer: Enhancer) -> None:
    """A torch tensor in gives a torch tensor out, where torch is installed; its global generator is as before."""
    if find_spec("torch") is None:
        return
    import torch

    X, L = problem()
    _, expected = _fit(enhancer, X, L)
    before = torch.get_rng_state()
    _, D = _fit(enhancer, torch.tensor(X), torch.tensor(L))
    assert isinstance(D, torch.Tensor), f"torch in, {type(D)} out"
    np.testing.assert_allclose(D.numpy(), expected, atol=1e-2)
    assert bool((torch.get_rng_state() == before).all())


# ---------------------------------------------------------------------------------------------------------- new rows


def check_new_rows(enhancer: Enhancer) -> None:
    """`predict`, and `enhance` with labels, give distributions of rows never seen, and refuse to do so before `fit`."""
    (X, L), (new, labels) = problem(), problem(n=9, seed=9)
    method, _ = _fit(enhancer, X, L)
    kept = method.label_distributions_.copy()
    for name, given in (("predict", (new,)), ("enhance", (new, labels))):
        if not hasattr(enhancer, name):
            continue
        with _raises(NotFittedError, f"{name} before fit"):
            getattr(clone(enhancer), name)(*given)
        with _quiet():
            assert_distributions(getattr(method, name)(*given), (9, 3))
    if hasattr(enhancer, "predict"):
        np.testing.assert_allclose(method.predict(new[:4]), method.predict(new)[:4], atol=1e-9)
    np.testing.assert_array_equal(method.label_distributions_, kept)


# ------------------------------------------------------------------------------------------------- errors, parameters


def check_errors(enhancer: Enhancer) -> None:
    """Data that cannot be used is refused by an error of `contone.exceptions`."""
    X, L = problem()
    refused = {
        "NaN in X": (np.where(np.eye(*X.shape) > 0, np.nan, X), L),
        "fewer labels than rows": (X, L[:-1]),
        "a single row": (X[:1], L[:1]),
        "text in X": (X.astype(str).astype(object) + "?", L),
    }
    if enhancer.takes_levels():
        refused["labels that are not whole numbers"] = X, 1.5 * L
    else:
        refused |= {"labels that are neither 0/1 nor confidences": (X, 2.0 * L), "negative labels": (X, -L)}
    if "unasked" not in enhancer.kinds:
        refused["NaN in Y"] = X, np.where(np.eye(*L.shape) > 0, np.nan, L)
    for what, (features, labels) in refused.items():
        with _raises(ContoneError, what):
            _fit(enhancer, features, labels)
    if hasattr(enhancer, "predict"):
        method, _ = _fit(enhancer, X, L)
        with _raises(ContoneError, "new rows with another number of features"):
            method.predict(X[:, :-1])


def check_parameters(enhancer: Enhancer) -> None:
    """Parameters are keyword-only, stored as given, with a declared domain; presets can be built."""
    cls = type(enhancer)
    wrapped = {"enhancer", "methods"}  # an estimator around others takes them first
    for parameter in inspect.signature(cls).parameters.values():
        keyword = parameter.kind is parameter.KEYWORD_ONLY or parameter.name in wrapped
        assert keyword, f"{parameter.name} is not keyword-only"
    undeclared = set(enhancer.get_params(deep=False)) - set(cls._parameter_constraints)
    assert not undeclared, f"no domain in _parameter_constraints: {', '.join(sorted(undeclared))}"
    for name, settings in cls.PRESETS.items():
        built = cls.preset(name)
        assert isinstance(built, cls)
        for key, value in settings.items():
            assert built.get_params()[key] is value or built.get_params()[key] == value


def check_documentation(enhancer: Enhancer) -> None:
    """The class has a docstring and a reference."""
    cls = type(enhancer)
    assert cls.__doc__, "no docstring"
    assert cls.reference, "no reference"


def check_memory_estimate(enhancer: Enhancer) -> None:
    """The estimate of the memory of a fit is positive and grows with the rows."""
    small, large = (enhancer._fit_bytes(n, 24, 8) for n in (100_000, 1_000_000))
    assert 0 < small < large


ENHANCER_CHECKS: tuple[Check, ...] = tuple(
    function
    for name, function in list(globals().items())
    if name.startswith("check_") and name not in ("check_enhancer", "check_scikit_learn")
)
"""Every property that is asked of a method, in the order in which a new method had better get them right."""


# ------------------------------------------------------------------------------------------------------------- helpers


def problem(n: int = 24, d: int = 4, q: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d) and logical labels L (n, q) that depend on X, at least one per row, no label constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = X @ rng.normal(size=(d, q)) + rng.normal(size=(n, q))
    L = (np.median(Z, axis=0) < Z).astype(float)
    L[np.arange(n), Z.argmax(axis=1)] = 1.0
    return X, L


def assert_distributions(D: Data, shape: tuple[int, ...]) -> None:
    """D has this shape and rows that are not negative and sum to 1."""
    D = np.asarray(D)
    assert D.shape == shape, f"shape {D.shape}, expected {shape}"
    assert (D >= 0).all(), f"the smallest degree is {D.min()}"
    np.testing.assert_allclose(D.sum(axis=1), 1.0, atol=1e-12)


def _fit(enhancer: Enhancer, X: Data, L: Array) -> tuple[EstimatorLike, Array]:
    """A copy, fitted, and what `fit_enhance` returned."""
    method = clone(enhancer)
    with _quiet():
        return method, method.fit_enhance(X, L)


@contextmanager
def _quiet(*categories: type[Warning]) -> Iterator[None]:
    with warnings.catch_warnings():
        for category in categories or EXPECTED_WARNINGS:
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def _raises(kind: type[Exception], what: str) -> Iterator[None]:
    """The block must raise an error of this kind."""
    try:
        yield
    except kind:
        return
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__} instead of {kind.__name__}: {error}") from error
    raise AssertionError(f"{what}: no error; expected {kind.__name__}")
