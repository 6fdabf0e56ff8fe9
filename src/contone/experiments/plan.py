"""spec -> cells: what an experiment asks for, on the data that is available locally.

A cell is one computation, described by plain values. It says *what* is computed (`task`: an enhancer with its
parameters, the limit, ...), on which data, from which logical labels, with which seed. Everything that can change the
number goes into its `key`: the task, the content of the data, the degradation, the seed, the version of the measures
and a fingerprint of the code that computes it. Where it stands in the tables (`experiment`, `row`, `setting`) does not,
so two experiments that need the same number share it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator, clone

from contone import datasets
from contone.enhance import methods as all_methods
from contone.exceptions import DataError, InputError
from contone.experiments.compute import TASKS, modules_of
from contone.experiments.describe import build, describe, digest, fingerprint, named, seeded
from contone.experiments.sources import Data, Source, as_source, load
from contone.experiments.spec import Spec
from contone.typing import Record

MEASURES_VERSION = 1
"""Raise this when a measure is defined differently: every stored score is then computed anew."""

WAYS = {"rehearse": "rehearsed", "grade": "graded"}
"""What a row of methods may ask for beside them, and the kind of task that this is."""

DRAWN = ("graded", "people")
"""Kinds of tasks in which a seed also draws what a method is given."""

Groups = Mapping[str, Sequence[str]]
"""Names that stand for one or several data sets."""


@dataclass(frozen=True)
class Cell:
    """One computation, and its place in an experiment.

    Attributes
    ----------
    experiment, row : str
        The table and the row in which the number stands, e.g. "recovery" and "GLLE (paper)".
    method : str
        The class behind the row, e.g. "GLLE"; for references their name ("limit", "mean_of_truth").
    dataset, data_hash : str
        The data set and the hash of its content.
    task : dict
        What is computed, e.g. ``{"kind": "enhance", "estimator": {"class": ..., "params": ...}}``; see `compute`.
    degradation : dict
        The rule that made L from D, e.g. ``{"class": "CumulativeMass", "params": {"t": 0.5}}``.
    seed : int or None
        None where nothing is random.
    setting : dict
        The parameter that a sensitivity curve varies, e.g. ``{"alpha": 0.1}``; else empty.
    baseline, oracle : bool
        Marks of the row: uses no features; has seen the truth.
    source : dict
        Where the data are, for data that are not found by name; see `contone.experiments.sources`.
    """

    experiment: str
    row: str
    method: str
    dataset: str = ""
    data_hash: str = ""
    task: Record = field(default_factory=dict)
    degradation: Record = field(default_factory=dict)
    seed: int | None = None
    setting: Record = field(default_factory=dict)
    baseline: bool = False
    oracle: bool = False
    source: Record = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The content key: equal keys mean equal numbers."""
        content = {"task": self.task, "data": self.data_hash, "degradation": self.degradation, "seed": self.seed}
        return digest({**content, "measures": MEASURES_VERSION, "code": fingerprint(*modules_of(self.task))})

    @property
    def names(self) -> set[str]:
        """What the row may be asked for by."""
        return {self.method.lower(), self.row.lower()}

    def plain(self) -> Record:
        """The cell and its key as plain values."""
        return {"key": self.key, **asdict(self)}

    def __str__(self) -> str:
        extra = [f"{name}={value}" for name, value in self.setting.items()]
        extra += [f"seed {self.seed}"] if self.seed is not None else []
        return f"{self.experiment}: {self.row} on {self.dataset}" + (f" ({', '.join(extra)})" if extra else "")


@dataclass(frozen=True)
class Plan:
    """Cells to be computed, and data that were left out with the reason."""

    cells: list[Cell]
    missing_data: dict[str, str] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    """Data sets with the content of another one, which stands for both."""


