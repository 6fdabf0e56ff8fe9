"""What counting makes of votes, with features or without: what a method that reads votes has to beat.

counts (n, q) says how often each label of an item was chosen.
"""

from numbers import Real

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, psi

from contone.base import Enhancer, estimator, parameter
from contone.numerics.solution import Solution
from contone.typing import Matrix

PSEUDO_COUNT = 0.01
"""Added to the chance of every label, so that one that no fold has seen is not impossible."""
PRIOR_VOTES = 2.0
"""Votes that a mean from features weighs where no item has two votes: these alone would show its weight."""
FOLDS = 5


@estimator
class Counting(Enhancer):
    """Answers of people, counted: what a comparison of methods that read answers has beside them.

    Parameters
    ----------
    prior : str, default="even"
        What is added to the counts of an item: "even", 1/q of an answer for every label; "dirichlet", a prior that is
        the same for all items, by maximum likelihood; "regression", the same around a logistic regression on X.
    lowest : float, default=0.0
        What counts as nothing: of levels, the lowest.
    """

    reference = "baseline"
    baseline = True
    kinds = frozenset({"unasked", "unlabelled"})
    prior: str = parameter({"even", "dirichlet", "regression"}, default="even", kw_only=False)
    lowest: float = parameter(Real, default=0.0)

    def takes_levels(self) -> bool:
        """Counts of votes, or levels."""
        return True

    def _fit_enhance(self, X: Matrix, L: Matrix) -> Solution:
        counts = np.nan_to_num(L - self.lowest)
        if self.prior == "even":
            return Solution(shares(counts))
        return Solution(dirichlet_multinomial(counts, regressed(X, counts) if self.prior == "regression" else None))


def shares(counts: Matrix) -> Matrix:
    """Shares of the votes, with 1/q of a vote for every label added."""
    return _normalised(counts + 1.0 / counts.shape[1])


def dirichlet_multinomial(counts: Matrix, mean: Matrix | None = None) -> Matrix:
    """Posterior means of the degrees under a Dirichlet prior whose parameters have maximum likelihood.

    Without `mean` (n, q) all items have the same prior of q parameters. With it, that of an item is s times its mean,
    and s is found. Where no item has two votes the weight of the prior is not in the data: it is one vote (the mean is
    the frequencies), or `PRIOR_VOTES`.
    """
    total = counts.sum(axis=1)
    several = bool((total > 1).any())
    if mean is not None:
        weight = _weight(counts, mean) if several else PRIOR_VOTES
        return _normalised(counts + weight * mean)
    frequencies = (counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * counts.shape[1])
    if not several:
        return _normalised(counts + frequencies)

    def loss(log_prior: Matrix) -> tuple[float, Matrix]:
        a = np.exp(log_prior)
        slope = (psi(a + counts) - psi(a)).sum(axis=0) - (psi(a.sum() + total) - psi(a.sum())).sum()
        return _loss(counts, a), -a * slope

    bounds = [(-20, 10)] * counts.shape[1]
    return _normalised(counts + np.exp(minimize(loss, np.log(frequencies), jac=True, bounds=bounds).x))


def regressed(X: Matrix, counts: Matrix) -> Matrix:
    """A logistic regression of the votes on the features (n, d), each item predicted by a fit to the others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    X = StandardScaler().fit_transform(X)
    item, label = np.nonzero(counts)
    fold = np.arange(len(X)) % min(FOLDS, len(X))
    P = np.full(counts.shape, PSEUDO_COUNT)
    for number in range(int(fold.max()) + 1):
        train, test = fold[item] != number, fold == number
        weight = counts[item[train], label[train]]
        if len(np.unique(label[train])) == 1:
            P[test, label[train][0]] += 1.0
            continue
        model = LogisticRegression(max_iter=1000).fit(X[item[train]], label[train], sample_weight=weight)
        P[np.ix_(test, model.classes_)] += model.predict_proba(X[test])
    return _normalised(P)


def _weight(counts: Matrix, mean: Matrix) -> float:
    found = minimize_scalar(lambda log_s: _loss(counts, np.exp(log_s) * mean), bounds=(-7.0, 10.0), method="bounded")
    return float(np.exp(found.x))


def _loss(counts: Matrix, prior: Matrix) -> float:
    """Minus the log likelihood of counts under Dirichlet priors, (q,) or (n, q), up to a constant."""
    return -float(log_chances(counts, prior).sum())


def log_chances(counts: Matrix, prior: Matrix) -> Matrix:
    """Log likelihoods (n,) of counts (n, q) under Dirichlet priors, (q,) or (n, q), up to a constant."""
    whole, total = prior.sum(axis=-1), counts.sum(axis=1)
    chosen = (gammaln(prior + counts) - gammaln(prior)).sum(axis=1)
    return np.asarray(chosen - gammaln(whole + total) + gammaln(whole))


def _normalised(weights: Matrix) -> Matrix:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
