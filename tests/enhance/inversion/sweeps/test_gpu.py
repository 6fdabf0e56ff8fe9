"""A sweep as one kernel is the sweep of the sampler; a chain as one kernel has its posterior."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from contone import CumulativeMass, Inversion, Threshold, TopK  # noqa: E402
from contone.backends.torch import TorchBackend  # noqa: E402
from contone.backends.torch.draws import FEW, TensorDraws  # noqa: E402
from contone.enhance.inversion import sampler  # noqa: E402
from contone.enhance.inversion.covariance import FactorCovariance  # noqa: E402
from contone.enhance.inversion.evidence import place_grades  # noqa: E402
from contone.enhance.inversion.posterior import Averages  # noqa: E402
from contone.enhance.inversion.sweeps import Bound, Move, gpu  # noqa: E402
from contone.enhance.inversion.sweeps.reference import ReferenceSweeps  # noqa: E402
from contone.measurements import Order, Region  # noqa: E402
from contone.numerics.truncated import truncated_normal  # noqa: E402

RULES = [CumulativeMass(), CumulativeMass(0.3), TopK(2), Threshold(0.2), Threshold(0.2, at_least_one=False)]
on_gpu = pytest.mark.skipif(
    gpu.triton is None or not torch.cuda.is_available(), reason="no GPU, or torch without Triton"
)


def rows_and_prior(rule, n, q, dtype=torch.float64, seed=0, *, impossible=False):
    """Rows on the GPU under a rule, means (q, n) and a precision (q, q)."""
    rng = np.random.default_rng(seed)
    L = rule.apply(rng.dirichlet(np.ones(q), n)).astype(float)
    if impossible:
        L[: n // 3] = 1.0  # what most rules cannot make
    rows = sampler.Rows(rule, torch.tensor(L, dtype=dtype, device="cuda"))
    A = rng.normal(size=(q, q))
    mean = torch.tensor(0.5 * rng.normal(size=(q, n)), dtype=dtype, device="cuda")
    return rows, mean, np.linalg.inv(A @ A.T / q + 0.3 * np.eye(q))


def test_rules_in_the_words_of_compiled_code():
    class Own(TopK):
        """Somebody else's rule."""

    regions = [rule.region for rule in (*RULES, Order(), Own())]
    assert regions == [
        Region("mass", 0.5),
        Region("mass", 0.3),
        Region("order"),
        Region("bar", 0.2),
        Region("any bar", 0.2),
        Region("order"),
        None,
    ]


def test_tensors_on_the_host_are_swept_by_the_reference():
    assert isinstance(sampler.Rows(TopK(), torch.eye(4)).sweeps, ReferenceSweeps)


@pytest.mark.parametrize("in_factors", [False, True])
def test_numbers_that_rows_share(in_factors):
    """own_j r_j - left_j^T s is the gradient (Sigma^-1 r)_j, with s = right^T r."""
    factors = FactorCovariance(np.array([[1.0], [-0.5], [2.0]]), np.array([0.5, 1.0, 2.0])).precision()
    numbers, width = gpu.shared_numbers(factors if in_factors else factors.dense(), 0.3)
    assert width == 4
    along, scale, own = numbers[:9].reshape(3, 3)
    left, right = numbers[9:33].reshape(2, 3, 4)
    r = np.array([0.3, -1.0, 0.7])
    np.testing.assert_allclose(own * r - left @ (right.T @ r), factors.dense() @ r)
    np.testing.assert_allclose(along, factors.dense().sum(axis=0))
    np.testing.assert_allclose(scale**-2, np.diag(factors.dense()))
    np.testing.assert_allclose(numbers[33:37], right.sum(axis=0))
    total = factors.dense().sum()
    np.testing.assert_allclose(numbers[37:], [total, math.sqrt(total), 0.3])


@pytest.mark.parametrize("upper", [0.0, 1.0, math.inf])
def test_the_outermost_uniform_numbers_give_finite_draws(upper):
    u = torch.tensor([0.0, 1.0 - 2.0**-24], dtype=torch.float32)
    lower = torch.tensor([-200.0, -200.0])
    assert torch.isfinite(truncated_normal(lower, torch.full_like(lower, upper), u)).all()
    assert torch.isfinite(truncated_normal(torch.zeros(2), torch.full_like(lower, math.inf), u)).all()


@on_gpu
@pytest.mark.parametrize(("rule", "q"), [(rule, q) for rule in RULES for q in (3, 8, 90)] + [(RULES[0], 2)])
@pytest.mark.parametrize("in_factors", [False, True])
def test_the_kernel_is_the_sweep(rule, q, in_factors):
    n, rng = 300, np.random.default_rng(1)
    rows, mean, precision = rows_and_prior(rule, n, q, impossible=True)
    if in_factors:
        precision = FactorCovariance(0.5 * rng.normal(size=(q, 5)), rng.random(q) + 0.3).precision()
    assert isinstance(rows.sweeps, gpu.FusedSweeps)
    for k in range(6):
        u, shift, root = (
            torch.tensor(A, device="cuda") for A in (rng.random((q, n)), rng.normal(size=n), rng.random(n) + 0.5)
        )
        move = Move(u, shift, k % 2 == 1, root if k > 3 else None)
        given = (rows.Z, rows.bound, mean, precision, move)
        expected, found = ReferenceSweeps(rule).sweep(*given), rows.sweeps.sweep(*given)
        # Far quantiles magnify rounding, and every label depends on those before it.
        assert float((found - expected).abs().max()) < (1e-6 if q < 20 else 2e-5)
        rows.Z = expected


