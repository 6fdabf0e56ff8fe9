"""Real people in the fair comparison: every method gets k answers per item, and is judged by those left out.

There is no truth here. The degree of a label is the share of people who would choose it, so the answers of others say
how good an estimate is: the score is the mean over items of the log loss of the left-out answers, in nats, with
probabilities clipped at 1e-9.

A set is a ``.npz`` file with the arrays X (n, d), `item`, `worker` (-1: unknown), `label`, one entry per vote or mark,
and `labels`, the names. Lines of one worker about one item are one answer with several marks.

A label enhancement method takes 0 and 1. Of k answers it is given those labels that more than half of them name
("majority"; those named most often where there is none), or those that anybody names ("any"). Beside them stand methods
that read the counts: counting, the Dirichlet-multinomial, Dawid and Skene's model, a logistic regression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import clone

from contone.base import Enhancer
from contone.datasets.archive import read_arrays
from contone.enhance import Inversion, counting
from contone.exceptions import DataError, InputError
from contone.experiments.describe import build, describe, fingerprint, random_parameters
from contone.experiments.plan import Cell, Plan, check_max_rows
from contone.experiments.report import make
from contone.experiments.report.scores import as_grid
from contone.experiments.sources import content_hash
from contone.experiments.store import Results, Store, load_results
from contone.measurements import Votes
from contone.measures import cross_entropy
from contone.pages import blocks, words
from contone.pages.blocks import Fold, Grid, Items, Section
from contone.runtime.files import check_regular
from contone.typing import Data, Matrix, Record

NAME = "people"
"""The name of the experiment."""

LEAST = 1e-9
"""Probabilities are clipped here before their logarithm is taken."""

READINGS = ("majority", "any")

COUNTING = ("Counting", "Dirichlet-multinomial")
"""The rows that a method has to beat: without features."""

TITLE = "Methods judged by answers of people"

EM_STEPS, EM_TOLERANCE = 200, 1e-6
PSEUDO_COUNT = 0.01
"""Of every entry of a confusion matrix of Dawid and Skene's model."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """Votes or marks of people on items.

    Attributes
    ----------
    X : (n, d)
        Features of the items.
    item, worker, label : (m,)
        One entry per vote or mark.
    labels : tuple of str
        Names of the q labels.
    """

    X: Matrix
    item: Numbers
    worker: Numbers
    label: Numbers
    labels: tuple[str, ...]

    def split(self, k: int, seed: int) -> tuple[Answers, Answers]:
        """k answers of each item, drawn at random, and all others; an item with fewer gives all that it has."""
        answer = self._answers()
        order = np.random.default_rng(seed).permutation(int(answer.max()) + 1)
        first = np.unique(answer, return_index=True)[1]
        item = self.item[first]
        by_item = np.lexsort((order, item))
        rank = np.empty(len(by_item), dtype=np.int64)
        starts = np.searchsorted(item[by_item], np.arange(len(self.X)))
        rank[by_item] = np.arange(len(by_item)) - starts[item[by_item]]
        given = (rank < k)[answer]
        return self._part(given), self._part(~given)

    def sample(self, size: int) -> Answers:
        """The answers on a random sample of that many items, the same in every run; all where there are no more."""
        if not 0 < size < len(self.X):
            return self
        kept = np.sort(np.random.default_rng(0).choice(len(self.X), size, replace=False))
        part = self._part(np.isin(self.item, kept))
        return replace(part, X=self.X[kept], item=np.searchsorted(kept, part.item))

    def counts(self) -> Matrix:
        """How often each label was chosen for each item, (n, q)."""
        n, q = len(self.X), len(self.labels)
        return np.bincount(self.item * q + self.label, minlength=n * q).reshape(n, q).astype(float)

    def n_answers(self) -> Numbers:
        """Answers per item, (n,); several marks of one worker are one."""
        first = np.unique(self._answers(), return_index=True)[1]
        return np.bincount(self.item[first], minlength=len(self.X))

    def _answers(self) -> Numbers:
        """The number of the answer that each line belongs to."""
        single = np.where(self.worker < 0, np.arange(len(self.item)), -1)
        lines = np.stack([self.item, self.worker, single], axis=1)
        found: Numbers = np.unique(lines, axis=0, return_inverse=True)[1].reshape(-1)
        return found

    def _part(self, chosen: NDArray[np.bool_]) -> Answers:
        return replace(self, item=self.item[chosen], worker=self.worker[chosen], label=self.label[chosen])


def read_answers(path: Path) -> Answers:
    """The set in a file."""
    check_regular(path)
    names = ("X", "item", "worker", "label", "labels")
    found = read_arrays(path, names)
    absent = [name for name in names if name not in found]
    if absent:
        raise DataError(f"{path} has no array {absent[0]!r}: a set of answers has {', '.join(names)}.")
    X, labels = np.asarray(found["X"], dtype=np.float64), tuple(map(str, found["labels"]))
    if X.ndim != 2 or not np.isfinite(X).all():
        raise DataError(f"{path}: X must be a matrix of finite numbers, one row per item.")
    for name, end in (("item", len(X)), ("worker", None), ("label", len(labels))):
        values = found[name]
        if values.shape != found["item"].shape or values.ndim != 1 or values.dtype.kind not in "iu":
            raise DataError(f"{path}: {name} must be a list of whole numbers, as long as item.")
        if end is not None and not ((values >= 0) & (values < end)).all():
            raise DataError(f"{path}: {name} must be between 0 and {end - 1}.")
    if not len(found["item"]):
        raise DataError(f"{path} holds no answers.")
    item, worker, label = (found[name].astype(np.int64) for name in ("item", "worker", "label"))
    return Answers(X, item, worker, label, labels)


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


# ---------------------------------------------------------------------------------------------------------------- cells


def plan_people(
    folder: Path,
    methods: Mapping[str, Enhancer],
    *,
    answers: Sequence[int] = (1, 3),
    seeds: int = 3,
    max_rows: int | None = None,
) -> Plan:
    """A cell for every row, set, number of answers and seed; a seed draws the answers and seeds the method.

    With `max_rows` a random sample of that many items stands for every larger set.
    """
    check_max_rows(max_rows)
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise InputError(f"{folder} has no set of answers: a .npz file with X, item, worker, label and labels.")
    if any(k < 1 for k in answers) or not answers:
        raise InputError(f"answers={answers!r}: give whole numbers of at least 1.")
    code = fingerprint("contone.experiments.people")
    cells = []
    for file in files:
        source = {"file": str(file.resolve()), "max_rows": max_rows or 0}
        whole, used = read_answers(file), _load(source)
        name = file.stem if len(used.X) == len(whole.X) else f"{file.stem} ({len(used.X):,} items)"
        about: Record = {"experiment": NAME, "dataset": name, "source": source, "degradation": {}}
        about |= {"data_hash": _content(used)}
        for k, seed in product(answers, range(seeds)):
            for row, task, estimator in _rows(methods, k, used.labels):
                task = {"kind": NAME, "k": k, "code": code, **task}
                if estimator is not None:
                    seeded = clone(estimator).set_params(**dict.fromkeys(random_parameters(estimator), seed))
                    task["estimator"] = describe(seeded)
                method = type(estimator).__name__ if estimator is not None else row
                place = {"row": row, "method": method, "setting": {"k": k}, "baseline": estimator is None}
                cells.append(Cell(**(about | place), task=task, seed=seed))
    return Plan(cells)


def _load(source: Record) -> Answers:
    return read_answers(Path(source["file"])).sample(source["max_rows"])


def _rows(
    methods: Mapping[str, Enhancer], k: int, labels: Sequence[str]
) -> Iterator[tuple[str, Record, Enhancer | None]]:
    for name in COUNTERS:
        yield name, {"counts": name}, None
    # Labels that are numbers, such as one to five stars, are levels of one scale.
    votes = Votes(ordered=all(map(str.isdigit, labels)))
    yield "Inversion (votes)", {"reading": "votes"}, Inversion(degradation=votes)
    for name, method in methods.items():
        for reading in READINGS if k > 1 else READINGS[:1]:  # of one answer they are the same
            yield name if reading == "majority" else f"{name} (any)", {"reading": reading}, method


def _content(answers: Answers) -> str:
    return content_hash(answers.X, answers.item, answers.worker, answers.label)


def outcome(cell: Cell) -> Record:
    """What a cell gives: the log loss of the left-out answers, and the same at the best temperature in hindsight."""
    answers = _load(cell.source)
    if _content(answers) != cell.data_hash:
        raise InputError(f"{cell.dataset} has other content than in the plan.")
    given, left = answers.split(cell.task["k"], cell.seed or 0)
    if "counts" in cell.task:
        R = COUNTERS[cell.task["counts"]](given)
    else:
        R = np.asarray(_answer(build(cell.task["estimator"]), given, cell.task["reading"]))
    judged = left.counts()
    loss, (tempered, exponent) = log_loss(judged, R), best_temperature(judged, R)
    return {
        "scores": {"log_loss": loss, "log_loss_tempered": tempered},
        "solution": {},
        "extra": {"exponent": exponent, "judged": int(judged.any(axis=1).sum())},
        "data": {"n": len(answers.X), "d": answers.X.shape[1], "q": len(answers.labels)},
    }


def _answer(method: Enhancer, given: Answers, reading: str) -> Data:
    """A method's degrees (n, q): from votes by the people who gave them, where that is known, or from marks."""
    if reading != "votes":
        return method.fit_enhance(given.X, marks(given, reading))
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


