"""ConLE: contrastive label enhancement.

Features and labels of a row are two views of one thing, so that their codes are to agree; degrees are read from both:

    Z = f(X),    Q = g(L),    Y = h([Z, Q]),    D^ = softmax(Y),

    loss = con(Z, Q) + con(Q, Z) + alpha mean_i ||l_i - y_i||^2
           + beta mean_i [ max_{l_ij = 0} y_ij - min_{l_ij = 1} y_ij + margin ]_+,

    con(Z, Q) = -mean_i log( e^(cos(z_i, q_i)/tau)
                             / (sum_{k != i} e^(cos(z_i, z_k)/tau) + sum_k e^(cos(z_i, q_k)/tau)) ).

Each network has one hidden layer (leaky ReLU); the contrast is taken within a batch.

The network sees the labels that it is asked to give back: trained to the end, Y -> L and D^ -> softmax(L). On SJAFFE
and Yeast-cold 300 steps are enough for that, up to a deviation of .04 in Y: what is recovered beyond the labels is
little.

Reference: Y. Wang, Y. Zhou, J. Zhu, X. Liu, W. Yan, Z. Tian. Contrastive label enhancement. IJCAI 2023. No program of
the authors was found.
"""

import math

import numpy as np

from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, WIDTH, Enhancer, estimator, parameter
from contone.numerics import networks
from contone.numerics.networks import Networks, Phase, Tensor
from contone.numerics.scaling import standardisation, unscaled
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.typing import Array

AUTO_STEPS = 300
"""Steps that epochs="auto" makes at least."""


@estimator
class ConLE(Enhancer):
    """Codes of features and of labels that agree row by row, and degrees that are read from both.

    Needs torch (``pip install 'contone[torch]'``). Confidences in place of L are taken as they are; a label is relevant
    where its confidence is positive.

    Parameters
    ----------
    alpha, beta : float, default=1.0
        Weights of the distance from the labels and of the order of relevant and other labels.
    temperature : float, default=0.5
        tau.
    margin : float, default=0.05
        By how much relevant labels are to be above the others.
    n_code, n_hidden : int, default=64
        Entries of Z and of Q, and width of the hidden layers.
    standardize : bool, default=True
        Use z-scores of the features.
    epochs : int or "auto", default="auto"
        Times that all rows are gone through; part of the model, no warning. "auto" makes 300 steps or one epoch,
        whichever is more.
    batch_size : int or None, default=128
        Rows per step; None for all, where time and memory grow with the square of the number of rows.
    learning_rate : float, default=1e-3
        Of Adam.
    random_state : int, RandomState or None, default=0
        Seed of the random start and of the order of the rows.

    Attributes
    ----------
    scores_ : (n, q)
        Y.

    Notes
    -----
    The weights of the paper are not known. Those here are 1, with every term an average over rows.
    """

    reference = "Wang, Zhou, Zhu, Liu, Yan & Tian, IJCAI 2023"
    kinds = frozenset({"torch"})
    alpha: float = parameter(NOT_NEGATIVE, default=1.0)
    beta: float = parameter(NOT_NEGATIVE, default=1.0)
    temperature: float = parameter(POSITIVE, default=0.5)
    margin: float = parameter(NOT_NEGATIVE, default=0.05)
    n_code: int = parameter(WIDTH, default=64)
    n_hidden: int = parameter(WIDTH, default=64)
    standardize: bool = parameter("boolean", default=True)
    epochs: int | str = parameter(COUNT, {"auto"}, default="auto")
    batch_size: int | None = parameter(COUNT, None, default=128)
    learning_rate: float = parameter(POSITIVE, default=1e-3)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: Array, L: Array) -> Solution:
        networks.require_torch(self)
        n, d = X.shape
        self._scaling = standardisation(X, ddof=0).on_host() if self.standardize else unscaled
        features, labels = networks.to_tensor(self._scaling(X)), networks.to_tensor(L)
        self._sizes = network_sizes(d, L.shape[1], self.n_code, self.n_hidden)
        terms = (self.alpha, self.beta, self.temperature, self.margin)

        def loss(nets: Networks, rows: Tensor) -> Tensor:
            return objective(nets, features[rows], labels[rows], *terms)

        rng = networks.generator(self.random_state)
        start = networks.initial_parameters(self._sizes, rng, start="uniform")
        epochs = networks.n_epochs(self.epochs, AUTO_STEPS, n, self.batch_size)
        phase = Phase(loss, epochs, lambda _: self.learning_rate)
        trained = networks.train([phase], self._sizes, start, features, batch_size=self.batch_size, rng=rng)
        self._w = trained.value
        self.scores_ = self._scores(X, L)
        return trained.with_value(softmax(self.scores_), epochs=epochs)

    def _enhance(self, X: Array, L: Array) -> Array:
        return softmax(self._scores(X, L))

    def _scores(self, X: Array, L: Array) -> Array:
        """Y (m, q), in the library of X."""
        return networks.answer(lambda *rows: codes(*rows)[2], self._w, self._sizes, self._scaling(X), L)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        sizes, m = network_sizes(d, q, self.n_code, self.n_hidden), min(n, self.batch_size or n)
        pairs = 8.0 * 12 * m * m  # the contrast
        return super()._fit_bytes(n, d, q) + networks.training_bytes(sizes, n, self.batch_size) + pairs


