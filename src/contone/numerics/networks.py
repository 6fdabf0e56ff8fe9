"""Small feed-forward networks, trained by torch; it is imported when a network is built, not before.

All weights of a model are one vector w, and its networks are views of it: an objective is a pure function of networks,
of rows and of noise, and a step of an optimiser is a few operations. Noise comes from the generator that is passed in;
torch's global generator and settings are never touched.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from contone.backends import like, to_numpy
from contone.exceptions import InputError, missing_extra
from contone.numerics.solution import Solution
from contone.runtime import progress
from contone.typing import Array, EstimatorLike, Seed

if TYPE_CHECKING:
    import torch

Tensor: TypeAlias = "torch.Tensor"
Layers: TypeAlias = "list[tuple[Tensor, Tensor]]"
"""Weights (inputs, outputs) and biases (outputs,) of each layer."""
Sizes: TypeAlias = Mapping[str, Sequence[int]]
"""The networks of a model by name, each as the widths of its layers from input to output."""
Activation: TypeAlias = Callable[[Tensor], Tensor]
Networks: TypeAlias = "dict[str, Layers]"
Objective: TypeAlias = Callable[[Networks, Tensor], Tensor]
"""(networks, row numbers of a batch) to a number that can be differentiated by their weights."""

CHUNK_ROWS = 2**16
"""Rows that go through a network at once where nothing is learned."""


def require_torch(method: EstimatorLike) -> None:
    """An error that says what to install, where torch is missing."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise missing_extra(type(method).__name__, "torch", "torch") from error


def to_tensor(A: Array) -> Tensor:
    """A tensor as it is; an array as a copy in double precision on the host."""
    import torch

    return A if isinstance(A, torch.Tensor) else torch.tensor(np.asarray(A), dtype=torch.float64)