def make_plan(
    chosen: Iterable[Spec],
    *,
    dataset_names: Sequence[Data] = (),
    method_names: Sequence[str] = (),
    seeds: int | None = None,
    max_rows: int | None = None,
    groups: Groups | None = None,
    **reading: Any,
) -> Plan:
    """The cells of these experiments on the data that is available locally.

    Parameters
    ----------
    chosen : specs
        The experiments.
    dataset_names : names, files, data sets or sources
        In place of the spec's own; empty for those.
    method_names : names
        Keep only these methods ("GLLE") or rows ("GLLE (paper)"); baselines and references always stay, because every
        score is shown beside theirs.
    seeds : int or None
        Seeds of a random method, in place of the spec's number.
    max_rows : int or None
        A random sample of this many rows stands for every larger data set, in place of the spec's numbers.
    groups : dict
        Names that stand for other data sets, e.g. ``{"yeast": ("yeast-alpha", ...)}``.
    **reading
        How files are read and data in memory kept; see `as_source`.
    """
    check_max_rows(max_rows)
    plan, seen, wanted = Plan([]), set[str](), {name.lower() for name in method_names}
    for spec in chosen:
        rows = list(spec_rows(spec))
        seen |= {name for row in rows for name in row.names}
        # Every score is to be shown beside baselines and references.
        rows = [r for r in rows if not wanted or r.baseline or "estimator" not in r.task or r.names & wanted]
        names = dataset_names or spec.datasets
        if not names:
            raise InputError("datasets: name at least one data set or file.")
        expanded = [one for n in names for one in ((groups or {}).get(n, (n,)) if isinstance(n, str) else (n,))]
        sources = (as_source(one, **reading) for one in expanded)
        sampled = [replace(s, max_rows=max_rows or spec.max_rows.get(s.name, 0)) for s in sources]
        found = plan_rows(rows, sampled, partial(spec.n_seeds, asked=seeds))
        plan.cells.extend(found.cells)
        plan.missing_data.update(found.missing_data)
        plan.duplicates.update(found.duplicates)
    unknown = sorted(wanted - seen)
    if unknown:
        known = ", ".join(sorted(seen))
        raise InputError(f"No experiment has a method {', '.join(map(repr, unknown))}; there are: {known}.")
    return plan


def plan_rows(rows: Sequence[Cell], sources: Iterable[Source], seeds_of: Callable[[str], int]) -> Plan:
    """Rows, which are cells without data, with their seeds by name, on the data sets that are available locally."""
    plan, first = Plan([]), dict[str, str]()
    for source in dict.fromkeys(sources):
        is_known = not source.file and source.name in datasets.names()
        if is_known and datasets.status(source.name).where == "missing":
            # Nothing is downloaded behind the user's back in the middle of an experiment.
            advice = f"put its file into the folder CONTONE_DATA, or run 'contone data fetch {source.name}'"
            plan.missing_data[source.name] = f"not available locally: {advice}"
            continue
        try:
            data = load(source.name, source.plain())
        except DataError as error:
            if not is_known:
                raise  # a typing error, or a file of the user's own
            plan.missing_data[source.name] = str(error)
            continue
        if data.content in first:
            plan.duplicates[source.file or source.name] = first[data.content]
            continue
        if data.title in first.values():
            raise InputError(f"Two different data sets are called {data.title!r}: rename one of the files.")
        first[data.content] = data.title
        where = source.plain() if source.file or data.title != source.name else {}
        place: Record = {"dataset": data.title, "source": where, "data_hash": data.content}
        for row in rows:
            plan.cells.extend(_cells(row, place, seeds_of(row.row)))
    return plan


def check_max_rows(max_rows: int | None) -> None:
    """Refuse a number of rows that no sample can have."""
    if max_rows is not None and (isinstance(max_rows, bool) or not isinstance(max_rows, Integral) or max_rows < 2):
        raise InputError(f"max_rows={max_rows!r}: must be a whole number of at least 2.")


def _cells(row: Cell, place: Record, seeds: int) -> Iterator[Cell]:
    estimator = row.task.get("estimator")
    is_random = seeded(estimator, 0) != seeded(estimator, 1)
    for seed in range(seeds) if is_random or row.task["kind"] in DRAWN else (None,):
        task = row.task if estimator is None else {**row.task, "estimator": seeded(estimator, seed)}
        yield replace(row, **place, task=task, seed=seed)


# --------------------------------------------------------------------------------------------------------------- rows

