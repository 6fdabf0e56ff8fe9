"""The types that many modules share; `Any` stands here, so that elsewhere a name says what is meant."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = Any
"""An array of any kind that `contone.backends` knows: NumPy, torch or dask. Type checkers have no common type for them;
shapes and kinds are in the docstrings."""

Data: TypeAlias = Any
"""What users hand in and get back, before it is checked and after it is wrapped: an array of any kind, a sparse matrix,
a pandas or polars frame, a list of rows."""

EstimatorLike: TypeAlias = Any
"""An estimator in scikit-learn's sense, ours or another's: asked for attributes that it may or may not have."""

Record: TypeAlias = dict[str, Any]
"""Named values of any kind: parameters, what is known about a solution, what a JSON file holds."""

Domains: TypeAlias = dict[str, list[Any]]
"""For every parameter of an estimator, what it may be, or what is worth trying."""

Presets: TypeAlias = dict[str, dict[str, Any]]
"""Parameters of an estimator by the name of the preset."""

Seed: TypeAlias = int | np.random.RandomState | None
"""`random_state` in scikit-learn's sense."""

Matrix: TypeAlias = npt.NDArray[np.float64]
"""A NumPy array of numbers in double precision."""

Function: TypeAlias = Callable[..., Any]
"""A function that is handed on: what it takes and gives is agreed between who wrote it and who calls it."""

Operator: TypeAlias = Callable[[Array], Array]
"""A linear map V (n, q) -> A V (n, q) that is never written down as a matrix."""
