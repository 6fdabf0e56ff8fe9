"""The augmentation in front of any enhancer: (X, L) -> (X~, F) -> D^.

Kou et al., "Data Augmentation for Label Enhancement", Algorithm 1. Label confidence F replaces the logical labels L,
the HSIC projection X~ = X P replaces the features X, and any enhancer is run on the pair.
"""

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from contone.augment.confidence import LabelConfidence
from contone.augment.reduction import HSICReducer
from contone.backends import like
from contone.base import Enhancer, HasMethods, InductiveMixin, estimator, fit_checked, in_its_kind, parameter
from contone.base.words import refuse_unasked
from contone.numerics.simplex import normalise_rows
from contone.numerics.solution import Solution
from contone.typing import Array, Data, EstimatorLike


@estimator
class Augmented(Enhancer):
    """Any enhancer on augmented data: confidences instead of labels, projections instead of features.

    Step 1, confidence:  F = argmin tr F^T (I - S) F  (`LabelConfidence`).
    Step 2, reducer:     X~ = X P, P = argmax HSIC(X P, F)  (`HSICReducer`).
    Step 3, enhancer:    fitted on (X~, F).

    Leaving a step out gives the variants of the paper's ablation: ``confidence=None`` is "L", ``reducer=None`` is "X",
    so X+L is the bare enhancer, X+LC has confidence only, LF+L reduction only, LF+LC both.

    Parameters
    ----------
    enhancer : Enhancer
        The method to run on the augmented data; it must take confidences as labels, as every enhancer here does.
    confidence : Enhancer, "default" or None, default="default"
        Anything with `fit_enhance`; "default" is ``LabelConfidence()``.
    reducer : transformer, "default" or None, default="default"
        Any scikit-learn transformer, fitted as ``fit(X, F)``; "default" is ``HSICReducer()``.

    Attributes
    ----------
    confidence_, reducer_, enhancer_
        The fitted steps (None where left out).
    label_confidence_ : (n, q)
        The labels that the enhancer saw: F, or L with ``confidence=None``.

    Examples
    --------
    >>> from contone import Temperature
    >>> X, L = [[0.0, 1.0], [1.0, 1.0], [3.0, 2.0]], [[1, 0], [1, 1], [0, 1]]
    >>> Augmented(Temperature(c=1.0), confidence=LabelConfidence(n_neighbors=2)).fit_enhance(X, L).round(2).tolist()
    [[0.73, 0.27], [0.55, 0.45], [0.27, 0.73]]
    """

    reference = "Kou et al., Data Augmentation for Label Enhancement, Algorithm 1"
    kinds = frozenset({"torch", "unasked"})
    enhancer: EstimatorLike = parameter(HasMethods(["fit_enhance"]), kw_only=False)
    confidence: EstimatorLike = parameter(HasMethods(["fit_enhance"]), {"default"}, None, default="default")
    reducer: EstimatorLike = parameter(HasMethods(["fit", "transform"]), {"default"}, None, default="default")

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        # Paper: Algorithm 1 wraps both steps in "repeat until convergence"; one convex problem and one eigenproblem
        # need no repetition, so each is solved once.
        self.confidence_ = _step(self.confidence, LabelConfidence)
        self.reducer_ = _step(self.reducer, HSICReducer)
        self.enhancer_ = clone(self.enhancer)
        F = L
        if self.confidence_ is None:
            for step in (self.reducer_, self.enhancer_):
                if isinstance(step, HSICReducer | Enhancer) and "unasked" not in step.kinds:
                    refuse_unasked(step, L)
        else:
            F = like(_fit_step(self.confidence_, X, L, self.label_names_), X)
        self.label_confidence_ = F
        _fit_reducer(self.reducer_, X, F)
        _fit_step(self.enhancer_, self._reduced(X), F, self.label_names_)
        return _joint_solution(self.confidence_, self.reducer_, self.enhancer_)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        steps = (_step(self.confidence, LabelConfidence), _step(self.reducer, HSICReducer), self.enhancer)
        known = [step._fit_bytes(n, d, q) for step in steps if hasattr(step, "_fit_bytes")]
        return max(known, default=super()._fit_bytes(n, d, q))

    @available_if(lambda self: hasattr(self.enhancer, "predict"))
    def predict(self, X: Data) -> Data:
        """Label distributions (m, q) of new rows, where the enhancer predicts; a frame in gives a frame out."""
        return InductiveMixin.predict(self, X)

    @available_if(lambda self: hasattr(self.enhancer, "enhance"))
    def enhance(self, X: Data, Y: Data) -> Data:
        """Label distributions (m, q) of new rows that have labels, where the enhancer can.

        The confidence of a new row is not defined (it is a problem of all rows together); its labels share it equally.
        """
        return Enhancer.enhance(self, X, Y)

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        labels = L if self.confidence_ is None else normalise_rows(L)
        return self.enhancer_._enhance(*in_its_kind(self.enhancer_, self._reduced(X), labels))

    def _predict(self, X: np.ndarray) -> Array:
        return self.enhancer_._predict(*in_its_kind(self.enhancer_, self._reduced(X)))

    def _reduced(self, X: Array) -> Array:
        if isinstance(self.reducer_, HSICReducer):
            return self.reducer_.transform_checked(X)
        return X if self.reducer_ is None else self.reducer_.transform(X)


def _fit_step(step: EstimatorLike, X: Array, L: Array, label_names: list[str]) -> Array:
    """The answer (n, q) of a fitted step; the data has been checked, and the whole reports what the steps say."""
    if isinstance(step, Enhancer):
        step._validate_params()
        fit_checked(step, X, L, label_names)
        return step.label_distributions_
    return step.fit_enhance(X, L)


def _fit_reducer(reducer: EstimatorLike, X: Array, F: Array) -> None:
    """Fit the step of the features, if there is one."""
    if isinstance(reducer, HSICReducer):
        reducer._validate_params()
        reducer.fit_checked(X, F)
    elif reducer is not None:
        reducer.fit(X, F)


def _step(given: EstimatorLike, default: type) -> EstimatorLike:
    """A fresh estimator for a step that is "default", an estimator or None."""
    if given is None:
        return None
    return default() if isinstance(given, str) else clone(given)


def _joint_solution(confidence: EstimatorLike, reducer: EstimatorLike, enhancer: EstimatorLike) -> Solution:
    """The enhancer's solution, the steps before it in `info`; the first step that fell short speaks for the whole."""
    final: Solution = enhancer.solution_
    steps = [] if confidence is None else [confidence.solution_]
    short = next((s for s in [*steps, final] if not s.converged), final)
    info = dict(final.info)
    if confidence is not None:
        first = confidence.solution_
        known = {"objective": first.objective, "residual": first.residual, "n_iter": first.n_iter}
        info["confidence"] = {**known, **first.info}
    if isinstance(reducer, HSICReducer):
        d = reducer.projection_.shape[1]
        info["reducer"] = {"n_components": d, "filled": max(d - reducer.rank_, 0), "hsic": reducer.hsic_}
    return Solution(final.value, final.objective, short.residual, short.n_iter, short.converged, info)
