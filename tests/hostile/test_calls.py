"""Anything may be handed in. One property for every public class, whatever the data and the parameters:

    an error that says what is wrong, or an answer on the simplex; the inputs unchanged; in bounded time and memory.

A few hundred cases run with the suite, always the same ones. ``make hostile`` (``HOSTILE_CASES=100000``) runs as many
as asked for, others each time; a failure is shown as the smallest case that fails.
"""

from __future__ import annotations

import inspect
import os
import signal
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

import contone
from contone import base, degrade
from contone.exceptions import AnswerError, ContoneError

CASES = int(os.environ.get("HOSTILE_CASES", "0"))
NETWORKS = {"ConLE": {"epochs": 5}, "LEVI": {"epochs": 5}, "LIBLE": {"epochs": 5, "pretrain_epochs": 5}}
pytestmark = pytest.mark.no_cover  # the lines are reached by other tests; tracing costs a third of the time
CPU_SECONDS = 20.0
"""Of one case, on at most a dozen rows. CPU time, so that other work on the machine does not count."""
MEGABYTES = 600
"""By which one case may raise the peak memory of the process (the first ones import libraries)."""

ESTIMATORS = {
    name: value
    for name in contone.__all__
    if inspect.isclass(value := getattr(contone, name)) and hasattr(value, "fit") and value is not contone.Pipeline
}
RULES = {
    name: value
    for name in contone.__all__
    if inspect.isclass(value := getattr(contone, name)) and issubclass(value, degrade.Degradation)
}