@on_gpu
def test_known_rows_are_held_as_the_reference_holds_them():
    n, q, rng = 200, 6, np.random.default_rng(0)
    rule, D = CumulativeMass(), rng.dirichlet(np.full(q, 0.5), n)
    D[: n // 2, 0] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    L = torch.tensor(rule.apply(D).astype(float), device="cuda")
    graded = np.flatnonzero(rng.random(n) < 0.5)
    rows = sampler.Rows(rule, L)
    rows.hold(place_grades(graded, D[graded], L))
    mean, precision = torch.zeros((q, n), dtype=torch.float64, device="cuda"), np.eye(q)
    u, shift = (torch.tensor(A, device="cuda") for A in (rng.random((q, n)), rng.normal(size=n)))
    given = (rows.Z, rows.bound, mean, precision, Move(u, shift))
    assert isinstance(rows.sweeps, gpu.FusedSweeps)
    difference = rows.sweeps.sweep(*given) - ReferenceSweeps(rule).sweep(*given)
    assert float(difference.abs().max()) < 1e-6


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rule", [CumulativeMass(), TopK(2), Threshold(0.2)], ids=str)
def test_a_chain_in_one_kernel_has_the_posterior_of_one_sweep_by_sweep(rule, dtype):
    """The same row many times: means over its copies are known to a thousandth, whatever the draws."""
    q, copies = 5, 40_000
    one, mean, precision = rows_and_prior(rule, 8, q, dtype)
    L = one.positive.T.to(dtype).repeat(copies, 1)
    mean, found = mean.repeat(1, copies), []
    for fused in (True, False):
        rows = sampler.Rows(rule, L)
        draws = TensorDraws(np.random.default_rng(3), L)
        averages = Averages(rows.Z, 0, 15)
        if fused:
            assert rows.run(mean, precision, draws, 20, 5, averages)
            assert bool((rule._apply(torch.softmax(rows.Z.T, dim=1)) == (L > 0)).all())
        else:
            for k in range(20):
                rows.sweep(mean, precision, draws, reflect=k % 2 == 1)
                if k >= 5:
                    averages.add(rows.Z)
        answer = averages.posterior(0)
        moments = [
            A.to(torch.float64).view(copies, 8, q) for A in (answer.mean, answer.logit_centre, answer.logit_width)
        ]
        found.append([(A.mean(dim=0), A.std(dim=0) / copies**0.5) for A in moments])
    for (first, error), (second, other) in zip(*found, strict=True):
        assert float(((first - second).abs() / (error**2 + other**2).sqrt().clamp(min=1e-6)).max()) < 5.0


@on_gpu
def test_a_chain_depends_on_the_seed_alone():
    n = FEW // 4 + 1000
    answers = []
    for seed, part in ((0, n), (0, n - 500), (1, n)):
        rows, mean, precision = rows_and_prior(CumulativeMass(), n, 4, torch.float32)
        sums = tuple(torch.zeros((part, 4), device="cuda") for _ in range(3))
        Z, bound = rows.Z[:, :part], Bound(rows.positive[:, :part])
        draws = TensorDraws(np.random.default_rng(seed), rows.Z)
        answers.append(rows.sweeps.run_chain(Z, bound, mean[:, :part], precision, draws, (4, 2), sums))
    assert torch.equal(answers[0][:, : n - 500], answers[1])
    assert not torch.equal(answers[0], answers[2])


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_intervals_of_many_rows_cover(dtype):
    rng = np.random.default_rng(0)
    n, q = 100_000, 6
    X = rng.normal(size=(n, 3))
    Z = 0.5 * X @ rng.normal(size=(3, q)) + 0.6 * rng.normal(size=(n, q))
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    L = CumulativeMass(0.5).apply(D)
    method = Inversion(max_rows=5000, n_sweeps=120, n_burn=40)
    answer = method.fit_enhance(*(torch.tensor(A, dtype=dtype, device="cuda") for A in (X, L)))
    lower, upper = (A.cpu().numpy() for A in method.intervals(level=0.9))
    assert 0.87 < np.mean((lower <= D) & (upper >= D)) < 0.93
    assert np.abs(answer.sum(dim=1).cpu().numpy() - 1).max() < 1e-5
    again = Inversion(max_rows=5000, n_sweeps=120, n_burn=40)
    assert torch.equal(answer, again.fit_enhance(*(torch.tensor(A, dtype=dtype, device="cuda") for A in (X, L))))


def test_few_rows_of_a_gpu_are_fitted_on_the_host_which_says_so(monkeypatch, small):
    """As if these tensors were on a GPU: the answer is NumPy's, as tensors."""
    monkeypatch.setattr(TorchBackend, "host_is_quicker", lambda self, A: True)
    X, L, D = small
    degrees = np.where(np.arange(60)[:, None] < 3, D, np.nan)
    method, expected = (Inversion(n_sweeps=20, n_burn=5, n_samples=2) for _ in range(2))
    answer = method.fit_enhance(torch.tensor(X), torch.tensor(L), degrees=degrees)
    np.testing.assert_allclose(answer.numpy(), expected.fit_enhance(X, L, degrees=degrees), atol=1e-12)
    assert method.solution_.info["computed_on"].startswith("the host")
    assert "computed_on" not in expected.solution_.info
    assert all(isinstance(A, torch.Tensor) for A in (*method.intervals(), method.samples_))


@on_gpu
@pytest.mark.parametrize(("n", "on_host"), [(500, True), (20_000, False)])
def test_few_rows_are_fitted_on_the_host(n, on_host):
    rng = np.random.default_rng(0)
    X, D = torch.tensor(rng.normal(size=(n, 3)), device="cuda"), rng.dirichlet(np.ones(3), n)
    method = Inversion(n_sweeps=20, n_burn=5)
    answer = method.fit_enhance(X, torch.tensor(CumulativeMass().apply(D), device="cuda"))
    assert answer.is_cuda
    assert ("computed_on" in method.solution_.info) == on_host