_Marked = tuple[Record, BaseEstimator | None]
"""The fields of a cell that a row decides, and its estimator."""


def spec_rows(spec: Spec) -> Iterator[Cell]:
    """The rows of a spec: cells without data, and without a seed."""
    for row in spec.rows:
        expand = next((expand for key, expand in FORMS.items() if key in row), None)
        if expand is None:
            raise InputError(f"{spec.name}: a row needs {', '.join(FORMS)}; it has {sorted(row)}.")
        for marks, estimator in expand(row):
            task = marks.pop("task", {"kind": "enhance"})
            if estimator is not None and spec.learner is not None:
                # In a predictive experiment the enhancer's answer goes on to the spec's learner.
                task = {"kind": "predict", "report": "recovered", **spec.learner, **row.get("task_options", {})}
                task["learner"] = describe(build(spec.learner["learner"]))
            if estimator is not None:
                task = {**task, "estimator": describe(estimator)}
            yield Cell(spec.name, **marks, task=task, degradation=spec.degradation)


def _task_row(row: Record) -> Iterator[_Marked]:
    """A reference: `learners` are those that compete in a limit, `splits` and `seed` those of a floor."""
    kind = row["task"]
    if kind not in TASKS:
        raise InputError(f"There is no task {kind!r}; there are: {', '.join(TASKS)}.")
    options = {name: value for name, value in row.items() if name not in ("task", "name", "oracle")}
    marks = {"row": row.get("name", kind), "method": kind, "oracle": row.get("oracle", False)}
    yield {**marks, "task": {"kind": kind, **options}}, None


def _method_rows(row: Record) -> Iterator[_Marked]:
    known = {cls.__name__: cls for cls in all_methods().values()}
    ways = next(({"task": {"kind": kind, **row[key]}} for key, kind in WAYS.items() if key in row), {})
    for name in known if row["methods"] == "all" else row["methods"]:
        if name not in known:
            raise InputError(f"There is no method {name!r}; there are: {', '.join(known)}.")
        cls = known[name]
        asked = list(cls.PRESETS) if row.get("presets", "all") == "all" else row["presets"]
        presets = {f"{name} ({preset})": cls.preset(preset) for preset in asked if preset in cls.PRESETS}
        variants: dict[str, BaseEstimator] = {name: cls()} if row.get("defaults", True) or not presets else {}
        for variant, estimator in presets.items():
            # A preset that is the default would stand in the table twice.
            if all(describe(estimator) != describe(other) for other in variants.values()):
                variants[variant] = estimator
        for variant, estimator in variants.items():
            if variant not in row.get("except", ()):
                made: Any = named(row["wrap"]) if "wrap" in row else None
                title = row.get("name", "{variant}").format(method=name, variant=variant)
                is_baseline = cls.baseline and not ways and not made
                marks = {"row": title, "method": name, "baseline": is_baseline, **ways}
                yield marks, made(enhancer=estimator) if made else estimator


def _class_rows(row: Record) -> Iterator[_Marked]:
    cls: Any = named(row["class"])
    params = {name: build(value) for name, value in row.get("params", {}).items()}
    params.update(dict.fromkeys(row.get("without", ()), None))
    try:
        base = cls.preset(row["preset"], **params) if "preset" in row else cls(**params)
    except TypeError as error:  # a parameter that the class has not, or one that it needs
        raise InputError(f"A row with class = {row['class']!r} has wrong parameters: {error}.") from error
    marks: Record = {"row": row.get("name", row["class"]), "method": row["class"]}
    if "grid" in row:
        task = {"kind": "oracle_grid", "grid": row["grid"], "measure": row["measure"]}
        yield {**marks, "task": task, "oracle": True}, base
    elif "sweep" in row:
        for parameter, value in ((p, v) for p, values in row["sweep"].items() for v in values):
            yield {**marks, "setting": {parameter: value}}, clone(base).set_params(**{parameter: value})
    else:
        kind = {"oracle": row.get("oracle", False), "baseline": getattr(cls, "baseline", False)}
        yield {**marks, **kind}, base


FORMS = {"methods": _method_rows, "class": _class_rows, "task": _task_row}
"""The key that a row has, and what it expands to."""
