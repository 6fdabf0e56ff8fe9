"""LEVI: variational label enhancement.

Latent variables generate the features and the labels of a row, and the last q of them are the logits of the labels:

    z ~ N(0, I_k),    l_j | z ~ Bernoulli(s(z_{k-q+j})),    x | z = decoder(z) + noise,

with s the logistic function. The posterior is z ~ N(mu, diag sd^2), (mu, sd) = encoder([x, l]); both networks minimise

    BCE(s(z_last q), l) + alpha KL(mu, sd) + beta ||decoder(z) - x||^2,

z = mu + sd eps, every term a mean over its entries. D^ = softmax(s(mu_last q)): no two labels of a row differ by a
factor above e.

Multiplied by q, the objective is the textbook's evidence bound for alpha = k/q and beta = d/(2q) (noise of variance 1):
the defaults here. The published weights are smaller, and make the answer more certain.

With beta = 0 and an encoder that can tell any row from any other, the entries decouple: mu = m(l), where m and its
deviation minimise the convex function

    E log(1 + e^z) - l m + kappa KL(m, sd),    z = m + sd eps,    kappa = alpha q / k,

so that D^ = softmax(c L) with c = s(m(1)) - s(m(0)): one number, whatever the features. Trained networks come near it:
what LEVI says beyond that is little.

References
----------
N. Xu, J. Shu, Y.-P. Liu, X. Geng. Variational label enhancement. ICML 2020 (VLE).
N. Xu, J. Shu, R. Zheng, X. Geng, D. Meng, M.-L. Zhang. Variational label enhancement. IEEE TPAMI, 2023 (LEVI).
"""

from functools import partial
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np

from contone.backends import Draws, get_backend
from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, WIDTH, Enhancer, Interval, estimator, parameter
from contone.numerics import networks
from contone.numerics.networks import Networks, Phase, Tensor
from contone.numerics.scaling import Scaling, min_max_scaling
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Presets

AUTO_STEPS = 500
"""Steps that epochs="auto" makes at least. On SJAFFE and Yeast-cold the mean probabilities of relevant and of other
labels are then within .01 of those after twice as many."""
MILESTONES = (500, 800, 900)
"""Epochs at which the learning rate falls to a fifth, as in the authors' code."""

WHOLE_SET = {"batch_size": None, "scaling": "all"}
"""All rows in a step and one range for all features: as the second paper's programs have it."""


@estimator
class LEVI(Enhancer):
    """A variational autoencoder of features and labels; D^ is the softmax of the labels' posterior probabilities.

    Needs torch (``pip install 'contone[torch]'``). Confidences in place of L are taken as probabilities of the labels.

    Parameters
    ----------
    alpha : float or "elbo", default="elbo"
        Weight of the divergence from the prior; "elbo" is k/q, which makes the objective an evidence bound. Large
        values give the uniform distribution.
    beta : float or "elbo", default="elbo"
        Weight of the features; "elbo" is d/(2q).
    n_latent : int, default=50
        k; raised to q where there are more labels.
    n_hidden : int, default=64
        Width of the two hidden layers of each network.
    dropout : float, default=0.1
        Share of hidden units left out in training.
    epochs : int or "auto", default="auto"
        Times that all rows are gone through; part of the model, no warning. "auto" makes 500 steps or one epoch,
        whichever is more.
    batch_size : int or None, default=128
        Rows per step; None for all.
    learning_rate, weight_decay : float, default=1e-3, 1e-5
        Of Adam.
    scaling : {"columns", "all"}, default="columns"
        Features are mapped to [0, 1]: each by its own range, or all by one range, as in the authors' code.
    decoder_output : {"linear", "sigmoid"}, default="linear"
        What the last layer of the decoder ends with.
    random_state : int, RandomState or None, default=0
        Seed of the random start and of the order of the rows.

    Attributes
    ----------
    label_probabilities_ : (n, q)
        s(mu_last q), before the softmax.

    Notes
    -----
    Presets: ``vle`` has the settings of the first paper's program, ``original_code`` those of the second's, and
    ``original_demo`` those of the script that recovers distributions in it. The variant with a graph convolution as
    encoder and a term for the graph is not built: it needs a matrix of n x n.
    """

    reference = "Xu, Shu, Zheng, Geng, Meng & Zhang, IEEE TPAMI 2023"
    kinds = frozenset({"torch"})
    PRESETS: ClassVar[Presets] = {
        "vle": {
            "alpha": 1.0,
            "beta": 1.0,
            "n_hidden": 150,
            "epochs": 150,
            "scaling": "all",
            "decoder_output": "sigmoid",
        },
        "original_code": {"alpha": 0.01, "beta": 0.01, "n_latent": 200, "n_hidden": 500, "epochs": 200, **WHOLE_SET},
        "original_demo": {"alpha": 0.5, "beta": 1.0, "n_hidden": 128, "epochs": 45, **WHOLE_SET},
    }
    SEARCH: ClassVar[Domains] = {"alpha": [0.1, 1.0, "elbo"], "beta": [0.01, 0.1, 1.0, "elbo"]}
    alpha: float | str = parameter(POSITIVE, {"elbo"}, default="elbo")
    beta: float | str = parameter(NOT_NEGATIVE, {"elbo"}, default="elbo")
    n_latent: int = parameter(WIDTH, default=50)
    n_hidden: int = parameter(WIDTH, default=64)
    dropout: float = parameter(Interval(Real, 0, 1, closed="left"), default=0.1)
    epochs: int | str = parameter(COUNT, {"auto"}, default="auto")
    batch_size: int | None = parameter(COUNT, None, default=128)
    learning_rate: float = parameter(POSITIVE, default=1e-3)
    weight_decay: float = parameter(NOT_NEGATIVE, default=1e-5)
    scaling: str = parameter({"columns", "all"}, default="columns")
    decoder_output: str = parameter({"linear", "sigmoid"}, default="linear")
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: Array, L: Array) -> Solution:
        networks.require_torch(self)
        (n, d), q = X.shape, L.shape[1]
        self._scaling = feature_scaling(X, self.scaling)
        features, labels = networks.to_tensor(self._scaling(X)), networks.to_tensor(L)
        k, h = max(self.n_latent, q), self.n_hidden
        self._sizes = network_sizes(d, q, k, h)
        alpha = k / q if self.alpha == "elbo" else float(self.alpha)
        beta = d / (2.0 * q) if self.beta == "elbo" else float(self.beta)
        rng = networks.generator(self.random_state)
        start = networks.initial_parameters(self._sizes, rng, bias=0.01)
        draws = get_backend(features).draws(rng, features)

        def loss(nets: Networks, rows: Tensor) -> Tensor:
            noise = draw_noise(draws, len(rows), k, h, self.dropout)
            return objective(nets, features[rows], labels[rows], noise, alpha, beta, self.decoder_output)

        epochs = networks.n_epochs(self.epochs, AUTO_STEPS, n, self.batch_size)
        phase = Phase(loss, epochs, lambda epoch: self.learning_rate * 0.2 ** sum(epoch >= stop for stop in MILESTONES))
        train = partial(networks.train, batch_size=self.batch_size, rng=rng, weight_decay=self.weight_decay)
        trained = train([phase], self._sizes, start, features)
        self._w = trained.value
        self.label_probabilities_ = self._probabilities(X, L)
        return trained.with_value(softmax(self.label_probabilities_), epochs=epochs)

    def _enhance(self, X: Array, L: Array) -> Array:
        return softmax(self._probabilities(X, L))

    def _probabilities(self, X: Array, L: Array) -> Array:
        """s(mu) of the labels, (m, q), in the library of X."""

        def probabilities(nets: Networks, x: Tensor, l: Tensor) -> Tensor:
            return encode(nets["encoder"], x, l)[0][:, -l.shape[1] :].sigmoid()

        return networks.answer(probabilities, self._w, self._sizes, self._scaling(X), L)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        sizes = network_sizes(d, q, max(self.n_latent, q), self.n_hidden)
        return super()._fit_bytes(n, d, q) + networks.training_bytes(sizes, n, self.batch_size)


