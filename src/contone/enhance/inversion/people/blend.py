"""Items whose shares vary as a Dirichlet distribution has it, beside those of the logistic normal of the chain.

    d_i = softmax(z_i), z_i of the chain;    or    d_i ~ Dirichlet(c M_i),  M_i the shares that features tell

Log shares of rare labels then vary more than those of common ones, and rather downwards. How many items are of each
kind is what makes the votes most likely. Neither one vote per item nor labels that were not on offer tell anything of
it; with persons, or without features, the chain stands alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, logit, ndtri

from contone.backends import to_numpy
from contone.enhance.counting import log_chances
from contone.enhance.inversion.people.answers import Features, Matrix, Responses
from contone.enhance.inversion.people.regression import largest_likelihood
from contone.runtime.machine import for_each, pieces_by_width

CONCENTRATIONS: Matrix = np.exp2(np.arange(-1.0, 9.5, 0.5))
"""c, tried side by side."""
END = 1e-9
"""Ends of intervals are no closer to 0 and 1."""


def votes_of(responses: Responses) -> Matrix:
    """Counts (m, q) of the votes on items, NaN for labels that were not on offer."""
    counts = np.zeros((len(responses.first) - 1, responses.values.shape[1]))
    np.add.at(counts, np.repeat(np.arange(len(counts)), np.diff(responses.first)), responses.values)
    return counts


@dataclass(frozen=True)
class Blend:
    """Which kinds of items there are."""

    weights: Matrix
    """(1 + K,): share of the items that are of the chain, and of each other kind."""
    concentrations: Matrix
    """(K,)."""

    @classmethod
    def of(cls, evidence: Matrix, counts: Matrix, features: Sequence[Features]) -> "Blend | None":
        """The most likely, given log likelihoods (m,) of votes (m, q) by the chain; None where the chain does alone."""
        every, several = cls(np.ones(0), CONCENTRATIONS), counts.sum(axis=1) > 1
        log_p = every._likelihoods(evidence, counts, every.beliefs(features))[:, several]
        P, once = np.exp(log_p - log_p.max(axis=0)), np.ones(log_p.shape[1])
        kinds, loss, weights = [0], -float(np.log(np.maximum(P[0], 1e-300)).sum()), np.ones(1)
        while len(kinds) < len(P):
            even = np.full(len(kinds) + 1, 1.0 / (len(kinds) + 1))
            tried = {k: largest_likelihood(P[[*kinds, k]], once, even) for k in {*range(len(P))} - {*kinds}}
            best = min(tried, key=lambda k: tried[k][0])
            if loss - tried[best][0] <= 0.5 * np.log(max(len(once), 1)):
                break  # it must gain what a number costs (Schwarz 1978): with few votes many kinds fit by chance
            kinds, (loss, weights) = [*kinds, best], tried[best]
        return cls(weights, CONCENTRATIONS[np.array(kinds[1:]) - 1]) if len(kinds) > 1 else None

    def beliefs(self, features: Sequence[Features]) -> Matrix:
        """c M (K, m, q)."""
        return np.asarray(self.concentrations[:, None, None] * np.exp(to_numpy(features[0].told)))

    def _likelihoods(self, evidence: Matrix, counts: Matrix, beliefs: Matrix) -> Matrix:
        """Logs (1 + K, m) of those of votes, but for a constant."""
        log_p = np.stack([evidence, *(log_chances(np.nan_to_num(counts), belief) for belief in beliefs)])
        log_p[1:, np.isnan(counts).any(axis=1) & (np.nansum(counts, axis=1) > 0)] = -np.inf
        return log_p

    def kinds(self, evidence: Matrix, counts: Matrix, beliefs: Matrix) -> Matrix:
        """Chances (1 + K, m) that items are of each kind, given their votes."""
        log_p = self._likelihoods(evidence, counts, beliefs)
        p = self.weights[:, None] * np.exp(log_p - log_p.max(axis=0))
        return np.asarray(p / p.sum(axis=0))

    def mixed(self, told: Matrix, evidence: Matrix, counts: Matrix, features: Sequence[Features]) -> Matrix:
        """Means of shares, and centres and widths of their logits, (3, m, q), with the other kinds in.

        Those of a kind have its 90 % interval, and of several kinds the ends lie between theirs.
        """
        found, beliefs = np.empty_like(told), self.beliefs(features)

        def mix(rows: slice) -> None:
            there = beliefs[:, rows]
            kinds = self.kinds(evidence[rows], counts[rows], there)[:, :, None]
            D, centre, width = kinds[0] * told[:, rows]
            for share, a in zip(kinds[1:], there + np.nan_to_num(counts[rows]), strict=True):
                whole = a.sum(axis=1, keepdims=True)
                low, high = (logit(np.clip(betaincinv(a, whole - a, p), END, 1.0 - END)) for p in (0.05, 0.95))
                D += share * a / whole
                centre += 0.5 * share * (low + high)
                width += 0.5 * share * (high - low) / ndtri(0.95)
            found[:, rows] = D, centre, width

        for_each(mix, pieces_by_width(*counts.shape))
        return found

    def redraw(self, D: Matrix, kinds: Matrix, a: Matrix, rng: np.random.Generator) -> None:
        """Replace the chain's draws D (S, m, q) of items of other `kinds` (1 + K, m), Dirichlet(a (K, m, q))."""
        kind = (kinds.cumsum(axis=0)[:-1, None] < rng.random(D.shape[:2])).sum(axis=0)
        for k, parameters in enumerate(a, start=1):
            sample, item = np.nonzero(kind == k)
            drawn = rng.standard_gamma(parameters[item]) + 1e-300
            D[sample, item] = drawn / drawn.sum(axis=1, keepdims=True)
