"""The model of answers of people from data: the chain runs, and what it passes through is the answer.

What kind of answers there are is asked here once, in `_start`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from contone.backends import to_numpy
from contone.enhance.inversion.chain import Settings, show_progress
from contone.enhance.inversion.evidence import Grades
from contone.enhance.inversion.fit import choose_rows
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.enhance.inversion.people.answers import LEVELS, VOTES, Features, Matrix, Responses, is_on_gpu
from contone.enhance.inversion.people.blend import Blend, votes_of
from contone.enhance.inversion.people.chain import Chain
from contone.enhance.inversion.people.levels_chain import LevelsChain
from contone.enhance.inversion.people.model import Draw, PeopleFit, sort_responses
from contone.enhance.inversion.people.new_rows import answers, even_normals
from contone.enhance.inversion.people.priors import LevelsPrior, LogNormal, Prior
from contone.enhance.inversion.people.regression import Regression, fit_regression, matched
from contone.enhance.inversion.people.traits import Watch
from contone.enhance.inversion.posterior import Averages, Posterior
from contone.exceptions import LabelError, LabelWarning
from contone.measurements.base import Answers
from contone.measurements.levels import Levels
from contone.measurements.votes import Votes
from contone.runtime.machine import for_each, one_blas_thread, pieces_by_width
from contone.runtime.warnings import warn
from contone.typing import Array

N_DRAWS = 32
"""Draws of the parameters that items are answered with; new rows take every second of them."""
N_PEOPLE = 32
"""People whose answers stand for those of all people."""
ON_THE_SCALE = 0.8
"""Share of the variance of z that is believed to lie along the scale where labels are ordered. It decides where votes
are few: one vote per item of popquorn has .015 less log loss than without, three have .006 less."""
CHAIN_ITEMS, CHAIN_ITEMS_PER_LABEL = 5000, 200
"""Items, or items per label where that is more, whose answers the parameters are drawn from where persons are not told
apart; the others are answered with these draws. Five thousand say the spread to 2 %, which changes KL by 1e-4."""
JUDGED_ITEMS = 500
"""Items whose draws are kept to say how far the answer may be off."""
BLENDED_ITEMS, BLENDED_POINTS = 2000, 256
"""Items that say how many are of other kinds (`blend`), and points that they are weighed at: with 64 and eight labels
their log likelihood was .05 too low, which passed for other kinds where there are none."""


def fit_people(
    X: Array,
    L: Array,
    rule: Answers,
    settings: Settings,
    rng: np.random.Generator,
    grades: Grades | None = None,
    item: np.ndarray | None = None,
    person: np.ndarray | None = None,
) -> tuple[PeopleFit, Posterior]:
    """The model of features X (m, d) of items and answers L, and the posterior of these items.

    L (m, q) holds counts of the items; or L (n, q) single answers, `item` (n,), rising, about which item, and `person`
    (n,) by whom: numbers from 1. Parameters are estimated on at most `max_rows` items, drawn at random.
    """
    rule.check_labels(L)
    m, values = X.shape[0], rule.coded(L)
    about = np.arange(m) if item is None else item
    _check_answered(np.bincount(about, ~to_numpy(rule.silent(L)), m) > 0, by_answer=item is not None)
    known = None if grades is None else to_numpy(grades.known)
    chosen = choose_rows(m, settings.max_rows, rng, None if known is None else known.nonzero()[0])
    is_chosen = np.isin(about, chosen)
    n_persons = 0 if person is None else int(person.max())
    responses = sort_responses(
        LEVELS if isinstance(rule, Levels) else VOTES,
        values[is_chosen],
        len(chosen),
        np.searchsorted(chosen, about[is_chosen]),
        None if person is None else person[is_chosen],
    )
    held = None if grades is None else _log_weights(grades)[chosen]
    some = np.arange(len(chosen))
    if n_persons == 0 and settings.n_samples == 0:
        most = max(CHAIN_ITEMS, CHAIN_ITEMS_PER_LABEL * values.shape[1])
        some = choose_rows(len(chosen), most, rng, None if held is None else (~np.isnan(held[:, 0])).nonzero()[0])
    with one_blas_thread():
        X_chosen = to_numpy(X[chosen]) if is_on_gpu(X) else X[chosen]
        asked = some if len(some) < len(chosen) < m else None  # elsewhere every item's shares are needed
        shares, maps = _regress(rule, X_chosen, responses, settings, rng, asked)
        features = [matched(M[some], responses.kind) for M in shares]
        chain = _start(rule, _of_items(responses, some), features, rng, n_persons, None if held is None else held[some])
        model, draws, samples = _run(chain, maps, rule, settings)
        if len(chosen) < m:
            posterior = model.posterior(X, L, item=item, person=person)
        else:
            if len(some) < m:
                features = [matched(M, responses.kind) for M in shares]
            # Sums over the chain have the chance of its draws in them; here each row by itself at some parameters.
            posterior = replace(model.weigh(responses, features, draws), samples=samples)
    return model, posterior if grades is None else posterior.with_known(grades)


def _check_answered(answered: np.ndarray, *, by_answer: bool) -> None:
    """Refuse items (m,) of which none was answered; say how many were not, where nobody has said it of their rows."""
    if not answered.any():
        raise LabelError("Y holds no answer about any item, so that nothing can be learnt from it: pass some answers.")
    if by_answer and not answered.all():
        warn(
            f"Nobody answered {int((~answered).sum())} of {len(answered)} items (first: item number "
            f"{int(answered.argmin())}, from 0): their degrees are predicted from their features.",
            LabelWarning,
        )


def _of_items(responses: Responses, items: np.ndarray) -> Responses:
    """The responses to some items, rising."""
    sizes = np.diff(responses.first)
    kept = np.isin(np.repeat(np.arange(len(sizes)), sizes), items)
    first = np.concatenate([[0], np.cumsum(sizes[items])])
    return Responses(responses.kind, first, responses.person[kept], responses.values[kept])


def _regress(
    rule: Answers, X: Array, given: Responses, settings: Settings, rng: np.random.Generator, some: np.ndarray | None
) -> tuple[list[Matrix], tuple[Regression, ...]]:
    """What features say of the answers: cross-fitted shares or chances (m, q) of items, and what makes them."""
    about = np.repeat(np.arange(X.shape[0]), np.diff(given.first))
    found = [
        fit_regression(X, values, about, settings.n_components, rng, given.kind, some)
        for values in (_told(rule, given.values) if settings.features else [])
    ]
    return [shares for _, shares in found], tuple(regression for regression, _ in found)


def _start(
    rule: Answers,
    responses: Responses,
    features: Sequence[Features],
    rng: np.random.Generator,
    n_persons: int,
    known: Matrix | None,
) -> Chain:
    """The chain for a kind of answers."""
    if isinstance(rule, Levels):  # known degrees say nothing of the level of z, so that they have no part here
        return LevelsChain(responses, features, LevelsPrior(), rng, worth=rule.worth, n_persons=n_persons)
    prior = replace(Prior(), spread=_believed_spread(Prior().spread, features))
    if isinstance(rule, Votes) and rule.ordered:
        prior = replace(prior, axes=(ON_THE_SCALE,))
    return Chain(responses, features, prior, rng, n_persons=n_persons, known=known)


def _believed_spread(usual: LogNormal, features: Sequence[Features]) -> LogNormal:
    """Where features tell a lot of log shares, as much is likely to be left, and where they tell little, little.

    The median is half-way, as a variance, between that of all sets and what features tell of this one.
    """
    if not features:
        return usual
    Z = features[0].told - features[0].told.mean(axis=1, keepdims=True)
    told = float(Z.var(axis=0).sum()) / max(Z.shape[1] - 1, 1)
    return replace(usual, median=math.sqrt(0.5 * (usual.median**2 + told)))


def _told(rule: Answers, values: Matrix) -> list[Matrix]:
    """What regressions are asked to tell: answers (n, q) as counts, or as numbers from 0 to 1."""
    if not isinstance(rule, Levels):
        return [values]
    marks = np.where(np.isnan(values), np.nan, values > 0)
    worth = np.append((rule.worth - rule.worth[0]) / max(float(np.ptp(rule.worth)), 1e-12), np.nan)
    steps = np.where(np.isnan(values), len(rule.worth), values).astype(np.intp)
    return [marks] if len(rule.worth) < 3 else [marks, worth[steps]]


def _run(
    chain: Chain, maps: tuple[Regression, ...], rule: Answers, settings: Settings
) -> tuple[PeopleFit, list[Draw], Array | None]:
    """All sweeps, and what they say; the draws of the parameters on the way, and samples of the degrees."""
    (n, q), n_kept = chain.Z.shape, settings.n_sweeps - settings.n_burn
    averages, log_answers = Averages(np.empty((q, n)), settings.n_samples, n_kept), np.empty((n, q))
    kept_at = set(np.linspace(n_kept, 0, min(N_DRAWS, n_kept), endpoint=False).round().astype(int).tolist())
    judged = _some_items(n, JUDGED_ITEMS)
    normals, watch = even_normals(N_PEOPLE, q + 1), Watch(chain)
    draws: list[Draw] = []
    seen: list[Matrix] = []
    passed: list[Any] = []
    steps = range(settings.n_sweeps)
    for k in show_progress(steps, len(steps), settings.n_sweeps * n * q * 10, settings.verbose):
        chain.adapting = k < settings.n_burn
        chain.sweep()
        if chain.adapting:
            continue
        people = chain.people(normals)
        D = answer_items(chain, people)
        np.log(np.maximum(D, 1e-300, out=log_answers), out=log_answers)
        averages.add(np.ascontiguousarray(log_answers.T))
        seen.append(D[judged])
        passed.append(parameters_of(chain))
        watch.look(averages.n)
        if averages.n in kept_at:
            draws.append(Draw.of(chain, people))
    spreads, taus, tails, means, covariances = (np.stack(values) for values in zip(*passed, strict=True))
    mean = means.mean(axis=0)
    model = PeopleFit(
        rule,
        int(chain.responses.kind),
        maps,
        tuple(draws[::2]),
        Parameters(mean, covariances.mean(axis=0), float(np.square(mean[1:]).sum())),
        Spread(float(spreads.mean()), float(spreads.std())),
        settings,
        n,
        *averages.diagnostics(),
        error=(0.0, 0.0, 0.0),
        tail=float(np.median(tails)),
        annotator_deviation=float(taus.mean()),
        n_graded=int((~chain.free).sum()),
        persons=watch.persons(),
    )
    told, samples = np.stack(seen), averages.posterior(0).samples
    if model.kind == VOTES and maps and chain.n_persons == 0 and not chain.spread_is_open:
        model = _blended(model, chain, draws, judged, told, samples)
    return replace(model, error=_judge(told[:, chain.free[judged]])), draws, samples


def _blended(
    model: PeopleFit, chain: Chain, draws: list[Draw], judged: np.ndarray, told: Matrix, samples: Matrix | None
) -> PeopleFit:
    """The model with other kinds of items in, where there are any; and so the draws of judged items, and of all."""
    n = len(chain.Z)
    items = np.arange(n) if samples is not None else _some_items(n, BLENDED_ITEMS)
    responses = _of_items(chain.responses, items)
    features = [matched(np.exp(f.told[items]), VOTES) for f in chain.features]
    evidence = model.chain_alone(responses, features, draws[::8], VOTES, n_points=BLENDED_POINTS)[1]
    counts = np.where(chain.free[items, None], votes_of(responses), math.nan)
    if (blend := Blend.of(evidence, counts, features)) is None:
        return model
    a = blend.beliefs(features)
    kinds = blend.kinds(evidence, counts, a)
    a += np.nan_to_num(counts)
    for D, rows in ((told, np.searchsorted(items, judged)), (samples, slice(None))):
        if D is not None:
            blend.redraw(D, kinds[:, rows], a[:, rows], chain.rng)
    return replace(model, blend=blend)


def _some_items(n: int, most: int) -> np.ndarray:
    """Numbers of some of n items, rising; more of them hold the fewer."""
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def answer_items(chain: Chain, people: Any) -> Matrix:
    """What people give the items of a chain on average, (n, q)."""
    out = np.empty_like(chain.Z)

    def work(piece: slice) -> None:
        answers(piece.start, piece.stop, chain.Z, chain.responses.kind, people, out)

    for_each(work, pieces_by_width(len(out), 16 * out.shape[1]))
    return out


def parameters_of(chain: Chain) -> tuple[float, float, float, Matrix, Matrix]:
    """Spread, tau, degrees of freedom, intercept and coefficients (1 + k, q), Sigma (q, q), where a chain is."""
    mean = np.vstack([chain.basis @ chain.intercept, np.outer(chain.coefficients, np.ones(len(chain.basis)))])
    covariance = chain.spread**2 * chain.basis @ chain.shape @ chain.basis.T
    return chain.spread, chain.tau, float(chain.prior.tails[chain.tail]), mean, covariance


def _judge(seen: Matrix) -> tuple[float, float, float]:
    """KL of the answers from draws (k, m, q) of the truth, mean over items: its mean and a 90 % interval."""
    if seen.shape[1] == 0:
        return 0.0, 0.0, 0.0
    D = seen.mean(axis=0)
    errors = (seen * (np.log(np.maximum(seen, 1e-300)) - np.log(np.maximum(D, 1e-300)))).sum(axis=2).mean(axis=1)
    low, high = np.quantile(errors, [0.05, 0.95])
    return float(errors.mean()), float(low), float(high)


def _log_weights(grades: Grades) -> Matrix:
    """Log weights (n, q) of items whose degrees are known, rows with sum zero; NaN in the others."""
    Z = np.asarray(to_numpy(grades.log_weights()), dtype=np.float64)
    return np.where(to_numpy(grades.known)[:, None], Z - Z.mean(axis=1, keepdims=True), math.nan)
