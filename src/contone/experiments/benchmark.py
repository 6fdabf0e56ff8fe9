"""Any methods on any data with known truth, fairly: `contone.benchmark` and the spec behind the command.

Every method gets the same features and the same logical labels, made from the truth by one rule. Baselines that use no
features and references that have seen the truth stand beside, in every comparison.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contone.base import Enhancer
from contone.datasets import Dataset
from contone.enhance import methods as all_methods
from contone.exceptions import InputError
from contone.experiments.sources import Source, as_source
from contone.experiments.spec import Spec, read_spec
from contone.experiments.store import Store
from contone.measurements import IntervalRule
from contone.runtime.files import check_regular
from contone.typing import Record

if TYPE_CHECKING:  # `import contone` stays light: what runs an experiment is loaded when one is run
    from contone.experiments.plan import Plan
    from contone.experiments.report.parts import Report
    from contone.experiments.run import Observer

Method = str | Enhancer | type[Enhancer]
Data = str | os.PathLike[str] | Dataset | Source

NAME = "benchmark"
"""The name of the experiment where a spec gives none."""

TITLE = "Label enhancement methods compared"


@dataclass(frozen=True)
class Benchmark:
    """A finished comparison.

    Attributes
    ----------
    report : Report
        Everything that the report says, as frozen values: ``report.sentences``, ``report.shares``, ...
    store : Path
        The folder of its results.
    experiment : str
        The name of its experiment there.
    """

    report: Report
    store: Path
    experiment: str

    def scores(self, measure: str = "kl") -> dict[str, dict[str, float | None]]:
        """Scores by row and data set in one measure, any of `contone measures`."""
        from contone.experiments.results import load_results
        from contone.measures import get

        try:
            get(measure)
        except InputError as error:
            raise InputError(f"measure={measure!r}: {error}") from None
        results, name = load_results(Store(self.store)), self.experiment
        datasets = results.datasets(name)
        return {row: {d: results.score(name, d, row, measure) for d in datasets} for row in results.kinds(name)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report; the suffix says how: .html, .md, .tex or .json."""
        from contone.experiments.report.render import save

        return save(self.report, Path(path))


def benchmark(
    methods: Method | Sequence[Method] | Mapping[str, Enhancer] = "all",
    datasets: Data | Sequence[Data] = "artificial",
    *,
    spec: str | os.PathLike[str] | Spec | None = None,
    store: str | os.PathLike[str] = "contone-benchmark",
    degradation: IntervalRule | None = None,
    degrees: Sequence[str] = (),
    features: Sequence[str] = (),
    seeds: int | None = None,
    max_rows: int | None = None,
    jobs: int = 1,
    observer: Observer | None = None,
) -> Benchmark:
    """Compare methods on data sets whose true distributions are known.

    Finished work is kept in the store: a run that was stopped resumes there, and a second one with more methods or
    data sets computes only what is new.

    Parameters
    ----------
    methods : "all", or names, classes, estimators, or a dict of estimators by name, default="all"
        "GLLE" is a method with its defaults, "GLLE (paper)" with a preset, "module:Class" one of your own. Baselines
        and references are always there.
    datasets : names, files or `Dataset` objects, default="artificial"
        Registered names, ``.mat`` and ``.npz`` files, and CSV or Parquet tables with feature and degree columns.
    spec : path or Spec
        A TOML file in place of `methods`, and of `datasets` where it names its own.
    store : path, default="contone-benchmark"
        The folder of the results.
    degradation : IntervalRule
        The rule that makes logical labels from the truth; ``CumulativeMass(0.5)`` where none is given.
    degrees, features : names or patterns, default=(), ()
        Columns of tables; degrees are those that end in ``_degree`` where none are named.
    seeds : int
        Seeds of each random method; 3, or what the spec says.
    max_rows : int
        A random sample of this many rows, the same in every run, stands for every larger data set; all rows, or what
        the spec says.
    jobs : int, default=1
        Processes; -1 for one per core. The default computes in this process: a script that starts others must protect
        its main module, as always with `multiprocessing`.
    observer : callable
        Called with the `Progress` after every cell.

    Examples
    --------
    >>> import tempfile
    >>> found = benchmark(["Uniform", "Temperature"], "artificial", store=tempfile.mkdtemp())  # doctest: +SKIP
    >>> found.save("comparison.html")  # doctest: +SKIP
    """
    from contone.experiments.report.make import make_report
    from contone.experiments.run import run

    folder = Store(store).checked()
    chosen = make_spec(methods, spec=spec, degradation=degradation)
    how: Record = {"degrees": degrees, "features": features, "seeds": seeds, "max_rows": max_rows}
    plan = plan_benchmark(chosen, datasets, folder, **how, given=spec is None)
    run(plan.cells, folder, jobs=jobs, observer=observer, about=about_run(plan, chosen))
    return Benchmark(make_report(folder), Path(store), chosen.name)


