"""The fitted model of answers of people as a value: from features the prior, from features and answers the posterior.

A `PeopleFit` has the methods of `inversion.model.Fit`. It holds a few draws of all parameters: what a row is told is
the mean over them, so that what is not known of the parameters is in its intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from contone.backends import like, to_numpy
from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.enhance.inversion.model import solution_of
from contone.enhance.inversion.people.answers import (
    MARKED,
    SMALLEST,
    VOTES,
    Features,
    Matrix,
    Persons,
    Responses,
    Traits,
    is_on_gpu,
)
from contone.enhance.inversion.people.blend import Blend, votes_of
from contone.enhance.inversion.posterior import Posterior, joined
from contone.measurements.base import Answers
from contone.measurements.levels import Levels
from contone.numerics.solution import Solution
from contone.runtime.machine import for_each, pieces_by_width
from contone.typing import Array

if TYPE_CHECKING:
    from contone.enhance.inversion.people.chain import Chain
    from contone.enhance.inversion.people.regression import Regression

N_MATCHING = 2
"""Steps after which mean shares, at the points that a row is weighed at, are those that features tell to some 1e-4."""


class Draw(NamedTuple):
    """A draw of the parameters of the chain, as a row needs them."""

    intercept: Matrix
    """(q,)."""
    coefficients: Matrix
    """(k,), of the features."""
    width: float
    """Deviation of log weights as an answer sees them: that of items and persons together."""
    precision: Matrix
    """(q, q), of z around its mean, with a unit for a level that no answer sees."""
    tail: float
    """Degrees of freedom."""
    people: Traits
    """Some people, drawn from all people."""
    traits: Traits
    """One person who answers about as all people do, and after this the persons who are known."""

    @classmethod
    def of(cls, chain: Chain, people: Traits) -> Draw:
        """Where a chain is."""
        return cls(
            chain.basis @ chain.intercept,
            chain.coefficients.copy(),
            math.hypot(chain.spread, chain.tau),
            chain.precision(),
            float(chain.prior.tails[chain.tail]),
            people,
            Traits(*(np.concatenate([a, b[1:]]) for a, b in zip(chain.middle(), chain.traits, strict=True))),
        )

    @property
    def trusts_features(self) -> bool:
        """Whether mean shares are those that features tell: one vote per item knows nothing better."""
        return self.coefficients.tolist() == [1.0] and not self.intercept.any()

    def height(self) -> float:
        """Log of what the prior of z has at its centre over what points have that are drawn with the same precision."""
        from contone.enhance.inversion.people.rows import TAIL

        q = len(self.intercept)
        return _height(self.tail, q) - _height(TAIL, q) + 0.5 * float(np.linalg.slogdet(self.precision)[1])

    def mean(self, features: Sequence[Features]) -> Array:
        """mu (m, q), or (q,) without features."""
        found = [float(beta) * f.at(self.width) for beta, f in zip(self.coefficients, features, strict=True)]
        return like(self.intercept, found[0]) + sum(found) if found else self.intercept


@dataclass(frozen=True)
class PeopleFit:
    """A fitted model of answers."""

    rule: Answers
    kind: int
    maps: tuple[Regression, ...]
    draws: tuple[Draw, ...]
    parameters: Parameters
    spread: Spread
    settings: Settings
    n_rows: int
    effective_sample_size: float
    split_r_hat: float
    error: tuple[float, float, float]
    """Expected KL of the answers: mean, lower and upper end of a 90 % interval."""
    tail: float
    annotator_deviation: float = 0.0
    """tau."""
    n_graded: int = 0
    persons: Persons | None = None
    n_relaxed: int = 0
    spread_deviation: float = 0.0
    """Nothing is to be added to intervals: the draws of the parameters are in them."""
    shape_shares: np.ndarray | None = None
    blend: Blend | None = None

    @property
    def believed_spread(self) -> Spread:
        """As for `Fit`."""
        return self.spread

    @property
    def n_labels(self) -> int:
        return len(self.draws[0].intercept)

    def solution(self, posterior: Posterior, n_relaxed: int, n_graded: int) -> Solution:
        """What a fit and the posterior of its rows say, as every method says it."""
        return solution_of(self, posterior, n_graded, {"annotator_deviation": self.annotator_deviation})

    def prior_mean(self, X: Array) -> Array:
        """What people are expected to answer (m, q) to rows with features X (m, d)."""
        return self.prior(X).mean

    def prior(self, X: Array) -> Posterior:
        """What the features alone say of rows."""
        return self.posterior(X, like(np.full((X.shape[0], self.n_labels), np.nan), X))

    def posterior(
        self, X: Array, L: Array, rng: Any = None, item: np.ndarray | None = None, *, person: np.ndarray | None = None
    ) -> Posterior:
        """Posterior of rows with features X (m, d) and answers L (m, q), `max_rows` rows at a time.

        Where rows of L are single answers, `item` (n,), rising, says about which row of X, and `person` (n,) by whom:
        numbers from 1, or 0.
        """
        m, size = X.shape[0], self.settings.max_rows
        if item is not None or m <= size or is_on_gpu(X):
            return self.posterior_of_block(X, L, item=item, person=person)
        blocks = (slice(start, start + size) for start in range(0, m, size))
        return joined([self.posterior_of_block(X[rows], L[rows]) for rows in blocks])

    def posterior_of_block(
        self,
        X: Array,
        L: Array,
        rng: Any = None,
        *,
        item: np.ndarray | None = None,
        person: np.ndarray | None = None,
    ) -> Posterior:
        """The same for all rows at once; a row's answer depends on nothing else."""
        self.rule.check_labels(L)
        if is_on_gpu(X) and item is None and self.kind == VOTES:
            import torch

            from contone.enhance.inversion.people.tensors import weigh_votes

            counts = torch.as_tensor(L, dtype=torch.float64, device=X.device)
            features = [f.features(X) for f in self.maps]
            found: Array
            found, evidence = weigh_votes(counts, features, self.draws[::3])
            if self.blend is not None:
                found = self.blend.mixed(to_numpy(found), to_numpy(evidence), to_numpy(counts), features)
            D, centre, width = found
            return Posterior(D / D.sum(1)[:, None], centre, width).like(L)
        X = to_numpy(X) if is_on_gpu(X) else X
        responses = sort_responses(self.kind, self.rule.coded(L), X.shape[0], item, person)
        return self.weigh(responses, [f.features(X) for f in self.maps], self.draws[::3]).like(L)

    def chances(
        self, X: Array, L: Array, *, item: np.ndarray | None = None, person: np.ndarray | None = None, by: int = 0
    ) -> Posterior:
        """How probable it is that a further person, or person number `by`, chooses or marks each label of rows.

        As for `posterior`, of which it has the mean and the moments of logits.
        """
        responses = sort_responses(self.kind, self.rule.coded(L), X.shape[0], item, person)
        asked = VOTES if self.kind == VOTES else MARKED
        return Posterior(*self._weigh(responses, [f.features(X) for f in self.maps], self.draws[::3], asked, by))

    def weigh(self, responses: Responses, features: Sequence[Features], draws: Sequence[Draw]) -> Posterior:
        """The posterior of items with these features, given the responses to them: the mean over some draws."""
        D, centre, width = self._weigh(responses, features, draws, self.kind)
        return Posterior(D / D.sum(axis=1, keepdims=True), centre, width)

    def _weigh(
        self, responses: Responses, features: Sequence[Features], draws: Sequence[Draw], asked: int, by: int = 0
    ) -> Matrix:
        """Means of the answers of kind `asked`, by all people or person `by`; means and deviations of their logits."""
        found, evidence = self.chain_alone(responses, features, draws, asked, by)
        found[2] = np.sqrt(np.maximum(found[2] - found[1] ** 2, 0.0))
        return found if self.blend is None else self.blend.mixed(found, evidence, votes_of(responses), features)

    def chain_alone(
        self,
        responses: Responses,
        features: Sequence[Features],
        draws: Sequence[Draw],
        asked: int,
        by: int = 0,
        n_points: int = 0,
    ) -> tuple[Matrix, Matrix]:
        """Means (3, m, q) of answers, logits and their squares, and log likelihoods (m,) of responses."""
        from contone.enhance.inversion.people.new_rows import N_DIRECTIONS, even_directions, weigh_rows

        m, q = len(responses.first) - 1, self.n_labels
        sums, modes, evidence = np.zeros((3, m, q)), np.zeros((m, q)), np.full(m, -math.inf)
        pieces = pieces_by_width(m, 64 * q)
        nobody = sort_responses(self.kind, np.empty((0, q)), m, np.empty(0, np.intp))
        for number, draw in enumerate(draws):
            mean, points = draw.mean(features) + np.zeros((m, q)), even_directions(n_points or N_DIRECTIONS, q, number)
            people = draw.people if by == 0 else only(draw.traits, by)
            told = (draw.traits, people, asked, points)

            def weigh(
                given: Responses, modes: Matrix, sums: Matrix, mean: Matrix = mean, draw: Draw = draw, told: Any = told
            ) -> Matrix:
                likely = np.empty(len(mean))
                known = (modes, mean, draw.precision, draw.tail, given, *told, *sums, likely)
                for_each(lambda piece: weigh_rows(piece.start, piece.stop, *known), pieces)
                return likely

            for _ in range(N_MATCHING if draw.trusts_features else 0):
                alone = np.zeros((3, m, q))
                weigh(nobody, mean.copy(), alone)
                mean += features[0].told - np.log(np.maximum(alone[0], SMALLEST))
            if number == 0:  # from one draw to the next they move little
                modes[:] = mean
            with np.errstate(invalid="ignore"):  # NaN of a damaged model is found in its answer
                evidence = np.logaddexp(evidence, weigh(responses, modes, sums) + draw.height())
        return sums / len(draws), evidence - math.log(len(draws))


