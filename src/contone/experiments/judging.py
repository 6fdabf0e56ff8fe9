"""What is made of a few answers of people per item, and how far it is from those that were left out.

There is no truth here. The degree of a label is the share of people who would choose it, so the answers of others say
how good an estimate is: the score is the mean over items of the log loss of the left-out answers, in nats, with
probabilities clipped at 1e-9.

A label enhancement method takes 0 and 1. Of k answers it is given those labels that more than half of them name
("majority"; those named most often where there is none), or those that anybody names ("any"). Beside them stand methods
that read the counts: counting, the Dirichlet-multinomial, Dawid and Skene's model, a logistic regression.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from contone.base import Enhancer
from contone.enhance import counting
from contone.exceptions import DataError
from contone.experiments.answers import Answers
from contone.experiments.describe import build
from contone.measurements import Votes
from contone.measures import cross_entropy
from contone.typing import Data, Matrix, Record

LEAST = 1e-9
"""Probabilities are clipped here before their logarithm is taken."""

EM_STEPS, EM_TOLERANCE = 200, 1e-6
PSEUDO_COUNT = 0.01
"""Of every entry of a confusion matrix of Dawid and Skene's model."""


def judge(task: Record, answers: Answers, seed: int) -> tuple[dict[str, float], Record]:
    """The log loss of the left-out answers, and the same at the best temperature in hindsight; more about both."""
    given, left = answers.split(task["k"], seed)
    judged = left.counts()
    if not judged.any():
        raise DataError(f"No item has more than {task['k']} answers: none is left to judge by. Give fewer of them.")
    if "counts" in task:
        R = COUNTERS[task["counts"]](given)
    else:
        R = np.asarray(_answer(build(task["estimator"]), given, task["reading"]))
    loss, (tempered, exponent) = log_loss(judged, R), best_temperature(judged, R)
    extra = {"exponent": exponent, "judged": int(judged.any(axis=1).sum())}
    return {"log_loss": loss, "log_loss_tempered": tempered}, extra


def _answer(method: Enhancer, given: Answers, reading: str) -> Data:
    """A method's degrees (n, q): from votes by the people who gave them, where that is known, or from marks."""
    if reading != "votes":
        return method.fit_enhance(given.X, marks(given, reading))
    # Labels that are numbers, such as one to five stars, are levels of one scale.
    method.set_params(degradation=Votes(ordered=all(map(str.isdigit, given.labels))))
    counts = given.counts()
    single = np.array_equal(given.n_answers(), counts.sum(axis=1))
    if not single or (given.worker < 0).any() or not counts.any(axis=1).all():
        return method.fit_enhance(given.X, counts)
    order = np.argsort(given.item, kind="stable")
    item, votes = given.item[order], np.eye(len(given.labels))[given.label[order]]
    return method.fit_enhance(given.X[item], votes, groups=item, annotators=given.worker[order])  # type: ignore[call-arg]


def log_loss(counts: Matrix, R: Matrix) -> float:
    """The mean over items of the mean log loss of their answers (n, q), probabilities clipped at 1e-9."""
    return cross_entropy(counts, np.maximum(R, LEAST))


def best_temperature(counts: Matrix, R: Matrix) -> tuple[float, float]:
    """The least log loss of R^t, normalised, over t, and that t: chosen by the answers that judge it."""
    logs = np.log(np.maximum(R, LEAST))

    def loss(log_t: float) -> float:
        return log_loss(counts, softmax(np.exp(log_t) * logs, axis=1))

    found = minimize_scalar(loss, bounds=(-7.0, 5.0), method="bounded")
    return float(found.fun), float(np.exp(found.x))


def marks(answers: Answers, reading: str) -> Matrix:
    """Logical labels (n, q) of the given answers; a row of zeros for an item without any."""
    counts, n = answers.counts(), answers.n_answers()[:, None]
    if reading == "any":
        return (counts > 0).astype(float)
    majority = counts > n / 2
    leading = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
    return np.where(majority.any(axis=1, keepdims=True), majority, leading).astype(float)


def dawid_skene(answers: Answers) -> Matrix:
    """Chances of each item's one true label (Dawid and Skene 1979); people without an id are one person."""
    q, n = len(answers.labels), len(answers.X)
    person = np.unique(answers.worker, return_inverse=True)[1]
    T = counting.shares(answers.counts())
    for _ in range(EM_STEPS):
        share = T.mean(axis=0) + 1e-12
        confusion = np.full((int(person.max()) + 1, q, q), PSEUDO_COUNT)  # person, answer, truth
        np.add.at(confusion, (person, answers.label), T[answers.item])
        confusion /= confusion.sum(axis=1, keepdims=True)
        logs = np.tile(np.log(share), (n, 1))
        np.add.at(logs, answers.item, np.log(confusion)[person, answers.label])
        new = softmax(logs, axis=1)
        moved, T = float(np.abs(new - T).max()), new
        if moved < EM_TOLERANCE:
            break
    return T


COUNTERS: dict[str, Callable[[Answers], Matrix]] = {
    "Counting": lambda answers: counting.shares(answers.counts()),
    "Dirichlet-multinomial": lambda answers: counting.dirichlet_multinomial(answers.counts()),
    "Dirichlet-multinomial (features)": lambda answers: counting.dirichlet_multinomial(
        answers.counts(), counting.regressed(answers.X, answers.counts())
    ),
    "Dawid-Skene": dawid_skene,
    "Logistic regression": lambda answers: counting.regressed(answers.X, answers.counts()),
}
"""Rows that read the counts, and how."""
