"""GLEMR: generative label enhancement with a Gaussian mixture and partial ranking.

Latent logits generate the features and the labels of a row:

    z_i ~ N(0, I / lz),   p_i = softmax(z_i),   x_if | p_i, c ~ N(a_fc.p_i + a0_fc, sp(b_fc.p_i + b0_fc)^2),   c <= K,
    Pr(l | p) = 2^-q (1 + sum_j l_j (p_j - 1/q)) = 2^-q (l.p + 1 - |l|/q),

a law on all 2^q label vectors that grows with the mass on the relevant labels (the partial ranking); sp is softplus.
The posterior is z_i ~ N(mu_i, diag v_i), both linear in [x_i, l_i] (v through sp). With z_i = mu_i + sqrt(v_i) eps and
the components' responsibilities rho_i = softmax(loglik_i), the published objective is to maximise

    mean_i { (sum_k rho_ik loglik_ik + ly log(l_i.p_i + 1 - |l_i|/q)) / (1 + ly)
             - 1/2 sum_j (lz (mu_ij^2 + v_ij) - log v_ij) - sum_k rho_ik log rho_ik }.

D^ is E softmax(z) by the logistic approximation, d_j ~ 1 / sum_k exp((mu_k - mu_j) / sqrt(1 + 3/pi^2 (v_j + v_k))).

At the published ly = 1e5 the features weigh a hundred thousandth of the labels. As ly grows, and with a posterior that
is free in every row, each row solves a problem of its own,

    max_{mu, v}  E log(l.softmax(z) + 1 - |l|/q) - 1/2 sum_j (lz (mu_j^2 + v_j) - log v_j),

whose answer is one value for all relevant labels and one for the others, softmax(c l) with a number c for each |l|,
whatever the features (``solver="limit"``).

Reference: Y. Lu, L. He, F. Min, W. Li, X. Jia. Generative label enhancement with Gaussian mixture and partial ranking.
AAAI 2023.
"""

from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.utils import check_random_state

from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, Enhancer, estimator, parameter
from contone.numerics import networks
from contone.numerics.networks import Networks, Phase, Tensor
from contone.numerics.optimise import lbfgs
from contone.numerics.scaling import min_max_scaling
from contone.numerics.simplex import normalise_rows, row_maxima, row_sums, softmax
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Presets

FLOOR = 1e-5
"""Added to variances, deviations, responsibilities and p, as in the authors' code."""
NODES = 8192
"""Quasi-random points of the expectation in "limit". D^ is then within .0002 of its value with 64 times as many at
lz = .1, and within .001 at lz = 1e-3, where the variances reach 1000."""
BLOCK_ENTRIES = 2**20
"""Entries (rows x features x components) that a step of "adam" holds at once."""


