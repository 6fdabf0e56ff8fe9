"""ConLE: the contrast in closed form and its invariances, gradients, where training ends."""

from __future__ import annotations

import numpy as np
import pytest

from contone import ConLE, Temperature
from contone.enhance import conle

torch = pytest.importorskip("torch")


def short(**settings):
    return ConLE(**{"epochs": 3, "n_hidden": 8, "n_code": 5, **settings})


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


# --------------------------------------------------------------------------------------------------------- the contrast


@pytest.mark.parametrize("n", [2, 5, 30])
def test_equal_codes_are_told_apart_by_chance(n):
    Z = torch.ones(n, 4, dtype=torch.float64)
    assert float(conle.contrast(Z, Z, 0.5)) == pytest.approx(np.log(2 * n - 1))


def test_the_contrast_is_its_formula():
    Z, Q, tau = random(6, 3), random(6, 3, seed=1), 0.7
    z, q = (A / A.norm(dim=1, keepdim=True) for A in (Z, Q))
    expected = 0.0
    for i in range(6):
        own = sum(float(torch.exp(z[i] @ z[k] / tau)) for k in range(6) if k != i)
        other = sum(float(torch.exp(z[i] @ q[k] / tau)) for k in range(6))
        expected -= np.log(float(torch.exp(z[i] @ q[i] / tau)) / (own + other)) / 6
    assert float(conle.contrast(Z, Q, tau)) == pytest.approx(expected)


def test_the_length_of_a_code_does_not_matter():
    Z, Q = random(6, 3), random(6, 3, seed=1)
    lengths = torch.logspace(-3, 3, 6, dtype=torch.float64)[:, None]
    expected = float(conle.contrast(Z, Q, 0.5))
    assert float(conle.contrast(lengths * Z, Q / lengths, 0.5)) == pytest.approx(expected)


def test_a_code_of_zeros_has_a_finite_gradient():
    Z = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(conle.contrast(Z, random(4, 3), 0.5), Z)
    assert bool(gradient.isfinite().all())


def test_agreeing_views_are_better_than_shuffled_ones():
    Z = random(20, 8)
    assert float(conle.contrast(Z, Z, 0.5)) < float(conle.contrast(Z, Z.roll(1, 0), 0.5))


# ------------------------------------------------------------------------------------------------------------ the order


def test_the_order_costs_nothing_where_it_holds():
    L = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    held = torch.tensor([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1], [0.0, 5.0, -5.0]])
    assert float(conle.order_loss(held, L, 0.05)) == 0.0
    broken = torch.tensor([[0.1, 0.8, 0.1], [0.3, 0.2, 0.18], [0.0, 5.0, -5.0]])
    assert float(conle.order_loss(broken, L, 0.05)) == pytest.approx((0.75 + 0.03) / 3, rel=1e-5)


def test_a_row_with_all_labels_has_a_finite_gradient():
    Y = random(3, 2).requires_grad_(True)
    (gradient,) = torch.autograd.grad(conle.order_loss(Y, torch.ones(3, 2), 0.05), Y)
    assert bool((gradient == 0).all())


# --------------------------------------------------------------------------------------------------------- the networks


def test_gradient():
    rng = np.random.default_rng(0)
    sizes = conle.network_sizes(3, 3, 4, 5)
    X, L = torch.from_numpy(rng.normal(size=(6, 3))), torch.from_numpy(rng.integers(0, 2, (6, 3)).astype(float))
    L[:, 0] = 1.0
    w = torch.from_numpy(conle.networks.initial_parameters(sizes, rng, start="inputs")).requires_grad_(True)
    terms = (0.7, 0.3, 0.5, 0.2)
    assert torch.autograd.gradcheck(
        lambda w: conle.objective(conle.networks.unpack(w, sizes), X, L, *terms), (w,), fast_mode=True
    )


def test_trained_to_the_end_the_labels_come_back(small):
    X, L, _ = small
    settings = {"alpha": 1e3, "epochs": 300, "learning_rate": 0.01, "n_hidden": 24, "n_code": 8, "batch_size": None}
    linear = ConLE(**settings).fit(X, L)
    np.testing.assert_allclose(linear.scores_, L, atol=0.1)
    np.testing.assert_allclose(linear.label_distributions_, Temperature(c=1.0).fit_enhance(X, L), atol=0.05)


def test_training_lowers_the_objective(small):
    X, L, _ = small
    values = [short(epochs=e, batch_size=None).fit(X, L).solution_.objective for e in (1, 20, 100)]
    assert values == sorted(values, reverse=True)


def test_new_rows_with_labels(small):
    X, L, _ = small
    method = short().fit(X, L)
    np.testing.assert_allclose(method.enhance(X[:7], L[:7]), method.label_distributions_[:7], atol=1e-12)
    assert not hasattr(method, "predict")


def test_the_unit_of_the_features_does_not_matter(small):
    X, L, _ = small
    units = np.array([1e-3, 1.0, 10.0, 1e3, 1e6])
    np.testing.assert_allclose(short().fit_enhance(X * units + 5.0, L), short().fit_enhance(X, L), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_are_computed_where_they_lie(small, dtype):
    X, L, _ = small
    D = short().fit_enhance(torch.tensor(X, dtype=dtype), torch.tensor(L, dtype=dtype))
    assert D.dtype == dtype
    np.testing.assert_allclose(D.numpy(), short().fit_enhance(X, L), atol=1e-4 if dtype == torch.float32 else 1e-9)


def test_memory_grows_with_the_square_only_where_all_rows_are_one_batch():
    a_million = 1_000_000
    assert ConLE()._fit_bytes(a_million, 24, 8) < 2e9
    assert ConLE(batch_size=None)._fit_bytes(a_million, 24, 8) > 1e13


def test_a_batch_of_more_rows_than_there_are_is_all_of_them():
    X, L = random(8, 3).numpy(), np.eye(2)[np.arange(8) % 2]
    answers = [short(batch_size=size, random_state=0).fit_enhance(X, L) for size in (8, 2**70)]
    np.testing.assert_array_equal(*answers)
