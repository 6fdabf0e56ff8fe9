"""The Markov chain for levels and marks: that of `chain`, with cut points and with persons of their own bar.

    P(y_wij >= l) = F(a_w z_ij + b_wj - g_w c_l)                levels; c_1 = 0 < c_2 < ... < c_K are common
    b_w ~ N(0, T), T = tau^2 V, tr V = q;  log a_w ~ N(0, kappa^2);  log g_w ~ N(0, gamma^2)

b_w is the person's bar (all labels alike) and leaning (label by label) in one: T says how they go together. The level
of z means something here, so that z has q coordinates.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contone.enhance.inversion.people.answers import Features, Matrix, Responses, Traits
from contone.enhance.inversion.people.chain import Chain
from contone.enhance.inversion.people.levels import cut_value, draw_traits
from contone.enhance.inversion.people.priors import LevelsPrior
from contone.enhance.inversion.people.slices import slice_step

MOST_PEOPLE = 48
"""People who stand for all people, divided by the number of cut points; with 16 in place of 48 the log loss of
medical_marks is .002 more."""


class LevelsChain(Chain):
    """The state of the chain, and its steps."""

    prior: LevelsPrior

    def __init__(
        self,
        responses: Responses,
        features: Sequence[Features],
        prior: LevelsPrior,
        rng: np.random.Generator,
        *,
        worth: NDArray[np.float64],
        n_persons: int = 0,
    ) -> None:
        """`worth` (K + 1,) is what each level counts."""
        n_cuts = len(worth) - 1
        self.gaps = _first_gaps(responses.values, n_cuts)
        self.log_stretch = np.zeros(n_persons + 1)
        self.gamma = prior.stretch.median if n_persons else 0.0
        super().__init__(responses, features, prior, rng, n_persons=n_persons, centred=False)
        self.traits = self.traits._replace(cuts=self.cuts(), worth=np.asarray(worth, dtype=np.float64)[None, :])
        self.by_level = _sort_by_level(responses, n_cuts)

    def cuts(self) -> Matrix:
        """(W + 1, K)."""
        common = np.concatenate([[0.0], np.cumsum(self.gaps)])
        cuts: Matrix = np.exp(self.log_stretch)[:, None] * common
        return cuts

    def sweep(self) -> None:
        """Every step once."""
        super().sweep()
        if len(self.gaps):
            self.draw_cuts()

    def draw_persons(self) -> None:
        """Offsets, sharpness and stretch of everybody."""
        precision = np.linalg.inv(self.offset_shape) / self.tau**2
        log_sharpness, common = np.log(self.traits.sharpness), self.traits.cuts[0].copy()
        deviations = np.array([self.kappa, self.gamma])
        seed = int(self.rng.integers(2**62))
        known = (self.Z, self.responses, self.traits.offset, self.by_person)
        draw_traits(seed, precision, deviations, common, log_sharpness, self.log_stretch, *known)
        self.traits = self.traits._replace(sharpness=np.exp(log_sharpness), cuts=self.cuts())

    def people(self, normals: Matrix) -> Traits:
        """People who stand for all people: those who are known, each as often as they answered.

        With many persons it is a sample, even over how high their bars are; `normals` (S, q + 1) says how many.
        """
        if self.n_persons == 0:
            return self.traits
        S = max(len(normals), MOST_PEOPLE // len(self.traits.cuts[0]))
        order = 1 + np.argsort(self.traits.offset[1:].mean(axis=1), kind="stable")
        answers = np.cumsum(np.diff(self.by_person.first)[order])
        who = order[np.searchsorted(answers, (np.arange(S) + self.rng.random()) * answers[-1] / S, side="right")]
        return Traits(self.traits.sharpness[who], self.traits.offset[who], self.traits.cuts[who], self.traits.worth)

    def middle(self) -> Traits:
        """One person who answers about as all people do: their offsets make an answer less certain."""
        factor = (1.0 + math.pi / 8 * self.tau**2) ** -0.5
        cuts: Matrix = factor * self.traits.cuts[:1]
        return Traits(np.full(1, factor), np.zeros((1, len(self.basis))), cuts, self.traits.worth)

    def draw_kappa(self) -> None:
        """kappa and gamma."""
        super().draw_kappa()
        if len(self.gaps):
            self.gamma = self.draw_deviation(self.gamma, self.log_stretch[1:], self.prior.stretch)

    def draw_cuts(self) -> None:
        """Every common cut point but the first between its neighbours, given everything else."""
        person, label, item, level, first = self.by_level
        M = self.traits.sharpness[person] * self.Z[item, label] + self.traits.offset[person, label]
        stretch, common = np.exp(self.log_stretch)[person], self.traits.cuts[0].copy()
        typical = math.log(self.prior.range_of_cuts / (len(common) - 1))

        def log_prior(gap: float) -> float:  # of the gap itself: its log is normal
            return -0.5 * ((math.log(gap) - typical) / self.prior.step) ** 2 - math.log(gap)

        for k in range(1, len(common)):
            low = common[k - 1]
            high = common[k + 1] if k + 1 < len(common) else math.inf

            def log_density(c: float, k: int = k, low: float = low, high: float = high) -> float:
                if not low < c < high:
                    return -math.inf
                common[k] = c
                beside = log_prior(high - c) if high < math.inf else 0.0
                return float(log_prior(c - low) + beside + cut_value(k, common, M, stretch, level, first))

            width = 6.0 / math.sqrt(1.0 + 0.1 * (first[k + 2] - first[k]))
            common[k] = slice_step(log_density, float(common[k]), width, self.rng)
        self.gaps = np.diff(common)
        self.traits = self.traits._replace(cuts=self.cuts())


def _first_gaps(levels: Matrix, n_cuts: int) -> NDArray[np.float64]:
    """Gaps (K - 1,) between cut points that fit how often each level was given."""
    asked = levels[~np.isnan(levels)]
    counts = np.bincount(asked.astype(int), minlength=n_cuts + 1) + 0.5
    above = counts[::-1].cumsum()[::-1][1:] / counts.sum()
    gaps: NDArray[np.float64] = np.maximum(np.diff(-1.4 * np.log(above / (1.0 - above))), 1e-2)
    return gaps


def _sort_by_level(responses: Responses, n_cuts: int) -> tuple[NDArray[np.intp], ...]:
    """Person, label, item and level of every answer about one label, sorted by level; and where each level starts."""
    item_of = np.repeat(np.arange(len(responses.first) - 1), np.diff(responses.first))
    row, label = np.nonzero(~np.isnan(responses.values))
    level = responses.values[row, label].astype(np.intp)
    order = np.argsort(level, kind="stable")
    row, label, level = row[order], label[order], level[order]
    first = np.searchsorted(level, np.arange(n_cuts + 2))
    return responses.person[row], label, item_of[row], level, first
