"""The manifold picture: colours mean degrees, the nearer face wins, files are whole and repeatable."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from scipy.spatial import ConvexHull

from contone import datasets
from contone.pages.figures import _eye, _mesh, draw_manifold, manifold_image, save, tones, triangles
from contone.pages.svg import bare, canvas


@pytest.fixture(scope="module")
def data():
    return datasets.artificial()


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA")).astype(int)


def test_tones_are_linear_in_the_degrees_and_shared_by_all_panels(data):
    D = data.D
    low, high = np.percentile(D, [1, 99])
    inside = np.array([[low, (low + high) / 2, high]])
    np.testing.assert_allclose(tones(inside, D), [[0.0, 0.5, 1.0]], atol=1e-12)
    uniform = tones(np.full((1, 3), 1 / 3), D)
    assert np.ptp(uniform) == 0  # the uniform distribution is grey
    assert tones(np.eye(3), D).tolist() == np.eye(3).tolist()  # certainty is a pure colour
    assert 0 <= tones(D, D).min() < tones(D, D).max() <= 1


def test_the_eye_sees_without_distortion():
    frame = np.stack(_eye(-60.0, 45.0))
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    assert _eye(0.0, 90.0)[2] == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("kept", [2601, 300], ids=["a grid", "a sample of it"])
def test_faces_cover_the_plane_once(data, kept):
    """The areas of the triangles sum to that of the points' hull, and no centre lies in two of them."""
    X = data.X[np.random.default_rng(0).permutation(len(data.X))[:kept]]
    faces = triangles(X)
    a, b, c = (X[faces[:, k], :2] for k in range(3))
    areas = 0.5 * np.abs(np.linalg.det(np.stack([b - a, c - a], axis=1)))
    assert areas.sum() == pytest.approx(ConvexHull(X[:, :2]).volume)
    assert set(faces.ravel()) == set(range(kept))
    centres = X[faces, :2].mean(axis=1)
    for k in np.random.default_rng(1).integers(len(faces), size=20):  # no other face holds the centre of this one
        sides = np.stack(
            [np.linalg.det(np.stack([q - p, centres[k] - p], axis=1)) for p, q in ((a, b), (b, c), (c, a))]
        )
        inside = (sides > 1e-12).all(axis=0) | (sides < -1e-12).all(axis=0)
        assert inside.nonzero()[0].tolist() == [k]


def test_a_grey_manifold_is_grey_and_the_ground_is_clear(data):
    shown = pixels(manifold_image(data.X, np.full((len(data.X), 3), 0.5)))
    surface = shown[shown[..., 3] == 255]
    assert 0.2 < len(surface) / shown[..., 0].size < 0.8
    assert (np.ptp(surface[:, :3], axis=1) <= 1).all()
    assert (shown[0, 0] == shown[-1, -1]).all()
    assert shown[0, 0, 3] == 0


def test_a_picture_has_the_width_that_was_asked_for(data):
    image = Image.open(io.BytesIO(manifold_image(data.X[::50], data.D[::50], pixels=150)))
    assert image.size == (150, 120)


def test_ten_lines_each_way_are_darker_wherever_the_grid_lies(data):
    """A fifth of the way each, so that 0.8 x 0.8 of the faces stay as they are; other points have no lines."""
    faces = triangles(data.X)
    mesh = _mesh(data.X, faces)
    assert set(mesh) == {0.91, 1.0}
    assert (mesh == 1.0).mean() == pytest.approx(0.64, abs=0.01)
    moved = _mesh(2.0 * data.X + [4.37, -7.81, 1.0], faces)
    assert (moved == mesh).mean() > 0.99  # but for rounding
    centre = data.X[faces, :2].mean(axis=1)
    first = np.abs(centre + 1.0).min(axis=1) < 0.02  # beside the first line
    assert (mesh[first] == 0.91).all()
    some = data.X[np.random.default_rng(0).permutation(len(data.X))[:300]]
    assert (_mesh(some, triangles(some)) == 1.0).all()


def test_the_surface_fills_its_axes(data):
    axis = Figure().subplots()
    draw_manifold(axis, data.X[::7], tones(data.D, data.D)[::7])
    (drawn,) = axis.collections
    corners = np.concatenate([path.vertices for path in drawn.get_paths()])
    np.testing.assert_allclose(axis.get_xlim(), [corners[:, 0].min(), corners[:, 0].max()])
    np.testing.assert_allclose(axis.get_ylim(), [corners[:, 1].min(), corners[:, 1].max()])


def test_different_degrees_look_different(data):
    truth = pixels(manifold_image(data.X, tones(data.D, data.D)))
    turned = pixels(manifold_image(data.X, tones(data.D[:, [1, 2, 0]], data.D)))
    assert np.abs(truth - turned).mean() > 5
    np.testing.assert_allclose(truth[..., [1, 2, 0]], turned[..., :3], atol=1)  # the colours turn with the labels


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_files_are_repeatable_and_small(data, tmp_path, suffix):
    for name in ("a", "b"):
        figure = Figure(figsize=(3, 3))
        draw_manifold(figure.subplots(), data.X, tones(data.D, data.D))
        save(figure, tmp_path / f"{name}.{suffix}")
    first, second = ((tmp_path / f"{n}.{suffix}").read_bytes() for n in "ab")
    assert first == second
    assert len(first) < 600_000
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a.{suffix}", f"b.{suffix}"]


def test_matplotlib_is_imported_only_when_a_figure_is_drawn_and_pyplot_never(bare_forks):
    code = """
import sys
import contone.experiments.report.make, contone.pages.figures as f, contone.cli.app
assert not any(m in sys.modules for m in ("matplotlib", "polars", "jinja2", "torch", "dask"))
import numpy as np
X = np.random.default_rng(0).normal(size=(9, 3))
f.manifold_image(X, np.zeros((9, 3)))
assert "matplotlib.pyplot" not in sys.modules
"""
    assert bare_forks.run("-c", code).returncode == 0


@pytest.mark.parametrize("sides", [(), ("left",), ("bottom",), ("left", "top", "right"), ("bottom", "left")])
def test_an_axis_without_a_line_has_no_ticks_on_it(sides):
    axis = canvas(2.0, 1.0).subplots()
    usual = axis.xaxis.get_major_ticks()[0].tick1line.get_markersize()
    bare(axis, *sides)
    assert {side for side, line in axis.spines.items() if not line.get_visible()} == set(sides)
    for name, side in (("x", "bottom"), ("y", "left")):
        lengths = {tick.tick1line.get_markersize() for tick in getattr(axis, f"{name}axis").get_major_ticks()}
        assert lengths == {0 if side in sides else usual}


def test_a_surface_fills_its_picture(data):
    """From one edge to the other in its longer direction, in the middle of the other one."""
    seen = pixels(manifold_image(data.X, np.full((len(data.X), 3), 0.5)))[..., 3] > 0
    rows, columns = (np.flatnonzero(seen.any(axis=k)) for k in (1, 0))
    margins = [(places[0], n - 1 - places[-1]) for places, n in ((rows, seen.shape[0]), (columns, seen.shape[1]))]
    assert min(max(pair) for pair in margins) <= 3
    assert all(abs(a - b) <= 3 for a, b in margins)
