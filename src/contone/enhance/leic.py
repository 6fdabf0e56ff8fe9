"""LEIC: label enhancement via joint implicit representation clustering.

Degrees are a latent variable beside a code and a cluster of every row. The model, of features x, labels l and a graph G
of rows with similar labels:

    p ~ Dirichlet(1),  c uniform on C = q + 1 clusters,  z | p, c ~ N(mu_c(p), sd_c(p)^2),
    x | z ~ N(mu(z), sd(z)^2),    l_j | p ~ Bernoulli(p_j),    G_ij | z ~ Bernoulli(sigmoid(z_i . z_j))

mu and sd are linear maps, sd through softplus. The posterior, with G~ the graph with self loops, degree-normalised:

    z ~ N(G~ X W_1, softplus(G~ X W_2)^2),   c ~ softmax(G~ X W_3) =: q,   p_i ~ Dirichlet(e_i + lambda l_i)

    e_i = softplus(x_i W_4) N_i,    N_i = A_i with rows and columns divided by the roots of its row sums
    A_i = sum_c q_ic L^T diag(q_.c) L:  how often two labels stand together in rows of the cluster of i

Training maximises  E log p(x | z) + E log p(l | p) + E log p(G | z) - KL_c - sum_c q_c KL_z|c - KL_p  by Adam, with one
draw of z and p per step. D^ is the mean of the Dirichlet, (e + lambda l) / sum.

Reference: Lu, Li, Jia. Label enhancement via joint implicit representation clustering. IJCAI 2023.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np

from contone.backends import get_backend, like, to_numpy
from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, WIDTH, Enhancer, estimator, parameter
from contone.numerics import networks
from contone.numerics.networks import Networks, Phase, Tensor
from contone.numerics.scaling import min_max_scaling
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Matrix, Presets

LEAST = 1e-4
"""Floor under deviations, under softplus in e, and under the parameters of a Dirichlet distribution."""
BOOSTS = 3
"""By how much the shape of a gamma variable is raised where it is drawn: its draws are then a smooth function of noise,
but for the 2 % that a sampler would reject."""
TIES = 1e-10
"""Weight of distances of features in the order of neighbours: less than any difference of cosines of labels."""


@estimator
class LEIC(Enhancer):
    """Degrees from a code, a cluster and the neighbours of a row, learnt jointly (Lu, Li and Jia 2023).

    Needs torch (``pip install 'contone[torch]'``). The method is transductive, and holds n x n matrices and a tensor
    (n, q + 1, n_code); its linear maps have 2 q (q + 1) n_code weights. With confidences in place of L, a label is
    relevant where its confidence is positive.

    Parameters
    ----------
    label_weight : float, default=4.0
        lambda, what a label adds to its parameter of the posterior. Large values give L, normalised.
    n_code : int, default=64
        Entries of z.
    n_neighbors : int, default=20
        Rows with the most similar labels (cosine) that a row is joined to; cut to n - 1.
    learning_rate : float, default=1e-3
        Of Adam.
    epochs : int, default=500
        Steps, each with all rows; part of the model, no warning.
    random_state : int, RandomState or None, default=0
        Seed of the start and of the draws.

    Notes
    -----
    The defaults are those of the authors' program; the preset ``original_sjaffe`` has the setting that it names for
    that set. Answers depend on where training stops: on SJAFFE they get worse from some hundred steps on.

    Examples
    --------
    >>> X, L = [[0.0], [0.1], [5.0], [5.1]], [[1, 0], [1, 1], [0, 1], [0, 1]]
    >>> LEIC(epochs=20).fit_enhance(X, L).argmax(axis=1).tolist()[2:]
    [1, 1]
    """

    reference = "Lu, Li & Jia, Label Enhancement via Joint Implicit Representation Clustering, IJCAI 2023"
    kinds = frozenset({"torch"})
    PRESETS: ClassVar[Presets] = {
        "original_sjaffe": {"label_weight": 1.0, "n_code": 128, "epochs": 150, "random_state": 123}
    }
    SEARCH: ClassVar[Domains] = {"label_weight": [0.25, 1.0, 4.0], "epochs": [50, 150, 500]}
    label_weight: float = parameter(NOT_NEGATIVE, default=4.0)
    n_code: int = parameter(WIDTH, default=64)
    n_neighbors: int = parameter(COUNT, default=20)
    learning_rate: float = parameter(POSITIVE, default=1e-3)
    epochs: int = parameter(COUNT, default=500)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: Array, L: Array) -> Solution:
        networks.require_torch(self)
        n, q = L.shape
        scaled = networks.to_tensor(min_max_scaling(X)(X))
        marked = networks.to_tensor(L > 0).to(scaled.dtype)
        graph = like(label_graph(to_numpy(marked), to_numpy(scaled), self.n_neighbors), scaled)
        rows = Rows(scaled, marked, graph, smooth(graph, scaled))
        sizes = network_sizes(X.shape[1], q, self.n_code)
        rng = networks.generator(self.random_state)
        start = networks.initial_parameters(sizes, rng, start="uniform")
        draws, weight = get_backend(scaled).draws(rng, scaled), float(self.label_weight)

        def loss(nets: Networks, _: Tensor) -> Tensor:
            normal = draws.standard_normal((n, self.n_code)), draws.standard_normal((n, q))
            total: Tensor = objective(nets, rows, Noise(*normal, draws.random((BOOSTS, n, q))), weight) / n
            return total

        trained = networks.train([Phase(loss, self.epochs, lambda _: self.learning_rate)], sizes, start, scaled)
        shape = encode(networks.unpack(like(trained.value, scaled), sizes), rows, weight).shape
        return trained.with_value(like(shape / shape.sum(dim=1, keepdim=True), X))

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        parameters = networks.count_parameters(network_sizes(d, q, self.n_code))
        held = 10.0 * n * n + 12.0 * n * (q + 1.0) * self.n_code + 6.0 * parameters
        return super()._fit_bytes(n, d, q) + 8.0 * held


class Rows(NamedTuple):
    """X (n, d) scaled, L (n, q) in {0, 1}, the graph (n, n) with self loops, and G~ X (n, d)."""

    X: Tensor
    L: Tensor
    graph: Tensor
    smoothed: Tensor


class Noise(NamedTuple):
    """Normal draws for z (n, n_code) and p (n, q), and uniform ones for p (BOOSTS, n, q)."""

    z: Tensor
    p: Tensor
    u: Tensor


class Posterior(NamedTuple):
    """Mean and deviation of z (n, n_code), logarithms of q (n, C), and the parameters of p (n, q)."""

    mean: Tensor
    deviation: Tensor
    log_cluster: Tensor
    shape: Tensor


def label_graph(L: Matrix, X: Matrix, k: int) -> Matrix:
    """1 (n, n) where one row is among the k others with the most similar labels of the other, and on the diagonal.

    # Paper: ties, which logical labels make in plenty, fall as a sort leaves them; here the rows nearer in X are first.
    """
    n = len(L)
    unit = L / np.maximum(np.linalg.norm(L, axis=1, keepdims=True), 1e-300)
    squares = (X**2).sum(axis=1)
    far = np.maximum(squares[:, None] + squares - 2.0 * (X @ X.T), 0.0)
    order = TIES * far / max(float(far.max()), 1e-300) - np.round(unit @ unit.T, 9)
    np.fill_diagonal(order, np.inf)
    graph = np.eye(n)
    nearest = np.argsort(order, axis=1, kind="stable")[:, : min(k, n - 1)]
    np.put_along_axis(graph, nearest, 1.0, axis=1)
    return np.maximum(graph, graph.T)


def smooth(graph: Tensor, X: Tensor) -> Tensor:
    """G~ X with G~ = D^-1/2 G D^-1/2."""
    root = graph.sum(dim=1, keepdim=True).rsqrt()
    return root * (graph @ (root * X))


def network_sizes(d: int, q: int, n_code: int) -> dict[str, tuple[int, ...]]:
    """Widths of the linear maps."""
    return {
        "mean": (d, n_code),
        "deviation": (d, n_code),
        "cluster": (d, q + 1),
        "labels": (d, q),
        "x_mean": (n_code, d),
        "x_deviation": (n_code, d),
        "z_mean": (q, (q + 1) * n_code),
        "z_deviation": (q, (q + 1) * n_code),
    }


def encode(nets: Networks, rows: Rows, label_weight: float) -> Posterior:
    """The posterior of all rows."""
    mean = networks.forward(nets["mean"], rows.smoothed, ())
    deviation = networks.positive(networks.forward(nets["deviation"], rows.smoothed, ()), LEAST)
    log_cluster = networks.forward(nets["cluster"], rows.smoothed, ()).log_softmax(dim=1)
    own = networks.positive(networks.forward(nets["labels"], rows.X, ()), LEAST)
    e = spread_over_labels(own, log_cluster.detach().exp(), rows.L)
    # Paper: a label that nobody has, has e = 0 / 0 there, and a parameter of 0 would be no distribution.
    return Posterior(mean, deviation, log_cluster, (e + label_weight * rows.L).clamp(min=LEAST))


def spread_over_labels(own: Tensor, cluster: Tensor, L: Tensor) -> Tensor:
    """e (n, q), e_i = own_i N_i, of own (n, q), cluster probabilities (n, C) and L (n, q).

    A_i = L^T diag(s_i) L with s_im = q_i . q_m, so that a product with it is two products with L: matrices (n, n) in
    the place of a tensor (n, q, q).
    """
    together = cluster @ cluster.T
    sums = together @ (L.sum(dim=1, keepdim=True) * L)  # row sums of A_i
    root = sums.clamp(min=1e-300).rsqrt().masked_fill(sums <= 0, 0.0)
    return (((own * root) @ L.T) * together) @ L * root


def objective(nets: Networks, rows: Rows, noise: Noise, label_weight: float) -> Tensor:
    """Minus the bound, summed over rows: a pure function of the networks and the noise."""
    import torch
    from torch.distributions import Dirichlet, Normal, kl_divergence

    found = encode(nets, rows, label_weight)
    z = found.mean + found.deviation * noise.z
    p = dirichlet_draw(found.shape, noise)
    x_mean, x_deviation = (networks.forward(nets[f"x_{name}"], z, ()) for name in ("mean", "deviation"))
    of_features = Normal(x_mean, networks.positive(x_deviation, LEAST)).log_prob(rows.X).sum()
    of_labels = expected_label_log_likelihood(found.shape, rows.L)
    of_graph = -torch.nn.functional.binary_cross_entropy_with_logits(z @ z.T, rows.graph, reduction="sum")
    n, C = found.log_cluster.shape
    prior_mean, prior_deviation = (
        networks.forward(nets[f"z_{name}"], p, ()).view(n, C, -1) for name in ("mean", "deviation")
    )
    cluster = found.log_cluster.exp()
    prior = Normal(prior_mean, networks.positive(prior_deviation, LEAST))
    of_z = kl_divergence(Normal(found.mean[:, None], found.deviation[:, None]), prior).sum(dim=2)
    clusters = (cluster * (found.log_cluster + math.log(C))).sum()
    of_p = kl_divergence(Dirichlet(found.shape), Dirichlet(torch.ones_like(found.shape))).sum()
    divergence = clusters + (cluster * of_z).sum() + of_p
    total: Tensor = divergence - of_features - of_labels - of_graph
    return total


def expected_label_log_likelihood(shape: Tensor, L: Tensor) -> Tensor:
    """sum_ij E log Bernoulli(l_ij; p_ij) for p_i ~ Dirichlet(shape_i), exactly: p_ij is Beta(a_j, a_0 - a_j)."""
    # Paper: the program takes it at a draw of p.
    total = shape.sum(dim=1, keepdim=True)
    rest = (total - shape).clamp(min=LEAST)  # of a single label there is none
    return (L * shape.digamma() + (1.0 - L) * rest.digamma() - total.digamma()).sum()


def dirichlet_draw(shape: Tensor, noise: Noise) -> Tensor:
    """Draws (n, q) of Dirichlet(shape_i) as a smooth function of the noise: gamma variables, normalised.

    A gamma variable of shape a is one of shape a + B times prod_i u_i^(1 / (a + i)), i < B, and that of shape b is
    (b - 1/3) (1 + eps / sqrt(9 b - 3))^3 (Marsaglia and Tsang 2000), nearly always accepted where b is not small.
    """
    raised = shape + BOOSTS
    cube = (1.0 + noise.p / (9.0 * raised - 3.0).sqrt()).clamp(min=1e-3)
    logs = (raised - 1.0 / 3.0).log() + 3.0 * cube.log()
    for i in range(BOOSTS):
        logs = logs + noise.u[i].clamp(min=1e-300).log() / (shape + i)
    return logs.softmax(dim=1)
