"""Nearest neighbours on a GPU by half-precision bounds: what cannot be near is not measured.

Rows are rounded to half precision, x = x' + e, y = y' + f, and by Cauchy and Schwarz

    |x - y|^2 - |x|^2  >=  |y|^2 - 2 ( x'.y' + |e| |y| + |x'| |f| ),

a product of vectors with two more entries, |e| and |x'| against |y| and |f|. So one product of matrices in half
precision, the fastest there is, bounds every distance from below, each by the rounding of its own two rows: a far
outlier does not spoil the bounds of others. Of the bounds only minima are kept:

1. over the 32 rows of a *group*, and over the 32 groups of a *family*. One kernel; distances never leave registers;
2. for each row, the families with the smallest minima, in these the groups with the smallest minima, and in these all
   rows, measured by differences in the precision of X. The k nearest are the answer if the k-th is nearer than the
   smallest bound that was passed over: that is the certificate. One kernel.

Rows without a certificate are left to `neighbours`.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from contone.backends.torch.kernels import can_launch, shared_bytes

try:  # Triton comes with torch's CUDA builds only
    import triton
    import triton.language as tl
except ImportError:  # pragma: no cover - depends on the build of torch
    triton = None

GROUP = 32
TILE = 128
"""Rows that a step of the first kernel takes: 4 groups, one for each of the 4 threads that share a row of a product of
matrices, so that a minimum over a group never leaves its thread."""
SPAN = 32
"""Tiles that a program of the first kernel takes in turn; the groups of a thread in them are a family."""
PER_SPAN = TILE // GROUP
SPARE = 9
"""Groups that are measured beyond those that hold the neighbours and the row itself, at least."""
MOST_CHOSEN = 128
MOST_COLUMNS = 256
LARGEST = 256.0
"""Largest entry of what is rounded: half precision keeps its digits from 6e-5 on, and ends at 65504."""
HIGHEST_POWER = {8: 1000, 4: 100}
"""Largest exponent of the unit of length, by item size."""


class Found(NamedTuple):
    """The k nearest other rows of every row, nearest first, squared distances, and for which rows that is certain."""

    indices: Tensor
    squared: Tensor
    certified: Tensor


def can_screen(X: Tensor, k: int) -> bool:
    """Whether the kernels can search the rows of X (n, d): on a GPU, and so many that families outnumber the chosen."""
    enough = n_chosen(k) + PER_SPAN <= PER_SPAN * _n_spans(X.shape[0])
    width = _width(X.shape[1])
    if not enough or n_chosen(k) > MOST_CHOSEN or width > MOST_COLUMNS or not can_launch(X):
        return False
    # A tile of queries, and a tile of points for every stage of the first kernel
    return (1 + _n_stages(width)) * TILE * width * 2 + 2**11 <= shared_bytes(X)


def n_chosen(k: int) -> int:
    """How many families and groups are looked into for k neighbours: enough for all, itself and spare ones."""
    return int(1 << (k + SPARE).bit_length())


def nearest_neighbours(X: Tensor, k: int, stage_bytes: int) -> Found:
    """The k nearest other rows of every row of centred X (n, d); `stage_bytes` bounds the working memory."""
    n = X.shape[0]
    screen = Screen(X)
    indices = torch.empty((n, k), dtype=torch.int64, device=X.device)
    squared = torch.empty((n, k), dtype=X.dtype, device=X.device)
    bound = torch.empty(n, dtype=torch.float32, device=X.device)
    size = max(TILE, stage_bytes // (4 * screen.n_groups) // TILE * TILE)
    minima = torch.empty((screen.n_groups + screen.n_families, min(size, n)), dtype=torch.float32, device=X.device)
    for start in range(0, n, size):
        stop = min(start + size, n)
        screen.bound(start, stop, minima)
        screen.measure(start, stop, minima, indices, squared, bound)
    furthest = squared[:, -1]
    certified = (bound + screen.own > furthest * screen.unit * screen.unit) | (furthest == 0)
    return Found(indices, squared, certified)


class Screen:
    """All rows as the kernels see them; lengths are multiplied by `unit`, a power of two."""

    def __init__(self, X: Tensor) -> None:
        n, d = X.shape
        self.X = X.contiguous()
        self.unit = _unit(float(X.abs().max()), HIGHEST_POWER[X.element_size()])
        self.n_tiles = _n_spans(n) * SPAN
        self.n_groups = self.n_tiles * PER_SPAN
        self.n_families = self.n_groups // SPAN
        self.width = _width(d)
        scaled = X * self.unit
        rounded = scaled.to(torch.float16).to(X.dtype)
        size, kept, lost = _lengths(scaled), _lengths(rounded), _lengths(scaled - rounded)
        self.own = (size**2 * (1.0 - _slack(self.width))).to(torch.float32)
        self.queries = torch.zeros((n, self.width), dtype=torch.float16, device=X.device)
        self.queries[:, :d] = -2.0 * rounded
        self.queries[:, d], self.queries[:, d + 1] = -2.0 * _up(lost), -2.0 * _up(kept)
        points = torch.zeros((self.n_tiles * TILE, self.width), dtype=torch.float16, device=X.device)
        points[:n, :d] = rounded
        points[:n, d], points[:n, d + 1] = _up(size), _up(lost)
        norms = torch.full((self.n_tiles * TILE,), torch.inf, dtype=torch.float32, device=X.device)
        norms[:n] = self.own
        # Column c of a product of 128 columns lies in the thread (c // 2) % 4: these columns are the rows of a group.
        self.points = _by_thread(points).reshape(points.shape)
        self.norms = _by_thread(norms[:, None]).reshape(-1)

    def bound(self, start: int, stop: int, minima: Tensor) -> None:
        """Minima of the bounds over groups, then over families, in the columns of `minima`; rows start to stop."""
        grid = (triton.cdiv(stop - start, TILE), self.n_tiles // SPAN)
        _bounds_kernel[grid](
            self.queries, self.points, self.norms, minima, start, stop, minima.shape[1], self.n_groups,
            WIDTH=self.width, TILE_=TILE, SPAN_=SPAN, GROUPS=PER_SPAN, num_warps=4, num_stages=_n_stages(self.width),
        )  # fmt: skip

    def measure(self, start: int, stop: int, minima: Tensor, indices: Tensor, squared: Tensor, bound: Tensor) -> None:
        """The nearest rows (and how near) among those of the best groups, and the smallest bound passed over."""
        (n, d), k = self.X.shape, indices.shape[1]
        padded = 1 << (self.n_families - 1).bit_length()
        _measure_kernel[(stop - start,)](
            self.X, minima, indices, squared, bound, start, minima.shape[1], self.n_groups, self.n_families, n, d, k,
            FAMILIES=padded, CHOSEN=n_chosen(k), WIDTH=self.width, NEAREST=1 << (k - 1).bit_length(),
            GROUP_=GROUP, SPAN_=SPAN, GROUPS=PER_SPAN, WIDE=self.X.dtype == torch.float64,
            num_warps=min(max(padded // 1024, self.width // 64, n_chosen(k) // 32, 1), 8),
        )  # fmt: skip


def _n_spans(n: int) -> int:
    return -(-n // (TILE * SPAN))


def _width(d: int) -> int:
    """Columns of the products of matrices: d features and two lengths, padded to what a matrix unit takes."""
    return max(16, 1 << (d + 1).bit_length())


def _unit(largest: float, highest: int) -> float:
    """The power of two that makes the largest entry at most LARGEST, and more than half of it."""
    if largest == 0:
        return 1.0
    power = math.floor(math.log2(LARGEST) - math.log2(largest))
    return float(2.0 ** min(max(power, -highest), highest))


def _slack(width: int) -> float:
    """Part of |x|^2 + |y|^2 that a bound may be wrong by.

    A matrix unit may cut off a unit in the last place of its largest partial sum with every product that it adds. No
    partial sum is larger than |y|^2 + 2 |x| |y| <= |x|^2 + 2 |y|^2. Lengths and what is done with bounds take 64 more.
    """
    return (2 * width + 64) * float(torch.finfo(torch.float32).eps)


def _n_stages(width: int) -> int:
    """Tiles that are on their way at a time."""
    return {256: 1, 128: 2}.get(width, 3)


def _lengths(A: Tensor) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(A, dim=1)
    return found


def _up(lengths: Tensor) -> Tensor:
    """Half-precision numbers that are not smaller."""
    return (lengths * (1.0 + 2.0**-10) + 2.0**-24).to(torch.float16)


def _by_thread(A: Tensor) -> Tensor:
    """Rows (4 groups of 32 each tile) in the order of the columns of a product of matrices."""
    return A.view(-1, PER_SPAN, GROUP // 2, 2, A.shape[1]).permute(0, 2, 1, 3, 4).contiguous()


if triton is not None:  # pragma: no cover - compiled, not traced

    @triton.jit(do_not_specialize=["start", "stop"])
    def _bounds_kernel(  # type: ignore[no-untyped-def]
        queries, points, norms, minima, start, stop, n_columns, n_groups,
        WIDTH: tl.constexpr, TILE_: tl.constexpr, SPAN_: tl.constexpr, GROUPS: tl.constexpr,
    ):  # fmt: skip
        """A program takes 128 queries past the tiles of a span."""
        column = tl.program_id(0) * TILE_ + tl.arange(0, TILE_)
        inside = column < stop - start
        feature = tl.arange(0, WIDTH)
        row = tl.where(inside, start + column, start).to(tl.int64)
        x = tl.load(queries + row[:, None] * WIDTH + feature[None, :])
        span, thread = tl.program_id(1), tl.arange(0, GROUPS)
        family = span * GROUPS + thread
        out = minima + family[None, :].to(tl.int64) * SPAN_ * n_columns + column[:, None]
        index = span.to(tl.int64) * SPAN_ * TILE_ + tl.arange(0, TILE_)
        best = tl.full((TILE_, GROUPS), float("inf"), tl.float32)
        for _ in range(SPAN_):
            y = tl.load(points + index[:, None] * WIDTH + feature[None, :])
            norm = tl.load(norms + index)
            bounds = norm[None, :] + tl.dot(x, tl.trans(y))
            parts = tl.reshape(bounds, (TILE_, TILE_ // (2 * GROUPS), GROUPS, 2))
            least = tl.min(tl.min(parts, axis=3), axis=1)
            tl.store(out, least, mask=inside[:, None])
            best = tl.minimum(best, least)
            out += n_columns
            index += TILE_
        families = minima + (n_groups + family)[None, :].to(tl.int64) * n_columns + column[:, None]
        tl.store(families, best, mask=inside[:, None])

    @triton.jit(do_not_specialize=["start"])
    def _measure_kernel(  # type: ignore[no-untyped-def]
        X, minima, indices, squared, bound, start, n_columns, n_groups, n_families, n, d, k,
        FAMILIES: tl.constexpr, CHOSEN: tl.constexpr, WIDTH: tl.constexpr, NEAREST: tl.constexpr,
        GROUP_: tl.constexpr, SPAN_: tl.constexpr, GROUPS: tl.constexpr, WIDE: tl.constexpr,
    ):  # fmt: skip
        """A program finds the neighbours of one row."""
        here, slot = minima + tl.program_id(0), tl.arange(0, CHOSEN)
        row = start + tl.program_id(0)
        # Families with the smallest minima
        number = tl.arange(0, FAMILIES)
        place = here + (n_groups + number).to(tl.int64) * n_columns
        value = tl.load(place, mask=number < n_families, other=float("inf"))
        families = tl.zeros((CHOSEN,), tl.int32)
        for i in range(CHOSEN):
            _, least = tl.min(value, axis=0, return_indices=True)
            families = tl.where(slot == i, least, families)
            value = tl.where(number == least, float("inf"), value)
        passed = tl.min(value, axis=0)
        # Groups with the smallest minima in these
        group = tl.reshape(families[:, None] * SPAN_ + tl.arange(0, SPAN_)[None, :], (CHOSEN * SPAN_,))
        value = tl.load(here + group.to(tl.int64) * n_columns)
        number = tl.arange(0, CHOSEN * SPAN_)
        groups = tl.zeros((CHOSEN,), tl.int32)
        for i in range(CHOSEN):
            _, least = tl.min(value, axis=0, return_indices=True)
            family = tl.sum(tl.where(slot == least // SPAN_, families, 0), axis=0)
            groups = tl.where(slot == i, family * SPAN_ + least % SPAN_, groups)
            value = tl.where(number == least, float("inf"), value)
        tl.store(bound + row, tl.minimum(passed, tl.min(value, axis=0)))
        # All rows of these, measured
        feature, member = tl.arange(0, WIDTH), tl.arange(0, GROUP_)
        real = feature < d
        x = tl.load(X + row.to(tl.int64) * d + feature, mask=real, other=0.0)
        family = groups // SPAN_
        first = (family // GROUPS * SPAN_ + groups % SPAN_) * (GROUPS * GROUP_) + family % GROUPS * GROUP_
        distance = tl.full((CHOSEN, GROUP_), float("inf"), x.dtype)
        for i in range(CHOSEN):
            candidate = tl.sum(tl.where(slot == i, first, 0), axis=0) + member
            there = candidate < n
            at = X + candidate[:, None].to(tl.int64) * d + feature[None, :]
            difference = tl.load(at, mask=there[:, None] & real[None, :], other=0.0) - x[None, :]
            measured = tl.sum(difference * difference, axis=1)
            measured = tl.where(there & (candidate != row), measured, float("inf"))
            distance = tl.where((slot == i)[:, None], measured[None, :], distance)
        # The nearest of them
        distance = tl.reshape(distance, (CHOSEN * GROUP_,))
        number = tl.arange(0, CHOSEN * GROUP_)
        rank = tl.arange(0, NEAREST)
        nearest, near = tl.zeros((NEAREST,), tl.int32), tl.zeros((NEAREST,), x.dtype)
        for i in range(k):
            smallest, least = tl.min(distance, axis=0, return_indices=True)
            chosen = tl.sum(tl.where(slot == least // GROUP_, first, 0), axis=0) + least % GROUP_
            nearest = tl.where(rank == i, chosen, nearest)
            near = tl.where(rank == i, smallest, near)
            distance = tl.where(number == least, float("inf"), distance)
        target = row.to(tl.int64) * k + rank
        tl.store(indices + target, nearest.to(tl.int64), mask=rank < k)
        tl.store(squared + target, near, mask=rank < k)
