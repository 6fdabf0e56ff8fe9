"""Values as JSON can hold them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from contone.runtime.plain import plain


@dataclass
class Pair:
    first: object
    second: object


def test_values_become_what_json_holds_and_come_back():
    value = {"a": Pair(np.float32(0.5), (1, None)), 2: np.array([[True], [False]]), "c": [Pair(Pair(1, 2), "x")]}
    expected = {"a": {"first": 0.5, "second": [1, None]}, "2": [[True], [False]]}
    expected["c"] = [{"first": {"first": 1, "second": 2}, "second": "x"}]
    assert plain(value) == expected == json.loads(json.dumps(plain(value), allow_nan=False))
    assert plain(Pair) is Pair  # a class is no value: JSON refuses it


def test_numbers_that_json_lacks_are_replaced_as_asked():
    odd = [np.inf, -np.inf, np.nan, 1e308, 0.0]
    assert plain(odd) == [None, None, None, 1e308, 0.0]
    assert plain(np.array(odd), not_finite=str) == ["inf", "-inf", "nan", 1e308, 0.0]
