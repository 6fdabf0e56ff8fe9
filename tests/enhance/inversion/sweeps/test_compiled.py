"""Compiled sweeps: their elementary functions; draw for draw they give what the reference gives."""

import errno
import os
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
from scipy import special

from contone.enhance.inversion.covariance import FactorPrecision
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows
from contone.enhance.inversion.sweeps import Bound, KnownRows, Move, compiled, elementary
from contone.enhance.inversion.sweeps.compiled import CompiledSweeps
from contone.enhance.inversion.sweeps.reference import ReferenceSweeps
from contone.measurements import CumulativeMass, Region, Threshold, TopK
from contone.numerics.simplex import softmax

RULES = [CumulativeMass(0.5), CumulativeMass(0.8), Threshold(0.2), Threshold(0.2, at_least_one=False), TopK(2)]
N, Q = 300, 6


# Precision; where e^x and Phi stop; errors of exp and log, of Phi beside its value, of its inverse.
PRECISIONS = [(np.float64, -37, 1e-290, 1e-14, 1e-12, 1e-12), (np.float32, -12.9, 1e-37, 3e-7, 1e-5, 3e-6)]


@pytest.mark.parametrize(("dtype", "least", "rarest", "rtol", "rtol_normal", "atol"), PRECISIONS)
def test_elementary_functions(dtype, least, rarest, rtol, rtol_normal, atol):
    def of(function, x):
        found = x.copy()
        function(found)
        assert found.dtype == dtype
        return found

    x = np.concatenate([np.linspace(least, 9, 5001), [-np.inf, np.inf]]).astype(dtype)
    p = np.concatenate([np.geomspace(rarest, 0.5, 4000), np.linspace(0.5, 1 - 1e-9, 1003)]).astype(dtype)
    p = p[p < 1]
    exact_x, exact_p = x.astype(np.float64), p.astype(np.float64)
    np.testing.assert_allclose(of(elementary.exponentials, x[:-2]), np.exp(exact_x[:-2]), rtol=rtol)
    np.testing.assert_allclose(of(elementary.logarithms, p), np.log(exact_p), rtol=rtol, atol=rtol)
    assert of(elementary.logarithms, np.array([np.inf], dtype))[0] == np.inf
    said = of(elementary.probabilities, x)
    np.testing.assert_allclose(said, special.ndtr(exact_x), rtol=rtol_normal, atol=rarest / 8)
    np.testing.assert_allclose(of(elementary.quantiles, p), special.ndtri(exact_p), rtol=rtol_normal, atol=atol)


@pytest.mark.parametrize("away", [3.0, 6.0, 9.5, 12.0, 17.0])
def test_draws_far_out_are_the_same_in_both_precisions(away):
    """Two labels in the order that is not expected, by so many standard deviations of their difference."""
    rng, found, positive = np.random.default_rng(7), [], np.array([[True], [False]]) & np.ones(N, dtype=bool)
    u, mean = rng.random((2, N), dtype=np.float32), np.array([[-away], [away]]) / np.sqrt(2) * np.ones(N)
    for dtype in (np.float64, np.float32):
        Z, shift = np.array([[0.1], [0.0]]) * np.ones((1, N), dtype), np.zeros(N, dtype)
        for reflect in (False, True):
            move = Move(u.astype(dtype), shift, reflect)
            Z = CompiledSweeps(Region("order")).sweep(Z, Bound(positive), mean.astype(dtype), np.eye(2), move)
            Z = Z - Z[1]
        found.append(Z[0])
        assert (Z[0] > 0).all()
    assert np.abs(found[0] - found[1]).max() < 5e-3