@estimator
class GLEMR(Enhancer):
    """Latent logits whose mass on the relevant labels explains the labels; D^ = E softmax(z) under their posterior.

    Confidences in place of L count through their support: a label is relevant where its confidence is positive.

    Parameters
    ----------
    solver : {"limit", "adam"}, default="limit"
        "limit" is the maximum of the objective where every row's posterior is free and the features have no weight: a
        closed problem for each number of relevant labels, deterministic at any number of rows. "adam" trains the linear
        posterior and the mixture as published, by torch (``pip install 'contone[torch]'``); where training ends before
        the maximum, which it does with the published settings, the answer depends on the learning rate and the number
        of steps.
    prior_precision : float, default=0.03
        lz. The authors advise 1e-3 to 1; the default is the middle. Large values give the uniform distribution.
    label_weight : float, default=1e5
        ly, for "adam".
    n_components : int, default=3
        K, for "adam".
    learning_rate : float, default=1e-3
        Of "adam".
    max_iter : int, default=500
        "adam": steps, part of the model, no warning. "limit": maximum number of iterations, with a warning.
    tol : float, default=1e-6
        "limit": largest entry of the gradient.
    random_state : int, RandomState or None, default=0
        Start and noise of "adam"; "limit" is deterministic.

    Attributes
    ----------
    means_, variances_ : (n, q)
        mu and v of the posterior.

    Notes
    -----
    Presets: ``original_code`` has the defaults of the authors' program, which stop so early that on Yeast and SJAFFE
    the answer is far worse than the uniform distribution. ``original_yeast`` and ``original_sjaffe`` have settings of
    the kind that the program ships for these sets; they were presumably chosen there by looking at the truth.

    Examples
    --------
    >>> GLEMR().fit_enhance([[0.0], [1.0], [2.0]], [[1, 0, 0], [1, 1, 0], [0, 1, 1]]).round(2).tolist()
    [[0.46, 0.27, 0.27], [0.39, 0.39, 0.22], [0.22, 0.39, 0.39]]
    """

    reference = "Lu, He, Min, Li & Jia, AAAI 2023"
    PRESETS: ClassVar[Presets] = {
        "original_code": {"solver": "adam", "prior_precision": 1e-3, "random_state": 1},
        "original_yeast": {"solver": "adam", "prior_precision": 0.1, "max_iter": 1000, "random_state": 1},
        "original_sjaffe": {"solver": "adam", "prior_precision": 0.01, "max_iter": 1000, "random_state": 1},
    }
    SEARCH: ClassVar[Domains] = {"prior_precision": [1e-3, 3e-3, 1e-2, 0.03, 0.1, 0.3, 1.0]}
    solver: str = parameter({"limit", "adam"}, default="limit")
    prior_precision: float = parameter(POSITIVE, default=0.03)
    label_weight: float = parameter(NOT_NEGATIVE, default=1e5)
    n_components: int = parameter(COUNT, default=3)
    learning_rate: float = parameter(POSITIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=500)
    tol: float = parameter(POSITIVE, default=1e-6)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        L = (L > 0).astype(float)
        if self.solver == "limit":
            by_row, solution = self._free_posterior(L)
            self.means_, self.variances_ = by_label(by_row[:, 0], L), by_label(by_row[:, 1], L)
            D = expected_softmax_of_groups(by_row, L)
        else:
            solution = self._train(X, L)
            self.means_, self.variances_ = self._posterior(X, L)
            D = expected_softmax(self.means_, self.variances_)
        return solution.with_value(D)

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        L = (L > 0).astype(float)
        if self.solver == "limit":
            return expected_softmax_of_groups(self._free_posterior(L)[0], L)
        return expected_softmax(*self._posterior(X, L))

    def _free_posterior(self, L: np.ndarray) -> tuple[np.ndarray, Solution]:
        """Mean and variance of irrelevant and relevant labels of every row, (n, 2, 2), and what the solver says.

        They are the same for all rows with the same number of labels.
        """
        q = L.shape[1]
        cardinality = L.sum(axis=1).astype(int)
        solve = partial(free_posterior, nodes=normal_nodes(q), tol=self.tol, max_iter=self.max_iter)
        found = {m: solve(q, m, float(self.prior_precision)) for m in np.unique(cardinality).tolist()}
        values = np.zeros((q + 1, 2, 2))  # by number of labels: mean, variance; of an irrelevant label, a relevant one
        for m, solution in found.items():
            values[m] = solution.value
        share = np.bincount(cardinality, minlength=q + 1) / len(L)
        worst = max(found.values(), key=lambda solution: solution.residual)
        objective = float(sum(share[m] * solution.objective for m, solution in found.items()))
        n_iter = max(solution.n_iter for solution in found.values())
        converged = all(solution.converged for solution in found.values())
        return values[cardinality], Solution(None, objective, worst.residual, n_iter, converged)

    def _train(self, X: np.ndarray, L: np.ndarray) -> Solution:
        """Set the weights of the posterior."""
        networks.require_torch(self)
        self._scaling = min_max_scaling(X)
        features, labels = networks.to_tensor(self._scaling(X)), networks.to_tensor(L)
        self._sizes = network_sizes(X.shape[1], L.shape[1], self.n_components)
        weights = float(self.prior_precision), float(self.label_weight)
        random = check_random_state(self.random_state)
        start = 0.1 * random.normal(size=networks.count_parameters(self._sizes))

        def loss(nets: Networks, _: Tensor) -> Tensor:
            return objective(nets, features, labels, networks.to_tensor(random.normal(size=L.shape)), *weights)

        phase = Phase(loss, self.max_iter, lambda _: self.learning_rate)
        trained = networks.train([phase], self._sizes, start, features)
        self._w = trained.value
        return trained

    def _posterior(self, X: np.ndarray, L: np.ndarray) -> list[np.ndarray]:
        return np.hsplit(networks.answer(joint_posterior, self._w, self._sizes, self._scaling(X), L), 2)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        if self.solver == "limit":
            return super()._fit_bytes(n, 0, q) + 10 * 8.0 * min(NODES * q, 2**20 + 256 * q)
        blocks = 10 * 8.0 * min(BLOCK_ENTRIES, float(n) * d * self.n_components)
        return super()._fit_bytes(n, d + q, q) + blocks + 6 * 8.0 * d * q * self.n_components


