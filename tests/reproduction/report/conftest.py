"""Small stores for the report: real runs of cheap methods under the names of the paper's rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from contone.experiments.benchmark import with_references
from contone.experiments.plan import Cell, make_plan
from contone.experiments.run import run
from contone.experiments.sources import load
from contone.experiments.spec import read_spec
from contone.experiments.store import Store
from contone.pages.render import render
from contone.reproduction.report import make_report
from contone.reproduction.specs import specs

ROWS = '[[rows]]\nclass = "Temperature"\nname = "{name}"\nparams = {{ c = {c} }}\n'


def spec(name: str, rows: dict[str, float]) -> str:
    """A spec of that name whose rows are softmax(c L)."""
    head = f'name = "{name}"\ntitle = "Title of {name}"\nquestion = "What of {name}?"\ndatasets = ["artificial"]\n'
    return head + "".join(ROWS.format(name=row, c=c) for row, c in rows.items())


@pytest.fixture(scope="session")
def run_cheaply(make_limits_cheap) -> Callable[..., None]:
    """`run` in this process, with limits that cost little."""

    def run_with_cheap_limits(cells: list[Cell], store: Store, **about: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            make_limits_cheap(patch)
            run(cells, store, jobs=1, **about)

    return run_with_cheap_limits


@pytest.fixture(scope="session")
def bare_store(tmp_path_factory, run_cheaply):
    """What a machine without data has after a first short run: baselines and references on the artificial set."""
    folder = Store(tmp_path_factory.mktemp("bare"))
    plan = make_plan([specs()["recovery"]], dataset_names=["artificial"], method_names=["Uniform"])
    missing = {"yeast-alpha": "put yeast-alpha into the folder CONTONE_DATA"}
    run_cheaply(plan.cells, folder, about={"command": "contone reproduce", "missing_data": missing})
    return folder


@pytest.fixture(scope="session")
def full_store(tmp_path_factory, run_cheaply):
    """Every experiment with something in it, a failure, and a cell that is still to come."""
    folder = Store(tmp_path_factory.mktemp("full"))
    recovery = specs()["recovery"]
    plan = make_plan([recovery], dataset_names=["artificial"], method_names=["Uniform"])
    task = {"kind": "enhance", "estimator": {"class": "Temperature", "params": {"c": -1}}}
    bad = Cell("recovery", "Bad <&>", "Temperature", "artificial", load("artificial")[3], task, recovery.degradation)
    run_cheaply([*plan.cells, bad], folder, about={"command": "contone reproduce --test", "whole": True})
    texts = [
        spec("ablation", {"LF+LC": 0.2, "X+LC": 0.3, "LF+L": 0.4, "X+L": 9.0, "LF+LC (tuned)": 0.5}),
        spec("augmentation", {"GLLE": 0.2, "LCdr-GLLE": 0.3, "LP": 0.4, "LCdr-LP": 0.5, "ML2": 40.0}),
        spec("sensitivity", {}) + '[[rows]]\nclass = "Temperature"\nsweep = { c = [0.1, 0.5, 2.0] }\n',
    ]
    run_cheaply([c for text in texts for c in make_plan([with_references(read_spec(text))]).cells], folder)
    return folder


HOSTILE = (
    '"><img src=x onerror=alert(1)>',
    "<script>alert(2)<\u2215script>",
    r"$\frac{1}{0$",
    r"\i",
    "a|b `c` *d* [e](f)",
    "{{ 7 * 7 }}%_^~#&",
)
"""Names of data set files that others may have given."""


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory, run_cheaply):
    """Results on data sets, labels and rows whose names are markup, for every kind of output."""
    folder, store = tmp_path_factory.mktemp("data"), Store(tmp_path_factory.mktemp("hostile"))
    rng = np.random.default_rng(0)
    for name in HOSTILE:
        np.savez(
            folder / f"{name}.npz",
            X=rng.normal(size=(30, 2)),
            D=rng.dirichlet(np.ones(3), size=30),
            label_names=np.array([f"{name} {i}" for i in range(3)]),
        )
    row = "[[rows]]\nclass = 'Temperature'\nname = '{}'\nparams = {{ c = {} }}\n"
    rows = "".join(row.format(name, 1 + i) for i, name in enumerate(HOSTILE))
    ends = '[[rows]]\nmethods = ["Uniform"]\n[[rows]]\ntask = "limit"\nname = "Limit"\noracle = true\n'
    text = f'name = "recovery"\ntitle = "t"\n{rows}{ends}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTONE_DATA", str(folder))
        plan = make_plan([read_spec(text)], dataset_names=HOSTILE)
        run_cheaply(plan.cells, store, about={"command": HOSTILE[0], "missing_data": {HOSTILE[0] + "2": HOSTILE[1]}})
    return store


@pytest.fixture(scope="session")
def pages() -> Callable[[Store], str]:
    """The page of a store, drawn once."""
    drawn: dict[str, str] = {}

    def page_of(store: Store) -> str:
        if str(store.root) not in drawn:
            drawn[str(store.root)] = render(make_report(store), "html")
        return drawn[str(store.root)]

    return page_of
