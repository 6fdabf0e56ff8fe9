"""Networks: shapes, Glorot's start, dropout, the optimisers against closed forms, no global state."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from contone.backends.torch.draws import TensorDraws  # noqa: E402
from contone.exceptions import InputError  # noqa: E402
from contone.numerics import networks  # noqa: E402

SIZES = {"encoder": (3, 5, 2), "decoder": (2, 4)}


def rng():
    return np.random.default_rng(0)


def test_networks_are_views_of_one_vector():
    w = torch.arange(float(networks.count_parameters(SIZES)))
    nets = networks.unpack(w, SIZES)
    assert [tuple(W.shape) for W, _ in nets["encoder"]] == [(3, 5), (5, 2)]
    flat = torch.cat([part.reshape(-1) for layers in nets.values() for layer in layers for part in layer])
    assert torch.equal(flat, w)
    w[0] = 99.0
    assert nets["encoder"][0][0][0, 0] == 99.0


def test_a_network_is_its_formula():
    w = torch.from_numpy(networks.initial_parameters(SIZES, rng(), bias=0.3))
    (W1, b1), (W2, b2) = networks.unpack(w, SIZES)["encoder"]
    X = torch.from_numpy(rng().normal(size=(7, 3)))
    expected = torch.tanh(X @ W1 + b1) @ W2 + b2
    assert torch.equal(networks.forward(networks.unpack(w, SIZES)["encoder"], X, (torch.tanh,)), expected)


def test_masks_are_factors_of_hidden_units():
    w = torch.from_numpy(networks.initial_parameters(SIZES, rng(), bias=0.3))
    (W1, b1), (W2, b2) = layers = networks.unpack(w, SIZES)["encoder"]
    X, mask = torch.from_numpy(rng().normal(size=(7, 3))), torch.from_numpy(rng().integers(0, 2, (7, 5)) * 2.0)
    expected = (mask * torch.tanh(X @ W1 + b1)) @ W2 + b2
    torch.testing.assert_close(networks.forward(layers, X, (torch.tanh,), [mask]), expected)


def test_a_tensor_stays_and_an_array_is_copied():
    single, array = torch.zeros(2, dtype=torch.float32), np.ones(2, dtype=np.float32)
    assert networks.to_tensor(single) is single
    made = networks.to_tensor(array)
    array[0] = 5.0
    assert made.dtype == torch.float64
    assert made.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("start", "variance"), [("normal", 2 / 500), ("uniform", 2 / 500), ("inputs", 1 / 900)])
def test_the_start_has_the_variance_it_says(start, variance):
    sizes = {"net": (300, 200)}
    w = torch.from_numpy(networks.initial_parameters(sizes, rng(), start=start, bias=0.5))
    ((W, b),) = networks.unpack(w, sizes)["net"]
    assert float(W.var()) == pytest.approx(variance, rel=0.02)
    assert float(b.std()) == pytest.approx(1 / 30, rel=0.1) if start == "inputs" else bool((b == 0.5).all())


def test_masks_keep_the_mean():
    draws = TensorDraws(rng(), torch.zeros(1, dtype=torch.float64))
    (mask,) = networks.dropout_masks(draws, 1000, (100,), 0.1)
    assert set(mask.unique().tolist()) == {0.0, 1.0 / 0.9}
    assert float(mask.mean()) == pytest.approx(1.0, abs=0.01)
    assert networks.dropout_masks(draws, 10, (5,), 0.0) == []


def test_the_divergence_is_that_of_torch():
    mean, deviation = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)), torch.linspace(0.1, 3.0, 4)
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(mean, deviation), normal(0.0, 1.0))
    torch.testing.assert_close(networks.gaussian_divergence(mean, deviation), expected)


@pytest.mark.parametrize("batch_size", [None, 8])
def test_training_reaches_the_least_squares_solution(batch_size):
    X = torch.from_numpy(rng().normal(size=(30, 3)))
    y = X @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    def loss(nets, rows):
        return (networks.forward(nets["net"], X[rows], ())[:, 0] - y[rows]).square().mean()

    sizes = {"net": (3, 1)}
    phase = networks.Phase(loss, 600, lambda epoch: 0.1 * 0.99**epoch)
    found = networks.train([phase], sizes, np.zeros(4), X, batch_size=batch_size, rng=rng())
    assert found.n_iter == 600 * networks.steps_per_epoch(30, batch_size)
    np.testing.assert_allclose(found.value, [1.0, -2.0, 0.5, 0.0], atol=1e-3)
    w = torch.from_numpy(found.value)
    assert networks.value_and_slope(loss, w, sizes, 30, 7)[1] < 1e-2
    away = (w + torch.tensor([0.3, 0.1, -0.2, 0.5])).requires_grad_(True)
    value, slope = networks.value_and_slope(loss, away, sizes, 30, 7)  # the batches' share adds up to the whole
    whole = loss(networks.unpack(away, sizes), torch.arange(30))
    (gradient,) = torch.autograd.grad(whole, away)
    assert (value, slope) == pytest.approx((float(whole.detach()), float(gradient.abs().max())))


def test_adam_is_the_adam_of_torch():
    target = torch.tensor([3.0, -1.0], dtype=torch.float64)
    phase = networks.Phase(lambda nets, rows: (nets["net"][0][0] - target).square().sum(), 20, lambda epoch: 0.05)
    rows = torch.zeros(1, dtype=torch.float64)
    found = networks.train([phase], {"net": (1, 2)}, np.zeros(4), rows, batch_size=None, rng=rng(), weight_decay=0.1)
    w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    reference = torch.optim.Adam([w], lr=0.05, weight_decay=0.1)
    for _ in range(20):
        reference.zero_grad()
        (w - target).square().sum().backward()
        reference.step()
    torch.testing.assert_close(torch.from_numpy(found.value[:2]), w.detach())


def test_training_that_diverges_is_an_error():
    def loss(nets, rows):
        return nets["net"][0][0].square().square().sum()

    rows = torch.zeros(1, dtype=torch.float64)
    phase = networks.Phase(loss, 2, lambda _: 1e150)
    with pytest.raises(InputError, match="Training diverged.*learning_rate"):
        networks.train([phase], {"net": (1, 2)}, np.ones(4), rows, batch_size=None, rng=rng())


def test_chunks_make_the_whole(monkeypatch):
    monkeypatch.setattr(networks, "CHUNK_ROWS", 4)
    X, Y = rng().random((11, 2)), np.arange(11.0)[:, None]
    found = networks.answer(lambda nets, x, y: x + y + nets["net"][0][1], np.ones(4), {"net": (1, 2)}, X, Y)
    np.testing.assert_allclose(found, X + Y + 1.0)


@pytest.mark.parametrize("batch_size", [None, 5, 6])
def test_a_single_batch_has_the_rows_in_their_order(batch_size):
    rng = np.random.default_rng(0)
    (rows,) = networks.batches(5, batch_size, rng, torch.zeros(1))
    assert rows.tolist() == list(range(5))
    assert rng.random() == np.random.default_rng(0).random()  # nothing was drawn
    parts = networks.batches(5, 2, rng, torch.zeros(1))
    assert [len(part) for part in parts] == [2, 2, 1]
    assert sorted(torch.cat(list(parts)).tolist()) == list(range(5))


def test_epochs_are_those_asked_for_or_as_many_as_make_the_steps():
    assert [networks.steps_per_epoch(10, size) for size in (None, 1, 3, 5, 10, 99)] == [1, 10, 4, 2, 1, 1]
    assert networks.n_epochs(7, 1000, 10, 3) == 7
    for size in (None, 3, 10):
        epochs, steps = networks.n_epochs("auto", 50, 10, size), networks.steps_per_epoch(10, size)
        assert (epochs - 1) * steps < 50 <= epochs * steps