def label_law(L: Array, P: Array) -> Array:
    """2^q Pr(l_i | p_i) = l.p + 1 - |l|/q, (n,), for L and P (n, q)."""
    return (L * P).sum(axis=1) + 1.0 - L.sum(axis=1) / L.shape[1]


def expected_softmax(mu: np.ndarray, v: np.ndarray) -> Array:
    """E softmax(z) for z ~ N(mu_i, diag v_i), approximately, (n, q); exact for v = 0."""
    D = np.empty_like(mu)
    # A column at a time: the differences of all pairs would be an array (n, q, q).
    for j in range(mu.shape[1]):
        scale = np.sqrt(1.0 + 3.0 / np.pi**2 * (v[:, j, None] + v))
        D[:, j] = -np.logaddexp.reduce((mu - mu[:, j, None]) / scale, axis=1)
    return normalise_rows(np.exp(D))


# -------------------------------------------------------------------------------------------------------- the limit


def by_label(values: np.ndarray, L: np.ndarray) -> Array:
    """Values (n, 2) of irrelevant and relevant labels as an array (n, q), for L (n, q)."""
    return np.where(L > 0, values[:, 1:], values[:, :1])


def expected_softmax_of_groups(by_row: np.ndarray, L: np.ndarray) -> Array:
    """`expected_softmax` (n, q) where irrelevant and relevant labels have one mean and variance each: softmax(c_i l_i).

    The sum of an irrelevant label is q - m + m e^c, e^c times that of a relevant one, m + (q - m) e^-c: the number of
    labels m cancels.
    """
    mu, v = by_row[:, 0], by_row[:, 1]
    c = (mu[:, 1] - mu[:, 0]) / np.sqrt(1.0 + 3.0 / np.pi**2 * v.sum(axis=1))
    return softmax(c[:, None] * L)


def free_posterior(
    q: int, m: int, lz: float, nodes: np.ndarray | None = None, *, tol: float = 1e-6, max_iter: int = 500
) -> Solution:
    """The posterior of a row with m of q labels, as an array (2, 2): mean and variance, irrelevant and relevant label.

    A shift of all means changes no softmax, so the prior takes the sum of the means to 0, and one difference is left;
    the variances are found by their logarithms. Expectations are means over `nodes`, or those of `normal_nodes`.
    """
    if m == q:  # the labels say nothing: the posterior is the prior
        return Solution(np.array([[0.0, 0.0], [1.0 / lz, 1.0 / lz]]), objective=0.5 * q * (np.log(lz) + 1.0))
    eps = normal_nodes(q) if nodes is None else nodes
    start = np.array([0.0, -np.log(lz), -np.log(lz)])
    found = lbfgs(lambda w: limit_objective(w, eps, m, lz), start, tol=tol, max_iter=max_iter)
    difference, log_v0, log_v1 = found.value
    means = [-difference * m / q, difference * (q - m) / q]
    value = np.array([means, np.exp([log_v0, log_v1])])
    return Solution(value, found.objective, found.residual, found.n_iter, found.converged)


def limit_objective(w: np.ndarray, eps: np.ndarray, m: int, lz: float) -> tuple[float, np.ndarray]:
    """Minus the objective of one row and its gradient, at w = (difference of the means, log v_0, log v_1).

    The expectation is the mean over the nodes eps (N, q); the first m labels are the relevant ones.
    """
    q = eps.shape[1]
    sizes, v = np.array([q - m, m]), np.exp(w[1:])  # of irrelevant and relevant labels
    groups = (slice(m, None), slice(None, m))
    means = np.array([-m / q, 1.0 - m / q]) * w[0]
    Z = np.empty_like(eps)
    for columns, mean, variance in zip(groups, means, v, strict=True):
        np.multiply(eps[:, columns], np.sqrt(variance), out=Z[:, columns])
        Z[:, columns] += mean
    Z -= row_maxima(Z)[:, None]
    E = np.exp(Z, out=Z)
    total = row_sums(E)
    mass = row_sums(E[:, :m]) / total
    law = mass + 1.0 - m / q
    # d log(law) / d z_j = p_j (l_j - mass) / law, summed over the labels of a group with the weight eps_j
    by_z = (-mass / (law * total), (1.0 - mass) / (law * total))
    spread = np.array([
        np.mean(factor * np.einsum("ij,ij->i", E[:, columns], eps[:, columns]))
        for columns, factor in zip(groups, by_z, strict=True)
    ])  # fmt: skip
    by_difference = np.mean(mass * (1.0 - mass) / law) - lz * w[0] * m * (q - m) / q
    by_log_v = 0.5 * np.sqrt(v) * spread - 0.5 * sizes * (lz * v - 1.0)
    prior = 0.5 * np.sum(sizes * (lz * (means**2 + v) - w[1:]))
    return float(prior - np.mean(np.log(law))), -np.array([by_difference, *by_log_v])


