"""GLERB: ranking-preserved generative label enhancement.

Labels spread to labels that occur with them, as far as no irrelevant label overtakes a relevant one.

    J_jk = |rows with j and k| / |rows with j or k|,    b = J 1,    S = diag(b)^-1/2 J diag(b)^-1/2 = U diag(lam) U^T
    Phi(a) = (1 - a) (I - a S)^-1 = U diag((1 - a) / (1 - a lam_k)) U^T,    m_i = Phi(a_i) l_i,    D^ = m_i / |m_i|_1

    cap(l) = the largest a up to which min_{l_j = 1} (Phi(a) l)_j >= max_{l_j = 0} (Phi(a) l)_j,    a_i = cap(l_i) s_i

The features enter through the rates s_i = sigmoid(w.x_i + w0) alone. They come from a generative model with latent
degrees t_i in (0, 1)^q: t_i ~ uniform, x_i | t_i ~ N(V t_i + v, I), and for each of the K nearest rows j of i (itself
included) l_j | t_i ~ Bernoulli(t_i). The posterior is t_ij ~ Kumaraswamy(A_ij, B_ij), B_i = exp(Wb x_i + wb), with A_ij
such that m_ij is its median; w, w0, Wb, wb, V, v maximise

    ELBO = sum_i log N(x_i; V t_i + v, I) - sum_ij KL_ij
           + lambda sum_ij (l_ij (N log t)_ij + (1 - l_ij) (N log(1 - t))_ij)

with N_ji = 1 where j is a neighbour of i, rows divided by their sums, and KL the divergence from the prior.

Reference: Y. Lu, W. Li, H. Li, X. Jia. Ranking-preserved generative label enhancement. Machine Learning 112(12), 2023.
"""

from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from scipy.special import expit
from sklearn.utils import check_random_state

from contone.backends import get_backend
from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, Enhancer, Interval, estimator, parameter
from contone.numerics import networks
from contone.numerics.networks import Networks, Phase, Tensor
from contone.numerics.scaling import min_max_scaling
from contone.numerics.simplex import normalise_rows
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Presets

FLOOR = 1e-4
"""Medians, draws and their complements stay this far from 0, as in the authors' code."""
RATES = 1.0 - np.logspace(0.0, -4.0, 65)
"""Where the order of the labels is looked at, from 0 to .9999, before the cap is found between two of them."""
SAME_COMPONENT = 1e-9
"""Eigenvalues of S that are this near to 1 are 1: one for each connected part of the label graph."""
LARGEST_LOG_SHAPE = 60.0
"""log B stays within +-60: beyond, every quantity made from B is at its floor."""
TINY = float(np.finfo(float).tiny)
SINGLE_PRECISION = float(np.log(np.finfo(np.float32).max))

ORIGINAL = {"rate": "learned", "init": "ones", "bounded_shape": True, "max_iter": 201, "random_state": 123}
"""What the authors' program has."""