def make_spec(
    methods: Method | Sequence[Method] | Mapping[str, Enhancer] = "all",
    *,
    spec: str | os.PathLike[str] | Spec | None = None,
    degradation: IntervalRule | None = None,
) -> Spec:
    """The experiment: from a spec, or of these methods; baselines and references are added where they are missing."""
    if spec is None:
        question = "How close do the methods come to the true label distributions, given features and logical labels?"
        made = Spec(NAME, TITLE, question, seeds=3, rows=tuple(_rows(methods)))
    elif isinstance(spec, Spec):
        made = spec
    else:
        path = Path(spec)
        try:
            check_regular(path)
            made = read_spec(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeError) as error:
            raise InputError(f"spec={str(path)!r} cannot be read: {error}.") from error
    if degradation is not None:
        from contone.experiments.describe import describe

        made = replace(made, degradation=describe(degradation))
    return replace(made, rows=(*_missing_references(made), *made.rows))


def plan_benchmark(
    spec: Spec,
    datasets: Data | Sequence[Data],
    store: Store,
    *,
    degrees: Sequence[str] = (),
    features: Sequence[str] = (),
    seeds: int | None = None,
    max_rows: int | None = None,
    given: bool = True,
) -> Plan:
    """The cells of a comparison; with `given` false, the spec's own data sets come first where it names any."""
    from contone.experiments.plan import make_plan

    listed: Iterable[Any] = [datasets] if isinstance(datasets, (str, os.PathLike, Dataset, Source)) else datasets
    if not given and spec.datasets:
        listed = spec.datasets
    folder = store.root / "data"
    sources = [as_source(one, degrees=degrees, features=features, folder=folder) for one in listed]
    if not sources:
        raise InputError("datasets: name at least one data set or file.")
    if max_rows is not None and (isinstance(max_rows, bool) or not isinstance(max_rows, Integral) or max_rows < 2):
        raise InputError(f"max_rows={max_rows!r}: must be a whole number of at least 2.")
    return make_plan([spec], dataset_names=sources, seeds=seeds, max_rows=max_rows)


def about_run(plan: Plan, spec: Spec, command: str = "contone.benchmark(...)") -> Record:
    """What is kept with a run, so that the report can be made from the store alone."""
    return {
        "command": command,
        "missing_data": plan.missing_data,
        "missing_methods": plan.missing_methods,
        "duplicates": plan.duplicates,
        "report": {
            "kind": NAME,
            "experiment": spec.name,
            **{k: getattr(spec, k) for k in ("title", "question", "note")},
        },
    }


# --------------------------------------------------------------------------------------------------------------- rows


def _rows(methods: Method | Sequence[Method] | Mapping[str, Enhancer]) -> list[Record]:
    if isinstance(methods, str) and methods == "all":
        return [{"methods": "all", "presets": []}]
    from contone.experiments.describe import describe
    from contone.trust.trial import named_methods

    rows = [{**describe(method), "name": name} for name, method in named_methods(methods).items()]
    for k, row in enumerate(rows):
        if not isinstance(methods, Mapping) and any(dict(row, name="") == dict(other, name="") for other in rows[:k]):
            raise InputError(f"methods: {row['class']!r} stands there twice; give estimators names, as a dict.")
    return rows


def _missing_references(spec: Spec) -> list[Record]:
    """The references and baselines that a spec does not name itself: they stand beside every comparison."""
    from contone.limits import STRONG

    if spec.learner is not None:
        return []  # a predictive experiment has references of its own
    tasks = {row.get("task") for row in spec.rows}
    names = {row.get("name") for row in spec.rows} | {name for row in spec.rows for name in _named_methods(row)}
    references: list[Record] = [
        {"task": "limit", "name": "Limit", "oracle": True, "learners": list(STRONG)},
        {"task": "mean_of_truth", "name": "Mean of truth", "oracle": True},
    ]
    found = [row for row in references if row["task"] not in tasks]
    baselines = [cls.__name__ for cls in all_methods().values() if cls.baseline and cls.__name__ not in names]
    return [*found, *([{"methods": baselines, "presets": []}] if baselines else [])]


def _named_methods(row: Mapping[str, Any]) -> list[str]:
    """The methods that stand in a row as they are: not wrapped, rehearsed or with graded rows."""
    from contone.experiments.plan import WAYS

    if {"wrap", *WAYS} & set(row):
        return []
    return [cls.__name__ for cls in all_methods().values()] if row.get("methods") == "all" else row.get("methods", [])