def normal_nodes(q: int, n_nodes: int | None = None) -> np.ndarray:
    """Quasi-random standard normal points (n_nodes, q), each beside its mirror image; always the same ones.

    With more than 128 labels there are fewer, so that the points keep to 8 MB: the mean over many labels needs no more.
    """
    if n_nodes is None:
        n_nodes = min(NODES, max(256, 2 ** int(np.log2(2**20 / q))))
    random = np.random.default_rng(0)
    if q <= qmc.Sobol.MAXDIM:
        points = (qmc.Sobol(q, scramble=False).random(n_nodes // 2) + random.uniform(size=q)) % 1.0
    else:
        points = random.uniform(size=(n_nodes // 2, q))
    half = ndtri(np.clip(points, 1e-12, 1.0 - 1e-12))
    return np.concatenate([half, -half])


# --------------------------------------------------------------------------------------------------------- training


def network_sizes(d: int, q: int, n_components: int) -> dict[str, tuple[int, ...]]:
    """Widths of the linear maps: the posterior's mu and v, and the mixture's a and b (features by components)."""
    wide = d * n_components
    return {"mu": (d + q, q), "v": (d + q, q), "a": (q, wide), "b": (q, wide)}


def joint_posterior(nets: Networks, X: Tensor, L: Tensor) -> Tensor:
    """mu and v beside each other, (n, 2 q), of rows X (n, d), scaled to [0, 1], with labels L (n, q)."""
    import torch

    inputs = torch.cat([X, L], dim=1)
    mean, raw = (networks.forward(nets[name], inputs, ()) for name in ("mu", "v"))
    return torch.cat([mean, networks.positive(raw, FLOOR)], dim=1)


def objective(nets: Networks, X: Tensor, L: Tensor, eps: Tensor, lz: float, ly: float) -> Tensor:
    """Minus the objective for one draw made from the noise eps (n, q), block by block of rows."""
    from torch.utils.checkpoint import checkpoint

    step = max(1, BLOCK_ENTRIES // nets["a"][0][1].numel())
    if len(X) <= step:
        return -_gain(nets, X, L, eps, lz, ly) / len(X)
    # What is in between is made again for the gradient, so that it is held of one block only.
    gain = partial(checkpoint, _gain, use_reentrant=False, preserve_rng_state=False)
    blocks = zip(*(A.split(step) for A in (X, L, eps)), strict=True)
    return -sum((gain(nets, *rows, lz, ly) for rows in blocks), X.new_zeros(())) / len(X)


def _gain(nets: Networks, X: Tensor, L: Tensor, eps: Tensor, lz: float, ly: float) -> Tensor:
    """What some rows add to the objective."""
    mu, v = joint_posterior(nets, X, L).chunk(2, dim=1)
    P = (mu + v.sqrt() * eps).softmax(dim=1) + FLOOR
    mean, deviation = networks.forward(nets["a"], P, ()), networks.positive(networks.forward(nets["b"], P, ()), FLOOR)
    K = mean.shape[1] // X.shape[1]
    terms = -0.5 * ((X.repeat_interleave(K, dim=1) - mean) / deviation) ** 2 - deviation.log()
    loglik = (terms - 0.5 * np.log(2.0 * np.pi)).view(*X.shape, K).sum(dim=1)
    rho = loglik.softmax(dim=1) + FLOOR
    explained = (rho * loglik).sum() + ly * label_law(L, P).log().sum()
    prior = 0.5 * (lz * (mu**2 + v) - v.log()).sum() + (rho * rho.log()).sum()
    gain: Tensor = explained / (1.0 + ly) - prior
    return gain
