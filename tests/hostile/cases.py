"""Hypothesis strategies: data of every kind and size, containers of every kind, parameters inside and outside of
their domains.

Half of the cases have nothing wrong with them beyond what data can be like; the others have one or two faults, so that
most calls get past the first check and as many places as possible are reached.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils._param_validation import Interval, StrOptions

import contone
from contone import base

FAULTS = ["sizes", "entries", "labels", "X as", "Y as", "parameters", "other columns"]
faults = st.one_of(st.just([]), st.lists(st.sampled_from(FAULTS), min_size=1, max_size=2, unique=True))


# ------------------------------------------------------------------------------------------------------------- numbers

UNITS = [1.0, 1.0, 1.0, 1e-3, 1e6, 1e-170, 1e-310, 1e155, 1e300]
OFFSETS = [0.0, 0.0, 0.0, 1.0, 1e12, -1e8]
DTYPES = ["float64", "float64", "float64", "float32", "float16", "int8", "int64", "uint64", "bool"]
PATTERNS = ["normal", "normal", "constant", "zero", "duplicates", "sparse", "collinear", "outlier", "column"]
BAD_ENTRIES = [np.nan, np.inf, -np.inf]
RECIPES = list(product(PATTERNS, UNITS, OFFSETS, DTYPES))
"""One draw instead of four, which cost more than most of the calls; the simplest is first."""
MARKED = [0.5, 0.1, 0.9, 1.0]
WHAT_LABELS_ARE = ["logical"] * 6 + ["confidence", "empty rows", "unasked", "classes", "levels"]
LABELS = list(product(WHAT_LABELS_ARE, MARKED, ["float64", "float64", "int8", "bool", "float32", "int64"]))
seeds, recipes, sorts_of_labels = st.integers(0, 1000), st.sampled_from(RECIPES), st.sampled_from(LABELS)
bad_entries, bad_labels = st.sampled_from(BAD_ENTRIES), st.sampled_from([-1.0, 0.3, 2.0, 1e300, np.nan, np.inf])
concentrations = st.sampled_from([1.0, 0.01, 0.5, 1e3])


def pattern(kind: str, rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """X (n, d) with numbers near 1."""
    X = rng.normal(size=(n, d))
    if kind == "constant":
        return np.ones((n, d))
    if kind == "zero":
        return np.zeros((n, d))
    if kind == "duplicates" and n:
        return X[rng.integers(0, max(1, n // 3), size=n)]
    if kind == "sparse":
        return X * (rng.random((n, d)) < 0.2)
    if kind == "collinear" and d:
        return np.repeat(X[:, :1], d, axis=1)
    if kind == "outlier" and n and d:
        X[0, 0] = 1e8
    if kind == "column" and d:  # one in another unit than the others
        X[:, 0] *= 1e-9
    return X


@st.composite
def features(draw: Any, n: int, d: int, bad: bool = False) -> np.ndarray:
    """X (n, d): ordinary, or of an extreme size, constant, with duplicates or of an unusual type; bad: with a NaN."""
    rng = np.random.default_rng(draw(seeds))
    kind, unit, offset, dtype = draw(recipes)
    with np.errstate(over="ignore", under="ignore"):
        X = pattern(kind, rng, n, d) * unit + offset
    if bad and n and d:
        X[rng.integers(n), rng.integers(d)] = draw(bad_entries)
    return cast(X, dtype)


def cast(A: np.ndarray, dtype: str) -> np.ndarray:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return A.astype(dtype, copy=False)


@st.composite
def labels(draw: Any, n: int, q: int, bad: bool = False) -> np.ndarray:
    """Y (n, q): 0 and 1, confidences, classes; rows that say nothing and entries that nobody asked about; bad: none."""
    rng = np.random.default_rng(draw(seeds))
    kind, marked, dtype = draw(sorts_of_labels)
    L = (rng.random((n, q)) < marked).astype(float)
    if n and q:
        L[np.arange(n), rng.integers(q, size=n)] = 1.0
    if bad and n and q:
        L[rng.integers(n), rng.integers(q)] = draw(bad_labels)
        return L
    if kind == "confidence" and q:
        return L / np.maximum(L.sum(axis=1, keepdims=True), 1.0)
    if kind == "empty rows":
        L[rng.random(n) < 0.3] = 0.0
    if kind == "unasked":
        L[rng.random((n, q)) < 0.3] = np.nan
        return L
    if kind == "levels":
        L *= rng.integers(1, 4, size=(n, q))
    if kind == "classes":
        return rng.integers(0, max(1, q), size=n)
    return cast(L, dtype)


@st.composite
def distributions(draw: Any, n: int, q: int, bad: bool = False) -> np.ndarray:
    """D (n, q): rows on the simplex, spread or on its corners; bad: with an entry that does not fit."""
    rng = np.random.default_rng(draw(seeds))
    D = rng.dirichlet(np.full(q, draw(concentrations)), size=n) if q else np.zeros((n, 0))
    if q:  # the smallest concentration underflows to rows of 0
        D = np.where(D.sum(axis=1, keepdims=True) > 0, D, 1.0 / q)
    if bad and n and q:
        D[rng.integers(n), rng.integers(q)] = draw(bad_labels)
    return D


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


def as_other_tensor(A: np.ndarray, how: str) -> Any:
    import torch

    tensor = torch.tensor(A.astype(float))
    if how == "bfloat16":
        return tensor.to(torch.bfloat16)
    return tensor.to_sparse() if how == "sparse" else tensor.to(how)


def as_sparse(A: np.ndarray) -> Any:
    import scipy.sparse as sp

    return sp.csr_array(np.atleast_2d(A.astype(float)))


def as_masked(A: np.ndarray) -> Any:
    mask = np.zeros(A.shape, dtype=bool)
    mask.flat[:1] = True
    return np.ma.masked_array(A, mask=mask)


ORDINARY = {
    "array": lambda A: A,
    "columns first": np.asfortranarray,
    "backwards": lambda A: A[::-1, ::-1][::-1, ::-1] if A.ndim == 2 else A[::-1][::-1],
    "read-only": as_read_only,
    "list": lambda A: A.tolist(),
    "pandas": as_pandas,
    "polars": as_polars,
    "tensor": as_tensor,
}
CONTAINERS = {
    **ORDINARY,
    "objects": lambda A: A.astype(object),
    "text": lambda A: A.astype(str),
    "complex": lambda A: A.astype(complex) + 1j,
    "dates": lambda A: np.zeros(A.shape, dtype="datetime64[s]"),
    "masked": as_masked,
    "three axes": lambda A: A[None],
    "pandas, odd names": as_pandas_odd_names,
    "bfloat16 tensor": lambda A: as_other_tensor(A, "bfloat16"),
    "sparse tensor": lambda A: as_other_tensor(A, "sparse"),
    "meta tensor": lambda A: as_other_tensor(A, "meta"),
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


def is_refused(container: str, data: Any) -> bool:
    """Whether an answer to this would be a wrong one: the container is such, and could hold the data."""
    return container in REFUSED and not (type(data) is np.ndarray and data.dtype.kind in "fiub")


_containers = st.sampled_from(list(ORDINARY)), st.sampled_from(list(CONTAINERS))


def containers(odd: bool = False) -> Any:
    return _containers[odd]


# ----------------------------------------------------------------------------------------------------------- parameters

ODD_VALUES = [None, float("nan"), float("inf"), -1, 0, 1, 2, 0.5, 1e-300, 1e300, 10**6, "x", "auto", (), True]


def one_of_these(fitting: list[Any], odd: bool) -> Any:
    """Values of an argument that fit it; odd: any."""
    return st.sampled_from(ODD_VALUES if odd else fitting)


WRAPPED = ("estimator", "enhancer", "regressor", "classifier")
WORK = {"epochs", "max_steps", "n_copies", "n_draws", "n_init", "n_iter", "n_sweeps", "n_trees", "pretrain_epochs"}
"""Parameters that say how long to compute: a million of them takes as long as it takes."""
TINY = {"n_sweeps": 6, "n_burn": 2}
BRIEF: dict[str, dict[str, Any]] = {
    "ConLE": {"epochs": 2},
    "DRAM": {"max_iter": 2, "max_steps": 3, "n_draws": 4},
    "GLEMR": {"max_iter": 10},
    "GLESC": {"max_iter": 10},
    "Inversion": TINY,
    "LDLForest": {"n_trees": 2, "max_iter": 5},
    "LEIC": {"epochs": 2},
    "LEVI": {"epochs": 2},
    "LIBLE": {"epochs": 2, "pretrain_epochs": 2},
}
"""What is asked holds after any number of iterations."""


@cache
def domains(cls: type) -> dict[str, list[Any]]:
    """A few allowed values of each parameter."""
    constraints = {k: v for k, v in getattr(cls, "_parameter_constraints", {}).items() if k not in WRAPPED}
    return {name: [value for each in allowed for value in inside(each)] for name, allowed in constraints.items()}


@cache
def settings_of(cls: type) -> tuple[Any, Any]:
    """Strategies for one parameter and its value: inside the domain, and anywhere."""
    found = domains(cls)
    allowed = [(name, value) for name, values in found.items() for value in values]
    odd = [(name, value) for name in found for value in ODD_VALUES if not (name in WORK and value == 10**6)]
    return st.lists(st.sampled_from(allowed), max_size=2) if allowed else st.just([]), st.sampled_from(odd or [None])


@st.composite
def parameters(draw: Any, cls: type, odd: bool = False) -> dict[str, Any]:
    """Mostly the defaults, few iterations; up to two values from the declared domain; odd: one from outside it."""
    chosen = dict(BRIEF.get(cls.__name__, {}))
    if "max_iter" in domains(cls):
        chosen.setdefault("max_iter", 30)
    if "random_state" in domains(cls):
        chosen["random_state"] = 0
    if domains(cls):
        allowed, outside = settings_of(cls)
        chosen |= dict(draw(allowed))
        chosen |= dict([draw(outside)]) if odd else {}
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


def build(cls: type, settings: dict[str, Any]) -> Any:
    """An instance; what wraps another estimator gets a plain one, what rehearses does so once, with a tiny model."""
    around = dict.fromkeys(("Augmented", "Calibrated", "Rescaled", "Tuned"), contone.Temperature())
    wrapped = {**around, "FromRegressor": Ridge(), "FromClassifier": LogisticRegression()}
    if cls.__name__ in ("Tuned", "Best"):
        settings = {"model": contone.Inversion(**TINY), **settings, "n_iter": 1, "n_replicates": 1, "verbose": False}
    if cls.__name__ == "Best":
        settings["methods"] = ["uniform", "temperature", "lp"]
    return cls(wrapped[cls.__name__], **settings) if cls.__name__ in wrapped else cls(**settings)


# ---------------------------------------------------------------------------------------------------------------- calls


@dataclass
class Call:
    """A fit, and something that is asked of it afterwards with other rows."""

    settings: dict[str, Any]
    X: Any
    Y: Any
    n: int
    X_as: str
    Y_as: str
    later: str
    X_later: Any
    Y_later: Any
    m: int


def asked_later(cls: type) -> list[str]:
    """What a fit can be asked for; the empty word stands for nothing."""
    names = ("predict", "enhance", "score", "intervals", "summary", "transform")
    return [*(name for name in names if hasattr(cls, name)), ""]


SIZES = st.sampled_from(list(product([12, 12, 8, 5, 3, 2], [2, 1, 3, 5, 20], [2, 2, 3, 4])))
ODD_SIZES = st.sampled_from(list(product([1, 0, 2, 3], [1, 0, 2, 20], [2, 0, 1, 3])))


@st.composite
def calls(draw: Any, cls: type) -> Call:
    wrong = draw(faults)
    n, d, q = draw(ODD_SIZES if "sizes" in wrong else SIZES)
    learns = issubclass(cls, base.DistributionLearner)
    targets = distributions if learns and draw(st.integers(0, 4)) else labels
    kinds = draw(containers("X as" in wrong)), draw(containers("Y as" in wrong))
    settings, later = draw(parameters(cls, "parameters" in wrong)), draw(st.sampled_from(asked_later(cls)))
    X = put_into(kinds[0], draw(features(n, d, "entries" in wrong)))
    Y = put_into(kinds[1], draw(targets(n, q, "labels" in wrong)))
    X_later, Y_later, m = None, None, draw(st.sampled_from([1, 4]))
    if later not in ("", "summary"):
        X_later = put_into(kinds[0], draw(features(m, d + ("other columns" in wrong))))
    if later in ("enhance", "score") or (later == "intervals" and draw(st.booleans())):
        Y_later = put_into(kinds[1], draw(targets(m, q)))
    return Call(settings, X, Y, n, *kinds, later, X_later, Y_later, m)
