"""The types that many modules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = Any
"""An array of any kind that `contone.backends` knows: NumPy, torch or dask. Type checkers have no common type for them;
shapes and kinds are in the docstrings."""

Matrix: TypeAlias = npt.NDArray[np.float64]
"""A NumPy array of numbers in double precision."""

Operator: TypeAlias = Callable[[Array], Array]
"""A linear map V (n, q) -> A V (n, q) that is never written down as a matrix."""