# ------------------------------------------------------------------------------------------------------------ report


def make_report(store: Store) -> make.Report:
    """The table of a store for every number of answers, the best row of a set in bold."""
    results = load_results(store)
    sections, said = [], []
    for k in sorted({int(entry.setting["k"]) for entry in results.of(NAME)}):
        loss, tempered = (table(results, k, measure) for measure in ("log_loss", "log_loss_tempered"))
        fold = Fold("At the best temperature", (tempered,), "chosen by the answers that judge it: a bound, no score")
        question = "The log loss of the left-out answers: less is better. Baselines read the counts of the answers."
        sections.append(Section(f"answers-{k}", f"Given {words.count(k, 'answer')} per item", (loss, fold), question))
        said.append(f"Given {words.count(k, 'answer')} per item, {_verdict(loss)}")
    about = "Methods are given a few answers per item and judged by the answers that were left out, in nats."
    first = sections[0].grids()[0] if sections else Grid("", (), ())
    summary = Section("summary", "Summary", (Items(tuple(said or ["No results are here yet."])),))
    order = summary, *sections, make.failed(results), make.provenance(results)
    return make.as_report(results, TITLE, about, order, said, first)


def table(results: Results, k: int, measure: str) -> Grid:
    """Mean scores of all rows on all sets, given k answers; the best mean first, rows that lack a set last."""
    datasets, lines = results.datasets(NAME), []
    for row, kind in results.kinds(NAME).items():
        values = [results.score(NAME, dataset, row, measure, {"k": k}) for dataset in datasets]
        if any(value is not None for value in values):
            lines.append((row, kind, [blocks.Cell(_three(v), v) for v in values], None))
    title = f"Log loss of the left-out answers, given {words.count(k, 'answer')} per item"
    grid = as_grid(title, datasets, lines, _three, False, with_shares=False)
    order = sorted(grid.rows, key=lambda row: math.inf if row.cells[0].value is None else row.cells[0].value)
    return replace(grid, rows=tuple(order))


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _verdict(loss: Grid) -> str:
    """Which rows that are no baselines beat counting, and on how many sets."""
    rows = {row.name: [math.inf if c.value is None else c.value for c in row.cells[1:]] for row in loss.rows}
    best = [min(pair) for pair in zip(*(rows[name] for name in COUNTING), strict=True)]
    methods = [row.name for row in loss.rows if row.kind == "method"]
    wins = {name: sum(v < b for v, b in zip(rows[name], best, strict=True)) for name in methods}
    ahead = ", ".join(f"{name} ({n})" for name, n in sorted(wins.items(), key=lambda pair: -pair[1]) if n)
    what = f"beat counting (the better of its two rows), on how many of {words.count(len(best), 'set')}"
    return f"these {what}: {ahead}." if ahead else "no method beats counting on any set."
