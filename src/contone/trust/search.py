"""Parameters that do best on a rehearsal.

A candidate's score is its KL relative to that of the uniform distribution, averaged over replicates, so that a
replicate with widely spread degrees does not decide alone. A temperature on the answer is part of every search, and
its best value needs no search: for given answers D^,

    KL(D* || softmax(t log D^)) = sum d* log d*  -  t sum d* log d^  +  log sum exp(t log d^)

is convex in t.

Candidates are drawn at random from the space (all of them where they are few), the method's own parameters always
among them. All are tried on the first replicate, and the best third of them on the others (successive halving with
the replicates as the resource). One that fails on a replicate is out. Rows whose degrees are given are not judged.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from contone.base import Enhancer
from contone.enhance.rescaled import FLOOR
from contone.exceptions import ArgumentError
from contone.measures import evaluate
from contone.runtime.machine import check_jobs
from contone.runtime.progress import show_progress
from contone.trust.rehearsal import Rehearsal, Replicate
from contone.trust.trial import Tried, shared_memory, try_all
from contone.typing import Record

LOG_TEMPERATURES = (math.log(0.005), math.log(200.0))
"""The range of temperatures that is searched: from uniform to the largest degree alone, for any method's scale."""
KEPT = 1 / 3
"""Share of the candidates that goes on from the first replicate to the others."""


class Candidate(NamedTuple):
    """One setting and how it did.

    Attributes
    ----------
    params : dict
        Of the enhancer.
    temperature : float
        The best one for the replicates that it was tried on.
    score : float
        Mean of KL / KL of uniform over these replicates; infinite where it failed.
    n_replicates : int
    seconds : float
        Mean time of a fit.
    error : str
    """

    params: Record
    temperature: float
    score: float
    n_replicates: int
    seconds: float
    error: str = ""


class Found(NamedTuple):
    """The best candidate, and all of them in the order in which they were drawn."""

    best: Candidate
    tried: tuple[Candidate, ...]


def search(
    enhancer: Enhancer,
    rehearsal: Rehearsal,
    space: Mapping[str, Any] | None = None,
    *,
    temperature: bool = True,
    n_iter: int = 20,
    n_jobs: int | None = None,
    seed: int = 0,
    budget: float | None = None,
    verbose: bool | None = False,
) -> Found:
    """The parameters of an enhancer with the best score on a rehearsal.

    Parameters
    ----------
    enhancer : Enhancer
        The method, with its given parameters.
    rehearsal : Rehearsal
        The data to try it on.
    space : mapping or None
        Lists or scipy distributions by parameter; None is the method's own `SEARCH`.
    temperature : bool
        Whether the answer may be rescaled; without, it is scored as it is.
    n_iter : int
        How many candidates at most, the given parameters among them.
    n_jobs, seed : int
        Processes, and the seed of the candidates.
    budget : float or None
        Seconds after which no further candidate is begun; the given parameters are always tried on one replicate.
    verbose : bool or None
        A progress bar with an estimate: True always, None on a terminal.
    """
    start, title = time.perf_counter(), f"Rehearsing {type(enhancer).__name__}"
    given = list(candidates(enhancer, type(enhancer).SEARCH if space is None else space, n_iter, seed))
    check_jobs(n_jobs, "n_jobs")

    def work(chosen: Sequence[Record], replicates: Sequence[Replicate], *, n_first: int) -> list[list[Tried]]:
        """Trials of settings, in turn until the budget is spent; of the first ones in any case."""

        def calls() -> Iterator[Any]:
            for k, params in enumerate(chosen):
                if budget is not None and k >= n_first and time.perf_counter() - start > budget:
                    return
                yield delayed(try_all)(clone(able).set_params(**params), rehearsal.X, replicates)

        found = Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="n_jobs")(calls())
        return list(show_progress(found, len(chosen), title, verbose))

    with shared_memory(enhancer) as able:
        first, rest = rehearsal.replicates[:1], rehearsal.replicates[1:]
        answers = work(given, first, n_first=1)
        tried = [_judged(params, found, first, temperature) for params, found in zip(given, answers, strict=False)]
        order = np.argsort([c.score for c in tried], kind="stable")
        kept = [k for k in order[: max(2, math.ceil(KEPT * len(tried)))] if math.isfinite(tried[k].score)]
        if rest and kept:
            more = work([given[k] for k in kept], rest, n_first=0)
            for k, found in zip(kept, more, strict=False):
                tried[k] = _judged(given[k], [*answers[k], *found], rehearsal.replicates, temperature)
            kept = kept[: len(more)] or kept  # those that saw all replicates, if there was time for any
    final = [tried[k] for k in kept if math.isfinite(tried[k].score)]
    return Found(min(final, key=lambda c: c.score) if final else tried[0], tuple(tried))


