"""Any methods on any data with known truth, fairly: `contone.benchmark` and the spec behind the command.

Every method gets the same features and the same logical labels, made from the truth by one rule. Baselines that use no
features and references that have seen the truth stand beside, in every comparison.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contone.base import Enhancer
from contone.datasets import Dataset
from contone.enhance import methods as all_methods
from contone.exceptions import InputError
from contone.experiments.describe import describe
from contone.experiments.plan import Plan, make_plan, spec_rows
from contone.experiments.report.make import Report, make_report
from contone.experiments.run import Observer, run
from contone.experiments.sources import Data, Source
from contone.experiments.spec import Spec, read_spec
from contone.experiments.store import Store, load_results
from contone.limits import STRONG
from contone.measurements import IntervalRule
from contone.measures import get
from contone.pages.render import save
from contone.runtime.files import check_regular
from contone.trust.trial import named_methods
from contone.typing import Record

Method = str | Enhancer | type[Enhancer]

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
        try:
            get(measure)
        except InputError as error:
            raise InputError(f"measure={measure!r}: {error}") from None
        results, name = load_results(Store(self.store)), self.experiment
        datasets = results.datasets(name)
        return {row: {d: results.score(name, d, row, measure) for d in datasets} for row in results.kinds(name)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report; the suffix says how: .html, .md, .tex or .json."""
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
    folder = Store(store).checked()
    chosen = make_spec(methods, spec=spec, degradation=degradation)
    listed: Any = [datasets] if isinstance(datasets, (str, os.PathLike, Dataset, Source)) else datasets
    reading: Record = {"degrees": degrees, "features": features, "folder": folder.root / "data"}
    plan = make_plan([chosen], dataset_names=chosen.datasets or listed, seeds=seeds, max_rows=max_rows, **reading)
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
        made = replace(made, degradation=describe(degradation))
    return with_references(made)


def about_run(plan: Plan, spec: Spec, command: str = "contone.benchmark(...)") -> Record:
    """What is kept with a run, so that the report can be made from the store alone."""
    report = {"kind": NAME, "experiment": spec.name, "title": spec.title, "question": spec.question, "note": spec.note}
    return {"command": command, "missing_data": plan.missing_data, "report": report}


# --------------------------------------------------------------------------------------------------------------- rows


def _rows(methods: Method | Sequence[Method] | Mapping[str, Enhancer]) -> list[Record]:
    if isinstance(methods, str) and methods == "all":
        return [{"methods": "all", "presets": []}]
    rows = [{**describe(method), "name": name} for name, method in named_methods(methods).items()]
    for k, row in enumerate(rows):
        if not isinstance(methods, Mapping) and any(dict(row, name="") == dict(other, name="") for other in rows[:k]):
            raise InputError(f"methods: {row['class']!r} stands there twice; give estimators names, as a dict.")
    return rows


def with_references(spec: Spec) -> Spec:
    """The spec with the references and baselines that it does not name itself: they stand beside every comparison."""
    if spec.learner is not None:
        return spec  # a predictive experiment has references of its own
    there = {row.row for row in spec_rows(spec) if row.baseline or "estimator" not in row.task}
    references: dict[str, Record] = {
        "Limit": {"task": "limit", "name": "Limit", "oracle": True, "learners": list(STRONG)},
        "Mean of truth": {"task": "mean_of_truth", "name": "Mean of truth", "oracle": True},
    }
    baselines = [cls.__name__ for cls in all_methods().values() if cls.baseline]
    references |= {name: {"methods": [name], "presets": []} for name in baselines}
    missing = [row for name, row in references.items() if name not in there]
    return replace(spec, rows=(*missing, *spec.rows))