def network_sizes(d: int, q: int, n_code: int, n_hidden: int) -> dict[str, tuple[int, ...]]:
    """Widths of f, g and h."""
    return {"features": (d, n_hidden, n_code), "labels": (q, n_hidden, n_code), "degrees": (2 * n_code, n_hidden, q)}


def codes(nets: Networks, X: Tensor, L: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Z, Q (m, n_code) and Y (m, q) of rows X (m, d) with labels L (m, q)."""
    import torch

    hidden = (torch.nn.functional.leaky_relu,)
    Z = networks.forward(nets["features"], X, hidden)
    Q = networks.forward(nets["labels"], L, hidden)
    return Z, Q, networks.forward(nets["degrees"], torch.cat([Z, Q], dim=1), hidden)


def objective(nets: Networks, X: Tensor, L: Tensor, alpha: float, beta: float, tau: float, margin: float) -> Tensor:
    """The loss on rows X (m, d), L (m, q), a pure function of the networks."""
    Z, Q, Y = codes(nets, X, L)
    contrasts = contrast(Z, Q, tau) + contrast(Q, Z, tau)
    return contrasts + alpha * (L - Y).square().sum(dim=1).mean() + beta * order_loss(Y, L, margin)


def contrast(Z: Tensor, Q: Tensor, temperature: float) -> Tensor:
    """con(Z, Q) of codes (m, n_code): how badly a row's partner stands out among the other rows."""
    import torch

    Z, Q = torch.nn.functional.normalize(Z, dim=1), torch.nn.functional.normalize(Q, dim=1)
    pair = (Z * Q).sum(dim=1) / temperature
    itself = torch.eye(len(Z), dtype=torch.bool, device=Z.device)
    within = (Z @ Z.T / temperature).masked_fill(itself, -torch.inf)
    others = torch.cat([within, Z @ Q.T / temperature], dim=1)
    return (others.logsumexp(dim=1) - pair).mean()


def order_loss(Y: Tensor, L: Tensor, margin: float) -> Tensor:
    """mean_i [max_{l_ij = 0} y_ij - min_{l_ij > 0} y_ij + margin]_+ of scores and labels (m, q)."""
    relevant = L > 0
    highest = Y.masked_fill(relevant, -math.inf).amax(dim=1)
    lowest = Y.masked_fill(~relevant, math.inf).amin(dim=1)
    return (highest - lowest + margin).relu().mean()