def _height(nu: float, q: int) -> float:
    """Log density of a t distribution with nu degrees of freedom at its centre, but for pi."""
    return float(gammaln((nu + q) / 2) - gammaln(nu / 2) - 0.5 * q * math.log(nu))


def only(traits: Traits, person: int) -> Traits:
    """One of the persons; what all have in common stays."""
    return Traits(*(A[[person]] if len(A) > 1 else A for A in traits))


def sort_responses(
    kind: int, L: np.ndarray, m: int, item: np.ndarray | None = None, person: np.ndarray | None = None
) -> Responses:
    """Responses (n, q) about m items; one row each where `item` (n,), rising, is left out."""
    n = len(L)
    first = np.arange(m + 1) if item is None else np.searchsorted(item, np.arange(m + 1))
    by = np.zeros(n, np.intp) if person is None else person.astype(np.intp)
    # a copy: loops are compiled once more for arrays that may not be written to, or lie in memory another way
    return Responses(kind, first, by, np.array(L, dtype=np.float64, order="C"))


def simulate_answers(
    fit: PeopleFit, draw: Draw, features: Sequence[Features], L: Matrix, rng: np.random.Generator
) -> tuple[Matrix, Matrix]:
    """Degrees (m, q) of items with some features, and answers like L (m, q) that people give them.

    A vote is by somebody else each; all levels of an item are by one person.
    """
    from contone.enhance.inversion.people.new_rows import answers

    m, people, mean = len(L), draw.people, draw.mean(features) + np.zeros(L.shape)
    normals = rng.standard_normal(mean.shape) @ np.linalg.inv(np.linalg.cholesky(draw.precision))
    Z = np.ascontiguousarray(mean + normals / np.sqrt(rng.chisquare(draw.tail, (m, 1)) / draw.tail))
    D = np.empty_like(Z)
    answers(0, m, Z, fit.kind, people, D)
    if fit.blend is not None:
        fit.blend.redraw(D[None], np.tile(fit.blend.weights[:, None], m), fit.blend.beliefs(features), rng)
    if not isinstance(fit.rule, Levels):
        return D, fit.rule.simulate(D, rng, L)
    who = rng.integers(len(people.sharpness), size=m)
    cuts = people.cuts[who if len(people.cuts) > 1 else np.zeros(m, np.intp)]
    seen = people.sharpness[who, None] * Z + people.offset[who] + rng.logistic(size=Z.shape)
    levels = np.asarray(fit.rule.numbers)[(seen[:, :, None] > cuts[:, None, :]).sum(axis=2)]
    return D, np.where(np.isnan(L), np.nan, levels)
