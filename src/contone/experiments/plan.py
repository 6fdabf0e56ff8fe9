"""spec -> cells: the rows of an experiment on the data that is available locally."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import BaseEstimator, clone

from contone import datasets
from contone.enhance import methods as all_methods
from contone.exceptions import DataError, InputError
from contone.experiments.cells import Cell
from contone.experiments.data import Loaded, load
from contone.experiments.describe import build, describe, named, random_parameters
from contone.experiments.sources import Source
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


@dataclass(frozen=True)
class _Row:
    """A row of a table before it meets data: its name, and the task with the estimator still alive."""

    name: str
    method: str
    task: Record
    estimator: BaseEstimator | None = None
    setting: Record = field(default_factory=dict)
    baseline: bool = False
    oracle: bool = False
    extra: Record = field(default_factory=dict)

    @property
    def is_reference(self) -> bool:
        """Whether every score is to be shown beside it: baselines, the limit, the mean of the truth."""
        return self.baseline or self.estimator is None


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
        rows = [_with_learner(row, spec) for row in _rows(spec, missing_methods)]
        seen |= {name.lower() for row in rows for name in (row.method, row.name)}
        if wanted:
            rows = [r for r in rows if r.is_reference or {r.method.lower(), r.name.lower()} & wanted]
        first: dict[str, str] = {}
        for source in _sources(dataset_names or spec.datasets, groups):
            source = replace(source, max_rows=max_rows or spec.max_rows.get(source.name, 0))
            name = source.name
            try:
                data = _load(source)
            except DataError as error:
                if source.is_file() or name not in datasets.names():
                    raise  # a typing error, not a missing file
                missing_data[name] = str(error)
                continue
            if data.content in first:
                duplicates[source.file or name] = first[data.content]
                continue
            if data.title in first.values():
                raise InputError(f"Two different data sets are called {data.title!r}: rename one of the files.")
            first[data.content] = data.title
            for row in rows:
                cells += _cells(row, spec, source, data, spec.n_seeds(row.name, seeds))
    unknown = sorted(wanted - seen - {name.lower() for name in missing_methods})
    if unknown:
        raise InputError(f"No experiment has a method {', '.join(map(repr, unknown))}; there are: {_listed(seen)}.")
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
    for row in spec.rows:
        if "methods" in row:
            yield from _method_rows(row, missing)
        elif "class" in row:
            yield from _class_rows(row, missing)
        elif "task" in row:
            yield _task_row(row)
        else:
            raise InputError(f"{spec.name}: a row needs `methods`, `class` or `task`; it has {sorted(row)}.")


def _task_row(row: Mapping[str, Any]) -> _Row:
    """A reference: `learners` are those that compete in a limit, `splits` and `seed` those of a floor."""
    if row["task"] not in TASKS:
        raise InputError(f"There is no task {row['task']!r}; there are: {', '.join(TASKS)}.")
    options = {name: value for name, value in row.items() if name not in ("task", "name", "oracle")}
    return _Row(
        row.get("name", row["task"]), row["task"], {"kind": row["task"], **options}, oracle=row.get("oracle", False)
    )


def _method_rows(row: Mapping[str, Any], missing: dict[str, str]) -> Iterator[_Row]:
    known = {cls.__name__: cls for cls in all_methods().values()}
    names = list(known) if row["methods"] == "all" else row["methods"]
    for name in names:
        if name not in known:
            missing[name] = f"{name} is not in this version of contone"
            continue
        cls = known[name]
        asked = list(cls.PRESETS) if row.get("presets", "all") == "all" else row["presets"]
        presets = [p for p in asked if p in cls.PRESETS]
        variants: list[tuple[str, BaseEstimator]] = []
        if row.get("defaults", True) or not presets:
            variants.append((name, cls()))
        for preset in presets:
            estimator = cls.preset(preset)
            # A preset that is the default would stand in the table twice.
            if all(describe(estimator) != describe(other) for _, other in variants):
                variants.append((f"{name} ({preset})", estimator))
        for variant, estimator in variants:
            if variant in row.get("except", ()):
                continue
            if "wrap" in row:
                outer = _class(row["wrap"], missing)
                if outer is None:
                    return
                estimator = outer(enhancer=estimator)
            title = row.get("name", "{variant}").format(method=name, variant=variant)
            ways = [key for key in WAYS if key in row]
            found = _estimator_row(title, name, estimator, baseline=cls.baseline and not ways and "wrap" not in row)
            yield replace(found, task={"kind": WAYS[ways[0]], **row[ways[0]]}) if ways else found


def _class_rows(row: Mapping[str, Any], missing: dict[str, str]) -> Iterator[_Row]:
    cls: Any = _class(row["class"], missing)
    if cls is None:
        return
    params = {name: build(value) for name, value in row.get("params", {}).items()}
    params.update(dict.fromkeys(row.get("without", ()), None))
    base = cls.preset(row["preset"], **params) if "preset" in row else cls(**params)
    title = row.get("name", row["class"])
    if "grid" in row:
        task = {"kind": "oracle_grid", "grid": row["grid"], "measure": row["measure"]}
        yield _Row(title, row["class"], task, base, oracle=True)
    elif "sweep" in row:
        for parameter, values in row["sweep"].items():
            for value in values:
                changed = clone(base).set_params(**{parameter: value})
                yield _estimator_row(title, row["class"], changed, setting={parameter: value})
    else:
        marks = {"oracle": row.get("oracle", False), "baseline": getattr(cls, "baseline", False)}
        yield replace(_estimator_row(title, row["class"], base, **marks), extra=row.get("task_options", {}))


def _with_learner(row: _Row, spec: Spec) -> _Row:
    """In a predictive experiment the enhancer's answer goes on to the spec's learner."""
    learner = spec.learner
    if learner is None or row.estimator is None:
        return row
    task = {"kind": "predict", "report": "recovered", **learner, **row.extra}
    return replace(row, task={**task, "learner": describe(build(learner["learner"]))})


def _estimator_row(title: str, method: str, estimator: BaseEstimator, **marks: Any) -> _Row:
    return _Row(title, method, {"kind": "enhance"}, estimator, **marks)


def _class(name: str, missing: dict[str, str]) -> Any:
    try:
        return named(name)
    except InputError as error:
        missing[name] = str(error)
        return None


def _cells(row: _Row, spec: Spec, source: Source, data: Loaded, seeds: int) -> Iterator[Cell]:
    random = random_parameters(row.estimator) if row.estimator is not None else []
    for seed in range(seeds) if random or row.task["kind"] == "graded" else (None,):
        task = dict(row.task)
        if row.estimator is not None:
            seeded = clone(row.estimator).set_params(**dict.fromkeys(random, seed))
            task["estimator"] = describe(seeded)
        yield Cell(
            experiment=spec.name,
            row=row.name,
            method=row.method,
            dataset=data.title,
            source=source.plain() if source.is_file() or data.title != source.name else {},
            data_hash=data.content,
            task=task,
            degradation=spec.degradation,
            seed=seed,
            setting=row.setting,
            baseline=row.baseline,
            oracle=row.oracle,
        )


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


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