@estimator
class GLERB(Enhancer):
    """Labels spread over the graph of labels that occur together, as far as relevant labels stay above the others.

    Confidences in place of L are spread as they are; a label is relevant where its confidence is positive.

    Parameters
    ----------
    rate : "cap", "learned" or float in [0, 1], default="cap"
        s, the share of the way to the point where an irrelevant label draws level with a relevant one. "cap" goes all
        the way (s = 1), a closed form without features; 0 keeps the labels as they are. "learned" trains a rate for
        each row, which is the method as published, by torch (``pip install 'contone[torch]'``).
    n_neighbors : int, default=8
        K of "learned", counting the row itself.
    lambda_ : float, default=50.0
        Weight of the labels in the objective of "learned".
    init : {"zeros", "ones"}, default="zeros"
        Where the parameters of "learned" start. "ones" is the published start. Where the shapes B would overflow in
        single precision (more than about 170 features), the authors' program starts again from zeros; so does "ones".
    bounded_shape : bool, default=False
        Keep A below 1, as the authors' code does: most medians of the posterior are then not m.
    learning_rate : float, default=1e-3
        Of Adam, for "learned".
    max_iter : int, default=200
        Steps of Adam: part of the model, no warning.
    random_state : int, RandomState or None, default=0
        Draws of "learned"; the others are deterministic.

    Attributes
    ----------
    rates_ : (n,)
        a_i, the rate of each row.
    caps_ : (n,)
        cap(l_i).

    Notes
    -----
    The preset ``original_code`` trains as published. On the Yeast sets its start at 1 leaves s = 1 to four digits, so
    that training has no effect and the answer is that of "cap". Where the features are many enough for the second
    start, at s = 1/2, the answer depends on the number of steps. "cap" has no such dependence; it was made the default
    for that reason, not for its score.

    With one label per row no labels occur together, and the answer is L itself (up to the floor of 1e-4).

    Examples
    --------
    >>> X, L = [[0.0], [1.0], [2.0], [3.0]], [[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 1, 1]]
    >>> GLERB(rate=0.5).fit_enhance(X, L).round(2).tolist()
    [[0.81, 0.17, 0.03], [0.47, 0.45, 0.08], [0.47, 0.45, 0.08], [0.1, 0.43, 0.47]]
    """

    reference = "Lu, Li, Li & Jia, Machine Learning 112(12), 2023"
    PRESETS: ClassVar[Presets] = {"original_code": ORIGINAL}
    SEARCH: ClassVar[Domains] = {"rate": [0.2, 0.4, 0.6, 0.8, "cap"]}
    rate: float | str = parameter(Interval(Real, 0, 1, closed="both"), {"cap", "learned"}, default="cap")
    n_neighbors: int = parameter(COUNT, default=8)
    lambda_: float = parameter(NOT_NEGATIVE, default=50.0)
    init: str = parameter({"zeros", "ones"}, default="zeros")
    bounded_shape: bool = parameter("boolean", default=False)
    learning_rate: float = parameter(POSITIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=200)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        self._graph = label_graph(L)
        self.caps_ = ranking_caps(self._graph, L)
        trained = self._train(X, L) if self.rate == "learned" else Solution(None)
        self.rates_ = self.caps_ * self._shares(X)
        return trained.with_value(degrees(self._graph, L, self.rates_), mean_share=float(np.mean(self._shares(X))))

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        return degrees(self._graph, L, ranking_caps(self._graph, L) * self._shares(X))

    def _train(self, X: np.ndarray, L: np.ndarray) -> Solution:
        """Set w and w0."""
        networks.require_torch(self)
        neighbours = get_backend(X).nearest_neighbours(X, self.n_neighbors - 1) if self.n_neighbors > 1 else None
        evidence = neighbour_evidence(L, None if neighbours is None else neighbours.indices)
        self._scaling = min_max_scaling(X)
        X = self._scaling(X)
        rows = Rows(*map(networks.to_tensor, (X, L @ self._graph.U, self.caps_, *evidence, *self._graph)))
        sizes = network_sizes(X.shape[1], L.shape[1])
        restarted = self.init == "ones" and float(X.sum(axis=1).max()) + 1.0 > SINGLE_PRECISION
        start = np.full(networks.count_parameters(sizes), float(self.init == "ones" and not restarted))
        random, how = check_random_state(self.random_state), (float(self.lambda_), self.bounded_shape)

        def loss(nets: Networks, _: Tensor) -> Tensor:
            u = np.clip(random.uniform(size=L.shape), FLOOR, 1.0 - FLOOR)
            return negative_elbo(nets, networks.to_tensor(u), rows, *how)

        trained = networks.train([Phase(loss, self.max_iter, lambda _: self.learning_rate)], sizes, start, rows.X)
        self._w, self._w0 = np.split(trained.value, [X.shape[1], X.shape[1] + 1])[:2]
        search = {} if neighbours is None else {"neighbours": neighbours.report()}
        return trained.with_value(None, restarted=restarted, **search)

    def _shares(self, X: np.ndarray) -> Array:
        """s (n,)."""
        if self.rate == "learned":
            return expit(self._scaling(X) @ self._w + self._w0)
        return np.full(X.shape[0], 1.0 if self.rate == "cap" else float(self.rate))

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        trained = 8.0 * n * (2 * d + 30 * q) if self.rate == "learned" else 0.0
        return super()._fit_bytes(n, d, q) + trained


# ----------------------------------------------------------------------------------------------------- propagation


class LabelGraph(NamedTuple):
    """S = U diag(lam) U^T of the labels that occur together."""

    U: np.ndarray
    """(q, q), orthonormal columns."""
    lam: np.ndarray
    """(q,), at most 1; exactly 1 once for each connected part."""


def label_graph(L: np.ndarray) -> LabelGraph:
    """The normalised Jaccard similarities of the columns of L > 0, (n, q)."""
    relevant = (L > 0).astype(float)
    both = relevant.T @ relevant
    count = np.diag(both)
    either = count[:, None] + count - both
    # Paper: a label that no row has divides 0 by 0; here it is similar to itself only.
    J = both / np.maximum(either, 1.0)
    np.fill_diagonal(J, 1.0)
    root = np.sqrt(J.sum(axis=1))
    # Paper: the code uses a solver for general matrices; S is symmetric.
    lam, U = np.linalg.eigh(J / root[:, None] / root)
    return LabelGraph(U, np.where(lam > 1.0 - SAME_COMPONENT, 1.0, lam))


def filters(lam: Array, a: Array) -> Array:
    """f(a, lam) = (1 - a) / (1 - a lam), (m, q), for rates a (m,) and eigenvalues lam (q,); 1 where lam is 1."""
    xp, one, a = array_namespace(lam, a), lam == 1.0, a[:, None]
    return xp.where(one, 1.0, (1.0 - a) / xp.where(one, 1.0, 1.0 - a * lam))


def propagate(graph: LabelGraph, L: np.ndarray, a: np.ndarray) -> Array:
    """Phi(a_i) l_i for the rows of L (m, q) and rates a (m,)."""
    return (L @ graph.U * filters(graph.lam, a)) @ graph.U.T


