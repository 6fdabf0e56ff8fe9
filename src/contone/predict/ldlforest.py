"""LDLF: a forest of soft decision trees whose leaves are label distributions.

A row goes left at split node s of tree t with probability sigmoid(f_phi_t(s)(x)), where f is a network shared by all
trees and phi_t a random choice of its outputs. With mu_tl(x) the product of the decisions on the way to leaf l,

    p_t(x) = sum_l mu_tl(x) pi_tl,        p(x) = mean_t p_t(x),        pi_tl a distribution over the labels,

    min_{f, pi}  -1/(n T) sum_t sum_i sum_c d_ic log p_t(x_i)_c + l2/2 ||weights of f||^2.

Every iteration makes one step of Adam on f, and updates the leaves from the same pass over the rows,

    pi_tlc <- pi_tlc sum_i d_ic mu_tl(x_i) / p_t(x_i)_c, divided by its sum over c,

which by itself never raises the objective: it is the EM step of a mixture of the leaves.

Reference: W. Shen, K. Zhao, Y. Guo, A. Yuille. Label distribution learning forests. NIPS 2017.
"""

from numbers import Integral
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, WIDTH, DistributionLearner, Interval, estimator, parameter
from contone.numerics.optimise import adam, join, split
from contone.numerics.scaling import standardisation, unscaled
from contone.numerics.simplex import normalise_rows
from contone.numerics.solution import Solution
from contone.predict.maxent import entropy
from contone.runtime.machine import for_each, total
from contone.typing import Array, Presets

BLOCK_ENTRIES = 2**18
"""Rows x trees x leaves of a block, of which about eight arrays are held, of two megabytes each."""
TINY = 1e-12
"""The least p_t(x)_c in a quotient or logarithm."""


