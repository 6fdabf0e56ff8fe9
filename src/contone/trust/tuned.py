"""Enhancers that choose their parameters, or the method itself, on a rehearsal: no truth is used."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from contone.base import COUNT, POSITIVE, WHOLE, Enhancer, HasMethods, Interval, estimator, parameter
from contone.enhance import Inversion
from contone.enhance.graded import Graded, fit_graded
from contone.enhance.rescaled import Rescaled
from contone.exceptions import AnswerError, LabelError, LabelWarning
from contone.numerics.solution import Solution
from contone.runtime.warnings import warn
from contone.trust.rehearsal import Rehearsal
from contone.trust.search import Found, search
from contone.trust.trial import counting_methods, named_methods, reads
from contone.typing import Array, EstimatorLike, Record
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees

DEFAULT_METHODS = ("temperature", "lp", "glle", "lesc", "lemll", "inversion")
"""What `Best` chooses from unless it is told: one method of every kind, all of them fast."""


@estimator
class _Rehearsed(Graded):
    """What `Tuned` and `Best` share: a fitted method behind the one that was given."""

    reference = "this library; docs/fair-comparison.md"
    kinds = frozenset({"torch", "dask", "unasked", "unlabelled"})
    unlabelled_get = ""  # the chosen method says it
    n_iter: int = parameter(COUNT, default=20)
    n_replicates: int = parameter(COUNT, default=3)
    max_rows: int = parameter(Interval(Integral, 2, None, closed="left"), default=5000)
    model: Inversion | None = parameter(Inversion, None, default=None)
    random_state: int = parameter(WHOLE, default=0)
    budget: float | None = parameter(POSITIVE, None, default=None)
    n_jobs: int | None = parameter(Integral, None, default=None)
    verbose: bool | None = parameter("boolean", None, default=None)

    def _methods(self) -> dict[str, Enhancer]:
        """What is chosen from, by name."""
        raise NotImplementedError

    def takes_levels(self) -> bool:
        """Whether the model of the rehearsal does: votes and levels of people are rehearsed as such."""
        return self._model().takes_levels()

    def _model(self) -> Inversion:
        """The given model; else a method that reads answers of people says how they were asked."""
        if self.model is not None:
            return self.model
        inside = getattr(self, "enhancer", None)
        return inside if isinstance(inside, Inversion) and inside.reads_answers() else Inversion()

    def _choose(
        self, X: Array, L: Array, known: KnownDegrees, space: Record | None = None, *, temperature: bool = True
    ) -> tuple[dict[str, Found], Solution]:
        """What a rehearsal says of each method, the best first; and that one, fitted to the real data."""
        sizes = {name: int(getattr(self, name)) for name in ("n_replicates", "max_rows", "random_state")}
        rehearsal = Rehearsal(X, L, self._model(), degrees=known, **sizes)
        methods = _able(self._methods(), rehearsal)
        how: Record = {"n_iter": self.n_iter, "n_jobs": self.n_jobs, "seed": self.random_state, "verbose": self.verbose}
        budget = None if self.budget is None else self.budget / len(methods)
        found = {
            name: search(method, rehearsal, space, temperature=temperature, budget=budget, **how)
            for name, method in methods.items()
        }
        order = sorted(found, key=lambda name: (bool(found[name].best.error), found[name].best.score))
        best = found[order[0]].best
        if best.error:
            raise AnswerError(f"{order[0]} failed on every rehearsed data set: {best.error}")
        self.rehearsal_warnings_, self.rehearsal_remarks_ = rehearsal.warnings, rehearsal.remarks
        settled = clone(methods[order[0]]).set_params(**best.params)
        self.best_estimator_ = fit_graded(Rescaled(settled, t=best.temperature), X, L, known)
        self.best_params_ = {**best.params, "temperature": best.temperature}
        self.best_score_ = best.score
        solution: Solution = self.best_estimator_.solution_
        info = {"rehearsed_score": best.score, "temperature": best.temperature}
        answer = solution.with_value(self.best_estimator_.label_distributions_, **info)
        return {name: found[name] for name in order}, answer

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        return self.best_estimator_._enhance(X, L)

    def _predict(self, X: np.ndarray) -> Array:
        return self.best_estimator_._predict(X)


@estimator
class Tuned(_Rehearsed):
    """An enhancer with the parameters that do best on a rehearsal of the data, and a temperature on its answer.

    Parameters
    ----------
    enhancer : Enhancer
        The method to tune.
    search : dict or None, default=None
        Lists or scipy distributions by parameter; None is the method's own space, `SEARCH`.
    temperature : bool, default=True
        Let the answer be rescaled (`Rescaled`).
    n_iter : int, default=20
        How many settings to try; the given one is among them.
    n_replicates, max_rows, model, random_state : default=3, 5000, None, 0
        Of `Rehearsal`. Where the enhancer is an Inversion that reads answers of people, it is the model, too.
    budget : float or None, default=None
        Seconds of rehearsing after which no further setting is tried; the given one always is, on one replicate.
    n_jobs : int or None, default=None
        Processes, as joblib counts them; inside ``joblib.parallel_config`` whatever that says, e.g. dask's workers.
    verbose : bool or None, default=None
        Show a progress bar with an estimate on stderr: always, never, or on a terminal (None).

    Attributes
    ----------
    best_params_ : dict
        What was chosen, the temperature under "temperature".
    best_score_ : float
        Its KL relative to that of the uniform distribution, as rehearsed.
    best_estimator_ : Rescaled
        The method with these parameters, fitted to the data.
    rehearsal_ : dict of lists
        What was tried, a column per key (``pandas.DataFrame(method.rehearsal_)``): params, temperature, score,
        n_replicates, seconds, error.
    rehearsal_warnings_, rehearsal_remarks_ : tuple of str
        Why the rehearsal may mislead, and what the labels leave open; empty where nothing speaks against it.

    Examples
    --------
    >>> from contone import CumulativeMass, Temperature
    >>> rng = np.random.default_rng(0)
    >>> X, D = rng.normal(size=(200, 2)), rng.dirichlet([4.0] * 5, size=200)
    >>> method = Tuned(Temperature(c=0.2)).fit(X, CumulativeMass().apply(D))
    >>> bool(2 < method.best_params_["temperature"] < 6)
    True
    """

    enhancer: EstimatorLike = parameter(HasMethods(["fit_enhance", "set_params"]), kw_only=False)
    search: Record | None = parameter(dict, None, default=None)
    temperature: bool = parameter("boolean", default=True)

    def _methods(self) -> dict[str, Enhancer]:
        return {type(self.enhancer).__name__: self.enhancer}

    def _fit_enhance(self, X: Array, L: Array, known: KnownDegrees = NOTHING_KNOWN) -> Solution:
        found, answer = self._choose(X, L, known, self.search, temperature=self.temperature)
        (tried,) = (each.tried for each in found.values())
        keys = ("params", "temperature", "score", "n_replicates", "seconds", "error")
        self.rehearsal_ = {key: [getattr(candidate, key) for candidate in tried] for key in keys}
        return answer

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        return float(self.enhancer._fit_bytes(n, d, q))


@estimator
class Best(_Rehearsed):
    """The method that a rehearsal prefers, each one tuned.

    The rehearsal's data come from the model of `Inversion`, which is therefore at its best there. Where the model does
    not fit, the rehearsal warns; the choice is then in doubt, too.

    Parameters
    ----------
    methods : sequence, mapping or None, default=None
        Names, classes or instances of enhancers; None is one of every kind, or where the model reads answers of
        people, itself and what counts them.
    n_iter : int, default=10
        Settings to try per method.
    n_replicates, max_rows, model, random_state : default=3, 2000, None, 0
        As in `Tuned`.
    budget, n_jobs, verbose : default=None
        As in `Tuned`.

    Attributes
    ----------
    best_name_ : str
        Which method it is.
    best_params_, best_score_, best_estimator_
        As in `Tuned`.
    comparison_ : dict of lists
        The best setting of every method, best first, a column per key: method, score, params, temperature, error.
    """

    methods: Any = parameter(list, tuple, dict, None, default=None, kw_only=False)
    n_iter: int = parameter(COUNT, default=10)
    max_rows: int = parameter(Interval(Integral, 2, None, closed="left"), default=2000)

    def _methods(self) -> dict[str, Enhancer]:
        if self.methods is None and self._model().reads_answers():
            return {"Inversion": self._model(), **counting_methods(self._model())}
        return named_methods(self.methods if self.methods is not None else DEFAULT_METHODS)

    def _fit_enhance(self, X: Array, L: Array, known: KnownDegrees = NOTHING_KNOWN) -> Solution:
        found, answer = self._choose(X, L, known)
        self.best_name_ = next(iter(found))
        keys = ("score", "params", "temperature", "error")
        best = {key: [getattr(each.best, key) for each in found.values()] for key in keys}
        self.comparison_ = {"method": list(found), **best}
        return answer


def _able(methods: dict[str, Enhancer], rehearsal: Rehearsal) -> dict[str, Enhancer]:
    """The methods that take labels such as those of a rehearsal; the others are left out with a warning."""
    able = {name: method for name, method in methods.items() if reads(method, rehearsal.replicates[0].labels)}
    others = ", ".join(name for name in methods if name not in able)
    why = f"{others}: not for these labels ({rehearsal.model.degradation_.in_words()}), only for 0 and 1"
    if not able:
        raise LabelError(f"{why}. Use Inversion(degradation=...), or give 0/1 labels.")
    if others:
        warn(f"{why}; left out.", LabelWarning)
    return able
