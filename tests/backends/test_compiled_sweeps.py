"""Compiled sweeps: their elementary functions; draw for draw they give what `numpy_sweep` and `sampler` give."""

import errno
import os
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
from scipy import special

from contone import Inversion
from contone.backends.numpy import sweeps
from contone.backends.protocols import KnownRows, Region
from contone.enhance.inversion import numpy_sweep
from contone.enhance.inversion.covariance import FactorPrecision
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows
from contone.measurements import CumulativeMass, Threshold, TopK
from contone.numerics.simplex import softmax

pytest.importorskip("numba")

RULES = [CumulativeMass(0.5), CumulativeMass(0.8), Threshold(0.2), Threshold(0.2, at_least_one=False), TopK(2)]
N, Q = 300, 6


def test_elementary_functions():
    from contone.backends.numpy import elementary

    def of(function, x):
        found = x.copy()
        function(found)
        return found

    x = np.concatenate([np.linspace(-37, 9, 5001), [-np.inf, np.inf]])
    p = np.concatenate([np.geomspace(1e-290, 0.5, 4000), np.linspace(0.5, 1 - 1e-9, 1003)])
    np.testing.assert_allclose(of(elementary.exponentials, x[:-2]), np.exp(x[:-2]), rtol=1e-14)
    np.testing.assert_allclose(of(elementary.logarithms, p), np.log(p), rtol=1e-14, atol=1e-15)
    assert of(elementary.logarithms, np.array([np.inf]))[0] == np.inf
    np.testing.assert_allclose(of(elementary.probabilities, x), special.ndtr(x), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(of(elementary.quantiles, p), special.ndtri(p), rtol=1e-12, atol=1e-12)


def problem(rule, dtype=np.float64, seed=0):
    """Rows, their means and Sigma^-1, in full and as factors; the first row is relaxed."""
    rng = np.random.default_rng(seed)
    shared = 0.4 * rng.normal(size=(5, Q))
    factors = FactorPrecision(1.0 + np.square(shared).sum(axis=0) + rng.random(Q), shared)
    L = rule._apply(softmax(1.5 * rng.normal(size=(N, Q)))).astype(float)
    if not isinstance(rule, TopK):
        L[0] = 1.0
    rows = Rows(rule, L, 0.0)
    rows.Z = rows.Z.astype(dtype)
    return rows, 0.3 * rng.normal(size=(Q, N)).astype(dtype), factors, rng


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_same_draws_give_the_same_log_weights(rule, dtype):
    rows, mean, factors, rng = problem(rule, dtype)
    compiled = sweeps.CompiledSweeps(rule.region)
    relaxed = rows.relaxed if rows.n_relaxed else None
    roots = np.sqrt(rng.gamma(3.0, 1 / 3.0, N)).astype(dtype)
    Z = rows.Z
    differences = []
    for k in range(8):
        u, shift = rng.random((Q, N), dtype=dtype), rng.standard_normal(N, dtype=dtype)
        precision = factors if k % 4 < 2 else factors.dense()
        how = {"reflect": k % 2 == 1, "root_weights": roots if k > 3 else None}
        found = compiled.sweep(Z, rows.positive, relaxed, mean, precision, u, shift, **how)
        Z = numpy_sweep.sweep(Z, rows.positive, relaxed, mean, precision, rule, u, shift, **how)
        assert found.dtype == dtype
        differences.append(np.abs(found - Z))
    if dtype == np.float64:
        assert np.max(differences) < 1e-7
    else:  # ends that are near each other have few digits in single precision
        assert np.median(differences) < 2e-6
        assert np.quantile(differences, 0.99) < 1e-3


def test_the_mirror_image_of_what_lies_far_out_is_drawn_afresh():
    rng = np.random.default_rng(6)
    Z, u, shift = rng.normal(size=(Q, N)), rng.random((Q, N)), rng.standard_normal(N)
    Z[0] += 25.0  # further above its mean than Phi can tell from infinity
    given = (Z, np.ones((Q, N), dtype=bool), None, np.zeros((Q, N)), np.eye(Q))
    found = sweeps.CompiledSweeps(Region("order")).sweep(*given, u, shift, reflect=True, root_weights=None)
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
    for compiled in (None, sweeps.CompiledSweeps(rule.region)):
        rows = Rows(rule, L, 0.0, place_grades(np.arange(80), D[:80], L))
        assert rows.fused is None
        rows.fused, draws, start = compiled, np.random.default_rng(3), rows.Z
        for k in range(4):
            rows.sweep(np.zeros((Q, N)), np.eye(Q), draws, reflect=k % 2 == 1)
        answers.append(rows.Z)
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-7)
    still = (D[:80] > 0).T
    centred = answers[1][:, :80] - answers[1][:, :80].max(axis=0) - (start[:, :80] - start[:, :80].max(axis=0))
    np.testing.assert_allclose(centred[still], 0.0, atol=1e-12)
    assert np.ptp(answers[1][0, :40]) > 0.1


