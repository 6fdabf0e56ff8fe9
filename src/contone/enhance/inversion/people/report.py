"""What a fit to answers of people found, for people: the answers, the persons, and how far degrees may be off."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from contone.backends import get_backend
from contone.enhance.inversion.expected_error import ExpectedError
from contone.enhance.inversion.people.model import PeopleFit
from contone.enhance.inversion.posterior import Posterior
from contone.measurements import Measurement

CHANCE = 0.05
"""Probability that a person who leans to no label is said to choose one too often, whatever the number of labels."""


@dataclass(frozen=True)
class AnswersReport:
    """How many answers there were, and what they leave open.

    Attributes
    ----------
    rule : Measurement
    n_items, n_answers, n_persons : int
        Items with an answer, answers to them, and persons who are told apart.
    n_several : int
        Items with two answers or more: they alone tell how far people differ about one item.
    yes_weight : float
        Mean weight of what was chosen.
    """

    rule: Measurement
    n_items: int
    n_answers: int
    n_persons: int
    n_several: int
    yes_weight: float
    explained: None = None

    @classmethod
    def of(cls, fit: PeopleFit, L: np.ndarray, posterior: Posterior, item: np.ndarray | None) -> AnswersReport:
        """Of answers L (n, q) about items `item` (n,), or one row per item."""
        m = posterior.mean.shape[0]
        given = fit.rule.count_answers(L)
        n = given if item is None else np.bincount(item, weights=given, minlength=m)
        D = np.asarray(get_backend(posterior.mean).to_numpy(posterior.mean))
        weight = np.nansum(L * (D if item is None else D[item])) / max(np.nansum(L), 1.0)
        persons = 0 if fit.persons is None else len(fit.persons.answers)
        return cls(fit.rule, int((n > 0).sum()), int(n.sum()), persons, int((n > 1).sum()), float(weight))

    def __str__(self) -> str:
        by = f" by {self.n_persons:,} people" if self.n_persons else ""
        told = f"rule: {self.rule.in_words()} ({self.rule}); {self.n_answers:,} answers{by} to {self.n_items:,} items"
        if self.n_several == 0:
            return f"{told}, one each: how far people differ about one item is not in the data but in a prior"
        return f"{told}, {self.n_several:,} of which have several"


def expect_answer_error(fit: PeopleFit, posterior: Posterior) -> ExpectedError:
    """The error that the draws of the chain say, and that of each row by the width of its posterior."""
    D, width = posterior.mean, posterior.logit_width
    rows = 0.5 * (D * (1.0 - D) ** 2 * width**2).sum(axis=1)
    mean, lower, upper = fit.error
    level = mean / max(float(get_backend(rows).compute(rows.mean())[0]), 1e-300)
    return ExpectedError(mean, lower, upper, rows * level)


def tell_persons(fit: PeopleFit, names: Sequence[Hashable], labels: Sequence[str]) -> dict[str, list[object]]:
    """Columns of a table of persons, those whose answers tell most first."""
    if fit.persons is None:
        return {}
    persons = fit.persons
    order = np.argsort(-persons.bits[0], kind="stable")
    least = persons.offset - float(ndtri(1.0 - CHANCE / len(labels))) * persons.offset_deviation
    most, clear = least.argmax(axis=1), least.max(axis=1) > 0
    columns: dict[str, list[object]] = {
        "annotator": [names[w] for w in order],
        "answers": [int(persons.answers[w]) for w in order],
        "too_often": [labels[most[w]] if clear[w] else "" for w in order],
    }
    for name, values in (("sharpness", persons.sharpness), ("bits", persons.bits)):
        for end, row in zip(("", "_lower", "_upper"), values, strict=True):
            columns[name + end] = [float(row[w]) for w in order]
    return columns
