"""Votes on many items as tensors: what `new_rows` does row by row, for all rows at once, where they lie on a GPU.

Modes, points and weights are those of `new_rows`, and tests hold them to it. All in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from contone.enhance.inversion.people.answers import SMALLEST, Features, Traits
from contone.enhance.inversion.people.model import N_MATCHING
from contone.enhance.inversion.people.new_rows import N_DIRECTIONS, even_directions
from contone.enhance.inversion.people.rows import CLOSE, MOST_STEPS, TAIL

if TYPE_CHECKING:
    from contone.enhance.inversion.people.model import Draw

NUMBERS_AT_ONCE = 2**27
"""Of the largest array: points of rows, or their curvatures."""


def weigh_votes(counts: Tensor, features: Sequence[Features], draws: Sequence[Draw]) -> tuple[Tensor, Tensor]:
    """Means of shares over some draws, means and deviations of their logits (3, n, q), given counts (n, q).

    And the log likelihood (n,) of the counts, as `PeopleFit.chain_alone` has it.
    Below, rows come last: (q, n). A step of linear algebra for all rows is then one operation on long vectors.
    """
    n, q = counts.shape
    sums = torch.zeros((3, q, n), dtype=counts.dtype, device=counts.device)
    evidence = torch.full_like(sums[0, 0], -math.inf)
    size = max(NUMBERS_AT_ONCE // (q * max(q, N_DIRECTIONS)), 1)
    given = counts.T.contiguous()
    modes: Tensor | None = None
    for number, draw in enumerate(draws):
        mean = (draw.mean(features) + torch.zeros_like(counts)).T.contiguous()
        directions = torch.as_tensor(even_directions(N_DIRECTIONS, q, number)).to(counts)
        blocks = [slice(start, start + size) for start in range(0, n, size)]
        for rows in blocks * (N_MATCHING if draw.trusts_features else 0):
            alone = _weigh(torch.zeros_like(given[:, rows]), mean[:, rows], mean[:, rows].clone(), draw, directions)
            mean[:, rows] += features[0].told[rows].T - alone[0][0].clamp(min=SMALLEST).log()
        modes = mean.clone() if modes is None else modes  # from one draw to the next they move little
        for rows in blocks:
            told, likely = _weigh(given[:, rows], mean[:, rows], modes[:, rows], draw, directions)
            sums[:, :, rows] += told / len(draws)
            evidence[rows] = torch.logaddexp(evidence[rows], likely + draw.height())
    sums[2] = (sums[2] - sums[1] ** 2).clamp(min=0.0).sqrt()
    return sums.mT, evidence - math.log(len(draws))


def _weigh(counts: Tensor, mean: Tensor, modes: Tensor, draw: Draw, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Means for one draw (3, q, n), log likelihoods (n,); modes (q, n) are where Newton's method starts, and ends."""
    q, nu = len(counts), draw.tail
    P = torch.as_tensor(draw.precision).to(counts)
    votes = torch.nan_to_num(counts)
    offered = ~torch.isnan(counts) | (votes.sum(dim=0) == 0)
    person = torch.as_tensor(draw.traits.offset[0]).to(counts), float(draw.traits.sharpness[0])
    weight = torch.ones_like(counts[0])
    for _ in range(2):
        factor = _find_modes(modes, mean, weight, P, votes, offered, *person)
        away = modes - mean
        weight = (nu + q) / (nu + q + (away * (P @ away)).sum(dim=0))
    steps = _solve_upper(factor, directions.T[:, :, None].expand(-1, -1, counts.shape[1]))
    away = steps + (modes - mean)[:, None, :]
    value = 0.5 * (TAIL + q) * torch.log1p(directions.square().sum(dim=1) / TAIL)[:, None]
    value = value - 0.5 * (nu + q) * torch.log1p((away * torch.tensordot(P, away, 1)).sum(dim=0) / nu)
    Z = steps.add_(modes[:, None, :])
    shares = _shares(Z, draw.people)
    told = shares if bool(offered.all()) else _shares(Z.masked_fill(~offered[:, None, :], -math.inf), draw.people)
    value = value + (votes[:, None, :] * torch.log(told.clamp(min=1e-300))).sum(dim=0)
    chance = torch.softmax(value, dim=0)
    logits = torch.log(shares.clamp(min=1e-300)) - torch.log((1.0 - shares).clamp(min=1e-15))
    likely = value.logsumexp(dim=0) - math.log(len(directions)) - factor.diagonal().log().sum(dim=1)
    return torch.stack([(chance * A).sum(dim=1) for A in (shares, logits, logits.square())]), likely