# --------------------------------------------------------------------------------------------------------- the networks


def network_sizes(d: int, q: int, k: int, h: int) -> dict[str, tuple[int, ...]]:
    """Widths of encoder and decoder."""
    return {"encoder": (d + q, h, h, 2 * k), "decoder": (k, h, h, d)}


class Noise(NamedTuple):
    """What is drawn for one step on m rows."""

    eps: Tensor
    """(m, k), standard normal."""
    encoder: list[Tensor]
    decoder: list[Tensor]
    """Masks (m, h) of the hidden layers; empty without dropout."""


def draw_noise(draws: Draws, m: int, k: int, h: int, dropout: float) -> Noise:
    """Noise for m rows from a source of tensors."""
    eps = draws.standard_normal((m, k))
    return Noise(eps, *(networks.dropout_masks(draws, m, (h, h), dropout) for _ in range(2)))


def encode(encoder: networks.Layers, X: Tensor, L: Tensor, masks: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """mu and sd, (m, k) each, of rows X (m, d) with labels L (m, q)."""
    import torch

    activations = (torch.nn.functional.elu, torch.tanh)
    mean, raw = networks.forward(encoder, torch.cat([X, L], dim=1), activations, masks or []).chunk(2, dim=1)
    return mean, networks.positive(raw, 1e-8)


def objective(
    nets: Networks, X: Tensor, L: Tensor, noise: Noise, alpha: float, beta: float, decoder_output: str = "linear"
) -> Tensor:
    """The objective on rows X (m, d), L (m, q), a pure function of the networks and the noise."""
    import torch

    mean, deviation = encode(nets["encoder"], X, L, noise.encoder)
    z = mean + deviation * noise.eps
    value = torch.nn.functional.binary_cross_entropy_with_logits(z[:, -L.shape[1] :], L)
    value = value + alpha * networks.gaussian_divergence(mean, deviation).mean()
    if beta > 0:
        decoded = networks.forward(nets["decoder"], z, (torch.tanh, torch.nn.functional.elu), noise.decoder)
        decoded = decoded.sigmoid() if decoder_output == "sigmoid" else decoded
        value = value + beta * (decoded - X).square().mean()
    return value


def feature_scaling(X: Array, scaling: str) -> Scaling:
    """The map of features to [0, 1], each by its own range ("columns") or all by one ("all"); constants become 0."""
    return min_max_scaling(X if scaling == "columns" else X.reshape(-1, 1)).on_host()