def candidates(enhancer: Enhancer, space: Mapping[str, Any], n_iter: int, seed: int) -> list[Record]:
    """The empty setting (the parameters as given) and settings drawn from a space, all different."""
    unknown = sorted(set(space) - set(enhancer.get_params(deep=True)))
    if unknown:
        raise ArgumentError(
            f"search: {type(enhancer).__name__} has no parameter {unknown[0]!r}; it has: "
            f"{', '.join(enhancer.get_params(deep=True)) or 'none'}.",
            "search",
        )
    if not space or n_iter <= 1:
        return [{}]
    if all(isinstance(values, Sequence) for values in space.values()):
        grid = ParameterGrid({k: list(v) for k, v in space.items()})
        if len(grid) < n_iter:
            return [{}, *grid]
    return [{}, *ParameterSampler(dict(space), n_iter - 1, random_state=seed)]


def best_temperature(truths: Sequence[np.ndarray], answers: Sequence[np.ndarray]) -> tuple[float, float]:
    """The temperature of answers (m, q) with the least mean of KL / KL of uniform, and that mean."""
    logs = [np.log(np.maximum(A, FLOOR)) for A in answers]
    scales = [_uniform_kl(D) for D in truths]
    # Entropies and cross terms do not depend on t.
    entropy = [float((D * np.log(np.maximum(D, np.finfo(float).tiny))).sum(axis=1).mean()) for D in truths]
    cross = [float((D * Z).sum(axis=1).mean()) for D, Z in zip(truths, logs, strict=True)]

    def loss(log_t: float) -> float:
        t = math.exp(log_t)
        each = [
            (h - t * c + float(logsumexp(t * Z, axis=1).mean())) / s
            for h, c, Z, s in zip(entropy, cross, logs, scales, strict=True)
        ]
        return float(np.mean(each))

    found = minimize_scalar(loss, bounds=LOG_TEMPERATURES, method="bounded", options={"xatol": 1e-3})
    return math.exp(found.x), float(found.fun)


def _judged(params: Record, trials: Sequence[Any], replicates: Sequence[Any], temperature: bool) -> Candidate:
    seconds = float(np.mean([t.seconds for t in trials]))
    error = next((t.error for t in trials if t.error), "")
    if error:
        return Candidate(params, 1.0, math.inf, len(trials), seconds, error)
    truths = [r.distributions[r.judged] for r in replicates]
    answers = [t.answer[r.judged] for t, r in zip(trials, replicates, strict=True)]
    if truths[0].shape[1] == 1:
        return Candidate(params, 1.0, 0.0, len(trials), seconds)
    if temperature:
        return Candidate(params, *best_temperature(truths, answers), len(trials), seconds)
    score = np.mean([evaluate(D, A).kl / _uniform_kl(D) for D, A in zip(truths, answers, strict=True)])
    return Candidate(params, 1.0, float(score), len(trials), seconds)


def _uniform_kl(D: np.ndarray) -> float:
    return max(float(evaluate(D, np.full_like(D, 1.0 / D.shape[1])).kl), 1e-12)