def _shares(Z: Tensor, people: Traits) -> Tensor:
    """Mean of softmax(a z + b) over people, for log weights Z (q, T, n)."""
    total = torch.zeros_like(Z)
    for a, b in zip(people.sharpness, people.offset, strict=True):
        total += torch.softmax(float(a) * Z + torch.as_tensor(b).to(Z)[:, None, None], dim=0)
    return total / len(people.sharpness)


def _find_modes(
    modes: Tensor, mean: Tensor, weight: Tensor, P: Tensor, votes: Tensor, offered: Tensor, offset: Tensor, a: float
) -> Tensor:
    """Move modes (q, n) to where they belong by Newton's method; the factors (q, q, n) of the curvature there."""
    q, n = modes.shape
    factors, step = modes.new_empty(q, q, n), torch.zeros_like(modes)
    highest = modes.new_full((n,), -math.inf)
    left: Tensor | slice = slice(None)
    for _ in range(MOST_STEPS):
        here = modes[:, left], mean[:, left], weight[left], votes[:, left], offered[:, left]
        value, slope, curvature = _terms(*here, P, offset, a)
        factor = _factorise(curvature)
        newton = _solve_upper(factor, _solve_lower(factor, slope)[:, None])[:, 0]
        is_too_far = value < highest[left] - 1e-9 * highest[left].abs()
        found = ~is_too_far & (newton.abs().amax(dim=0) < CLOSE)
        step[:, left] = torch.where(is_too_far, 0.5 * step[:, left], newton)
        highest[left] = torch.where(is_too_far, highest[left], value)
        factors[:, :, left] = factor
        modes[:, left] += torch.where(is_too_far, -1.0, torch.where(found, 0.0, 1.0)) * step[:, left]
        left = torch.arange(n, device=modes.device)[left][~found]
        if len(left) == 0:
            break
    return factors


def _terms(
    m: Tensor, mean: Tensor, weight: Tensor, votes: Tensor, offered: Tensor, P: Tensor, offset: Tensor, a: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Log density (n,) of log weights m (q, n), its slope (q, n) and minus its second derivative (q, q, n)."""
    away = m - mean
    pull, n = weight * (P @ away), votes.sum(dim=0)
    log_p = torch.log_softmax((a * m + offset[:, None]).masked_fill(~offered, -math.inf), dim=0)
    p = log_p.exp()
    value = (votes * log_p.masked_fill(votes == 0, 0.0)).sum(dim=0) - 0.5 * (away * pull).sum(dim=0)
    curvature = weight * P[:, :, None] - (a * a * n * p)[:, None] * p
    curvature.diagonal().add_((a * a * n * p).T)
    return value, a * (votes - n * p) - pull, curvature


def _factorise(A: Tensor) -> Tensor:
    """The factor L of A = L L^T (q, q, n) in its lower triangle; A is overwritten."""
    for j in range(len(A)):
        A[j:, j] -= (A[j:, :j] * A[j, :j]).sum(dim=1)
        A[j, j] = A[j, j].sqrt()
        A[j + 1 :, j] /= A[j, j]
    return A


def _solve_lower(L: Tensor, b: Tensor) -> Tensor:
    """L^-1 b for b (q, n)."""
    x = torch.empty_like(b)
    for i in range(len(L)):
        x[i] = (b[i] - (L[i, :i] * x[:i]).sum(dim=0)) / L[i, i]
    return x


def _solve_upper(L: Tensor, b: Tensor) -> Tensor:
    """L^-T b for b (q, T, n)."""
    x = torch.empty_like(b, memory_format=torch.contiguous_format)
    for i in reversed(range(len(L))):
        x[i] = (b[i] - (L[i + 1 :, i, None] * x[i + 1 :]).sum(dim=0)) / L[i, i]
    return x