def problem(rule, dtype=np.float64, seed=0):
    """Rows, their means and Sigma^-1, in full and as factors; the first row is relaxed."""
    rng = np.random.default_rng(seed)
    shared = 0.4 * rng.normal(size=(5, Q))
    factors = FactorPrecision(1.0 + np.square(shared).sum(axis=0) + rng.random(Q), shared)
    L = rule._apply(softmax(1.5 * rng.normal(size=(N, Q)))).astype(float)
    if not isinstance(rule, TopK):
        L[0] = 1.0
    rows = Rows(rule, L)
    rows.Z = rows.Z.astype(dtype)
    return rows, 0.3 * rng.normal(size=(Q, N)).astype(dtype), factors, rng


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_same_draws_give_the_same_log_weights(rule, dtype):
    rows, mean, factors, rng = problem(rule, dtype)
    roots = np.sqrt(rng.gamma(3.0, 1 / 3.0, N)).astype(dtype)
    Z, differences = rows.Z, []
    for k in range(8):
        u, shift = rng.random((Q, N), dtype=dtype), rng.standard_normal(N, dtype=dtype)
        precision = factors if k % 4 < 2 else factors.dense()
        how = (k % 2 == 1, roots if k > 3 else None)
        found = CompiledSweeps(rule.region).sweep(Z, rows.bound, mean, precision, Move(u, shift, *how))
        assert found.dtype == dtype
        # Draws stay as far from the ends of their intervals as the precision asks for.
        wide = [A.astype(float) for A in (Z, mean, u, shift)]
        expected = ReferenceSweeps(rule).sweep(wide[0], rows.bound, wide[1], precision, Move(*wide[2:], *how))
        differences.append(np.abs(found - expected))
        Z = found
    if dtype == np.float64:
        assert np.max(differences) < 1e-7
    else:  # ends that are near each other have few digits in single precision
        assert np.median(differences) < 1e-5
        assert np.quantile(differences, 0.99) < 1e-2


def test_the_mirror_image_of_what_lies_far_out_is_drawn_afresh():
    rng = np.random.default_rng(6)
    Z, u, shift = rng.normal(size=(Q, N)), rng.random((Q, N)), rng.standard_normal(N)
    Z[0] += 25.0  # further above its mean than Phi can tell from infinity
    given = (Z, Bound(np.ones((Q, N), dtype=bool)), np.zeros((Q, N)), np.eye(Q))
    found = CompiledSweeps(Region("order")).sweep(*given, Move(u, shift, reflect=True))
    # Nothing bounds it: the shift of the row, redrawn, is the centre.
    expected = (Z - Z.max(axis=0)).mean(axis=0) - shift / np.sqrt(Q) + special.ndtri(u[0])
    np.testing.assert_allclose(found[0], expected, atol=1e-9)


@pytest.mark.parametrize("rule", [CumulativeMass(0.5), Threshold(0.3), TopK(2)], ids=str)
def test_graded_rows_stay_and_their_zeros_move_as_in_the_sampler(rule):
    rng = np.random.default_rng(2)
    D = softmax(rng.normal(size=(N, Q)))
    D[:40, 0] = 0.0
    D[:80] = np.round(D[:80] / D[:80].sum(axis=1, keepdims=True), 2)
    D[:80] /= D[:80].sum(axis=1, keepdims=True)
    L = rule._apply(D).astype(float)
    answers = []
    for way in (ReferenceSweeps(rule), CompiledSweeps(rule.region)):
        rows = Rows(rule, L)
        rows.hold(place_grades(np.arange(80), D[:80], L))
        assert rows.sweeps == CompiledSweeps(rule.region)
        rows.sweeps, draws, start = way, np.random.default_rng(3), rows.Z
        for k in range(4):
            rows.sweep(np.zeros((Q, N)), np.eye(Q), draws, reflect=k % 2 == 1)
        answers.append(rows.Z)
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-7)
    still = (D[:80] > 0).T
    centred = answers[1][:, :80] - answers[1][:, :80].max(axis=0) - (start[:, :80] - start[:, :80].max(axis=0))
    np.testing.assert_allclose(centred[still], 0.0, atol=1e-12)
    assert np.ptp(answers[1][0, :40]) > 0.1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_degrees_and_their_logits(dtype):
    Z = (np.random.default_rng(4).normal(size=(Q, N)) * 3.0).astype(dtype)
    Z[0, 0] = 60.0
    averages = Averages(Z, 1, 1)
    averages.add(Z)
    D = softmax(Z.T.astype(float))
    smallest = max(1e-12, np.finfo(dtype).eps)
    logits = np.log(D) - np.log(np.maximum(1.0 - D, smallest))
    rtol, atol = (1e-9, 1e-9) if dtype == np.float64 else (1e-5, 1e-5)
    np.testing.assert_allclose(averages.degrees, D, rtol=rtol, atol=atol)
    np.testing.assert_allclose(averages.samples[0], D, rtol=rtol, atol=atol)
    for found, expected in ((averages.logits, logits), (averages.squares, logits**2)):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    # Paths are for diagnostics: rounding next to 1 may be seen in them.
    np.testing.assert_allclose(averages.paths[0], logits[averages.watched], rtol=max(rtol, 1e-6), atol=atol)