@estimator
class LDLForest(DistributionLearner):
    """Label distribution learning forest (LDLF): soft trees over a small network, leaves that are distributions.

    Parameters
    ----------
    n_trees : int, default=5
        T.
    depth : int, default=6
        Decisions on the way to a leaf; a tree has 2^depth leaves. 0 predicts the mean of D.
    n_hidden : int, default=64
        Units of the hidden layer (tanh) of f, which has 2^depth outputs.
    l2 : float, default=0.0
        Weight of the penalty on the weights of f (not on its biases).
    standardize : bool, default=True
        Use z-scores of the features.
    learning_rate : float, default=1e-2
        Of Adam.
    max_iter : int, default=100
        Iterations: part of the model, no warning.
    random_state : int, RandomState or None, default=0
        Start of f, and which outputs a tree uses.

    Attributes
    ----------
    leaves_ : (T, 2^depth, q)
        pi.

    Notes
    -----
    The preset ``published_rate`` has the learning rate of the public implementation, 1e-3. How many iterations go with
    it is not known to us: its 1000 are ours, and so is tanh. The default makes steps of ten times the length, and a
    tenth as many; 100 iterations were set after cross-validation on SJAFFE, where 300 were no better. Where features
    are many, the network can fit the training rows exactly, and `l2` is worth a search.

    There is no `n_jobs`: all trees share one network, so that no tree can be fitted by itself. Blocks of rows are
    computed side by side, on as many threads as OMP_NUM_THREADS says; the answer does not depend on their number.

    Examples
    --------
    >>> X, D = [[-1.0], [0.0], [1.0]], [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    >>> LDLForest(depth=0).fit(X, D).predict([[1.0]]).round(2).tolist()
    [[0.5, 0.5]]
    >>> LDLForest().fit(X, D).predict([[1.0]]).round(1).tolist()
    [[0.1, 0.9]]
    """

    reference = "Shen, Zhao, Guo & Yuille, NIPS 2017"
    PRESETS: ClassVar[Presets] = {"published_rate": {"learning_rate": 1e-3, "max_iter": 1000}}
    _shares_rows = True
    n_trees: int = parameter(COUNT, default=5)
    depth: int = parameter(Interval(Integral, 0, 16, closed="both"), default=6)
    n_hidden: int = parameter(WIDTH, default=64)
    l2: float = parameter(NOT_NEGATIVE, default=0.0)
    standardize: bool = parameter("boolean", default=True)
    learning_rate: float = parameter(POSITIVE, default=1e-2)
    max_iter: int = parameter(COUNT, default=100)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        self._scaling = standardisation(X) if self.standardize else unscaled
        X = self._scaling(X)
        random = check_random_state(self.random_state)
        n_leaves = 2**self.depth
        self._nodes = np.array([random.permutation(n_leaves)[: n_leaves - 1] for _ in range(self.n_trees)])
        start = initial_network(X.shape[1], self.n_hidden, n_leaves, random)
        shapes = [part.shape for part in start]
        # Paper: the public implementation takes a softmax of the sums, which makes leaves nearly one-hot.
        self.leaves_ = np.full((self.n_trees, n_leaves, D.shape[1]), 1.0 / D.shape[1])

        def value_and_gradient(w: np.ndarray) -> tuple[float, np.ndarray]:
            found = evaluate(X, D, split(w, shapes), self._nodes, self.leaves_, self.l2)
            self.leaves_ = updated_leaves(self.leaves_, found.weight)
            return found.value, found.gradient

        solution = adam(value_and_gradient, join(start), learning_rate=self.learning_rate, max_iter=self.max_iter)
        self._network = split(solution.value, shapes)
        found = evaluate(X, D, self._network, self._nodes, self.leaves_, self.l2)
        self.n_iter_ = solution.n_iter
        return Solution(self.leaves_, found.value - entropy(D), solution.residual, solution.n_iter)

    def _predict(self, X: np.ndarray) -> np.ndarray:
        X = self._scaling(X)
        answer = np.empty((len(X), self.leaves_.shape[2]))

        def work(rows: slice) -> None:
            mu = follow(network_outputs(X[rows], self._network)[1], self._nodes).mu[-1]
            answer[rows] = tree_predictions(self.leaves_, mu).mean(axis=0).T

        for_each(work, row_blocks(len(X), self.leaves_.shape[:2]))
        return answer


def initial_network(d: int, n_hidden: int, n_outputs: int, random: np.random.RandomState) -> list[np.ndarray]:
    """Weights and biases of both layers: uniform in +-(6 / (inputs + outputs))^(1/2) (Glorot and Bengio), and 0."""
    layers = []
    for inputs, outputs in ((d, n_hidden), (n_hidden, n_outputs)):
        bound = np.sqrt(6.0 / (inputs + outputs))
        layers += [random.uniform(-bound, bound, size=(inputs, outputs)), np.zeros(outputs)]
    return layers


