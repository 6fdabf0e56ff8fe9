"""Sweeps by the reference and compiled: one distribution, and rows that keep to their labels in both precisions."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from contone import CumulativeMass, Inversion, Threshold, TopK
from contone.enhance.inversion import sampler
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows, choose_sweeps
from contone.enhance.inversion.sweeps.compiled import CompiledSweeps
from contone.enhance.inversion.sweeps.reference import ReferenceSweeps
from contone.measurements import Order
from contone.numerics.simplex import softmax


@pytest.fixture(scope="module")
def problem():
    """A few rows with one mean and covariance, each many times over, so that averages hardly vary."""
    rng = np.random.default_rng(1)
    q, copies = 5, 300
    A = rng.normal(size=(q, q))
    covariance = A @ A.T / q + 0.3 * np.eye(q)
    D = softmax(rng.multivariate_normal(np.zeros(q), covariance, size=4))
    return np.repeat(D, copies, axis=0), np.linalg.inv(covariance), copies


@pytest.mark.parametrize("rule", [CumulativeMass(0.5), Threshold(0.2), TopK(2)], ids=str)
def test_compiled_sweeps_in_single_precision_sample_what_the_reference_samples(rule, problem):
    D, precision, copies = problem
    L = rule._apply(D).astype(float)
    mean = np.zeros(D.T.shape)
    answers = []
    for compiled in (False, True):
        rows = Rows(rule, L, single=compiled)
        assert isinstance(rows.sweeps, CompiledSweeps)
        if not compiled:
            rows.sweeps = ReferenceSweeps(rule)
        averages = Averages(rows.Z, 0, 0)
        rng = np.random.default_rng(2)
        for k in range(40):
            rows.sweep(mean, precision, rng, reflect=k % 2 == 1)
            if k >= 10:
                averages.add(rows.Z)
        assert (rule._apply(softmax(rows.Z.T.astype(float))) == (L > 0)).all()
        found = averages.posterior(0)
        np.testing.assert_allclose(found.mean.sum(axis=1), 1.0, atol=1e-12)
        answers.append([A.reshape(4, copies, -1) for A in (found.mean, found.logit_centre, found.logit_width)])
    assert rows.Z.dtype == np.float32
    for one, other in zip(*answers, strict=True):  # chains of copies are independent: compare with their own scatter
        error = np.sqrt((one.var(axis=1) + other.var(axis=1)) / copies)
        assert (np.abs(one.mean(axis=1) - other.mean(axis=1)) < 4.5 * error + 1e-9).all()


@pytest.mark.parametrize("rule", [CumulativeMass(0.5), CumulativeMass(0.8)], ids=str)
def test_rows_keep_to_their_labels_in_single_precision(rule):
    rng = np.random.default_rng(0)
    L = rule._apply(softmax(1.5 * rng.normal(size=(20000, 8)))).astype(float)
    rows = Rows(rule, L, single=True)
    assert rows.Z.dtype == np.float32
    for k in range(4):
        rows.sweep(np.zeros((8, len(L))), np.eye(8) / 2.25, rng, reflect=k % 2 == 1)
        assert (rule._apply(softmax(rows.Z.T.astype(float))) == (L > 0)).all()


def test_many_labels_keep_to_their_labels_in_double_and_single_precision():
    rng = np.random.default_rng(3)
    q = 70
    for n, dtype in ((40, np.float64), (1300, np.float32)):
        D = softmax(rng.normal(size=(n, q)))
        L = CumulativeMass()._apply(D).astype(float)
        L[0] = 1.0  # no distribution has all labels: the order is all that counts
        rows = Rows(CumulativeMass(), L)
        assert rows.Z.dtype == dtype
        assert rows.n_relaxed == 1
        for k in range(2):
            rows.sweep(np.zeros((q, n)), np.eye(q), rng, reflect=k == 1)
        again = CumulativeMass()._apply(softmax(rows.Z.T.astype(float)))
        assert (again[1:] == (L[1:] > 0)).all()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("many", [True, False])
def test_one_label_per_row_and_a_wide_spread_leave_no_gap(monkeypatch, compiled, many):
    """The digits: means that are tens of standard deviations from what labels allow, in both precisions."""
    if not compiled:
        monkeypatch.setattr(sampler, "choose_sweeps", lambda Z, rule, bound: ReferenceSweeps(rule))
    X, y = load_digits(return_X_y=True)
    L = np.eye(10)[y]
    method = Inversion(n_sweeps=60, n_burn=20).fit(X[::3], L[::3])
    new = slice(None) if many else slice(0, 300)
    assert np.isfinite(method.enhance(X[new], L[new])).all()
    lower, upper = method.intervals(X[new], L[new])
    assert np.isfinite(lower).all()
    assert (lower <= upper).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rule", [CumulativeMass(0.5), CumulativeMass(0.9), Threshold(0.2), TopK()], ids=str)
def test_no_mean_and_no_precision_drives_a_sweep_out_of_floating_point(rule):
    rng, n = np.random.default_rng(0), 100
    for q in (2, 5, 8) * 4:
        L = rule._apply(softmax(3.0 * rng.normal(size=(n, q)))).astype(float)
        mean = 10 ** rng.uniform(-2, 3) * rng.normal(size=(q, n))
        A = rng.normal(size=(q, q))
        precision = 10 ** rng.uniform(-6, 6) * (A @ A.T + 1e-3 * np.eye(q))
        for sweeps in (ReferenceSweeps(rule), CompiledSweeps(rule.region)):
            for dtype in (np.float64, np.float32):
                rows = Rows(rule, L)
                rows.sweeps, rows.Z = sweeps, rows.Z.astype(dtype)
                for k in range(6):
                    rows.sweep(mean.astype(dtype), precision.astype(dtype), rng, reflect=k % 2 == 1)
                    assert np.isfinite(rows.Z).all()


def test_somebody_elses_rule_goes_by_the_reference():
    class Own(TopK):
        """Another rule than the one it is made from."""

    Z = np.zeros((3, 4))
    assert isinstance(choose_sweeps(Z, TopK(), Rows(TopK(), np.eye(3)).bound), CompiledSweeps)
    for rule, L in (
        (Own(), np.eye(3)),
        (CumulativeMass(0.0), np.eye(3)),
        (Order(), np.array([[2.0, 1, 0], [0, 1, 2]])),
    ):
        assert isinstance(Rows(rule, L).sweeps, ReferenceSweeps)


@pytest.mark.parametrize("gaps", [False, True])
def test_rows_that_the_rule_cannot_have_made_keep_the_order_of_what_was_asked(gaps):
    L = np.tile([1.0, 1.0, 1.0, 1.0, 0.0], (50, 1))  # more than half of the weight takes fewer labels
    if gaps:
        L[:, 1] = np.nan
        L[:, 0] = 1.0
    rows, rng = Rows(Threshold(0.45), L), np.random.default_rng(0)
    assert rows.n_relaxed == 50
    for k in range(6):
        rows.sweep(np.zeros((5, 50)), np.eye(5), rng, reflect=k % 2 == 1)
        marked = rows.Z[[0, 2, 3]] if gaps else rows.Z[:4]
        assert (marked.min(axis=0) > rows.Z[4]).all()
    assert np.ptp(rows.Z[1] - rows.Z[4]) > 1.0