def test_what_is_drawn_does_not_depend_on_pieces_and_tiles(monkeypatch):
    rows, mean, factors, rng = problem(CumulativeMass(0.5))
    move, answers = Move(rng.random((Q, N)), rng.standard_normal(N)), []
    for piece, tile in ((4096, 256), (37, 32)):
        monkeypatch.setattr(compiled, "PIECE_ROWS", piece)
        monkeypatch.setattr(compiled, "tile_rows", lambda q, tile=tile: tile)
        bound = Bound(rows.positive)
        answers.append(CompiledSweeps(rows.rule.region).sweep(rows.Z, bound, mean, factors, move))
    np.testing.assert_allclose(*answers, rtol=0, atol=1e-12)


def test_without_a_place_for_the_cache_all_is_compiled_anew():
    """What has no file of its own has no cache folder that could be written to."""
    made = {}
    exec("def twice(x):\n    return x + x", made)
    twice = elementary.compiled(made["twice"])
    assert twice(1.5) == 3.0
    assert twice.stats.cache_path is None


@pytest.mark.parametrize("fault", ["full when saved", "unreadable", "empty", "flipped", "flipped index", "left over"])
def test_a_disk_that_fails_costs_another_compilation_and_not_the_answer(tmp_path, monkeypatch, fault):
    from numba.core import caching

    source = (
        "from contone.enhance.inversion.sweeps.elementary import compiled\n@compiled\ndef twice(x):\n    return x + x\n"
    )
    (tmp_path / "made.py").write_text(source)

    def twice():
        spec = spec_from_file_location("made", tmp_path / "made.py")
        made = module_from_spec(spec)
        spec.loader.exec_module(made)
        return made.twice

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if fault == "full when saved":
        monkeypatch.setattr(caching.IndexDataCacheFile, "save", fail)
    else:
        assert twice()(1.5) == 3.0
        again = twice()
        assert again(1.5) == 3.0
        assert sum(again.stats.cache_hits.values()) == 1
        (kept,) = tmp_path.rglob("*.nbi" if fault == "flipped index" else "*.nbc")
        content = bytearray(kept.read_bytes())
        for place in range(100, len(content), 97):
            content[place] ^= 1
        if fault == "left over":  # by the version before, which a kill between index and loops leaves in place
            content = kept.read_bytes()
            (tmp_path / "made.py").write_text(source.replace("x + x", "2 * x + 0"))
            elementary._sources.cache_clear()
            assert twice()(1.5) == 3.0
        # Empty, as a machine leaves a file behind that loses its power; or with bits that a disk has flipped.
        kept.write_bytes(b"" if fault == "empty" else content)
    if fault == "unreadable":
        monkeypatch.setattr(caching.IndexDataCacheFile, "load", fail)
    made = twice()
    assert made(1.5) == 3.0
    assert not made.stats.cache_hits


def test_a_function_is_compiled_again_where_another_file_of_its_folder_changed(tmp_path):
    """Functions of other files are compiled into it."""
    stamps = []
    for text in ("@compiled\n", "@compiled\n", "# @compiled\n"):
        if not stamps or text != "@compiled\n":
            (tmp_path / "inner.py").write_text(text)
        (tmp_path / "other.py").write_text("#" * len(stamps))
        stamps.append(elementary._sources.__wrapped__(tmp_path))
    assert stamps[0] == stamps[1] != stamps[2]


def test_known_rows_are_said_to_be_known():
    known = KnownRows(np.zeros(N, dtype=bool), np.zeros((Q, N), dtype=bool), np.zeros(N))
    rows, mean, factors, rng = problem(TopK(2))
    move = Move(rng.random((Q, N)), rng.standard_normal(N))
    none, all_ = (
        rows.sweeps.sweep(rows.Z, Bound(rows.positive, known=k), mean, factors, move)
        for k in (known, known._replace(rows=np.ones(N, dtype=bool)))
    )
    assert not np.allclose(none, rows.Z - rows.Z.max(axis=0))
    np.testing.assert_array_equal(all_, rows.Z - rows.Z.max(axis=0))
