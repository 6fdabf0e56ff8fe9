"""Figures. Each function takes plain arrays and gives a matplotlib figure or image bytes; nothing here computes scores.

The manifold picture: three-label data on a surface, each point coloured by its distribution, (d_1, d_2, d_3) read as
(red, green, blue). Every panel uses the same stretch of contrast, fixed by the truth, so equal colours mean equal
degrees: a stretch of its own for each panel, as is common, would make a washed-out answer look right.
"""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contone.exceptions import ArgumentError
from contone.pages.svg import Axes, Figure
from contone.runtime.files import check_target, replacing
from contone.typing import Matrix

FORMATS = (".svg", ".png", ".pdf")

AZIMUTH, ELEVATION, HEIGHT = -60.0, 45.0, 0.7
"""Where the eye stands, in degrees, and by how much the third coordinate is flattened."""


def tones(D: Matrix, truth: Matrix) -> Matrix:
    """Degrees D (n, 3) as colours in [0, 1]: linear, with the middle 98 % of the truth's degrees as the full range."""
    low, high = np.percentile(truth, [1, 99])
    return np.asarray(np.clip((D - low) / (high - low), 0.0, 1.0))


def manifold_image(X: Matrix, colours: Matrix, *, pixels: int = 480) -> bytes:
    """One surface as a PNG on a transparent ground, for pages that set the words around it themselves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.0, 2.4), facecolor="none")
    draw_manifold(figure.add_axes((0, 0, 1, 1)), X, colours)
    return _bytes(figure, dpi=pixels / 3.0, transparent=True)


def draw_manifold(axis: Axes, X: Matrix, colours: Matrix) -> None:
    """Draw the surface through the points X (n, 3), seen from a corner without perspective, far faces first."""
    from matplotlib.collections import PolyCollection

    right, up, towards = _eye(AZIMUTH, ELEVATION)
    faces = triangles(X)
    corners = (X * [1.0, 1.0, HEIGHT])[faces]
    order = np.argsort((corners @ towards).mean(axis=1))
    flat = np.stack([corners @ right, corners @ up], axis=-1)[order]
    shades = (colours[faces].mean(axis=1) * _mesh(X, faces)[:, None])[order]
    # Edges in the colour of the face close the hairlines between faces. The surface is kept as pixels in vector files:
    # thousands of faces a panel would make them megabytes large.
    drawn = PolyCollection(list(flat), facecolors=shades, edgecolors=shades, linewidths=0.8, rasterized=True)
    axis.add_collection(drawn)
    axis.set_xlim(flat[..., 0].min(), flat[..., 0].max())
    axis.set_ylim(flat[..., 1].min(), flat[..., 1].max())
    axis.set_aspect("equal")
    axis.axis("off")


def check_path(path: Path) -> None:
    """Refuse, before any work, a path that no figure can be written to."""
    if path.suffix.lower() not in FORMATS:
        raise ArgumentError(f"{path} must end in one of {', '.join(FORMATS)}.", "figure")
    check_target(path, overwrite=True)


def save(figure: Figure, path: Path, *, dpi: int = 160) -> None:
    """Write a figure in the format of its suffix, whole or not at all; the same figure gives the same bytes."""
    check_path(path)
    with replacing(path) as temporary:
        temporary.write_bytes(_bytes(figure, dpi=dpi, format=path.suffix[1:].lower()))


def _bytes(figure: Figure, **options: Any) -> bytes:
    from matplotlib import rc_context

    kind = options.setdefault("format", "png")
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "contone"}):
        figure.savefig(buffer, metadata={"Date": None} if kind == "svg" else {"Software": None}, **options)
    return buffer.getvalue()


def triangles(X: Matrix) -> NDArray[np.int32]:
    """Triangles (k, 3) between the points X (n, 3), none over another one when they are seen from above."""
    from scipy.spatial import Delaunay

    return np.asarray(Delaunay(X[:, :2]).simplices)


def _mesh(X: Matrix, faces: NDArray[np.int32]) -> Matrix:
    """A factor for the brightness of each face: of a grid, ten lines each way a little darker, which show the shape.

    Light and shade would show it better but change every colour, and colours are what the picture is read by.
    """
    if len(np.unique(X[:, 0])) * len(np.unique(X[:, 1])) > len(X):
        return np.ones(len(faces))
    low, high = X[:, :2].min(axis=0), X[:, :2].max(axis=0)
    place = 10 * (X[faces, :2].mean(axis=1) - low) / (high - low)
    return np.where((place % 1 < 0.2).any(axis=1), 0.91, 1.0)


def _eye(azimuth: float, elevation: float) -> tuple[Matrix, Matrix, Matrix]:
    """Unit vectors to the right, upwards and towards the eye."""
    a, e = math.radians(azimuth), math.radians(elevation)
    towards = np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])
    right = np.array([-math.sin(a), math.cos(a), 0.0])
    return right, np.cross(towards, right), towards