def generator(random_state: Seed) -> np.random.Generator:
    """The generator behind a `random_state` in scikit-learn's sense."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


# -------------------------------------------------------------------------------------------------------- the networks


def count_parameters(sizes: Sizes) -> int:
    """Length of w.

    Examples
    --------
    >>> count_parameters({"encoder": (3, 4, 2)})
    26
    """
    return sum((a + 1) * b for widths in sizes.values() for a, b in pairwise(widths))


def training_bytes(sizes: Sizes, n: int, batch_size: int | None) -> float:
    """What training holds: eight vectors like w, and four numbers per row of a batch and unit."""
    units = sum(sum(widths) for widths in sizes.values())
    return 8.0 * (8 * count_parameters(sizes) + 4 * min(n, batch_size or n) * units)


def initial_parameters(sizes: Sizes, rng: np.random.Generator, *, start: str = "normal", bias: float = 0.0) -> Array:
    """The start of training.

    "normal" and "uniform" are Glorot's: weights with variance 2 / (inputs + outputs) and constant biases. "inputs" is
    torch's own: weights and biases uniform in +-1 / sqrt(inputs).
    """
    parts = []
    for widths in sizes.values():
        for a, b in pairwise(widths):
            deviation = np.sqrt(2.0 / (a + b))
            if start == "normal":
                parts += [deviation * rng.standard_normal(a * b), np.full(b, bias)]
            elif start == "uniform":
                parts += [np.sqrt(3.0) * deviation * rng.uniform(-1.0, 1.0, a * b), np.full(b, bias)]
            else:
                parts.append(rng.uniform(-1.0, 1.0, (a + 1) * b) / np.sqrt(a))
    return np.concatenate(parts)


def unpack(w: Tensor, sizes: Sizes) -> Networks:
    """The networks, as views of w."""
    networks: Networks = {}
    start = 0
    for name, widths in sizes.items():
        layers = []
        for a, b in pairwise(widths):
            end = start + a * b
            layers.append((w[start:end].view(a, b), w[end : end + b]))
            start = end + b
        networks[name] = layers
    return networks


def forward(layers: Layers, X: Tensor, activations: Sequence[Activation], masks: Sequence[Tensor] = ()) -> Tensor:
    """X (m, inputs) to (m, outputs): a linear map, then an activation and a mask (dropout), while there are any."""
    for i, (W, b) in enumerate(layers):
        X = X @ W + b
        if i < len(activations):
            X = activations[i](X)
        if i < len(masks):
            X = X * masks[i]
    return X


def dropout_masks(draws: Any, m: int, widths: Sequence[int], rate: float) -> list[Tensor]:
    """Masks (m, width) that are 0 with probability `rate` and 1 / (1 - rate) else; none for rate 0."""
    if rate == 0:
        return []
    uniform = (draws.random((m, width)) for width in widths)
    return [(u >= rate).to(u.dtype) / (1.0 - rate) for u in uniform]


def positive(A: Tensor, least: float) -> Tensor:
    """Softplus, above `least`."""
    import torch

    return torch.nn.functional.softplus(A) + least


def gaussian_divergence(mean: Tensor, deviation: Tensor) -> Tensor:
    """KL(N(mean, deviation^2) || N(0, 1)), entry by entry."""
    return 0.5 * (mean**2 + deviation**2 - 1.0) - deviation.log()


# -------------------------------------------------------------------------------------------------------- training


class Phase(NamedTuple):
    """A part of training: what is minimised, in how many passes over all rows, at which learning rate."""

    objective: Objective
    """The mean loss of a batch."""
    epochs: int
    rates: Callable[[int], float]
    """The learning rate of an epoch, counted from 0."""


def steps_per_epoch(n: int, batch_size: int | None) -> int:
    """Batches in which n rows are gone through; a single one where `batch_size` is None."""
    return 1 if batch_size is None else -(-n // batch_size)


def n_epochs(asked: int | str, steps: int, n: int, batch_size: int | None) -> int:
    """Passes over n rows: those asked for, or as many as make this many steps where that is left open ("auto")."""
    return -(-steps // steps_per_epoch(n, batch_size)) if isinstance(asked, str) else int(asked)


def train(
    phases: Sequence[Phase],
    sizes: Sizes,
    start: np.ndarray,
    model: Tensor,
    *,
    batch_size: int | None = None,
    rng: np.random.Generator | None = None,
    weight_decay: float = 0.0,
) -> Solution:
    """Steps of Adam on one batch after the other, each epoch in a new order of the rows.

    Parameters
    ----------
    phases : sequence of Phase
        Minimised one after the other; Adam begins anew with each.
    sizes : dict
        The networks.
    start : array
        Weights to begin with, one flat vector.
    model : tensor
        The rows; weights are where these are.
    batch_size : int or None
        Rows per step; None takes all.
    rng : Generator or None
        Source of the order of the rows, of which there is one where a step takes all.
    weight_decay : float
        Adds weight_decay / 2 ||w||^2 to the objective.

    Returns
    -------
    Solution
        The weights, on the host; objective and residual are those of `value_and_slope` for the last phase.
    """
    import torch

    w, n_steps = like(start, model).clone().requires_grad_(True), 0
    for objective, epochs, rates in phases:
        mean, square, step = torch.zeros_like(w), torch.zeros_like(w), 0
        for epoch in progress.reported(range(epochs), epochs, "training"):
            rate = rates(epoch)
            for rows in batches(len(model), batch_size, rng, model):
                with torch.enable_grad():
                    (gradient,) = torch.autograd.grad(objective(unpack(w, sizes), rows), w)
                step += 1
                with torch.no_grad():
                    gradient += weight_decay * w
                    # torch.optim.Adam takes the same step in twice the time, after seconds of imports for its compiler.
                    mean.mul_(0.9).add_(gradient, alpha=0.1)
                    square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                    root = (square / (1.0 - 0.999**step)).sqrt_().add_(1e-8)
                    w.addcdiv_(mean, root, value=-rate / (1.0 - 0.9**step))
        n_steps += step
    value, slope = value_and_slope(phases[-1].objective, w, sizes, len(model), batch_size)
    return Solution(to_numpy(w), value, slope, n_steps)


def batches(n: int, batch_size: int | None, rng: np.random.Generator | None, model: Tensor) -> Sequence[Tensor]:
    """Row numbers of each batch, in an order drawn from `rng`; in their own order without one, or in a single batch."""
    import torch

    size = min(batch_size or n, max(n, 1))
    order = torch.arange(n) if rng is None or size >= n else torch.from_numpy(rng.permutation(n))
    return list(torch.split(order.to(model.device), size))


def value_and_slope(
    objective: Objective, w: Tensor, sizes: Sizes, n: int, batch_size: int | None
) -> tuple[float, float]:
    """The objective over all rows and the largest entry of its gradient, batch by batch: the certificate of a fit.

    An error where they are not finite, which training with too large a learning rate ends in.
    """
    import torch

    value, total = 0.0, torch.zeros_like(w)
    w = w.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        for rows in batches(n, batch_size, None, w):
            part = objective(unpack(w, sizes), rows) * (len(rows) / n)
            (gradient,) = torch.autograd.grad(part, w)
            value += float(part.detach())
            total += gradient
    slope = float(total.abs().max())
    if not math.isfinite(value) or not math.isfinite(slope):
        raise InputError(
            "Training diverged: the objective is not a finite number at its end. Use a smaller learning_rate, and "
            "weights of the objective's terms (alpha, beta, ...) that are not extreme."
        )
    return value, slope


def answer(compute: Callable[..., Tensor], w: np.ndarray, sizes: Sizes, X: Array, *others: Array) -> Array:
    """compute(networks, rows of X (m, d), of the others) for all rows, `CHUNK_ROWS` at a time, in the library of X."""
    import torch

    arrays = [to_tensor(A) for A in (X, *others)]
    nets = unpack(like(w, arrays[0]), sizes)
    with torch.no_grad():
        parts = [compute(nets, *rows) for rows in zip(*(torch.split(A, CHUNK_ROWS) for A in arrays), strict=True)]
    return like(torch.cat(parts), X)
