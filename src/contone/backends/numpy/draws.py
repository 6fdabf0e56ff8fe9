"""Random numbers that belong to rows: row i draws the same ones whatever block, order or machine it is computed in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

TILE = 1024
"""Rows that share a generator; a block that begins or ends within a tile draws for all of it and keeps its part."""


class RowStream:
    """Draws for the rows start to stop of a data set; shapes end with the number of these rows.

    Parameters
    ----------
    seed : int
        Of the whole data set.
    start, stop : int
        Global numbers of the rows.
    *more : int
        Numbers that tell this stream from others of the same rows.
    """

    def __init__(self, seed: int, start: int, stop: int, *more: int) -> None:
        self._key = (seed, start, stop, *more)
        tiles = range(start // TILE, -(-stop // TILE))
        self._generators = [np.random.default_rng([seed, tile, *more]) for tile in tiles]
        self._part = slice(start - tiles.start * TILE, stop - tiles.start * TILE)

    @cached_property
    def aside(self) -> RowStream:
        """Another stream for the same rows, for draws that only some blocks need."""
        return RowStream(*self._key, 1)

    def random(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Uniform draws in [0, 1)."""
        return self._drawn([g.random for g in self._generators], shape)

    def standard_normal(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Standard normal draws."""
        return self._drawn([g.standard_normal for g in self._generators], shape)

    def _drawn(self, draws: list[Callable[..., np.ndarray]], shape: int | tuple[int, ...]) -> np.ndarray:
        leading = shape[:-1] if isinstance(shape, tuple) else ()
        tiles = [draw((*leading, TILE)) for draw in draws]
        return np.ascontiguousarray(np.concatenate(tiles, axis=-1)[..., self._part])