def test_sums_are_those_of_the_averages():
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(Q, N)) * 3.0
    Z[0, 0] = 60.0
    compiled = sweeps.CompiledSweeps(Region("order"))
    for A in (Z, Z.astype(np.float32)):
        expected, found = (Averages(A, 1, 1, labels_first=True, fused=fused) for fused in (None, compiled))
        expected.add(A)
        found.add(A)
        rtol, atol = (1e-12, 1e-12) if A is Z else (1e-4, 1e-5)
        for name in ("degrees", "logits", "squares", "paths", "samples"):
            one, other = (np.asarray(getattr(a, name)) for a in (expected, found))
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=name)


def test_what_is_drawn_does_not_depend_on_pieces_and_tiles(monkeypatch):
    rows, mean, factors, rng = problem(CumulativeMass(0.5))
    u, shift = rng.random((Q, N)), rng.standard_normal(N)
    compiled, answers = sweeps.CompiledSweeps(rows.rule.region), []
    for piece, tile in ((4096, 256), (37, 32)):
        monkeypatch.setattr(sweeps, "PIECE_ROWS", piece)
        monkeypatch.setattr(sweeps, "tile_rows", lambda q, tile=tile: tile)
        how = {"reflect": False, "root_weights": None}
        answers.append(compiled.sweep(rows.Z, rows.positive, None, mean, factors, u, shift, **how))
    np.testing.assert_allclose(*answers, rtol=0, atol=1e-12)


def test_a_fit_agrees_with_that_of_numpy(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 3))
    D = softmax(X @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(80, 5)))
    answers = []
    for least in (sweeps.LEAST_WORK, 0):
        monkeypatch.setattr(sweeps, "LEAST_WORK", least)
        method = Inversion(n_sweeps=40, n_burn=15, random_state=0)
        answers.append(method.fit_enhance(X, CumulativeMass()._apply(D).astype(int)))
    assert not np.array_equal(*answers)  # they went different ways
    np.testing.assert_allclose(*answers, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_compiled_ahead_is_what_a_fit_uses(dtype):
    from contone.backends.numpy import kernels

    sweeps.compile_loops()
    known = [*kernels.sweep.signatures, *kernels.add_draw.signatures]
    rows, mean, factors, rng = problem(Threshold(0.2), dtype)
    compiled = sweeps.CompiledSweeps(rows.rule.region)
    draws = rng.random((Q, N), dtype=dtype), rng.standard_normal(N, dtype=dtype)
    compiled.sweep(rows.Z, rows.positive, rows.relaxed, mean, factors, *draws, reflect=True, root_weights=mean[0])
    Averages(rows.Z, 1, 1, labels_first=True, fused=compiled).add(rows.Z)
    assert [*kernels.sweep.signatures, *kernels.add_draw.signatures] == known


def test_without_a_place_for_the_cache_all_is_compiled_anew():
    """What has no file of its own has no cache folder that could be written to."""
    from contone.backends.numpy import elementary

    made = {}
    exec("def twice(x):\n    return x + x", made)
    twice = elementary.compiled(made["twice"])
    assert twice(1.5) == 3.0
    assert twice.stats.cache_path is None


@pytest.mark.parametrize("fault", ["full when saved", "unreadable", "damaged"])
def test_a_disk_that_fails_costs_another_compilation_and_not_the_answer(tmp_path, monkeypatch, fault):
    from numba.core import caching

    (tmp_path / "made.py").write_text(
        "from contone.backends.numpy.elementary import compiled\n@compiled\ndef twice(x):\n    return x + x\n"
    )

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
        (kept,) = tmp_path.rglob("*.nbc")
        kept.write_bytes(b"")  # as a machine leaves a file behind that loses its power
    if fault == "unreadable":
        monkeypatch.setattr(caching.IndexDataCacheFile, "load", fail)
    assert twice()(1.5) == 3.0


def test_small_work_does_not_load_numba(monkeypatch):
    monkeypatch.setattr(sweeps, "is_installed", lambda: pytest.fail("asked for"))
    assert not sweeps.can_sweep(np.zeros((5, 100)), Region("order"), 200)
    monkeypatch.setattr(sweeps, "is_installed", lambda: False)
    assert not sweeps.can_sweep(np.zeros((50, 10000)), Region("order"), 200)
    monkeypatch.setattr(sweeps, "is_installed", lambda: True)
    assert sweeps.can_sweep(np.zeros((50, 10000)), Region("order"), 200)
    assert not sweeps.can_sweep(np.zeros((50, 10000)), Region("mass", 0.0), 200)


def test_known_rows_are_said_to_be_known():
    known = KnownRows(np.zeros(N, dtype=bool), np.zeros((Q, N), dtype=bool), np.zeros(N))
    rows, mean, factors, rng = problem(TopK(2))
    u, shift = rng.random((Q, N)), rng.standard_normal(N)
    compiled, how = sweeps.CompiledSweeps(rows.rule.region), {"reflect": False, "root_weights": None}
    none, all_ = (
        compiled.sweep(rows.Z, rows.positive, None, mean, factors, u, shift, **how, known=k)
        for k in (known, known._replace(rows=np.ones(N, dtype=bool)))
    )
    assert not np.allclose(none, rows.Z - rows.Z.max(axis=0))
    np.testing.assert_array_equal(all_, rows.Z - rows.Z.max(axis=0))
