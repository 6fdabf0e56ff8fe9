"""What an estimator does not take, refused before any work with what to do instead."""

from __future__ import annotations

import sys
from typing import Any

from contone.backends import get_backend
from contone.exceptions import InputError, InputTypeError, LabelError, MemoryEstimateError
from contone.runtime import memory
from contone.typing import Array
from contone.validation import able_methods


def refuse_too_large(estimator: Any, X: Array, q: int) -> None:
    """Refuse, before any work, what would not fit into memory."""
    (n, d), backend = X.shape, get_backend(X)
    if backend.name == "sparse":  # what is stored, and some hundred dense columns made from it
        d = min(d, X.nnz // n + 100)
    needed = estimator._fit_bytes(n, d, q) if backend.in_memory else estimator._solver_bytes(n, q)
    available = backend.available_bytes(X)
    if needed <= available:
        return
    name, limit = type(estimator).__name__, memory.LIMIT_VARIABLE
    sizes = f"{memory.shown(needed)} of memory{{}}; {memory.shown(available)} are available."
    if backend.in_memory:
        raise MemoryEstimateError(
            f"{name} on {n:,} rows with {d} features and {q} labels needs about {sizes.format('')} Use a setting "
            'that grows with n and not with its square (a "knn" graph, an "exact" solver), fit on a sample of the '
            "rows and predict the others, or stream the file: contone enhance --stream. If the estimate is wrong, "
            f"set {limit}, to a size such as 64GB or to off."
        )
    # The solver's matrices, of the shape of Y: with the workers, or here where there are none.
    raise MemoryEstimateError(
        f"{name} on {n:,} rows with {q} labels needs about {sizes.format(', on the workers or in this process')} "
        "Use Inversion, which answers block by block; or fit on a sample of the rows in memory and "
        f"predict the others (dask arrays will do). If the estimate is wrong, set {limit}, to a size such as 64GB "
        "or to off."
    )


def refuse_other_kinds(estimator: Any, *arrays: Any) -> None:
    """Refuse dask arrays for an estimator that needs all rows in memory."""
    if get_backend(*arrays).name == "dask" and "dask" not in getattr(estimator, "kinds", ()):
        public = vars(sys.modules["contone"])
        able = [
            name for name, cls in public.items() if hasattr(cls, "fit_enhance") and "dask" in getattr(cls, "kinds", ())
        ]
        raise InputTypeError(
            f"{type(estimator).__name__} does not fit dask arrays; these methods do: {', '.join(sorted(able))}. Or fit "
            "it to a sample in memory (X[rows].compute()); where it has `predict`, that takes dask arrays."
        )


def refuse_unasked(estimator: Any, L: Array) -> None:
    """Refuse labels with NaN for a step that does not take them."""
    if bool(get_backend(L).compute((L != L).any())[0]):
        raise LabelError(
            f"{type(estimator).__name__} does not take labels with NaN; these methods do: {able_methods('unasked')}."
        )


def refuse_setting(estimator: Any, X: Array, setting: str, instead: str) -> None:
    """Refuse dask arrays with a setting that needs all rows in memory."""
    if not get_backend(X).in_memory:
        raise InputError(
            f"{type(estimator).__name__}({setting}={getattr(estimator, setting)!r}) needs all rows in memory; with "
            f"dask arrays use {setting}={instead!r}."
        )
