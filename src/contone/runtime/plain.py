"""Any values as plain ones, which JSON can hold."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def plain(value: Any, not_finite: Callable[[float], Any] = lambda number: None) -> Any:
    """Dicts, lists, texts, numbers, booleans and None; whatever has no plain form stays, for JSON to refuse.

    JSON has no infinity and no NaN: `not_finite` says what stands for them.

    Examples
    --------
    >>> plain({"a": (1.5, np.float64("inf")), 2: np.arange(2)})
    {'a': [1.5, None], '2': [0, 1]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner, not_finite) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, not_finite) for inner in value]
    return not_finite(value) if isinstance(value, float) and not math.isfinite(value) else value
