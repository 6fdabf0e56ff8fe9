"""One trial: some work once, with its time, its warnings and its failure kept as values; nothing is raised.

And the methods to try: by name, without progress bars of their own, on every replicate of a rehearsal.
"""

import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from sklearn.base import clone

from contone import enhance
from contone.base import Enhancer
from contone.enhance import Inversion, plugins
from contone.enhance.counting import Counting
from contone.enhance.graded import takes_degrees
from contone.exceptions import ArgumentError, MissingExtraError
from contone.measurements import Votes
from contone.runtime.warnings import recorded
from contone.trust.rehearsal import Replicate
from contone.typing import Data, EstimatorLike, Matrix

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Trial(Generic[Answer]):
    """What came of some work.

    Attributes
    ----------
    answer : object or None
        None where it failed.
    seconds, cpu : float
        Time that passed, and time on the processor.
    error, traceback : str
        Why it failed; empty where it did not.
    is_left_out : bool
        Whether it failed because an extra is not installed.
    warnings : tuple
        Category and text of each warning, once.
    """

    answer: Answer | None
    seconds: float
    cpu: float
    error: str = ""
    traceback: str = ""
    is_left_out: bool = False
    warnings: tuple[tuple[type[Warning], str], ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What its warnings tell the user."""
        return tuple(text for category, text in self.warnings if issubclass(category, UserWarning))


def trial(work: Callable[[], Answer]) -> Trial[Answer]:
    """Do some work once; whatever it raises is kept as a text."""
    answer, error, trace, is_left_out = None, "", "", False
    start, cpu = time.perf_counter(), time.process_time()
    with recorded() as caught:
        try:
            answer = work()
        except Exception as raised:  # a method from anywhere may fail in any way; the others must still be tried
            error = f"{type(raised).__name__}: {str(raised).strip() or 'no message'}"
            trace, is_left_out = traceback.format_exc(), isinstance(raised, MissingExtraError)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    warned = tuple(dict.fromkeys((w.category, str(w.message)) for w in caught))
    return Trial(answer, seconds, cpu, error, trace, is_left_out, warned)


Tried: TypeAlias = Trial[Matrix]
"""A method's trial: its answer is distributions (m, q)."""


def try_method(method: Enhancer, X: Matrix, labels: Matrix, degrees: Matrix | None = None) -> Tried:
    """A fresh copy of a method on features X (m, d) and labels (m, q): its answer (m, q).

    Known degrees (m, q) are handed to methods that take them. Of votes and levels, a method of 0/1 labels is given
    the majority: the labels of an item with the most votes, or the highest level.
    """
    more = {"degrees": degrees} if degrees is not None and takes_degrees(method) else {}
    fresh = clone(quiet(method))
    if not reads(method, labels):
        with np.errstate(invalid="ignore"):
            most = np.fmax.reduce(labels, axis=1, keepdims=True)
        labels = np.where(np.isnan(labels), np.nan, (labels == most) & (labels > np.nanmin(labels)))
    return trial(lambda: np.asarray(fresh.fit(X, labels, **more).label_distributions_, dtype=np.float64))


def reads(method: EstimatorLike, labels: Data) -> bool:
    """Whether a method takes such labels (m, q) as they are: numbers other than 0 and 1 are not for every method."""
    return bool(method.takes_levels()) or bool(np.isin(labels[~np.isnan(labels)], (0.0, 1.0)).all())


def quiet(method: Enhancer) -> Enhancer:
    """The method without a progress bar of its own: one is enough."""
    return clone(method).set_params(verbose=False) if "verbose" in method.get_params(deep=False) else method


def try_all(method: Enhancer, X: Matrix, replicates: Sequence[Replicate], budget: float | None = None) -> list[Tried]:
    """A method on one replicate after the other, until the next one would pass a budget in seconds; one at least."""
    trials: list[Tried] = []
    for replicate in replicates:
        if budget is not None and trials and sum(t.seconds for t in trials) + trials[-1].seconds > budget:
            break
        trials.append(try_method(method, X, replicate.labels, replicate.degrees))
    return trials


def named_methods(methods: Any) -> dict[str, Enhancer]:
    """Methods by name, from a mapping or from a sequence of names, classes and instances.

    "GLLE" is a method with its defaults, "GLLE (paper)" with a preset, "module:Class" one of the user's own.
    """
    if isinstance(methods, str | Enhancer) or (isinstance(methods, type) and issubclass(methods, Enhancer)):
        methods = [methods]
    if isinstance(methods, Mapping):
        return {str(name): _named(given, str(name))[1] for name, given in methods.items()}
    if not isinstance(methods, Sequence) or not methods:
        said = "methods must be a list of at least one name, class or instance, or a dictionary of them"
        raise ArgumentError(f"{said}; got {methods!r}.", "methods")
    built = [_named(given) for given in methods]
    plain = [name for name, _ in built]
    found: dict[str, Enhancer] = {}
    for name, method in built:
        # sklearn prints the parameters that differ from the defaults.
        longer = name if plain.count(name) == 1 else " ".join(repr(method).split())
        numbered = next(n for n in (longer, *(f"{longer} #{k}" for k in range(2, 1000))) if n not in found)
        found[numbered] = method
    return found


def _named(given: Any, name: str = "") -> tuple[str, Enhancer]:
    if isinstance(given, Enhancer):
        return type(given).__name__, given
    if isinstance(given, str) and plugins.is_path(given):
        given = enhance.find(given)
    if isinstance(given, type) and issubclass(given, Enhancer):
        return given.__name__, given()
    if not isinstance(given, str):
        what = f"{name!r} is {given!r}, which" if name else repr(given)
        raise ArgumentError(f"methods: {what} is not a name, a method's class or a method.", "methods")
    parts = re.fullmatch(r"\s*([^()]+?)\s*(?:\((.+)\))?\s*", given)
    name, preset = (given, None) if parts is None else parts.groups()
    cls = enhance.find(name, "methods")
    if preset is None:
        return cls.__name__, cls()
    if preset not in cls.PRESETS:
        listed = ", ".join(cls.PRESETS) or "none"
        raise ArgumentError(f"methods: {cls.__name__} has no preset {preset!r}; it has: {listed}.", "methods")
    return f"{cls.__name__} ({preset})", cls.preset(preset)


def counting_methods(model: Inversion) -> dict[str, Enhancer]:
    """What counts answers of people: the baselines of methods that read them."""
    rule = getattr(model, "degradation_", model._measurement())
    found: dict[str, Enhancer] = {"Counting": Counting(lowest=getattr(rule, "lowest", 0.0))}
    if isinstance(rule, Votes):
        found |= {"Dirichlet": Counting("dirichlet"), "Dirichlet with features": Counting("regression")}
    return found


@contextmanager
def shared_memory(method: Enhancer) -> Iterator[Enhancer]:
    """The method with a folder in which it keeps what depends on X alone, if it can; the folder is gone afterwards."""
    if method.get_params(deep=False).get("memory", ...) is not None:
        yield method
        return
    with TemporaryDirectory() as folder:
        yield clone(method).set_params(memory=folder)
