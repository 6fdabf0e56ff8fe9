"""spec -> cells: the rows of an experiment on the data that is available locally."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator, clone

from contone import datasets
from contone.enhance import methods as all_methods
from contone.exceptions import DataError, InputError
from contone.experiments.cells import Cell
from contone.experiments.describe import build, describe, named, random_parameters
from contone.experiments.sources import Loaded, Source, load
from contone.experiments.spec import Spec
from contone.experiments.tasks import TASKS
from contone.typing import Record

Groups = Mapping[str, Sequence[str]]
"""Names that stand for one or several data sets."""

WAYS = {"rehearse": "rehearsed", "grade": "graded"}
"""What a row of methods may ask for beside them, and the kind of task that this is."""


@dataclass(frozen=True)
class Plan:
    """Cells to be computed, and what was left out with the reason."""

    cells: list[Cell]
    missing_data: dict[str, str] = field(default_factory=dict)
    missing_methods: dict[str, str] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    """Data sets with the content of another one, which stands for both."""


class _Row(NamedTuple):
    """A row of a table before it meets data: a cell without any, and its estimator; None for a reference."""

    cell: Cell
    estimator: BaseEstimator | None = None

    @property
    def names(self) -> set[str]:
        """What the row may be asked for by."""
        return {self.cell.method.lower(), self.cell.row.lower()}

    @property
    def is_reference(self) -> bool:
        """Whether every score is to be shown beside it: baselines, the limit, the mean of the truth."""
        return self.cell.baseline or self.estimator is None


def make_plan(
    chosen: Iterable[Spec],
    *,
    dataset_names: Sequence[str | Source] = (),
    method_names: Sequence[str] = (),
    seeds: int | None = None,
    max_rows: int | None = None,
    groups: Groups | None = None,
) -> Plan:
    """The cells of these experiments on the data that is available locally.

    Parameters
    ----------
    chosen : specs
        The experiments.
    dataset_names : names
        Data sets, groups or sources in place of the spec's own; empty for those.
    method_names : names
        Keep only these methods ("GLLE") or rows ("GLLE (paper)"); baselines and references always stay, because every
        score is shown beside theirs.
    seeds : int or None
        Seeds of a random method, in place of the spec's number.
    max_rows : int or None
        A random sample of this many rows stands for every larger data set, in place of the spec's numbers.
    groups : dict
        Names that stand for other data sets, e.g. ``{"yeast": ("yeast-alpha", ...)}``.
    """
    cells: list[Cell] = []
    missing_data: dict[str, str] = {}
    missing_methods: dict[str, str] = {}
    duplicates: dict[str, str] = {}
    wanted = {name.lower() for name in method_names}
    seen: set[str] = set()
    for spec in chosen:
        rows = list(_rows(spec, missing_methods))
        seen |= {name for row in rows for name in row.names}
        rows = [row for row in rows if not wanted or row.is_reference or row.names & wanted]
        first: dict[str, str] = {}
        for source in _sources(dataset_names or spec.datasets, groups):
            source = replace(source, max_rows=max_rows or spec.max_rows.get(source.name, 0))
            try:
                data = _load(source)
            except DataError as error:
                if source.is_file() or source.name not in datasets.names():
                    raise  # a typing error, not a missing file
                missing_data[source.name] = str(error)
                continue
            if data.content in first:
                duplicates[source.file or source.name] = first[data.content]
                continue
            if data.title in first.values():
                raise InputError(f"Two different data sets are called {data.title!r}: rename one of the files.")
            first[data.content] = data.title
            for row in rows:
                cells += _cells(row, source, data, spec.n_seeds(row.cell.row, seeds))
    unknown = sorted(wanted - seen - {name.lower() for name in missing_methods})
    if unknown:
        known = ", ".join(sorted(seen))
        raise InputError(f"No experiment has a method {', '.join(map(repr, unknown))}; there are: {known}.")
    return Plan(cells, missing_data, missing_methods, duplicates)


def expand_names(names: Iterable[str], groups: Groups | None = None) -> list[str]:
    """Data set names with groups expanded, in the registry's spelling, each once, in order."""
    found: dict[str, None] = {}
    for name in names:
        for inner in (groups or {}).get(name, (name,)):
            found[datasets.canonical(inner)] = None
    return list(found)


# --------------------------------------------------------------------------------------------------------------- rows


