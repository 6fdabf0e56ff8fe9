"""LIBLE: label enhancement with a label information bottleneck.

A code of the features is to keep what they say about the labels, and nothing else; degrees are read from the code:

    z ~ N(mu(x), diag sd(x)^2),    a = softmax(assignment(z)),    y = label_net(z),    g^2 = gap_net(z),

    J1 = mean_i (-sum_j l_ij log a_ij + alpha KL(mu_i, sd_i)) / ln 2,
    J2 = J1 + beta mean_ij ((l_ij - y_ij)^2 / (2 g_i^2) + log g_i),

with the divergence of the code from N(0, I), summed over its entries. J1 is minimised first, over the encoder and the
assignment, then J2 over everything. D^ = softmax(y) at z = mu; the labels are not needed for it, so that new rows are
predicted from their features alone.

The last term says how far the labels are from the degrees: for given y the best g_i^2 is mean_j (l_ij - y_ij)^2, where
it is (1 + log g_i^2) / 2 and unbounded below as y -> l; a floor under g^2 bounds it.

Reference: Q. Zheng, J. Zhu, H. Tang. Label information bottleneck for label enhancement. CVPR 2023.
"""

import math
from functools import partial
from typing import ClassVar

import numpy as np

from contone.backends import get_backend
from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, WHOLE, WIDTH, Enhancer, InductiveMixin, estimator, parameter
from contone.numerics import networks
from contone.numerics.networks import Networks, Phase, Tensor
from contone.numerics.scaling import standardisation
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Presets

AUTO_STEPS = (400, 200)
"""Steps that "auto" makes at least, before and after the degrees join in: two to one, as published."""
LEAST_GAP = 1e-6
"""Floor under g^2."""
DECAY, DECAY_EVERY = 0.9, 20
"""The learning rate of J2 falls to nine tenths every 20 epochs (or batches)."""

ORIGINAL = {"noise": "multiplicative", "n_code": 256, "n_hidden": 256, "pretrain_epochs": 200, "epochs": 100,
            "decay": "batches"}  # fmt: skip
"""What the authors' program has for all sets."""


