"""The quick sweep for NumPy arrays: its normal variables, its intervals, and that it samples the same distribution."""

import numpy as np
import pytest
from scipy import special, stats

from contone.backends.numpy import normal
from contone.enhance.inversion import numpy_sweep
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows
from contone.measurements import CumulativeMass, Order, Others, Threshold, TopK
from contone.numerics.simplex import softmax

RULES = [CumulativeMass(0.5), CumulativeMass(0.8), Threshold(0.2), Threshold(0.4), TopK(2), Order()]


def test_single_precision_is_close_to_scipy():
    x = np.linspace(-12, 12, 4001, dtype=np.float32)
    exact = special.ndtr(x.astype(float))
    np.testing.assert_allclose(normal.ndtr(x)[x < 0], exact[x < 0], rtol=1e-5)
    np.testing.assert_allclose(normal.ndtr(x), exact, atol=1e-6)
    p = np.concatenate([np.geomspace(1e-37, 0.5, 2000), np.linspace(0.5, 0.9999, 2000)]).astype(np.float32)
    np.testing.assert_allclose(normal.ndtri(p), special.ndtri(p.astype(float)), atol=5e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("lower", "upper"), [(-np.inf, np.inf), (-1.0, 0.5), (2.0, np.inf), (-np.inf, -4.0), (5.0, 5.5)]
)
def test_truncated_and_reflected_draws_have_their_distribution(dtype, lower, upper):
    m = 2000
    u = ((np.arange(m) + 0.5) / m).astype(dtype)
    ends = np.repeat(np.array([[lower], [upper]], dtype=dtype), m, axis=1)
    x = normal.truncated_normal(ends, u)
    target = stats.truncnorm(lower, upper)
    # Even quantiles in, even quantiles out, whichever way an interval was mirrored.
    np.testing.assert_allclose(np.sort(target.cdf(x)), u, atol=2e-3)
    y = normal.reflected_normal(ends, x, u)
    np.testing.assert_allclose(target.cdf(x) + target.cdf(y), 1.0, atol=2e-3)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_ends_are_those_of_the_rule(rule):
    rng = np.random.default_rng(0)
    D = softmax(rng.normal(size=(300, 6)))
    L = TopK(2)._apply(D) if isinstance(rule, Order) else rule._apply(D)
    Z = np.log(D)
    for j in (0, 5):
        others = Others.of(Z, L, j)
        own, keep = L[:, j], np.arange(6) != j
        coefficients, mark = numpy_sweep.balance_of(rule, L), numpy_sweep.marks_of(own, float)
        ends = numpy_sweep.ends_of(rule, len(D), float)
        ends(
            (coefficients * D)[:, keep].sum(axis=1),
            np.exp(others.lowest_positive),
            np.exp(others.highest_negative),
            others.n_positive,
            numpy_sweep.Own(coefficients[:, j], mark, numpy_sweep.infinite_where(mark, float)),
        )
        for end, expected in zip((ends.lower, ends.upper), rule.interval(others, own), strict=True):
            with np.errstate(divide="ignore"):
                np.testing.assert_allclose(np.log(np.maximum(end, 0.0)), expected, rtol=1e-9, atol=1e-9)


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
def test_it_samples_the_same_distribution(rule, problem):
    D, precision, copies = problem
    L = rule._apply(D).astype(float)
    mean = np.zeros(D.T.shape)
    answers = []
    for quick in (False, True):
        rows = Rows(rule, L, 0.0, single=quick)
        assert rows.quick
        rows.quick = quick
        averages = Averages(rows.Z, 0, 0, labels_first=quick)
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
    rows = Rows(rule, L, 0.0, single=True)
    assert rows.Z.dtype == np.float32
    for k in range(4):
        rows.sweep(np.zeros((8, len(L))), np.eye(8) / 2.25, rng, reflect=k % 2 == 1)
        assert (rule._apply(softmax(rows.Z.T.astype(float))) == (L > 0)).all()


def test_many_labels_keep_to_their_labels_in_double_and_single_precision():
    rng = np.random.default_rng(3)
    q = 70
    for n in (40, 1300):
        D = softmax(rng.normal(size=(n, q)))
        L = CumulativeMass()._apply(D).astype(float)
        L[0] = 1.0  # no distribution has all labels: the order is all that counts
        rows = Rows(CumulativeMass(), L, 0.0)
        assert rows.quick
        assert rows.n_relaxed == 1
        for k in range(2):
            rows.sweep(np.zeros((q, n)), np.eye(q), rng, reflect=k == 1)
        again = CumulativeMass()._apply(softmax(rows.Z.T.astype(float)))
        assert (again[1:] == (L[1:] > 0)).all()