def gap(graph: LabelGraph, L: np.ndarray, a: np.ndarray) -> Array:
    """By how much the least relevant label of Phi(a_i) l_i is above the largest other one, (m,); inf without others."""
    M = propagate(graph, L, a)
    return np.min(np.where(L > 0, M, np.inf), axis=1) - np.max(np.where(L > 0, -np.inf, M), axis=1)


def ranking_caps(graph: LabelGraph, L: np.ndarray) -> np.ndarray:
    """cap(l_i), (n,): where the gap changes its sign first, found once for each distinct row of L (n, q)."""
    member, first = get_backend(L).group_duplicates(L)
    patterns = L[first]
    m = len(patterns)
    low, high = np.zeros(m), np.full(m, np.nan)  # gap(low) > 0 >= gap(high); no high was found yet
    for a in RATES[1:]:
        searched = np.flatnonzero(np.isnan(high))
        level = gap(graph, patterns[searched], np.full(len(searched), a)) <= 0.0
        high[searched[level]] = a
        low[searched[~level]] = a
    found = np.flatnonzero(~np.isnan(high))
    for _ in range(50):
        middle = (low[found] + high[found]) / 2
        level = gap(graph, patterns[found], middle) <= 0.0
        high[found[level]] = middle[level]
        low[found[~level]] = middle[~level]
    # Paper: the root is sought above 1/2 only, and a row with all labels fails. Here from 0, and such a row has cap 1.
    caps = np.ones(m)
    caps[found] = low[found]
    return caps[member]


def degrees(graph: LabelGraph, L: np.ndarray, a: np.ndarray) -> Array:
    """D^ (n, q) from labels and rates a (n,)."""
    return normalise_rows(np.clip(propagate(graph, L, a), FLOOR, 1.0 - FLOOR))


# -------------------------------------------------------------------------------------------------- learning the rate


class Rows(NamedTuple):
    """What stays the same while the rates are learned."""

    X: Tensor
    """(n, d), scaled."""
    H: Tensor
    """L U, (n, q)."""
    caps: Tensor
    """(n,)."""
    relevant: Tensor
    """N^T L, (n, q): how much evidence for t the neighbours give."""
    irrelevant: Tensor
    """N^T (1 - L), (n, q): evidence against it."""
    U: Tensor
    lam: Tensor
    """Of the label graph, (q, q) and (q,)."""


def network_sizes(d: int, q: int) -> dict[str, tuple[int, ...]]:
    """Widths of the linear maps: w and w0, Wb and wb, V and v."""
    return {"rate": (d, 1), "shape": (d, q), "features": (q, d)}


def neighbour_evidence(L: np.ndarray, others: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """N^T L and N^T (1 - L), (n, q) each, from each row's neighbours (n, K - 1) without itself.

    N_ji = 1 where j is i or a neighbour of i, divided by the number of rows that count j: l_j is explained by those.
    """
    n = len(L)
    own = np.arange(n)[:, None]
    indices = own if others is None else np.hstack([own, others])
    share = 1.0 / np.bincount(indices.ravel(), minlength=n)
    relevant, total = np.zeros(L.shape), np.zeros(n)
    for column in indices.T:
        relevant += share[column, None] * L[column]
        total += share[column]
    return relevant, total[:, None] - relevant


def kumaraswamy_divergence(A: Tensor, B: Tensor) -> Tensor:
    """KL(Kumaraswamy(A, B) || uniform on [0, 1])."""
    return A.log() + B.log() + (1.0 - A) / A * ((1.0 + B).digamma() + np.euler_gamma) + 1.0 / B - 1.0


def negative_elbo(nets: Networks, u: Tensor, rows: Rows, lambda_: float, bounded_shape: bool) -> Tensor:
    """Minus the ELBO per row, for one draw t = (1 - u^(1/B))^(1/A) made from uniform noise u (n, q).

    Where a quantity is at its floor nothing flows through it.
    """
    s = networks.forward(nets["rate"], rows.X, ()).sigmoid()[:, 0]
    median = _inside((rows.H * filters(rows.lam, rows.caps * s)) @ rows.U.T)
    B = networks.forward(nets["shape"], rows.X, ()).clamp(-LARGEST_LOG_SHAPE, LARGEST_LOG_SHAPE).exp()
    base = _inside(-(-np.log(2.0) / B).expm1())  # 1 - 2^(-1/B)
    # Paper: the code keeps A below 1 - 1e-4 too; any A > 0 is a shape, and only then is m the median.
    A = (base.log() / median.log()).clamp(FLOOR, 1.0 - FLOOR if bounded_shape else np.inf)
    y = (-(u.log() / B).expm1()).clamp(min=TINY)  # 1 - u^(1/B)
    t = _inside((y.log() / A).exp())
    misfit = networks.forward(nets["features"], t, ()) - rows.X
    fit = rows.relevant * t.log() + rows.irrelevant * (-t).log1p()
    value: Tensor = 0.5 * misfit.square().sum() - lambda_ * fit.sum() + kumaraswamy_divergence(A, B).sum()
    return value / len(rows.X)


def _inside(A: Tensor) -> Tensor:
    return A.clamp(FLOOR, 1.0 - FLOOR)
