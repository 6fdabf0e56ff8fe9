"""A method on a rehearsal: every replicate once, its failures and its time told and not raised."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone

from contone import enhance
from contone.base import Enhancer
from contone.enhance import plugins
from contone.enhance.graded import takes_degrees
from contone.exceptions import ArgumentError
from contone.trust.rehearsal import Rehearsal


@dataclass(frozen=True)
class Trial:
    """What a method made of one replicate.

    Attributes
    ----------
    answer : (m, q) or None
        None where the method failed.
    seconds : float
    error : str
        Why it failed; empty where it did not.
    notes : tuple of str
        Its warnings.
    """

    answer: np.ndarray | None
    seconds: float
    error: str = ""
    notes: tuple[str, ...] = ()


def try_once(method: Enhancer, X: np.ndarray, labels: np.ndarray, degrees: np.ndarray | None = None) -> Trial:
    """A fresh copy of a method on features X (m, d) and labels (m, q); whatever it raises is kept as a text.

    Known degrees (m, q) are handed to methods that take them.
    """
    more = {"degrees": degrees} if degrees is not None and takes_degrees(method) else {}
    method = quiet(method)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = np.asarray(clone(method).fit(X, labels, **more).label_distributions_, dtype=np.float64)
        except Exception as error:  # a method from anywhere may fail in any way; the others must still be tried
            reason = (str(error).strip() or "no message").splitlines()[0]
            return Trial(None, time.perf_counter() - start, f"{type(error).__name__}: {reason}")
    notes = tuple(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))
    return Trial(answer, time.perf_counter() - start, notes=notes)


def quiet(method: Enhancer) -> Enhancer:
    """The method without a progress bar of its own: one is enough."""
    return clone(method).set_params(verbose=False) if "verbose" in method.get_params(deep=False) else method


def try_all(method: Enhancer, rehearsal: Rehearsal, budget: float | None) -> list[Trial]:
    """A method on one replicate after the other, until the next one would pass a budget in seconds; one at least."""
    trials: list[Trial] = []
    spent = 0.0
    for replicate in rehearsal.replicates:
        if budget is not None and trials and spent + trials[-1].seconds > budget:
            break
        trials.append(try_once(method, rehearsal.X, replicate.labels, replicate.degrees))
        spent += trials[-1].seconds
    return trials


def named_methods(methods: Any) -> dict[str, Enhancer]:
    """Methods by name, from a mapping or from a sequence of names, classes and instances."""
    if isinstance(methods, str | Enhancer) or (isinstance(methods, type) and issubclass(methods, Enhancer)):
        methods = [methods]
    if isinstance(methods, Mapping):
        return {str(name): _as_method(given) for name, given in methods.items()}
    if not isinstance(methods, Sequence) or not methods:
        raise ArgumentError(
            f"methods must be a list of names, classes or instances, or a dictionary of them; got {methods!r}.",
            "methods",
        )
    built = [_as_method(given) for given in methods]
    plain = [type(method).__name__ for method in built]
    found: dict[str, Enhancer] = {}
    for method, name in zip(built, plain, strict=True):
        # sklearn prints the parameters that differ from the defaults.
        longer = name if plain.count(name) == 1 else " ".join(repr(method).split())
        numbered = next(n for n in (longer, *(f"{longer} #{k}" for k in range(2, 1000))) if n not in found)
        found[numbered] = method
    return found


def _as_method(given: Any) -> Enhancer:
    if isinstance(given, Enhancer):
        return given
    if isinstance(given, type) and issubclass(given, Enhancer):
        return given()
    if isinstance(given, str):
        if ":" in given:
            return plugins.load(given)()
        known = enhance.methods()
        if given.lower() in known:
            return known[given.lower()]()
        raise ArgumentError(f"there is no method {given!r}; there are: {', '.join(known)}.", "methods")
    raise ArgumentError(f"methods: {given!r} is not a method, a class of one or the name of one.", "methods")


@contextmanager
def shared_memory(method: Enhancer) -> Iterator[Enhancer]:
    """The method with a folder in which it keeps what depends on X alone, if it can; the folder is gone afterwards."""
    if method.get_params(deep=False).get("memory", ...) is not None:
        yield method
        return
    with TemporaryDirectory() as folder:
        yield clone(method).set_params(memory=folder)
