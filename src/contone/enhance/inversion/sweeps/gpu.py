"""Sweeps of tensors on a GPU, each as one kernel, or a whole chain as one.

`ReferenceSweeps.sweep` says what a sweep is. As operations on tensors it takes about a hundred launches per label, and
a GPU waits for them. Here a thread takes a row through all labels, and where the parameters stay as they are, through
all sweeps of a chain; rows do not depend on each other. A chain makes its random numbers itself: Philox numbers,
counted by row, label and sweep, so that a seed gives the same numbers however the rows are split. The arithmetic is
that of the operations on tensors, to rounding.

Any number of labels will do. What a step asks of the labels before it, a thread carries along; what it asks of those
after it (masses, lowest positive and highest negative weight) is worked out backwards before the sweep and kept in
memory. The gradient of label j is own_j r_j - left_j^T s with s = right^T r of the residuals r carried along, of WIDTH
numbers: for Sigma^-1 = diag(own) - shared^T shared the factors are both sides, for a full Sigma^-1 (q, q) the residuals
themselves are s. A full one of more than `WIDEST` labels goes by the reference.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contone.backends.torch.draws import TensorDraws
from contone.backends.torch.kernels import can_launch
from contone.enhance.inversion.covariance import Precision
from contone.enhance.inversion.sweeps import Bound, Length, Move, Sums, Sweeps
from contone.enhance.inversion.sweeps.reference import ReferenceSweeps
from contone.measurements import IntervalRule, Region

try:  # Triton comes with torch's CUDA builds only
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
except ImportError:  # pragma: no cover - depends on the build of torch
    triton = None

WIDEST = 128
"""Numbers carried along per row that fit into the registers of a thread: labels of a full Sigma, or factors."""
TILE = 32
"""Rows per program, one per thread: small programs spread a few thousand rows over the whole GPU."""


def can_fuse(Z: Tensor) -> bool:
    """Whether the kernels can sweep log weights Z (q, n)."""
    return Z.shape[0] >= 2 and can_launch(Z)


@dataclass(frozen=True)
class FusedSweeps(Sweeps):
    """Sweeps under a rule that has a region."""

    rule: IntervalRule

    def sweep(self, Z: Tensor, bound: Bound, mean: Tensor, precision: Precision, move: Move) -> Tensor:
        if too_wide(precision):
            found: Tensor = ReferenceSweeps(self.rule).sweep(Z, bound, mean, precision, move)
            return found
        return _launch(self.rule.region, Z, bound, mean, precision, move)

    def run_chain(
        self, Z: Tensor, bound: Bound, mean: Tensor, precision: Precision, draws: Any, length: Length, sums: Sums
    ) -> Tensor | None:
        seed = draws.chain_seed(tuple(Z.shape)) if isinstance(draws, TensorDraws) else None
        if seed is None or too_wide(precision):  # few numbers are drawn one by one
            return None
        parts = torch.zeros((3, *Z.shape), dtype=Z.dtype, device=Z.device)
        found = _launch(self.rule.region, Z, bound, mean, precision, None, (seed, *length), parts)
        for total, part in zip(sums, parts, strict=True):
            total += part.T
        return found


def too_wide(precision: Precision) -> bool:
    """Whether a row would have to carry more numbers along than fit."""
    return isinstance(precision, np.ndarray) and len(precision) > WIDEST


def _launch(
    region: Region | None,
    Z: Tensor,
    bound: Bound,
    mean: Tensor,
    precision: Precision,
    move: Move | None,
    chain: tuple[int, int, int] = (0, 1, 1),
    sums: Tensor | None = None,
) -> Tensor:
    """One sweep with given draws, or without them the sweeps of a chain."""
    assert region is not None
    (q, n), known = Z.shape, bound.known
    found = Z.clone(memory_format=torch.contiguous_format)
    after = torch.empty((4, q, n), dtype=Z.dtype, device=Z.device)
    shared, width = shared_numbers(precision, region.share)
    numbers = torch.as_tensor(shared, dtype=Z.dtype, device=Z.device)
    flags = bound.positive, bound.relaxed, *((None, None) if known is None else (known.rows, known.is_zero))
    bits = [found if flag is None else flag.contiguous().view(torch.uint8) for flag in flags]
    u, shift, reflect, roots = Move(found, found) if move is None else move
    highest = found if known is None else known.highest_zero.to(Z.dtype).contiguous()
    with torch.cuda.device_of(Z):
        _sweeps_kernel[(triton.cdiv(n, TILE),)](
            found, after, *bits, highest, mean.contiguous(), numbers, u.contiguous(), shift.contiguous(),
            found if roots is None else roots.to(Z.dtype).contiguous(), found if sums is None else sums,
            n, q, int(reflect), int(move is not None), *chain,
            KIND=region.number, WIDTH=width, ROWS=TILE, RELAXED=bound.relaxed is not None, KNOWN=known is not None,
            ROOTS=roots is not None, WIDE=Z.dtype == torch.float64, num_warps=1, num_stages=1,
        )  # fmt: skip
    return found


def shared_numbers(precision: Precision, share: float) -> tuple[np.ndarray, int]:
    """All numbers that rows share, one after the other, and the width of what a row carries along.

    Of Sigma^-1: its column sums, conditional standard deviations and own parts (q each), the left and the right side
    (q, width each, filled up with zeros to a power of two), the sum of the right side (width,), the sum of Sigma^-1 and
    its root; then the share of the region.
    """
    if isinstance(precision, np.ndarray):
        own, left, right = np.zeros(len(precision)), -precision, np.eye(len(precision))
        along, diagonal = precision.sum(axis=0), np.diag(precision)
    else:
        own, left, right = precision.own, precision.shared.T, precision.shared.T
        along, diagonal = precision.along(), precision.diagonal()
    width = max(1 << (left.shape[1] - 1).bit_length(), 4)
    left, right = (np.pad(A, ((0, 0), (0, width - A.shape[1]))) for A in (left, right))
    total = along.sum()
    last = [total, math.sqrt(total), share]
    parts = along, 1.0 / np.sqrt(diagonal), own, left.ravel(), right.ravel(), right.sum(axis=0), last
    return np.concatenate(parts), width


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
        Z_in, after, positive_in, relaxed_in, known_in, zero_in, zero_top_in, mean_in, numbers, u_in, shift_in,
        roots_in, sums,
        n, q, reflect, is_given, seed, n_sweeps, n_burn,
        KIND: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, RELAXED: tl.constexpr, KNOWN: tl.constexpr,
        ROOTS: tl.constexpr, WIDE: tl.constexpr,
    ):  # fmt: skip
        """A program takes ROWS rows through one sweep with given draws, or through a chain, whose later sweeps it
        adds up. Log weights are read from and written back to Z_in."""
        TAIL: tl.constexpr = 25.0 if WIDE else 8.0
        MARGIN: tl.constexpr = 1e-9 if WIDE else 1e-5
        TINY: tl.constexpr = 1e-300 if WIDE else 1e-37
        LAST: tl.constexpr = 1.0 - 2.0**-53 if WIDE else 1.0 - 2.0**-24
        RESOLUTION: tl.constexpr = 1e-12 if WIDE else 1.1920928955078125e-07
        row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        inside = row < n
        column = tl.arange(0, WIDTH)
        step, size = n.to(tl.int64), q.to(tl.int64) * n
        Z_row, mean_row, positive_row, after_row = Z_in + row, mean_in + row, positive_in + row, after + row
        left, right = numbers + 3 * q, numbers + 3 * q + q * WIDTH
        last = right + q * WIDTH
        right_sum = tl.load(last + column)
        total, total_root, share = tl.load(last + WIDTH), tl.load(last + WIDTH + 1), tl.load(last + WIDTH + 2)
        none = tl.zeros((ROWS,), Z_in.dtype.element_ty)
        far = none + float("inf")
        loose = tl.load(relaxed_in + row, mask=inside, other=0) != 0 if RELAXED else inside
        held = tl.load(known_in + row, mask=inside, other=0) != 0 if KNOWN else inside
        zero_top = tl.load(zero_top_in + row, mask=inside, other=0.0) if KNOWN else none
        root = tl.load(roots_in + row, mask=inside, other=1.0) if ROOTS else none + 1.0
        for k in range(n_sweeps):
            mirror = tl.where(is_given != 0, reflect, k % 2)
            top = -far
            for j in range(q):
                top = tl.maximum(top, tl.load(Z_row + j * step, mask=inside, other=0.0))
            # Backwards: what each label needs to know of those after it, and the residuals of all.
            P, N, lowest, highest, count, pull = none, none, far, -far, tl.zeros((ROWS,), tl.int32), none
            carried = tl.zeros((WIDTH, ROWS), Z_in.dtype.element_ty)
            for i in range(q):
                j = q - 1 - i
                place = j * step
                z = tl.load(Z_row + place, mask=inside, other=0.0) - top
                own = tl.load(positive_row + place, mask=inside, other=0) != 0
                tl.store(Z_row + place, z, mask=inside)
                tl.store(after_row + place, P, mask=inside)
                tl.store(after_row + (place + size), N, mask=inside)
                tl.store(after_row + (place + 2 * size), lowest, mask=inside)
                tl.store(after_row + (place + 3 * size), highest, mask=inside)
                w = _exp(z)
                P, N = P + tl.where(own, w, 0.0), N + tl.where(own, 0.0, w)
                lowest = tl.minimum(lowest, tl.where(own, z, far))
                highest = tl.maximum(highest, tl.where(own, -far, z))
                count += own.to(tl.int32)
                residual = z - tl.load(mean_row + place, mask=inside, other=0.0)
                pull += tl.load(numbers + j) * residual
                carried += tl.load(right + j * WIDTH + column)[:, None] * residual[None, :]
            if is_given != 0:
                shift = tl.load(shift_in + row, mask=inside, other=0.0)
            else:
                shift = _quantile(_uniform(seed, row, k * (q + 1) + q, WIDE))
            shift = shift / (total_root * root) - pull / total
            carried += right_sum[:, None] * shift[None, :]
            P, N, lowest, highest = none, none, far, -far
            for j in range(q):
                place = j * step
                old = tl.load(Z_row + place, mask=inside, other=0.0)
                own = tl.load(positive_row + place, mask=inside, other=0) != 0
                masses = (
                    P + tl.load(after_row + place, mask=inside, other=0.0),
                    N + tl.load(after_row + (place + size), mask=inside, other=0.0),
                )
                extremes = (
                    tl.minimum(lowest, tl.load(after_row + (place + 2 * size), mask=inside, other=0.0)),
                    tl.maximum(highest, tl.load(after_row + (place + 3 * size), mask=inside, other=0.0)),
                )
                others = count - own.to(tl.int32)
                lower, upper = _ends(masses[0], masses[1], extremes[0], extremes[1], others, own, share, KIND)
                if RELAXED:
                    ends = _ends(masses[0], masses[1], extremes[0], extremes[1], others, own, share, 0)
                    lower, upper = tl.where(loose, ends[0], lower), tl.where(loose, ends[1], upper)
                if KNOWN:  # an empty interval holds a log weight where it is
                    is_zero = tl.load(zero_in + row + place, mask=inside, other=0) != 0
                    lower = tl.where(held, tl.where(is_zero, -far, far), lower)
                    upper = tl.where(held, tl.where(is_zero, zero_top, -far), upper)
                residual = old - tl.load(mean_row + place, mask=inside, other=0.0) + shift
                weights = tl.load(left + j * WIDTH + column)
                gradient = tl.load(numbers + 2 * q + j) * residual - tl.sum(weights[:, None] * carried, axis=0)
                scale = tl.load(numbers + q + j)
                centre = old - gradient * scale * scale
                scale = scale / root
                lower, upper = lower + MARGIN, upper - MARGIN
                room = upper > lower
                lower, upper = (
                    tl.where(room, tl.maximum(lower, -60.0), old),
                    tl.where(room, tl.minimum(upper, 80.0), old),
                )
                room = room & (upper > lower)
                if is_given != 0:
                    u = tl.load(u_in + row + place, mask=inside, other=0.5)
                else:
                    u = _uniform(seed, row, k * (q + 1) + j, WIDE)
                ends = (lower - centre) / scale, (upper - centre) / scale
                x = _between(ends[0], ends[1], (old - centre) / scale, u, mirror, TAIL, TINY, LAST)
                z = tl.minimum(tl.maximum(centre + scale * x, lower), upper)
                z = tl.where(room, z, old)
                carried += tl.load(right + j * WIDTH + column)[:, None] * (z - old)[None, :]
                w = _exp(z)
                P, N = P + tl.where(own, w, 0.0), N + tl.where(own, 0.0, w)
                lowest = tl.minimum(lowest, tl.where(own, z, far))
                highest = tl.maximum(highest, tl.where(own, -far, z))
                tl.store(Z_row + place, z, mask=inside)
            if k >= n_burn:
                top = -far
                for j in range(q):
                    top = tl.maximum(top, tl.load(Z_row + j * step, mask=inside, other=0.0))
                mass = none
                for j in range(q):
                    mass += _exp(tl.load(Z_row + j * step, mask=inside, other=0.0) - top)
                for j in range(q):
                    here = sums + row + j * step
                    z = tl.load(Z_row + j * step, mask=inside, other=0.0) - top
                    w = _exp(z)
                    logit = z - _log(tl.maximum(mass - w, RESOLUTION * mass))
                    tl.store(here, tl.load(here, mask=inside) + w / mass, mask=inside)
                    tl.store(here + size, tl.load(here + size, mask=inside) + logit, mask=inside)
                    tl.store(here + 2 * size, tl.load(here + 2 * size, mask=inside) + logit * logit, mask=inside)