def network_outputs(X: np.ndarray, network: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The hidden layer (h, n) and f(x) (2^depth, n). Rows come last here and below: they are the long axis."""
    W1, b1, W2, b2 = network
    H = np.tanh(W1.T @ X.T + b1[:, None])
    return H, W2.T @ H + b2[:, None]


def row_blocks(n: int, trees_and_leaves: tuple[int, int]) -> list[slice]:
    """Pieces of n rows, so that rows x trees x leaves stays small."""
    step = max(1, BLOCK_ENTRIES // int(np.prod(trees_and_leaves)))
    return [slice(first, first + step) for first in range(0, n, step)]


class Paths(NamedTuple):
    """What a tree does with every row, level by level from the root."""

    left: list[np.ndarray]
    """Probabilities to go left at the nodes of a level, (T, 2^level, n)."""
    mu: list[np.ndarray]
    """Probabilities to reach the nodes of a level, (T, 2^level, n); the last entry are the leaves."""


def follow(F: np.ndarray, nodes: np.ndarray) -> Paths:
    """The ways of n rows with network outputs F (o, n); nodes (T, 2^depth - 1) says which output a node uses."""
    n_trees, n = len(nodes), F.shape[1]
    paths = Paths([], [np.ones((n_trees, 1, n))])
    width = 1
    while width <= nodes.shape[1]:
        left, mu = F[nodes[:, width - 1 : 2 * width - 1]], paths.mu[-1]
        expit(left, out=left)
        children = np.empty((n_trees, width, 2, n))
        np.multiply(mu, left, out=children[:, :, 0])
        np.subtract(mu, children[:, :, 0], out=children[:, :, 1])
        width *= 2
        paths.left.append(left)
        paths.mu.append(children.reshape(n_trees, width, n))
    return paths


def tree_predictions(leaves: np.ndarray, mu: np.ndarray) -> Array:
    """p_t (T, q, n) from leaves (T, L, q) and the probabilities to reach them (T, L, n)."""
    return np.maximum(leaves.transpose(0, 2, 1) @ mu, TINY)


def updated_leaves(leaves: np.ndarray, weight: np.ndarray) -> Array:
    """pi (T, L, q) after one step that does not raise the objective, from sum_i d_ic mu_tl(x_i) / p_t(x_i)_c."""
    return normalise_rows(leaves * weight)


class Evaluation(NamedTuple):
    """The objective at one point, and what the next step needs."""

    value: float
    gradient: np.ndarray
    """By the joined parameters of the network."""
    weight: np.ndarray
    """sum_i d_ic mu_tl(x_i) / p_t(x_i)_c, (T, L, q)."""


def evaluate(
    X: np.ndarray, D: np.ndarray, network: list[np.ndarray], nodes: np.ndarray, leaves: np.ndarray, l2: float
) -> Evaluation:
    """The objective for X (n, d) and D (n, q), from blocks of rows."""

    def work(rows: slice) -> np.ndarray:
        H, F = network_outputs(X[rows], network)
        paths = follow(F, nodes)
        P = tree_predictions(leaves, paths.mu[-1])
        truth = np.ascontiguousarray(D[rows].T)
        ratio = truth / P
        by_F = through_trees(paths, nodes, -leaves @ ratio, len(F))
        by_hidden = network[2] @ by_F * (1.0 - H**2)
        parts = [(by_hidden @ X[rows]).T, by_hidden.sum(axis=1), H @ by_F.T, by_F.sum(axis=1)]
        return join([-np.sum(truth * np.log(P)), *parts, paths.mu[-1] @ ratio.transpose(0, 2, 1)])

    sums = total(work, row_blocks(len(X), leaves.shape[:2]))
    value, *gradient, weight = split(sums, [(), *(part.shape for part in network), leaves.shape])
    scale = 1.0 / (len(X) * len(nodes))
    penalised = [network[0], 0.0 * network[1], network[2], 0.0 * network[3]]
    penalty = 0.5 * l2 * sum(float(np.sum(part**2)) for part in penalised)
    return Evaluation(scale * float(value) + penalty, scale * join(gradient) + l2 * join(penalised), weight)


def through_trees(paths: Paths, nodes: np.ndarray, by_mu: np.ndarray, n_outputs: int) -> np.ndarray:
    """The gradient by F (o, n) from that by the leaves' probabilities (T, L, n), from the leaves to the root."""
    by_F = np.zeros((n_outputs, by_mu.shape[2]))
    for left, mu in reversed(list(zip(paths.left, paths.mu[1:], strict=True))):
        width = left.shape[1]
        children, right = by_mu.reshape(len(nodes), width, 2, -1), mu.reshape(len(nodes), width, 2, -1)[:, :, 1]
        difference = children[:, :, 0] - children[:, :, 1]
        difference *= left
        by_mu = difference + children[:, :, 1]
        difference *= right
        for outputs, part in zip(nodes[:, width - 1 : 2 * width - 1], difference, strict=True):
            by_F[outputs] += part  # a tree uses an output once
    return by_F
