"""Anything may be handed in. One property for every public class and function, whatever the data and the parameters:

    an error that says what is wrong, or an answer on the simplex; the inputs unchanged; in bounded time and memory.

Some 1,200 cases run with the suite, always the same ones. ``make hostile`` (``HOSTILE_CASES=100000``) runs as many as
asked for, others each time (or those of ``HOSTILE_SEED``); a failure is shown as the smallest case that fails.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from cases import (
    TINY,
    Call,
    build,
    calls,
    containers,
    distributions,
    faults,
    features,
    is_refused,
    labels,
    one_of_these,
    put_into,
)
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from sklearn.utils._param_validation import InvalidParameterError

import contone
from contone import base, measurements
from contone.exceptions import AnswerError, ContoneError

CASES = int(os.environ.get("HOSTILE_CASES", "0"))
SEED = os.environ.get("HOSTILE_SEED")
pytestmark = pytest.mark.no_cover  # the lines are reached by other tests; tracing costs a third of the time
CPU_SECONDS = 20.0
"""Of one case, on at most a dozen rows. CPU time, so that other work on the machine does not count."""
MEGABYTES = 600
"""By which one case may raise the memory of the process; the libraries are imported before the first one."""

ESTIMATORS = {
    name: value
    for name in contone.__all__
    if inspect.isclass(value := getattr(contone, name)) and hasattr(value, "fit") and value is not contone.Pipeline
}
RULES = {
    name: value
    for name in contone.__all__
    if inspect.isclass(value := getattr(contone, name)) and issubclass(value, measurements.IntervalRule)
}
FEW = {"Best": 12, "Tuned": 12, "Inversion": 25, "degrees": 8, "doubtful_labels": 20, "Rehearsal": 8}
FEW |= {"label_chances": 20, "answers": 20, "compare": 6, "check": 2, "LDLForest": 15}
MANY = 32
"""Cases of one name that run with the suite; what fits a model first, and costs more than all others, gets fewer."""


@pytest.fixture(autouse=True, scope="module")
def libraries() -> None:
    """What containers need is imported before anything is measured."""
    for name in ("pandas", "polars", "torch", "scipy.sparse"):
        pytest.importorskip(name)


def hostile(name: str, *strategies: Any) -> Callable[[Callable[..., None]], None]:
    """Run a property at once: the same few cases in the suite, the share of `HOSTILE_CASES` of one name if set."""
    asked = CASES // (len(ESTIMATORS) + len(RULES) + len(FUNCTIONS) + 1)
    budget = settings(
        max_examples=asked or FEW.get(name, MANY),
        deadline=None,
        derandomize=not asked and SEED is None,
        database=None,
        phases=[Phase.generate, Phase.shrink] if asked else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )

    def run(campaign: Callable[..., None]) -> None:
        test = budget(given(*strategies)(campaign))
        (seed(int(SEED))(test) if SEED else test)()

    return run


# ------------------------------------------------------------------------------------------------------------- property


class TooLongError(Exception):
    """The case used more CPU time than any answer on a dozen rows needs."""


def memory(what: str) -> float:
    """Megabytes of this process, VmRSS now or VmHWM at most since the last reset; 0 where the system does not tell."""
    try:
        with open("/proc/self/status") as lines:
            return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(what))
    except (OSError, StopIteration):
        return 0.0


@contextmanager
def bounded() -> Iterator[None]:
    """Time and memory of one case; where the platform has no such timer, nothing is bounded."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise TooLongError(f"more than {CPU_SECONDS} s of CPU time")

    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # starts anew
    before = memory("VmRSS")
    previous = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    grown = memory("VmHWM") - before
    assert grown < MEGABYTES, f"{grown:.0f} MB for a dozen rows"


def acceptable(error: Exception) -> bool:
    """An error on purpose, with a sentence. An answer that is not a distribution is a defect, though it is caught."""
    if isinstance(error, AnswerError):
        return False
    return isinstance(error, ContoneError | InvalidParameterError) and len(str(error).split()) >= 4


def attempt(question: Callable[[], Any], *inputs: Any) -> Any:
    """The answer, or None where there is an error with a sentence; the inputs are what they were."""
    kept = [copied(given_) for given_ in inputs]
    with bounded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = question()
        except Exception as error:
            if not acceptable(error):
                raise
            answer = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for before, after in zip(kept, inputs, strict=True):
            assert same(before, after), "an input was changed"
    return answer


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
        answer = answer.detach().double().numpy()
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