@estimator
class LIBLE(InductiveMixin, Enhancer):
    """Degrees read from a code of the features that keeps only what they say about the labels.

    Needs torch (``pip install 'contone[torch]'``). Confidences in place of L are taken as they are.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the divergence of the code from the prior. Large values leave nothing in the code, and every row gets
        the same answer; ``solution_.info["code_bits"]`` says how much is left.
    beta : float, default=1.0
        Weight of the degrees.
    noise : {"additive", "multiplicative"}, default="additive"
        z = mu + sd eps, the code's distribution; or z = mu + mu eps, as in the authors' code: sd has no part in z.
    n_code : int, default=64
        Entries of z.
    n_hidden : int, default=64
        Width of the hidden layers: two of this width in the encoder, this and half of it in the other two networks.
    pretrain_epochs, epochs : int or "auto", default="auto"
        Times that all rows are gone through with J1 and with J2; part of the model, no warning. "auto" makes 400 and
        200 steps, or one epoch, whichever is more.
    batch_size : int or None, default=128
        Rows per step; None for all.
    pretrain_learning_rate, learning_rate : float, default=5e-3, 1e-3
        Of Adam, with J1 and with J2.
    decay : {"epochs", "batches"}, default="epochs"
        Whether the learning rate of J2 falls every 20 epochs or, as in the authors' code, every 20 batches: on
        thousands of rows it is then 0 long before the end.
    random_state : int, RandomState or None, default=0
        Seed of the random start and of the order of the rows.

    Notes
    -----
    The presets ``original_sjaffe`` and ``original_yeast`` have the settings that the authors' program names for those
    sets, and its noise. Its answers come from one more draw of z; here they are those of z = mu, so that two calls
    agree. With the published weights (alpha 1 and 10) and additive noise the code is nearly empty. Multiplicative noise
    does not care how large mu is, so that a small mu carries the signal past the divergence; hence the default of
    additive noise has a smaller alpha. On SJAFFE the code then holds 7 bits (0.2 bits for alpha = 1); on Yeast-cold,
    whose features say little about the labels, it is nearly empty with either, and all rows get nearly one answer.

    Examples
    --------
    >>> X, L = [[0.0], [0.1], [5.0], [5.1]], [[1, 0], [1, 1], [0, 1], [0, 1]]
    >>> lible = LIBLE(epochs=200, batch_size=None).fit(X, L)
    >>> lible.predict([[0.0], [5.0]]).argmax(axis=1).tolist()
    [0, 1]
    """

    reference = "Zheng, Zhu & Tang, CVPR 2023"
    kinds = frozenset({"torch", "unasked"})
    PRESETS: ClassVar[Presets] = {
        "original_sjaffe": {"alpha": 1.0, "beta": 0.001, **ORIGINAL},
        "original_yeast": {"alpha": 10.0, "beta": 1.0, **ORIGINAL},
    }
    SEARCH: ClassVar[Domains] = {"alpha": [0.01, 0.1, 1.0], "beta": [0.1, 1.0]}
    alpha: float = parameter(NOT_NEGATIVE, default=0.1)
    beta: float = parameter(POSITIVE, default=1.0)
    noise: str = parameter({"additive", "multiplicative"}, default="additive")
    n_code: int = parameter(WIDTH, default=64)
    n_hidden: int = parameter(WIDTH, default=64)
    pretrain_epochs: int | str = parameter(WHOLE, {"auto"}, default="auto")
    epochs: int | str = parameter(COUNT, {"auto"}, default="auto")
    batch_size: int | None = parameter(COUNT, None, default=128)
    pretrain_learning_rate: float = parameter(POSITIVE, default=5e-3)
    learning_rate: float = parameter(POSITIVE, default=1e-3)
    decay: str = parameter({"epochs", "batches"}, default="epochs")
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: Array, L: Array) -> Solution:
        networks.require_torch(self)
        n, d = X.shape
        self._scaling = standardisation(X, ddof=0).on_host()
        features, labels = networks.to_tensor(self._scaling(X)), networks.to_tensor(L)
        self._sizes = network_sizes(d, L.shape[1], self.n_code, self.n_hidden)
        rng = networks.generator(self.random_state)
        start = networks.initial_parameters(self._sizes, rng, start="inputs")
        draws = get_backend(features).draws(rng, features)

        def loss(nets: Networks, rows: Tensor, beta: float = self.beta) -> Tensor:
            eps = draws.standard_normal((len(rows), self.n_code))
            return objective(nets, features[rows], labels[rows], eps, self.alpha, beta, self.noise)

        asked = zip((self.pretrain_epochs, self.epochs), AUTO_STEPS, strict=True)
        epochs = [networks.n_epochs(each, steps, n, self.batch_size) for each, steps in asked]
        every = DECAY_EVERY / (1 if self.decay == "epochs" else networks.steps_per_epoch(n, self.batch_size))
        # The networks of the degrees have no part in J1, so that their gradient is 0 and Adam leaves them alone.
        phases = [
            Phase(partial(loss, beta=0.0), epochs[0], lambda _: self.pretrain_learning_rate),
            Phase(loss, epochs[1], lambda epoch: self.learning_rate * DECAY ** (epoch // every)),
        ]
        trained = networks.train(phases, self._sizes, start, features, batch_size=self.batch_size, rng=rng)
        self._w = trained.value
        return trained.with_value(self._predict(X), epochs=epochs, code_bits=float(self._code_bits(X).mean()))

    def _predict(self, X: Array) -> Array:
        def degrees(nets: Networks, x: Tensor) -> Tensor:
            mean, _ = encode(nets["encoder"], x)
            return networks.forward(nets["labels"], mean, HIDDEN).softmax(dim=1)

        return networks.answer(degrees, self._w, self._sizes, self._scaling(X))

    def _code_bits(self, X: Array) -> Array:
        """The divergence of every row's code from the prior, in bits, (n,)."""

        def bits(nets: Networks, x: Tensor) -> Tensor:
            return networks.gaussian_divergence(*encode(nets["encoder"], x)).sum(dim=1) / math.log(2.0)

        return networks.answer(bits, self._w, self._sizes, self._scaling(X))

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        sizes = network_sizes(d, q, self.n_code, self.n_hidden)
        return super()._fit_bytes(n, d, q) + networks.training_bytes(sizes, n, self.batch_size)


def _sigmoid(A: Tensor) -> Tensor:
    return A.sigmoid()


HIDDEN = (_sigmoid, _sigmoid)
"""Activations of the two hidden layers of every network but the assignment, which is linear."""


def network_sizes(d: int, q: int, n_code: int, n_hidden: int) -> dict[str, tuple[int, ...]]:
    """Widths of the four networks."""
    half = max(n_hidden // 2, 1)
    return {
        "encoder": (d, n_hidden, n_hidden, 2 * n_code),
        "assignment": (n_code, q),
        "labels": (n_code, n_hidden, half, q),
        "gap": (n_code, n_hidden, half, 1),
    }


def encode(encoder: networks.Layers, X: Tensor) -> tuple[Tensor, Tensor]:
    """mu and sd, (m, n_code) each, of rows X (m, d)."""
    mean, raw = networks.forward(encoder, X, HIDDEN).chunk(2, dim=1)
    return mean, networks.positive(raw, 1e-8)


def objective(
    nets: Networks, X: Tensor, L: Tensor, eps: Tensor, alpha: float, beta: float, noise: str = "additive"
) -> Tensor:
    """J2 on rows X (m, d), L (m, q), J1 for beta = 0: a pure function of the networks and the noise eps (m, n_code)."""
    mean, deviation = encode(nets["encoder"], X)
    # Paper: the code draws mu + mu eps; the distribution whose divergence is penalised is mu + sd eps.
    z = mean + (deviation if noise == "additive" else mean) * eps
    log_assigned = networks.forward(nets["assignment"], z, ()).log_softmax(dim=1)
    divergence = networks.gaussian_divergence(mean, deviation).sum(dim=1)
    marked = L.nan_to_num()  # what nobody asked about is no target
    value = (alpha * divergence - (marked * log_assigned).sum(dim=1)).mean() / math.log(2.0)
    if beta == 0:
        return value
    degrees = networks.forward(nets["labels"], z, HIDDEN)
    # Paper: g itself is the output of the network and may cross 0, where the objective is infinite.
    gap = networks.positive(networks.forward(nets["gap"], z, HIDDEN), LEAST_GAP)
    return value + beta * gap_loss(L, degrees, gap)


def gap_loss(L: Tensor, degrees: Tensor, gap: Tensor) -> Tensor:
    """mean_ij (l_ij - y_ij)^2 / (2 g_i^2) + log g_i over asked labels, for L and degrees (m, q) and g^2 (m, 1)."""
    asked = L == L
    each = (L.nan_to_num() - degrees) ** 2 / (2.0 * gap) + 0.5 * gap.log()
    return (each * asked).sum() / asked.sum().clamp(min=1)