def _rows(spec: Spec, missing: dict[str, str]) -> Iterator[_Row]:
    """The rows of a spec; a class that is not there is left out, and named in `missing`."""
    for row in spec.rows:
        expand = next((expand for key, expand in FORMS.items() if key in row), None)
        if expand is None:
            raise InputError(f"{spec.name}: a row needs {', '.join(FORMS)}; it has {sorted(row)}.")
        try:
            for marks, estimator in expand(row, missing):
                task = marks.get("task", {"kind": "enhance"})
                if estimator is not None and spec.learner is not None:
                    # In a predictive experiment the enhancer's answer goes on to the spec's learner.
                    task = {"kind": "predict", "report": "recovered", **spec.learner, **row.get("task_options", {})}
                    task["learner"] = describe(build(spec.learner["learner"]))
                blank = {"experiment": spec.name, "dataset": "", "data_hash": "", "degradation": spec.degradation}
                yield _Row(Cell(**{**blank, **marks, "task": task}), estimator)
        except _NotThereError as error:
            missing.update([error.args])


_Marked = tuple[Record, BaseEstimator | None]
"""The fields of a cell that a row decides, and its estimator."""


def _task_row(row: Mapping[str, Any], _: dict[str, str]) -> Iterator[_Marked]:
    """A reference: `learners` are those that compete in a limit, `splits` and `seed` those of a floor."""
    kind = row["task"]
    if kind not in TASKS:
        raise InputError(f"There is no task {kind!r}; there are: {', '.join(TASKS)}.")
    options = {name: value for name, value in row.items() if name not in ("task", "name", "oracle")}
    marks = {"row": row.get("name", kind), "method": kind, "oracle": row.get("oracle", False)}
    yield {**marks, "task": {"kind": kind, **options}}, None


def _method_rows(row: Mapping[str, Any], missing: dict[str, str]) -> Iterator[_Marked]:
    known = {cls.__name__: cls for cls in all_methods().values()}
    ways = next(({"task": {"kind": kind, **row[key]}} for key, kind in WAYS.items() if key in row), {})
    for name in known if row["methods"] == "all" else row["methods"]:
        if name not in known:
            missing[name] = f"{name} is not in this version of contone"
            continue
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
                made = _class(row["wrap"])(enhancer=estimator) if "wrap" in row else estimator
                title = row.get("name", "{variant}").format(method=name, variant=variant)
                is_baseline = cls.baseline and not ways and "wrap" not in row
                yield {"row": title, "method": name, "baseline": is_baseline, **ways}, made


def _class_rows(row: Mapping[str, Any], _: dict[str, str]) -> Iterator[_Marked]:
    cls = _class(row["class"])
    params = {name: build(value) for name, value in row.get("params", {}).items()}
    params.update(dict.fromkeys(row.get("without", ()), None))
    base = cls.preset(row["preset"], **params) if "preset" in row else cls(**params)
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


class _NotThereError(InputError):
    """A class that a spec names is not there: its rows are left out. Holds its name, and why."""


def _class(name: str) -> Any:
    try:
        return named(name)
    except InputError as error:
        raise _NotThereError(name, str(error)) from error


def _cells(row: _Row, source: Source, data: Loaded, seeds: int) -> Iterator[Cell]:
    where = source.plain() if source.is_file() or data.title != source.name else {}
    cell = replace(row.cell, dataset=data.title, source=where, data_hash=data.content)
    random = random_parameters(row.estimator) if row.estimator is not None else []
    for seed in range(seeds) if random or cell.task["kind"] == "graded" else (None,):
        task = dict(cell.task)
        if row.estimator is not None:
            task["estimator"] = describe(clone(row.estimator).set_params(**dict.fromkeys(random, seed)))
        yield replace(cell, task=task, seed=seed)


def _sources(names: Iterable[str | Source], groups: Groups | None) -> list[Source]:
    found: list[Source] = []
    for name in names:
        if isinstance(name, Source) and name.is_file():
            found.append(name)
        else:
            plain = name.name if isinstance(name, Source) else name
            found += [Source(inner) for inner in expand_names([plain], groups)]
    return list(dict.fromkeys(found))


def _load(source: Source) -> Loaded:
    """A data set that is available locally; DataError, with what to do, where it is not."""
    name = source.name
    if not source.is_file() and name in datasets.names() and datasets.status(name).where == "missing":
        # Nothing is downloaded behind the user's back in the middle of an experiment.
        raise DataError(
            f"not available locally: put its file into the folder CONTONE_DATA, or run 'contone data fetch {name}'"
        )
    return load(name, source.plain() if source.is_file() or source.max_rows else None)
