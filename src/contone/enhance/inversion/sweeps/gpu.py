"""Sweeps of tensors on a GPU, each as one kernel, or a whole chain as one.

`reference.sweep` says what a sweep is. As operations on tensors it takes about a hundred launches per
label, and a GPU waits for them. Here a program takes a tile of rows through all labels, with their log weights in
registers; rows do not depend on each other. Where the parameters stay as they are, it takes them through all sweeps of
a chain, and makes the random numbers as well: Philox numbers, counted by row, label and sweep, so that a seed gives
the same numbers whatever the tiles are. The arithmetic is that of the operations on tensors, to rounding.

Rows with known degrees, levels or more than `MOST_LABELS` labels go by the reference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contone.backends.torch.draws import TensorDraws
from contone.backends.torch.kernels import can_launch
from contone.enhance.inversion.covariance import Precision, dense
from contone.enhance.inversion.sweeps import Bound, Sums, Sweeps
from contone.measurements import Region

try:  # Triton comes with torch's CUDA builds only
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
except ImportError:  # pragma: no cover - depends on the build of torch
    triton = None

MOST_LABELS = 32
"""Labels of a row that fit into the registers of a thread."""
TILE = 128
"""Rows per program, one per thread."""


def can_fuse(Z: Tensor) -> bool:
    """Whether the kernels can sweep log weights Z (q, n)."""
    return 2 <= Z.shape[0] <= MOST_LABELS and can_launch(Z)


@dataclass(frozen=True)
class FusedSweeps(Sweeps):
    """Sweeps within a region."""

    region: Region

    def sweep(
        self,
        Z: Tensor,
        bound: Bound,
        mean: Tensor,
        precision: Precision,
        u: Tensor,
        shift: Tensor,
        *,
        reflect: bool = False,
        root_weights: Tensor | None = None,
    ) -> Tensor:
        found, roots = torch.empty_like(Z), None if root_weights is None else root_weights.contiguous()
        _launch(self.region, Z, found, bound, mean, dense(precision), (u, shift), roots, reflect=reflect)
        return found

    def run_chain(
        self,
        Z: Tensor,
        bound: Bound,
        mean: Tensor,
        precision: Precision,
        draws: Any,
        length: tuple[int, int],
        sums: Sums,
    ) -> Tensor | None:
        seed = draws.chain_seed(tuple(Z.shape)) if isinstance(draws, TensorDraws) else None
        if seed is None:  # so few numbers that they are drawn one by one
            return None
        found, parts = torch.empty_like(Z), torch.zeros((3, *Z.shape), dtype=Z.dtype, device=Z.device)
        _launch(self.region, Z, found, bound, mean, dense(precision), None, None, (seed, *length), parts)
        for total, part in zip(sums, parts, strict=True):
            total += part.T
        return found


def _launch(
    region: Region,
    Z: Tensor,
    found: Tensor,
    bound: Bound,
    mean: Tensor,
    precision: np.ndarray,
    given: tuple[Tensor, Tensor] | None,
    roots: Tensor | None,
    chain: tuple[int, int, int] = (0, 1, 1),
    sums: Tensor | None = None,
    *,
    reflect: bool = False,
) -> None:
    q, n = Z.shape
    padded = 1 << (q - 1).bit_length()
    Z, positive, mean = Z.contiguous(), bound.positive.contiguous().view(torch.uint8), mean.contiguous()
    relaxed = positive if bound.relaxed is None else bound.relaxed.contiguous().view(torch.uint8)
    numbers = torch.as_tensor(_numbers(precision, padded, region.share), dtype=Z.dtype, device=Z.device)
    u, shift = (Z, Z) if given is None else (given[0].contiguous(), given[1].contiguous())
    with torch.cuda.device_of(Z):
        _sweeps_kernel[(triton.cdiv(n, TILE),)](
            Z, found, positive, relaxed, mean,
            numbers, u, shift, Z if roots is None else roots, Z if sums is None else sums,
            n, q, int(reflect), int(given is not None), *chain,
            KIND=region.number, LABELS=padded, ROWS=TILE, RELAXED=bound.relaxed is not None,
            ROOTS=roots is not None, WIDE=Z.dtype == torch.float64, num_warps=TILE // 32,
        )  # fmt: skip


def _numbers(precision: np.ndarray, padded: int, share: float) -> np.ndarray:
    """All numbers that rows share, one after the other, labels padded by zeros.

    Sigma^-1, its column sums, the conditional standard deviations, the sum of Sigma^-1, the root of it, the share.
    """
    q = len(precision)
    square, along, scale = np.zeros((padded, padded)), np.zeros(padded), np.ones(padded)
    square[:q, :q], along[:q], scale[:q] = precision, precision.sum(axis=0), 1.0 / np.sqrt(np.diag(precision))
    total = along.sum()
    return np.concatenate([square.ravel(), along, scale, [total, math.sqrt(total), share]])


if triton is not None:  # pragma: no cover - compiled, not traced
    _exp, _log, _log1p, _expm1 = libdevice.exp, libdevice.log, libdevice.log1p, libdevice.expm1
    _normal, _quantile = libdevice.normcdf, libdevice.normcdfinv

    @triton.jit
    def _log_or_none(w):  # type: ignore[no-untyped-def]
        """log(w), and -inf for weights that are not positive."""
        return tl.where(w > 0, _log(tl.where(w > 0, w, 1.0)), -float("inf"))

    @triton.jit
    def _ends(P, N, lowest, highest, others, own, share, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
        """The interval of a log weight, as `measurements` has it: masses and extremes of the other labels."""
        far = tl.full(P.shape, float("inf"), P.dtype)
        if KIND == 0:
            return tl.where(own, highest, -far), tl.where(own, far, lowest)
        alone = others == 0
        smallest = tl.where(alone, 0.0, _exp(lowest))
        if KIND == 1:
            rest = 1.0 - share
            least = tl.maximum(share * N / rest - P, (rest * P - share * N) / share)
            most = tl.where(alone, far, (share * N + smallest) / rest - P)
            lower = _log_or_none(tl.where(own, least, (rest * P - smallest) / share - N))
            upper = _log_or_none(tl.where(own, most, rest * P / share - N))
            return tl.where(own, tl.maximum(lower, highest), lower), tl.where(own, upper, tl.minimum(upper, lowest))
        T = P + N
        bar = _log_or_none(share * T / (1.0 - share))
        pushes = _log_or_none(_exp(highest) / share - T)
        single = (others == tl.where(own, 0, 1)) & (KIND == 2)
        allows = tl.where(single | alone, far, _log_or_none(smallest / share - T))
        lower = tl.maximum(pushes, tl.where(single, highest, bar))
        upper = tl.minimum(bar, tl.where(single, lowest, allows))
        return tl.where(own, lower, pushes), tl.where(own, allows, upper)

    @triton.jit
    def _between(lower, upper, x, u, reflect, TAIL: tl.constexpr, TINY: tl.constexpr, LAST: tl.constexpr):  # type: ignore[no-untyped-def]
        """A standard normal draw between two ends, or the reflection of x there: `contone.numerics.truncated`."""
        mirrored = lower > 0
        left, right = tl.where(mirrored, -upper, lower), tl.where(mirrored, -lower, upper)
        below, above = _normal(left), _normal(right)
        p, last = below + u * (above - below), tl.full(below.shape, LAST, below.dtype)
        if reflect != 0:
            other = below + above - _normal(tl.where(mirrored, -x, x))
            other = tl.minimum(tl.maximum(other, below), above)
            p = tl.where((right >= -0.5 * TAIL) & (other > TINY) & (other < last), other, p)
        y = _quantile(tl.minimum(tl.maximum(p, TINY), last))
        rate = tl.maximum(-right, 1.0)
        covered = -_expm1(-tl.minimum(rate * (right - left), 80.0))
        y = tl.where(right < -TAIL, right + _log1p(-u * covered) / rate, y)
        return tl.minimum(tl.maximum(tl.where(mirrored, -y, y), lower), upper)

    @triton.jit
    def _uniform(seed, row, counter, WIDE: tl.constexpr):  # type: ignore[no-untyped-def]
        """Uniform numbers inside (0, 1), one for every row."""
        first, second, _, _ = tl.randint4x(seed, row.to(tl.int64) + (counter.to(tl.int64) << 32))
        first, second = first.to(tl.uint32, bitcast=True), second.to(tl.uint32, bitcast=True)
        if WIDE:
            low = ((second >> 12).to(tl.float64) + 0.5) * 9.5367431640625e-07
            return (first.to(tl.float64) + low) * 2.3283064365386963e-10
        else:  # noqa: RET505 - only one of the two is compiled
            return ((first >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07

    @triton.jit(do_not_specialize=["n", "q", "reflect", "is_given", "seed", "n_sweeps", "n_burn"])
    def _sweeps_kernel(  # type: ignore[no-untyped-def]
        Z_in, Z_out, positive_in, relaxed_in, mean_in, numbers, u_in, shift_in, roots_in, sums,
        n, q, reflect, is_given, seed, n_sweeps, n_burn,
        KIND: tl.constexpr, LABELS: tl.constexpr, ROWS: tl.constexpr, RELAXED: tl.constexpr, ROOTS: tl.constexpr,
        WIDE: tl.constexpr,
    ):  # fmt: skip
        """A program takes ROWS rows through one sweep with given draws, or through a chain, whose later sweeps it
        adds up."""
        TAIL: tl.constexpr = 25.0 if WIDE else 8.0
        MARGIN: tl.constexpr = 1e-9 if WIDE else 1e-5
        TINY: tl.constexpr = 1e-300 if WIDE else 1e-37
        LAST: tl.constexpr = 1.0 - 2.0**-53 if WIDE else 1.0 - 2.0**-24
        RESOLUTION: tl.constexpr = 1e-12 if WIDE else 1.1920928955078125e-07
        label = tl.arange(0, LABELS)
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        inside, real = row < n, (label < q)[:, None]
        place = label[:, None].to(tl.int64) * n + row[None, :]
        there = real & inside[None, :]
        Z = tl.load(Z_in + place, mask=there, other=0.0)
        Z = tl.where(real, Z, -float("inf"))
        mean = tl.load(mean_in + place, mask=there, other=0.0)
        positive = tl.load(positive_in + place, mask=there, other=0) != 0
        count = tl.sum(positive.to(tl.int32), axis=0)
        loose = tl.load(relaxed_in + row, mask=inside, other=0) != 0
        root = tl.load(roots_in + row, mask=inside, other=1.0) if ROOTS else 1.0
        along = tl.load(numbers + LABELS * LABELS + label)
        scalars = numbers + LABELS * (LABELS + 2)
        total, total_root, share = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2)
        degrees, size = sums + place, q.to(tl.int64) * n
        u_here = u_in + row.to(tl.int64)
        for k in range(n_sweeps):
            mirror = tl.where(is_given != 0, reflect, k % 2)
            Z = Z - tl.max(Z, axis=0)[None, :]
            if is_given != 0:
                shift = tl.load(shift_in + row, mask=inside, other=0.0)
            else:
                shift = _quantile(_uniform(seed, row, k * (q + 1) + q, WIDE))
            residual = tl.where(real, Z - mean, 0.0)
            pull = tl.sum(along[:, None] * residual, axis=0)
            residual += (shift / (total_root * root) - pull / total)[None, :]
            W = _exp(Z)
            for j in range(q):
                chosen = (label == j)[:, None]
                ours, theirs = positive & ~chosen, ~(positive | chosen)
                old = tl.sum(tl.where(chosen, Z, 0.0), axis=0)
                own = tl.sum((positive & chosen).to(tl.int32), axis=0) != 0
                P, N = tl.sum(tl.where(ours, W, 0.0), axis=0), tl.sum(tl.where(theirs, W, 0.0), axis=0)
                lowest = tl.min(tl.where(ours, Z, float("inf")), axis=0)
                highest = tl.max(tl.where(theirs, Z, -float("inf")), axis=0)
                others = count - own.to(tl.int32)
                lower, upper = _ends(P, N, lowest, highest, others, own, share, KIND)
                if RELAXED:
                    ends = _ends(P, N, lowest, highest, others, own, share, 0)
                    lower, upper = tl.where(loose, ends[0], lower), tl.where(loose, ends[1], upper)
                weights = tl.load(numbers + j * LABELS + label)
                scale = tl.load(numbers + LABELS * (LABELS + 1) + j)
                gradient = tl.sum(weights[:, None] * residual, axis=0)
                centre = old - gradient * scale * scale
                scale = scale / root
                lower, upper = lower + MARGIN, upper - MARGIN
                room = upper > lower
                lower, upper = tl.where(room, tl.maximum(lower, -60.0), old), tl.where(room, upper, old)
                room = room & (upper > lower)
                if is_given != 0:
                    u = tl.load(u_here, mask=inside, other=0.5)
                    u_here += n
                else:
                    u = _uniform(seed, row, k * (q + 1) + j, WIDE)
                ends = (lower - centre) / scale, (upper - centre) / scale
                x = _between(ends[0], ends[1], (old - centre) / scale, u, mirror, TAIL, TINY, LAST)
                z = tl.minimum(tl.maximum(centre + scale * x, lower), upper)
                z = tl.where(room, z, old)
                residual = tl.where(chosen, residual + (z - old)[None, :], residual)
                W = tl.where(chosen, _exp(z)[None, :], W)
                Z = tl.where(chosen, z[None, :], Z)
            if k >= n_burn:
                top = Z - tl.max(Z, axis=0)[None, :]
                E = _exp(top)
                mass = tl.sum(E, axis=0)[None, :]
                logit = top - _log(tl.maximum(mass - E, RESOLUTION * mass))
                tl.store(degrees, tl.load(degrees, mask=there) + E / mass, mask=there)
                tl.store(degrees + size, tl.load(degrees + size, mask=there) + logit, mask=there)
                squares = degrees + 2 * size
                tl.store(squares, tl.load(squares, mask=there) + logit * logit, mask=there)
        tl.store(Z_out + place, Z, mask=there)
