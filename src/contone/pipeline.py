"""scikit-learn's pipeline with the methods of an enhancer: `fit_enhance` and `enhance` through all steps.

scikit-learn's own `Pipeline` knows `fit` and `predict` only. A method of contone may stand at its end, but `predict`
gives the degrees from the features alone, without the labels: for Inversion, the prior. The degrees of the fitted rows
are then ``pipeline[-1].label_distributions_``. This class has a method for each, and refuses frames whose rows do not
belong together before a step in between drops their index.
"""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import pipeline as sklearn_pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from contone.base import Estimator
from contone.typing import Array, Data, EstimatorLike
from contone.validation.containers import open_border, refuse_other_index
from contone.validation.groups import border_of_items


class Pipeline(sklearn_pipeline.Pipeline):  # numpydoc ignore=PR02
    """Steps that transform the features, and an enhancer at the end.

    Everything of scikit-learn's `Pipeline` is there: parameters of steps by ``step__name``, ``memory``, slices,
    metadata routing. Metadata for `fit_enhance`, such as `degrees`, is routed as for `fit`.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and steps; all but the last transform, the last is an enhancer.
    transform_input : list of str, default=None
        Metadata that goes through the steps before the one that asks for it, as in scikit-learn.
    memory : str or joblib.Memory, default=None
        Where fitted transformers are kept.
    verbose : bool, default=False
        Say how long each step took.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from contone import LCdr, make_pipeline
    >>> X, L = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 1.0]]), np.array([[1, 0], [1, 1], [0, 1]])
    >>> pipeline = make_pipeline(StandardScaler(), LCdr())
    >>> D = pipeline.fit_enhance(X, L)
    >>> bool((D == LCdr().fit_enhance(StandardScaler().fit_transform(X), L)).all())
    True
    """

    def fit(self, X: Data, y: Data = None, **params: object) -> Self:
        """Fit all steps, the enhancer last, to features X (n, d) and labels y (n, q)."""
        refuse_other_index(X, y)
        super().fit(X, y, **params)
        return self

    def fit_enhance(self, X: Data, Y: Data, **params: object) -> Data:
        """Fit all steps and return the distributions (n, q) of these rows in the kind of container that Y came in."""
        self.fit(X, Y, **params)
        method = self.steps[-1][1]
        border = open_border(Y, method.label_names_)
        if hasattr(method, "groups_"):  # one row per item
            X, border = None, border_of_items(border, np.arange(len(method.groups_)), method.groups_)
        return method.wrapped(border, X, method.label_distributions_)

    def enhance(self, X: Data, Y: Data) -> Data:
        """Recover the distributions (m, q) of new rows that have labels, as the enhancer at the end does."""
        check_is_fitted(self)
        refuse_other_index(X, Y)
        return self.steps[-1][1].enhance(self._transformed(X), Y)

    @available_if(lambda self: hasattr(self.steps[-1][1], "predict"))
    def predict(self, X: Data, **params: object) -> Data:
        """The degrees (m, q) of new rows from their features alone; a frame in gives a frame out."""
        found, method = super().predict(X, **params), self.steps[-1][1]
        if not hasattr(X, "columns") or hasattr(found, "columns") or not isinstance(method, Estimator):
            return found
        return method.wrapped(open_border(X, method.label_names_), X, found)

    def intervals(self, X: Data = None, Y: Data = None, level: float = 0.9) -> tuple[Data, Data]:
        """Credible intervals of any rows, or of those of the fit, where the enhancer at the end gives them."""
        check_is_fitted(self)
        refuse_other_index(X, Y)
        found: tuple[Data, Data] = self.steps[-1][1].intervals(None if X is None else self._transformed(X), Y, level)
        return found

    def set_output(self, *, transform: str | None = None) -> Self:
        """The container of what the steps give: "default", "pandas" or "polars"; of the degrees as well."""
        super().set_output(transform=transform)
        if isinstance(self.steps[-1][1], Estimator):
            self.steps[-1][1].set_output(transform=transform)
        return self

    def _transformed(self, X: Data) -> Array:
        return self[:-1].transform(X) if len(self.steps) > 1 else X

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What scikit-learn's pipeline hides because its last step lacks it: the step says why."""
            steps = self.__dict__.get("steps")
            if steps and name in ("predict", "score"):
                getattr(steps[-1][1], name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def make_pipeline(*steps: EstimatorLike, memory: object = None, verbose: bool = False) -> Pipeline:
    """A `Pipeline` whose steps are named after their classes, as scikit-learn's `make_pipeline` names them.

    Parameters
    ----------
    *steps : estimators
        All but the last transform, the last is an enhancer.
    memory : str or joblib.Memory, default=None
        Where fitted transformers are kept.
    verbose : bool, default=False
        Say how long each step took.
    """
    return Pipeline(sklearn_pipeline.make_pipeline(*steps).steps, memory=memory, verbose=verbose)