def budget(name: str) -> settings:
    """The same few cases in the suite; the share of `HOSTILE_CASES` of one class where it is set."""
    asked = CASES // (len(ESTIMATORS) + len(RULES) + 1)
    cheap = {"Inversion": 6, "LEVI": 6, "GLEMR": 6, "Augmented": 8}
    return settings(
        max_examples=asked or cheap.get(name, 15),
        deadline=None,
        derandomize=not asked,
        database=None,
        phases=[Phase.generate, Phase.shrink] if asked else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


# ------------------------------------------------------------------------------------------------------------- numbers

SIZES = [1.0, 1.0, 1.0, 1e-3, 1e6, 1e-170, 1e-310, 1e155, 1e300]
SHAPES_OF_DATA = ["normal", "normal", "constant", "zero", "duplicates", "sparse", "collinear", "outlier"]
OFFSETS = [0.0, 0.0, 0.0, 1.0, 1e12, -1e8]
DTYPES = ["float64", "float64", "float64", "float32", "float16", "int8", "int64", "uint64", "bool"]
BAD_ENTRIES = [np.nan, np.inf, -np.inf]


@st.composite
def features(draw: Any, n: int, d: int) -> np.ndarray:
    """X (n, d): ordinary, or of an extreme size, constant, with duplicates, missing entries or an unusual type."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    kind = draw(
        st.sampled_from(["normal", "normal", "constant", "zero", "duplicates", "sparse", "collinear", "outlier"])
    )
    X = rng.normal(size=(n, d))
    if kind == "constant":
        X = np.ones((n, d))
    elif kind == "zero":
        X = np.zeros((n, d))
    elif kind == "duplicates" and n:
        X = X[rng.integers(0, max(1, n // 3), size=n)]
    elif kind == "sparse":
        X *= rng.random((n, d)) < 0.2
    elif kind == "collinear" and d:
        X = np.repeat(X[:, :1], d, axis=1)
    elif kind == "outlier" and n and d:
        X[0, 0] = 1e8
    with np.errstate(over="ignore", under="ignore"):
        X = X * draw(st.sampled_from(SIZES)) + draw(st.sampled_from(OFFSETS))
    if n and d and draw(st.integers(0, 9)) == 0:
        X[rng.integers(n), rng.integers(d)] = draw(st.sampled_from(BAD_ENTRIES))
    dtype = draw(st.sampled_from(DTYPES))
    if dtype == "float64":
        return X
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return X.astype(dtype)


@st.composite
def labels(draw: Any, n: int, q: int) -> np.ndarray:
    """Y (n, q): 0 and 1, confidences, or something that is neither."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    L = (rng.random((n, q)) < draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))).astype(float)
    if n and q:
        L[np.arange(n), rng.integers(q, size=n)] = 1.0
    kind = draw(st.sampled_from(["logical"] * 6 + ["confidence", "confidence", "empty row", "wrong", "classes"]))
    if kind == "confidence" and q:
        L = L / np.maximum(L.sum(axis=1, keepdims=True), 1.0)
    elif kind == "empty row" and n:
        L[rng.integers(n)] = 0.0
    elif kind == "wrong" and n and q:
        L[rng.integers(n), rng.integers(q)] = draw(st.sampled_from([-1.0, 0.3, 2.0, np.nan, np.inf]))
    elif kind == "classes":
        return rng.integers(0, max(1, q), size=n)
    if np.isfinite(L).all() and draw(st.booleans()):
        return L.astype(draw(st.sampled_from(["int8", "bool", "float32", "int64"]))) if kind != "confidence" else L
    return L


# ----------------------------------------------------------------------------------------------------------- containers


def as_read_only(A: np.ndarray) -> np.ndarray:
    A = A.copy()
    A.flags.writeable = False
    return A


def as_pandas(A: np.ndarray) -> Any:
    import pandas as pd

    if A.ndim == 1:
        return pd.Series(A)
    return pd.DataFrame(A, columns=[f"c{j}" for j in range(A.shape[1])], index=range(5, 5 + len(A)))


def as_pandas_odd_names(A: np.ndarray) -> Any:
    import pandas as pd

    names = [None, 3, ("a", 1), "a", "a", ""]
    return pd.DataFrame(A, columns=[names[j % len(names)] for j in range(A.shape[1])]) if A.ndim == 2 else pd.Series(A)


def as_polars(A: np.ndarray) -> Any:
    import polars as pl

    if A.dtype == np.float16:
        A = A.astype(np.float32)
    if A.ndim == 1:
        return pl.Series("y", A)
    return pl.DataFrame({f"c{j}": A[:, j] for j in range(A.shape[1])})


def as_tensor(A: np.ndarray) -> Any:
    import torch

    return torch.tensor(A)


def as_half_tensor(A: np.ndarray) -> Any:
    import torch

    return torch.tensor(A.astype(float)).to(torch.bfloat16)


def as_sparse_tensor(A: np.ndarray) -> Any:
    import torch

    return torch.tensor(A.astype(float)).to_sparse()


def as_meta_tensor(A: np.ndarray) -> Any:
    import torch

    return torch.tensor(A.astype(float)).to("meta")


def as_sparse(A: np.ndarray) -> Any:
    import scipy.sparse as sp

    return sp.csr_array(np.atleast_2d(A.astype(float)))


def as_masked(A: np.ndarray) -> Any:
    mask = np.zeros(A.shape, dtype=bool)
    mask.flat[:1] = True
    return np.ma.masked_array(A, mask=mask)


CONTAINERS = {
    "array": lambda A: A,
    "another array": lambda A: A,
    "columns first": np.asfortranarray,
    "backwards": lambda A: A[::-1, ::-1][::-1, ::-1] if A.ndim == 2 else A[::-1][::-1],
    "read-only": as_read_only,
    "list": lambda A: A.tolist(),
    "objects": lambda A: A.astype(object),
    "text": lambda A: A.astype(str),
    "complex": lambda A: A.astype(complex) + 1j,
    "dates": lambda A: np.zeros(A.shape, dtype="datetime64[s]"),
    "masked": as_masked,
    "three axes": lambda A: A[None],
    "pandas": as_pandas,
    "pandas, odd names": as_pandas_odd_names,
    "polars": as_polars,
    "tensor": as_tensor,
    "bfloat16 tensor": as_half_tensor,
    "sparse tensor": as_sparse_tensor,
    "meta tensor": as_meta_tensor,
    "sparse matrix": as_sparse,
    "None": lambda A: None,
}
REFUSED = {"complex", "dates", "masked", "meta tensor", "None"}
"""Containers whose content is not what it seems: an answer to them would be a wrong one."""


def put_into(container: str, A: np.ndarray) -> Any:
    """A in that container; A itself where the container cannot hold it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CONTAINERS[container](A)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return A


containers = st.one_of(st.just("array"), st.sampled_from(sorted(CONTAINERS)))


# ----------------------------------------------------------------------------------------------------------- parameters

ODD_VALUES = [None, float("nan"), float("inf"), -1, 0, 1, 2, 0.5, 1e-300, 1e300, 10**6, "x", "auto", (), True]


@st.composite
def parameters(draw: Any, cls: type) -> dict[str, Any]:
    """Mostly the defaults; sometimes a value from the declared domain, sometimes one from outside it."""
    chosen: dict[str, Any] = {}
    constraints = getattr(cls, "_parameter_constraints", {})
    names = [n for n in constraints if n not in ("estimator", "enhancer", "regressor", "classifier")]
    for name in draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []:
        domain = [value for constraint in constraints[name] for value in inside(constraint)]
        chosen[name] = (
            draw(st.sampled_from(domain)) if domain and draw(st.integers(0, 3)) else draw(st.sampled_from(ODD_VALUES))
        )
    if "max_iter" in constraints:
        chosen.setdefault("max_iter", 30)
    if "random_state" in constraints:
        chosen.setdefault("random_state", 0)
    return chosen


def inside(constraint: Any) -> list[Any]:
    """A few values that a constraint of scikit-learn's kind allows."""
    if isinstance(constraint, StrOptions):
        return sorted(constraint.options)
    if isinstance(constraint, Interval):
        low = 0 if constraint.left is None else constraint.left
        high = low + 10 if constraint.right is None else constraint.right
        whole = "Integral" in str(constraint.type)
        values = (
            [low, high, (low + high) / 2, low + 1e-9, high - 1e-9] if np.isfinite([low, high]).all() else [low, 1.0]
        )
        kept = [int(v) if whole else float(v) for v in values]
        return [v for v in kept if v in constraint and v <= 1000]
    if constraint is None:
        return [None]
    if constraint == "boolean":
        return [True, False]
    return []


def build(cls: type, settings_: dict[str, Any]) -> Any:
    """An instance; what wraps another estimator gets a plain one."""
    around = dict.fromkeys(("Augmented", "Calibrated", "Tempered", "Tuned"), contone.Temperature())
    wrapped = {**around, "FromRegressor": Ridge(), "FromClassifier": LogisticRegression()}
    if cls.__name__ in ("Tuned", "Best"):  # what is asked does not depend on how long they rehearse
        settings_ = {"n_iter": 1, "n_replicates": 1, "model": contone.Inversion(n_sweeps=12, n_burn=4), **settings_}
        settings_ |= {"n_iter": 1, "n_replicates": 1}
    if not CASES and cls.__name__ in NETWORKS:  # `make hostile` trains them to the end
        settings_ = {**NETWORKS[cls.__name__], **settings_}
    if cls.__name__ == "Best":
        settings_["methods"] = ["uniform", "temperature", "lp"]
    if cls.__name__ in wrapped:
        return cls(wrapped[cls.__name__], **settings_)
    return cls(**settings_)


# ------------------------------------------------------------------------------------------------------------- property


class TooLongError(Exception):
    """The case used more CPU time than any answer on a dozen rows needs."""


@contextmanager
def bounded():
    """Time and memory of one case; where the platform has no such timer, nothing is bounded."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    import resource

    def ring(*_: object) -> None:
        raise TooLongError(f"more than {CPU_SECONDS} s of CPU time")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES, f"{grown:.0f} MB for a dozen rows"


def acceptable(error: Exception) -> bool:
    """An error on purpose, with a sentence. An answer that is not a distribution is a defect, though it is caught."""
    if isinstance(error, AnswerError):
        return False
    return isinstance(error, ContoneError | InvalidParameterError) and len(str(error).split()) >= 4


def copied(data: Any) -> Any:
    return data.copy() if hasattr(data, "copy") else data.clone() if hasattr(data, "clone") else data


def same(before: Any, after: Any) -> bool:
    if hasattr(before, "is_meta") and before.is_meta:
        return True
    if hasattr(before, "to_dense"):
        before, after = before.to_dense(), after.to_dense()
    if hasattr(before, "equals"):
        return bool(before.equals(after))
    if hasattr(before, "toarray"):
        before, after = before.toarray(), after.toarray()
    if hasattr(before, "float"):
        return bool(((before == after) | (before != before)).all())
    before, after = np.asarray(before), np.asarray(after)
    return bool(before.shape == after.shape and np.all((before == after) | ((before != before) & (after != after))))


def as_array(answer: Any) -> np.ndarray:
    if hasattr(answer, "detach"):
        answer = answer.detach().float().numpy()
    if hasattr(answer, "to_numpy"):
        answer = answer.to_numpy()
    return np.asarray(answer, dtype=float)


def assert_on_simplex(answer: Any, n: int) -> None:
    D = as_array(answer)
    assert D.ndim == 2
    assert D.shape[0] == n
    assert np.isfinite(D).all()
    assert (D >= 0).all()
    np.testing.assert_allclose(D.sum(axis=1), 1.0, atol=1e-3 if "16" in str(getattr(answer, "dtype", "")) else 1e-5)


@contextmanager
def calm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_estimators(name):
    cls = ESTIMATORS[name]

    @budget(name)
    @given(st.data())
    def campaign(data: Any) -> None:
        n = data.draw(st.sampled_from([0, 1, 2, 3, 5, 8, 12, 12, 12]), label="rows")
        d = data.draw(st.sampled_from([0, 1, 2, 3, 5, 20]), label="features")
        q = data.draw(st.sampled_from([0, 1, 2, 3, 4]), label="labels")
        kind_X, kind_Y = data.draw(containers, label="X as"), data.draw(containers, label="Y as")
        X = put_into(kind_X, data.draw(features(n, d)))
        Y = put_into(kind_Y, data.draw(labels(n, q)))
        settings_ = data.draw(parameters(cls), label="parameters")
        kept = copied(X), copied(Y)
        with calm():  # pandas warns while it writes half precision
            note(f"X = {X!r}\nY = {Y!r}")
        with bounded(), calm():
            try:
                answer = answer_of(cls, settings_, X, Y)
            except Exception as error:
                if not acceptable(error):
                    raise
                answer = None
        assert same(kept[0], X), "X was changed"
        assert same(kept[1], Y), "Y was changed"
        if answer is None:
            return
        assert {kind_X, kind_Y}.isdisjoint(REFUSED) or no_container(kind_X, X) or no_container(kind_Y, Y), (
            f"an answer to X as {kind_X}, Y as {kind_Y}"
        )
        if name != "HSICReducer":
            assert_on_simplex(answer, n)
        else:
            assert np.isfinite(as_array(answer)).all()

    campaign()


def no_container(kind: str, data: Any) -> bool:
    """Whether the data could not be put into that container and stayed an ordinary array."""
    return kind in REFUSED and type(data) is np.ndarray and data.dtype.kind in "fiub"


def answer_of(cls: type, settings_: dict[str, Any], X: Any, Y: Any) -> Any:
    estimator = build(cls, settings_)
    if issubclass(cls, base.Enhancer):
        return estimator.fit_enhance(X, Y)
    if issubclass(cls, base.DistributionLearner):
        return estimator.fit(X, Y).predict(X)
    return estimator.fit(X, Y).transform(X)


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules(name):
    @budget(name)
    @given(st.data())
    def campaign(data: Any) -> None:
        n, q = data.draw(st.integers(0, 6), label="rows"), data.draw(st.integers(0, 4), label="labels")
        kind = data.draw(containers, label="D as")
        D = put_into(kind, distribution(n, q, data.draw(st.integers(0, 99))))
        value = data.draw(st.sampled_from([*ODD_VALUES, 1, 2, 0.5, 0.1]), label="parameter")
        kept = copied(D)
        with bounded(), calm():
            try:
                L = RULES[name](value).apply(D)
            except Exception as error:
                if not acceptable(error):
                    raise
                return
            finally:
                assert same(kept, D), "D was changed"
        assert kind not in REFUSED or no_container(kind, D), f"an answer to D as {kind}"
        assert L.shape == (n, q)
        assert set(np.unique(L)) <= {0, 1}
        assert L.any(axis=1).all()

    campaign()


def test_evaluate():
    @budget("evaluate")
    @given(st.data())
    def campaign(data: Any) -> None:
        n, q = data.draw(st.integers(0, 6), label="rows"), data.draw(st.integers(0, 4), label="labels")
        kinds = data.draw(containers, label="D as"), data.draw(containers, label="D_hat as")
        D, D_hat = (put_into(kind, distribution(n, q, seed)) for seed, kind in enumerate(kinds))
        with bounded(), calm():
            try:
                scores = contone.evaluate(D, D_hat)
            except Exception as error:
                if not acceptable(error):
                    raise
                return
        for kind, given_ in zip(kinds, (D, D_hat), strict=True):
            assert kind not in REFUSED or no_container(kind, given_), f"an answer to distributions as {kind}"
        assert 0 <= scores.chebyshev <= 1
        assert scores.kl >= -1e-9

    campaign()


def distribution(n: int, q: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(q, 0.5), size=n) if q else np.zeros((n, 0))
