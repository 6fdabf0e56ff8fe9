"""The Markov chain over items, persons and all parameters; every step is exact, and its sum is full Bayes.

    z_i = mu_i + w_i^-1/2 e_i,   e_i ~ N(0, s^2 R),  tr R = r      items; w_i ~ Gamma(nu/2, nu/2)
    mu_i = b + sum_m beta_m f_mi(m)                                 features, whose mean shares are given (`matching`)
    b_w ~ N(0, tau^2 V), log a_w ~ N(0, kappa^2)                      persons, where they are known

Steps are: items (`rows`), tails, coefficients (normal), shape R (inverse Wishart, corrected for the trace), spread s,
all of these with the items taken along (`together`), persons (`persons`), and their T = tau^2 V and kappa. A scale
given the values that it scales moves little where answers say little of these values, and so does the other way round
where they say much: scales take both kinds of step in turn
(Yu and Meng's interweaving).

What the answers are is known to `likelihood` alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import gammainc, gammaincinv, gammaln
from scipy.stats import invwishart

from contone.enhance.inversion.people.answers import VOTES, Features, Matrix, Responses, Traits
from contone.enhance.inversion.people.persons import draw_persons, sort_by_person
from contone.enhance.inversion.people.priors import LogNormal, Prior
from contone.enhance.inversion.people.rows import draw_items, likelihood_of_items, slopes_of_items
from contone.enhance.inversion.people.slices import slice_step
from contone.enhance.inversion.people.together import Together
from contone.runtime.machine import for_each, pieces_by_width, total

ACCEPTED = 0.35
"""Share of steps of scales that are to be accepted; their length is chosen so during the burn-in."""
LONGEST_STEP = 1.5
"""Of the log of a scale, whatever is accepted."""
N_SCALE_STEPS, N_PERSON_STEPS = 3, 2
TWICE = 0.25
"""Share of the items with two answers or more, under which the spread is drawn from its prior alone. One answer per
item says nothing of how far people differ about one item: what is left of it in the likelihood is how well the model of
the mean fits. The spread, left free, then drifted to 2 and more, with votes as with levels."""


class Chain:
    """The state of the chain, and its steps."""

    def __init__(
        self,
        responses: Responses,
        features: Sequence[Features],
        prior: Prior,
        rng: np.random.Generator,
        *,
        n_persons: int = 0,
        known: Matrix | None = None,
        centred: bool = True,
    ) -> None:
        """`known` (n, q) holds log weights that are known, NaN in rows where they are not."""
        self.responses, self.features, self.prior, self.rng = responses, features, prior, rng
        n, q = len(responses.first) - 1, responses.values.shape[1]
        self.basis: Matrix = helmert(q).T if centred else np.eye(q)
        self.r = self.basis.shape[1]
        along = self.basis.T @ np.linspace(-1.0, 1.0, q)
        self.along = np.outer(along, along) * (self.r / max(float(along @ along), 1e-12))
        self.believed = self.belief(prior.axes[-1] if len(prior.axes) == 1 else 0.0)
        self.spread, self.shape, self.offset_shape = prior.spread.median, self.believed.copy(), self.believed.copy()
        self.tail = len(prior.tails) // 2
        self.weight = np.ones(n)
        self.intercept, self.coefficients = np.zeros(self.r), np.full(len(features), 1.0 / max(len(features), 1))
        self.traits = Traits(np.ones(n_persons + 1), np.zeros((n_persons + 1, q)))
        self.tau, self.kappa = (prior.offset.median, prior.sharpness.median) if n_persons else (0.0, 0.0)
        self.by_person = sort_by_person(responses, n_persons)
        self.n_persons = n_persons
        self.free: NDArray[np.bool_] = np.ones(n, bool) if known is None else np.asarray(np.isnan(known).any(axis=1))
        self.mean = self.mean_at(self.spread, self.tau)
        self.Z = self.mean.copy() if known is None else np.where(self.free[:, None], self.mean, known)
        self.mode = self.mean.copy()
        self.usual: Matrix = self.mean.mean(axis=0) if centred and len(self.mean) else np.zeros(q)
        told = ~np.isnan(responses.values).all(axis=1)
        weight = np.nansum(responses.values, axis=1) if responses.kind == VOTES else told.astype(float)
        n_answers = np.bincount(np.repeat(np.arange(n), np.diff(responses.first)), weight, n)
        self.spread_is_open = bool(self.free.all() and (n_answers > 1).sum() < TWICE * (n_answers > 0).sum())
        # an answer about every label tells which of them go together; one choice does not
        self.shape_is_open = self.spread_is_open and centred
        self.steps = {"tau": 0.1, "kappa": 0.2}
        self.together = Together(self)
        self.adapting = True

    def sweep(self) -> None:
        """Every step once."""
        self.draw_items()
        self.draw_tails()
        self.draw_shape()
        self.draw_spread()
        # one vote per item has told its features, which have its mean shares, all it knows of the mean
        if not (self.shape_is_open and self.features and self.n_persons == 0):
            self.draw_coefficients()
            self.together.step()
        if self.n_persons:
            self.draw_persons()
            self.draw_tau()
            self.draw_kappa()
            if self.free.all() and self.by_person.first[1] == 0:
                self.draw_level()

    # Items

    def draw_items(self) -> None:
        """Log weights of items that are not known."""
        P = self.precision()
        seed = int(self.rng.integers(2**62))
        rows = (self.Z, self.mode, self.mean, self.weight, P, self.responses, self.traits, self.free)
        self._over_items(lambda piece: draw_items(piece.start, piece.stop, seed, *rows), 64)
        if self.r < len(P):
            self.Z -= self.Z.mean(axis=1, keepdims=True)

    def precision(self) -> Matrix:
        """P (q, q), of z around its mean."""
        P: Matrix = self.basis @ np.linalg.inv(self.shape) @ self.basis.T / self.spread**2
        # the level of z, where nothing depends on it, is standard normal
        return P + 1.0 / len(P) if self.r < len(P) else P

    def likelihood(self, Z: Matrix) -> float:
        """Log likelihood of all responses."""
        told = Z, self.responses, self.traits
        return float(self._over_items(lambda piece: likelihood_of_items(piece.start, piece.stop, *told), 8))

    def slopes(self, Z: Matrix) -> tuple[float, Matrix]:
        """The same, and its slope (n, q) by Z."""
        slope = np.empty_like(Z)
        told = Z, self.responses, self.traits, slope
        return float(self._over_items(lambda piece: slopes_of_items(piece.start, piece.stop, *told), 16)), slope

    def _over_items(self, work: Callable[[slice], Any], cost: int) -> Any:
        """The sum of work over pieces of the items, which are the shorter the more it costs per label."""
        return total(work, pieces_by_width(len(self.Z), cost * self.Z.shape[1]) or [slice(0, 0)])

    def squares(self, mean: Matrix | None = None) -> NDArray[np.float64]:
        """(n,): (z - mu)' R^-1 (z - mu)."""
        white = self.basis @ np.linalg.cholesky(np.linalg.inv(self.shape))
        return np.asarray(np.square((self.Z - (self.mean if mean is None else mean)) @ white).sum(axis=1))

    # Tails

    def draw_tails(self) -> None:
        """Degrees of freedom nu among those of the prior, weights summed out, and then the weights of items."""
        # with the spread open they are nearly normal, as those that features are matched to
        tails, r = self.prior.tails[-1 if self.shape_is_open else 0 :], self.r
        Q = self.squares() / self.spread**2
        log_p = np.array([
            len(Q) * (gammaln((nu + r) / 2) - gammaln(nu / 2) - r / 2 * math.log(nu))
            - (nu + r) / 2 * np.log1p(Q / nu).sum()
            for nu in tails
        ])  # fmt: skip
        p = np.exp(log_p - log_p.max())
        nu = float(self.rng.choice(tails, p=p / p.sum()))
        self.tail = int(np.flatnonzero(self.prior.tails == nu)[0])
        self.weight = self.rng.gamma((nu + r) / 2, 2.0 / (nu + Q))
        if len(tails) > 1:
            self._turn_tails(Q)

    def _turn_tails(self, Q: NDArray[np.float64]) -> None:
        """To the next nu, with the same e and the same ranks of weights."""
        other = self.tail + int(self.rng.choice([-1, 1]))
        if not 0 <= other < len(self.prior.tails):
            return
        nu, after = self.prior.tails[self.tail], self.prior.tails[other]
        weight = np.empty_like(self.weight)

        def turn(piece: slice) -> None:
            rank = gammainc(nu / 2, nu * self.weight[piece] / 2)
            weight[piece] = np.maximum(2.0 / after * gammaincinv(after / 2, rank), 1e-9)

        for_each(turn, pieces_by_width(len(weight), 512))
        factor = np.where(self.free, np.sqrt(self.weight / weight), 1.0)
        Z = self.mean + factor[:, None] * (self.Z - self.mean)
        held = ~self.free
        ratio = self.likelihood(Z) - self.likelihood(self.Z)
        ratio += float((self.r / 2 * np.log(weight / self.weight) - 0.5 * (weight - self.weight) * Q)[held].sum())
        if math.log(self.rng.random()) < ratio:
            self.tail, self.weight, self.Z = other, weight, Z

    # The mean

    def mean_at(self, spread: float, tau: float) -> Matrix:
        """mu (n, q) at some spread and tau: a vote sees both."""
        mean = np.tile(self.basis @ self.intercept, (len(self.weight), 1))
        for beta, feature in zip(self.coefficients, self.features, strict=True):
            mean += beta * feature.at(math.hypot(spread, tau))
        return mean

    def draw_coefficients(self) -> None:
        """Intercept and coefficients: a normal distribution, given z."""
        r, L = self.r, np.linalg.inv(self.shape) / self.spread**2
        U, w = self.Z @ self.basis, self.weight[:, None]
        F = [feature.at(math.hypot(self.spread, self.tau)) @ self.basis for feature in self.features]
        k = len(F)
        A, c = np.zeros((r + k, r + k)), np.zeros(r + k)
        A[:r, :r] = self.weight.sum() * L
        c[:r] = L @ (w * U).sum(axis=0)
        for m, f in enumerate(F):
            weighted = w * f @ L
            A[:r, r + m] = A[r + m, :r] = weighted.sum(axis=0)
            c[r + m] = np.vdot(weighted, U)
            A[r + m, r:] = [np.vdot(weighted, g) for g in F]
        held = 1.0 / self.prior.coefficient**2
        A[np.diag_indices(r + k)] += held
        c[r:] += held / max(k, 1)
        root = np.linalg.cholesky(A)
        drawn = np.linalg.solve(root.T, np.linalg.solve(root, c) + self.rng.standard_normal(r + k))
        self.intercept, self.coefficients = drawn[:r], drawn[r:]
        self.mean = self.mean_at(self.spread, self.tau)

    # Sigma = s^2 R

    def belief(self, axis: float) -> Matrix:
        """What R is believed to be where a share `axis` of the variance lies along the order of the labels."""
        found: Matrix = (1.0 - axis) * np.eye(self.r) + axis * self.along
        return found

    def draw_axis(self) -> None:
        """That share, given R and V."""
        shapes = [self.shape] * (not self.shape_is_open) + [self.offset_shape] * (self.n_persons > 0)
        if len(self.prior.axes) == 1 or self.r == 1 or not shapes:
            return
        n0 = self.r - 1 + self.prior.shape
        log_p = np.zeros(len(self.prior.axes))
        for k, axis in enumerate(self.prior.axes):
            B = self.belief(axis)
            for R in shapes:
                log_p[k] += 0.5 * n0 * (np.linalg.slogdet(B)[1] - self.r * math.log(np.trace(np.linalg.solve(R, B))))
        p = np.exp(log_p - log_p.max())
        self.believed = self.belief(float(self.rng.choice(self.prior.axes, p=p / p.sum())))

    def draw_shape(self) -> None:
        """R given z."""
        self.draw_axis()
        if self.shape_is_open:
            return
        E = (self.Z - self.mean) @ self.basis
        S = (self.weight[:, None] * E).T @ E / self.spread**2
        self.shape = draw_shape_of(S, len(E), self.shape, self.prior.shape, self.rng, self.believed)

    def draw_spread(self) -> None:
        """s given z; from its prior where answers leave it open.

        Persons do not follow such a jump at once, so that s stays at its median where they are known.
        """
        if self.spread_is_open:
            spread = self.prior.spread.draw(self.rng) if self.n_persons == 0 else self.spread
            shape, none = self.shape, np.zeros((self.r, self.r))
            if self.shape_is_open:
                shape = draw_shape_of(none, 0, shape, self.prior.shape, self.rng, self.believed)
            self._go(spread, shape)
            return
        n, r, white = len(self.Z), self.r, self.basis @ np.linalg.cholesky(np.linalg.inv(self.shape))
        root = np.sqrt(self.weight)[:, None]
        U = root * (self.Z @ white)

        def log_density(log_spread: float) -> float:
            spread = math.exp(log_spread)
            E = U - root * (self.mean_at(spread, self.tau) @ white)
            square = float(np.vdot(E, E)) / spread**2
            return self.prior.spread.log_density(log_spread) - n * r * log_spread - 0.5 * square

        self.spread = math.exp(slice_step(log_density, math.log(self.spread), 0.1, self.rng))
        self.mean = self.mean_at(self.spread, self.tau)

    def _go(self, spread: float, shape: Matrix) -> None:
        """To another s and R, with e kept."""
        before, after = (s * np.linalg.cholesky(R) for s, R in ((self.spread, self.shape), (spread, shape)))
        turn = self.basis @ np.linalg.solve(before.T, after.T) @ self.basis.T
        mean = self.mean_at(spread, self.tau)
        self.Z = mean + (self.Z - self.mean) @ turn
        self.mean, self.spread, self.shape = mean, spread, shape

    def _scale(
        self, name: str, prior: Callable[[float], float], go: Callable[[float], float], told: float | None = None
    ) -> float:
        """One Metropolis step for the log of a scale, where `go` takes everything that it scales along.

        The log likelihood, `told` before the step if it is known, comes back as it is after it.
        """
        before = (self.Z, self.mean, self.traits, getattr(self, name))
        told = self.likelihood(self.Z) if told is None else told
        log_value = math.log(before[3]) + self.steps[name] * self.rng.standard_normal()
        gain = go(math.exp(log_value))
        there = self.likelihood(self.Z)
        ratio = there + prior(log_value) + gain - told - prior(math.log(before[3]))
        accepted = math.log(self.rng.random()) < ratio
        if not accepted:
            self.Z, self.mean, self.traits = before[:3]
            setattr(self, name, before[3])
        if self.adapting:
            self.steps[name] = min(self.steps[name] * math.exp(0.3 * (float(accepted) - ACCEPTED)), LONGEST_STEP)
        return there if accepted else told

    # Persons

    def draw_persons(self) -> None:
        """Offsets and sharpness of everybody."""
        for _ in range(N_PERSON_STEPS):
            seed = int(self.rng.integers(2**62))
            draw_persons(
                seed,
                self.root_of_offsets(),
                self.kappa,
                self.usual,
                self.Z,
                self.responses,
                self.traits,
                self.by_person,
            )

    def root_of_offsets(self) -> Matrix:
        """(q, r): makes offsets of normal numbers."""
        found: Matrix = self.tau * self.basis @ np.linalg.cholesky(self.offset_shape)
        return found

    def offsets(self) -> Matrix:
        """b (W + 1, q), beside what a person who is less sharp chooses as usual."""
        b: Matrix = self.traits.offset - (1.0 - self.traits.sharpness)[:, None] * self.usual
        return b

    def with_offsets(self, sharpness: Matrix, b: Matrix) -> Traits:
        """Traits of persons with these."""
        return self.traits._replace(sharpness=sharpness, offset=b + (1.0 - sharpness)[:, None] * self.usual)

    def people(self, normals: Matrix) -> Traits:
        """People drawn from all people, by standard normal numbers (S, q + 1)."""
        q = len(self.basis)
        if self.n_persons == 0:
            return Traits(np.ones(1), np.zeros((1, q)))
        return self.with_offsets(np.exp(self.kappa * normals[:, q]), normals[:, : self.r] @ self.root_of_offsets().T)

    def middle(self) -> Traits:
        """One person who answers about as all people do: their offsets make a vote less certain."""
        # a logistic function of a normal number with variance v is about that of 1 / sqrt(1 + pi v / 8) of its mean
        return Traits(np.full(1, (1.0 + math.pi / 4 * self.tau**2) ** -0.5), np.zeros((1, len(self.basis))))

    def draw_tau(self) -> None:
        """T = tau^2 V: V and tau given offsets, and then tau given offsets / tau."""
        b = self.offsets()[1:] @ self.basis
        S, worth = b.T @ b / self.tau**2, self.prior.shape
        self.offset_shape = draw_shape_of(S, len(b), self.offset_shape, worth, self.rng, self.believed)
        count, size = b.size, float(np.vdot(b @ np.linalg.inv(self.offset_shape), b))

        def log_density(log_tau: float) -> float:
            tau = math.exp(log_tau)
            square = float((self.weight * self.squares(self.mean_at(self.spread, tau))).sum()) / self.spread**2
            return self.prior.offset.log_density(log_tau) - count * log_tau - 0.5 * size / tau**2 - 0.5 * square

        self.tau = math.exp(slice_step(log_density, math.log(self.tau), 0.1, self.rng))
        self.mean = self.mean_at(self.spread, self.tau)
        told: float | None = None
        for _ in range(N_SCALE_STEPS):
            told = self._scale("tau", self.prior.offset.log_density, self._with_tau, told)

    def _with_tau(self, tau: float) -> float:
        mean = self.mean_at(self.spread, tau)
        held, gain = ~self.free, 0.0
        if held.any():
            change = self.weight * (self.squares() - self.squares(mean))
            gain = 0.5 * float(change[held].sum()) / self.spread**2
        self.Z = np.where(held[:, None], self.Z, mean + self.Z - self.mean)
        self.traits = self.with_offsets(self.traits.sharpness, self.offsets() * (tau / self.tau))
        self.mean, self.tau = mean, tau
        return gain

    def draw_level(self) -> None:
        """What no answer sees: z + d for all items, and b_w - a_w d for all persons."""
        a, b = self.traits.sharpness[1:], self.offsets()[1:] @ self.basis
        precision, held = np.linalg.inv(self.offset_shape) / self.tau**2, 1.0 / self.prior.coefficient**2
        A = held * np.eye(self.r) + float(a @ a) * precision
        c = precision @ (a @ b) - held * self.intercept
        root = np.linalg.cholesky(A)
        d = np.linalg.solve(root.T, np.linalg.solve(root, c) + self.rng.standard_normal(self.r))
        self.intercept = self.intercept + d
        d = self.basis @ d
        self.Z, self.mean, self.mode = self.Z + d, self.mean + d, self.mode + d
        offset = self.traits.offset - self.traits.sharpness[:, None] * d
        offset[0] = 0.0
        self.traits = self.traits._replace(offset=offset)

    def draw_kappa(self) -> None:
        """kappa: given the log of sharpness, and then given that over kappa."""
        self.kappa = self.draw_deviation(self.kappa, np.log(self.traits.sharpness[1:]), self.prior.sharpness)
        self._scale("kappa", self.prior.sharpness.log_density, self._with_kappa)

    def draw_deviation(self, deviation: float, x: Matrix, prior: LogNormal) -> float:
        """The deviation of normal numbers x (W,), given these."""
        size = float(np.vdot(x, x))

        def log_density(log_value: float) -> float:
            return prior.log_density(log_value) - len(x) * log_value - 0.5 * size / math.exp(2 * log_value)

        return math.exp(slice_step(log_density, math.log(deviation), 0.3, self.rng))

    def _with_kappa(self, kappa: float) -> float:
        self.traits = self.with_offsets(self.traits.sharpness ** (kappa / self.kappa), self.offsets())
        self.kappa = kappa
        return 0.0


def draw_shape_of(
    S: Matrix, n: int, R: Matrix, worth: float, rng: np.random.Generator, believed: Matrix | None = None
) -> Matrix:
    """A covariance (r, r) with trace r, of n rows with squares S, from R; the belief is worth r - 1 + worth rows.

    What is believed has the trace r, too: I where nothing is said.

    It is proposed as an inverse Wishart draw, brought to its trace, and accepted by the difference.
    """
    r = len(S)
    if r == 1:
        return R
    n0 = r - 1 + worth
    B = np.eye(r) if believed is None else believed
    N, T = n0 + n, S + n0 * B
    proposed: Matrix = np.asarray(invwishart.rvs(N, T, random_state=rng)).reshape(r, r)
    proposed *= r / np.trace(proposed)

    def log_weight(R: Matrix) -> float:  # target over proposal; both have the trace fixed
        inverse = np.linalg.inv(R)
        here = -0.5 * n0 * r * math.log(np.vdot(B, inverse)) - 0.5 * np.vdot(S, inverse)
        return float(here + 0.5 * N * r * math.log(np.vdot(T, inverse)))

    return proposed if math.log(rng.random()) < log_weight(proposed) - log_weight(R) else R
