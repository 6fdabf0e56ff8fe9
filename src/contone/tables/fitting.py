"""A method fitted to the problem that a table poses, and the degrees of all rows."""

import inspect
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone

from contone import enhance
from contone.base import Enhancer
from contone.base.template import on_simplex
from contone.enhance.calibrated import Calibrated
from contone.enhance.graded import takes_degrees
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.people.model import PeopleFit
from contone.exceptions import ArgumentError, LabelError
from contone.runtime.progress import Progress
from contone.tables.columns import Columns
from contone.tables.reading import Problem, refuse_few_labelled
from contone.tables.settings import Reading
from contone.typing import EstimatorLike, Matrix

Ends = tuple[Matrix, Matrix]
"""Lower and upper ends of intervals, each (n, q)."""

PEOPLE = ("votes", "marks", "levels")
"""Rules under which persons differ."""
UNSET = "cumulative"
"""The rule of a method that was given none."""


@dataclass(frozen=True)
class FittedProblem:
    """A problem with a method that is fitted to it, and the degrees D (n, q) of its rows."""

    problem: Problem
    method: Enhancer
    D: Matrix
    fitted_rows: NDArray[np.bool_]
    """Which rows the method was fitted on, (n,)."""

    def intervals(self, level: float | None) -> Ends | None:
        """Lower and upper ends (n, q) of the degrees of all rows; None where no level is asked for."""
        if level is None:
            return None
        method = with_intervals(self.method)
        low, high = (np.asarray(end) for end in method.intervals(level=level))
        if self.fitted_rows.all():
            return low, high
        ends = np.empty((2, *self.D.shape))
        ends[:, self.fitted_rows] = low, high
        ends[:, ~self.fitted_rows] = method.intervals(self.problem.item_features[~self.fitted_rows], None, level)
        return ends[0], ends[1]

    def rows(self) -> Problem:
        """The rows of the fit."""
        return self.problem.subset(self.fitted_rows)

    def judged_by_reference(self) -> tuple[int, int] | None:
        """How many items have their reference answer as the first label, and how many have one; None for none."""
        answers = self.problem.answers
        if answers is None or not answers.reference:
            return None
        first = [answers.labels[j] for j in self.D.argmax(axis=1)]
        places = {int(number): row for row, number in enumerate(self.problem.numbers)}
        known = [(places[i], right) for i, right in answers.reference.items() if i in places]
        return sum(first[row] in right for row, right in known), len(known)

    def compare_errors(self, progress: Progress) -> tuple[float, float] | None:
        """The expected error without and with graded rows, where the method knows it; takes a second fit."""
        found = [getattr(self.method, name, None) for name in ("error_before_", "error_after_", "expected_error_")]
        if found[0] is not None and found[1] is not None:
            return float(found[0]), float(found[1])
        if found[2] is None:
            return None
        with progress.working("fitting once more without the graded rows, to compare"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first fit has said it
            again = clone(self.method)
            _fit(replace(self.rows(), graded=None), again)
            return float(again.expected_error_), float(found[2])


def named_method(method: str | Enhancer, reading: Reading | None = None) -> Enhancer:
    """A fresh, unfitted method of that name, of the class at ``module:Class``, or like the one given.

    It reads labels by the rule that was asked for. Where there are graded rows, one that takes no degrees is calibrated
    by them.
    """
    if not isinstance(method, str) and (isinstance(method, type) or not hasattr(method, "fit_enhance")):
        raise ArgumentError(f"must be the name of a method, or a method with its settings; got {method!r}.", "method")
    fresh = enhance.find(method)() if isinstance(method, str) else cast(Enhancer, clone(method))
    if reading is not None and reading.rule is not None and not read_by(fresh, reading.rule, always=True):
        raise ArgumentError(f"{type(fresh).__name__} assumes no rule: leave it out, or use inversion.", "rule")
    is_graded = reading is not None and reading.graded is not None
    return Calibrated(fresh) if is_graded and not takes_degrees(fresh) else fresh


def with_intervals(method: EstimatorLike) -> EstimatorLike:
    """The method, if it gives intervals; else an error."""
    if not hasattr(method, "intervals"):
        raise ArgumentError(f"{type(method).__name__} gives no intervals; inversion does.", "intervals")
    return method


def refuse_without_features(method: Enhancer, chosen: Columns) -> None:
    """A table of labels only is for methods that can do without features: baselines, and the model of Inversion."""
    if not chosen.features and not method.baseline and not isinstance(method, Inversion):
        raise ArgumentError(
            "no numeric column is left that could be a feature. Name columns of categories with --categorical, of free "
            f"text with --text; {type(method).__name__} needs features, these methods can do without: inversion, "
            f"{', '.join(name for name, cls in enhance.methods().items() if cls.baseline)}.",
            "features",
        )


def read_by(method: Enhancer, rule: str, *, always: bool = False) -> bool:
    """Let a method, and what it stands around, read labels by a rule; whether it assumes any.

    A rule that somebody has set stays, but where it should `always` be this one.
    """
    known = method.get_params(deep=True)
    rules = [name for name in ("degradation", "enhancer__degradation") if name in known]
    method.set_params(**{name: rule for name in rules if always or known[name] == UNSET})
    if "model" in known and (always or known["model"] is None):  # chosen on a rehearsal: the model makes the labels
        method.set_params(model=Inversion(degradation=rule))
    return bool(rules) or "model" in known


def reads_people(method: Enhancer) -> bool:
    """Whether a method is to read the answers of persons who differ."""
    rule = method.get_params(deep=False).get("degradation")
    return (rule if isinstance(rule, str) else type(rule).__name__.lower()) in PEOPLE


def takes_answers(method: object) -> bool:
    """Whether a fitted method can say more of new items by what people said of them."""
    return isinstance(getattr(method, "fit_", None), PeopleFit)


def posterior_of_answers(method: Inversion, problem: Problem, level: float | None) -> tuple[Matrix, Ends]:
    """Degrees of items given the answers to them, and ends of intervals; persons of the fit are known by name."""
    assert isinstance(method.fit_, PeopleFit)
    numbers = {str(name): w + 1 for w, name in enumerate(method.annotator_names_ or ())}
    person = np.array([numbers.get(name, 0) for name in problem.annotators or [""] * problem.Y.height])
    answers = problem.Y.to_numpy().astype(np.float64)
    found = method.fit_.posterior(problem.item_features, answers, item=problem.groups, person=person)
    low, high = method._ends(found, 0.9 if level is None else level)
    mean = on_simplex(np.asarray(found.mean), (len(problem.item_features), len(problem.label_names)), method)
    return mean, (np.asarray(low), np.asarray(high))


def fit_problem(problem: Problem, method: Enhancer, progress: Progress) -> FittedProblem:
    """Fit on all rows, or on those with a label: then the others are predicted."""
    refuse_without_features(method, problem.columns)
    if not problem.columns.features:
        progress.note("  no features: the degrees come from the labels alone")
    if problem.rule is not None:
        read_by(method, problem.rule)
    labelled, is_answered = problem.labelled, problem.groups is not None
    with progress.working(f"enhancing with {type(method).__name__}"):
        if (problem.reading.unlabelled == "predict" or is_answered) and not labelled.all():
            return _fit_labelled(problem, method, labelled, progress)
        try:
            _fit(problem, method)
        except LabelError as error:
            if labelled.all():
                raise
            raise LabelError(
                f"{error} On the command line, --unlabelled predict fits on the other rows and predicts these; "
                "--unlabelled drop leaves them out."
            ) from error
    return FittedProblem(problem, method, np.asarray(method.label_distributions_), np.ones(len(labelled), dtype=bool))


def _fit_labelled(problem: Problem, method: Enhancer, labelled: NDArray[np.bool_], progress: Progress) -> FittedProblem:
    """Fit on the rows with a label, and predict the others."""
    refuse_few_labelled(labelled)
    count, predict = int((~labelled).sum()), getattr(method, "predict", None)
    if predict is None:
        name = type(method).__name__
        raise ArgumentError(
            f"{name} cannot predict the {count} rows without a label: use another, or drop them.", "unlabelled"
        )
    _fit(problem.subset(labelled), method)
    progress.note(f"  {count:,} rows without a label are predicted from their features")
    D = np.empty((len(labelled), len(problem.label_names)))
    D[labelled] = method.label_distributions_
    D[~labelled] = predict(problem.item_features[~labelled])
    if problem.graded is not None:
        D = np.where(np.isnan(problem.graded), D, problem.graded)
    return FittedProblem(problem, method, D, labelled)


def _fit(problem: Problem, method: Enhancer) -> None:
    """Fit to labels, and to degrees or annotators where there are any."""
    evidence: dict[str, object] = {} if problem.graded is None else {"degrees": problem.graded}
    if problem.groups is not None:
        if "groups" not in inspect.signature(method.fit).parameters:
            raise ArgumentError(f"{type(method).__name__} takes one annotator per item; inversion takes any.", "worker")
        evidence["groups"] = problem.item_names
        if problem.annotators is not None and reads_people(method):
            evidence["annotators"] = np.array(problem.annotators, dtype=object)
    method.fit(problem.X, problem.Y, **evidence)


def table_of_persons(fitted: FittedProblem) -> pl.DataFrame:
    """One row per person, the most informative first; with reference answers, how many were judged and were right."""
    if not reads_people(fitted.method):
        raise ArgumentError("persons are told apart by the rules votes, marks and levels.", "annotators")
    table: Any = fitted.method.annotators_
    frame = pl.DataFrame({name: list(table[name]) for name in getattr(table, "columns", table)}, strict=False)
    answers = fitted.problem.answers
    if answers is None or not answers.reference:
        return frame
    judged, right = Counter[str](), Counter[str]()
    for i, name, said in zip(answers.item.tolist(), answers.annotators or (), answers.Y, strict=True):
        if i in answers.reference:
            judged[name] += 1
            right[name] += {answers.labels[j] for j in np.flatnonzero(said > 0)} == set(answers.reference[i])
    people = [str(name) for name in frame["annotator"]]
    of_people = {"judged": judged, "right": right}
    return frame.with_columns(pl.Series(name, [count[n] for n in people]) for name, count in of_people.items())