# -------------------------------------------------------------------------------------------------------------- classes


def fitted(cls: type, call: Call) -> tuple[Any, Any]:
    """The estimator and its answer for the rows that it was fitted to."""
    estimator = build(cls, call.settings)
    if issubclass(cls, base.Enhancer):
        return estimator, estimator.fit_enhance(call.X, call.Y)
    estimator.fit(call.X, call.Y)
    return estimator, getattr(estimator, "predict" if issubclass(cls, base.DistributionLearner) else "transform")(
        call.X
    )


def ask(estimator: Any, call: Call) -> Any:
    """What `call.later` says of the later rows."""
    if call.later == "summary":
        return estimator.summary()
    rows = [call.X_later, call.Y_later]
    return getattr(estimator, call.later)(*rows[: 1 + (call.Y_later is not None)])


def assert_answers(call: Call, answer: Any) -> None:
    if call.later == "summary":
        assert answer
    elif call.later == "score":
        assert not np.isnan(answer)  # where the truth is positive and a learner says 0, the divergence is infinite
    elif call.later == "intervals":
        low, high = map(as_array, answer)
        assert low.shape == high.shape
        assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    elif call.later == "transform":
        assert np.isfinite(as_array(answer)).all()
    else:
        assert_on_simplex(answer, call.m)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_estimators(name):
    cls = ESTIMATORS[name]

    @hostile(name, calls(cls))
    def campaign(call: Call) -> None:
        found = attempt(lambda: fitted(cls, call), call.X, call.Y)
        if found is None:
            return
        estimator, answer = found
        for kind, given_ in ((call.X_as, call.X), (call.Y_as, call.Y)):
            assert not is_refused(kind, given_), f"an answer to X as {call.X_as}, Y as {call.Y_as}"
        if name == "HSICReducer":
            assert np.isfinite(as_array(answer)).all()
        else:
            assert_on_simplex(answer, call.n)
        if hasattr(estimator, call.later or "nothing"):
            told = attempt(lambda: ask(estimator, call), call.X_later, call.Y_later)
            if told is not None:
                assert_answers(call, told)


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules(name):
    @hostile(name, st.integers(0, 6), st.integers(0, 4), st.data())
    def campaign(n: int, q: int, data: Any) -> None:
        wrong = data.draw(faults)
        kind = data.draw(containers("X as" in wrong), label="D as")
        D = put_into(kind, data.draw(distributions(n, q)))
        value = data.draw(one_of_these([1, 0.5, 0.1, 2], "parameters" in wrong), label="parameter")
        L = attempt(lambda: RULES[name](value).apply(D), D)
        if L is None:
            return
        assert not is_refused(kind, D), f"an answer to D as {kind}"
        assert L.shape == (n, q)
        assert set(np.unique(L)) <= {0, 1}
        assert L.any(axis=1).all()


def test_evaluate():
    @hostile("evaluate", st.integers(0, 6), st.integers(0, 4), st.data())
    def campaign(n: int, q: int, data: Any) -> None:
        wrong = data.draw(faults)
        kinds = [data.draw(containers(entry in wrong), label=entry) for entry in ("X as", "Y as")]
        D, D_hat = (put_into(kind, data.draw(distributions(n, q))) for kind in kinds)
        scores = attempt(lambda: contone.evaluate(D, D_hat), D, D_hat)
        if scores is None:
            return
        for kind, given_ in zip(kinds, (D, D_hat), strict=True):
            assert not is_refused(kind, given_), f"an answer to distributions as {kind}"
        assert 0 <= scores.chebyshev <= 1
        assert scores.kl >= -1e-9


# ------------------------------------------------------------------------------------------------------------ functions


def with_degrees(X: Any, Y: Any, option: Any) -> Any:
    """Graded rows: those of the option, which is distributions where it fits."""
    return contone.Inversion(**TINY).fit_enhance(X, Y, degrees=option)


def with_groups(X: Any, Y: Any, option: Any) -> Any:
    return contone.Inversion(degradation="marks", **TINY).fit_enhance(X, Y, groups=option)


def answers_of_people(X: Any, Y: Any, option: Any) -> Any:
    """Votes, levels or marks, with items and persons or without."""
    made, groups, annotators = option
    return contone.Inversion(degradation=made(), **TINY).fit_enhance(X, Y, groups=groups, annotators=annotators)


def doubtful(X: Any, Y: Any, option: Any) -> Any:
    method = contone.Inversion(**TINY).fit(X, Y)
    return contone.doubtful_labels(method, X, Y, n_sweeps=6, min_probability=option)


def chances(X: Any, Y: Any, option: Any) -> Any:
    method = contone.Inversion(**TINY).fit(X, Y)
    return contone.label_chances(method, X, Y, n_sweeps=6, noise=option)


def rehearsed(X: Any, Y: Any, option: Any) -> Any:
    return contone.Rehearsal(X, Y, contone.Inversion(**TINY), n_replicates=1, max_rows=option).replicates


def compared(X: Any, Y: Any, option: Any) -> Any:
    model = contone.Inversion(**TINY)
    return contone.compare(["uniform", "temperature"], X, Y, model=model, n_replicates=1, n_splits=option)


def checked(X: Any, Y: Any, option: Any) -> Any:
    return contone.check(contone.Inversion(**TINY), X, Y, n_replicates=2, max_rows=option)


def weighted(X: Any, Y: Any, option: Any) -> Any:
    return contone.weighted_rows(X, Y, min_degree=option)


ANSWERS = [contone.Votes, partial(contone.Votes, ordered=True), contone.Levels, contone.Marks]
ODD_ANSWERS = [partial(contone.Votes, ordered="x"), partial(contone.Levels, 3), partial(contone.Levels, (2, "a"))]
FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "degrees": (with_degrees, []),
    "groups": (with_groups, []),
    "answers": (answers_of_people, []),
    "doubtful_labels": (doubtful, [0.5, 0.0, 1.0]),
    "label_chances": (chances, [0.05, 0.0, None]),
    "Rehearsal": (rehearsed, [12, 2, 5]),
    "compare": (compared, [0, 2, 3, 50]),
    "check": (checked, [12, 1, 5]),
    "weighted_rows": (weighted, [0.0, 0.3, 0.9]),
}
"""Functions, and values of the argument that varies: some that fit it."""


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions(name):
    function, options = FUNCTIONS[name]

    @hostile(name, faults, st.data())
    def campaign(wrong: list[str], data: Any) -> None:
        n = data.draw(st.sampled_from([0, 1, 2] if "sizes" in wrong else [3, 5, 12, 12]), label="rows")
        d = data.draw(st.sampled_from([0, 1] if "sizes" in wrong else [1, 2, 5]), label="features")
        q = data.draw(st.sampled_from([0, 1, 2] if "sizes" in wrong else [2, 3]), label="labels")
        kinds = [data.draw(containers(entry in wrong), label=entry) for entry in ("X as", "Y as")]
        target = distributions if name == "weighted_rows" else labels
        X = put_into(kinds[0], data.draw(features(n, d, "entries" in wrong)))
        Y = put_into(kinds[1], data.draw(target(n, q, "labels" in wrong)))
        if name == "degrees":
            G = data.draw(distributions(n, q, "parameters" in wrong)).astype(float)
            G[data.draw(st.integers(0, 12)) :: 2] = np.nan
            option = put_into(data.draw(containers("other columns" in wrong), label="degrees as"), G)
        elif name == "answers":
            made = data.draw(st.sampled_from(ANSWERS + ODD_ANSWERS * ("parameters" in wrong)), label="measurement")
            names = st.none() | st.lists(st.sampled_from([0, 1, "a"]), min_size=n, max_size=n)
            option = made, *(data.draw(names, label=label) for label in ("groups", "annotators"))
        elif name == "groups":
            option = np.asarray(data.draw(st.lists(st.sampled_from([0, 1, "a", None, np.nan]), max_size=12)), object)
            option = np.resize(option, n) if "parameters" not in wrong and len(option) else option
        else:
            option = data.draw(one_of_these(options, "parameters" in wrong), label="option")
        answer = attempt(lambda: function(X, Y, option), X, Y, *([] if name == "answers" else [option]))
        if answer is None:
            return
        passed_on = name == "weighted_rows"  # X is copied as it is, for whatever takes it
        for kind, given_ in list(zip(kinds, (X, Y), strict=True))[passed_on:]:
            assert not is_refused(kind, given_), f"an answer to X as {kinds[0]}, Y as {kinds[1]}"
        if name == "label_chances":
            assert ((as_array(answer) >= 0) & (as_array(answer) <= 1)).all()
        if name in ("degrees", "groups", "answers"):
            assert_on_simplex(answer, n if name == "degrees" else len(answer))  # one row per item
