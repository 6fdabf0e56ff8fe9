"""The specs of the paper: what is in them, under which names, and what they stand for."""

from __future__ import annotations

import pytest

from contone import LCdr
from contone.enhance import methods
from contone.exceptions import DataError, InputError
from contone.experiments.describe import build
from contone.experiments.plan import make_plan
from contone.experiments.spec import read_spec
from contone.reproduction.specs import GROUPS, ORDER, sources, specs

SPEC = """
name = "tiny"
title = "Tiny"
question = "?"
datasets = ["artificial"]
[[rows]]
methods = ["Uniform", "Temperature"]
[[rows]]
class = "Temperature"
name = "curve"
sweep = { c = [0.1, 0.2] }
[[rows]]
class = "Temperature"
name = "grid"
measure = "clark"
grid = { c = [0.1, 0.2] }
"""


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with no data on it."""
    monkeypatch.delenv("CONTONE_DATA", raising=False)
    monkeypatch.setenv("CONTONE_CACHE", str(tmp_path))


@pytest.mark.parametrize("name", ORDER)
def test_every_experiment_of_the_paper_has_a_spec(name):
    spec = specs()[name]
    assert spec.name == name
    assert spec.title
    assert spec.question.endswith("?")


def test_all_methods_and_presets_are_in_the_recovery_table(bare):
    plan = make_plan([specs()["recovery"]], groups=GROUPS)
    rows = {c.row: c for c in plan.cells}
    for cls in methods().values():
        assert cls.__name__ in rows
        assert rows[cls.__name__].baseline == cls.baseline
        if cls.SEARCH and cls.__name__ not in ("ConLE", "LEIC", "LEVI", "LIBLE"):
            assert rows[f"{cls.__name__} (rehearsed)"].task["kind"] == "rehearsed"
            assert not rows[f"{cls.__name__} (rehearsed)"].oracle
    assert rows["Limit"].oracle
    assert rows["Mean of truth"].oracle
    assert {c.dataset for c in plan.cells} == {"artificial"}
    assert "contone data fetch" in plan.missing_data["yeast-alpha"]


def test_random_methods_run_over_seeds_and_others_once():
    plan = make_plan([specs()["recovery"]], dataset_names=["artificial"], seeds=2)
    for cls in methods().values():
        seeds = [c.seed for c in plan.cells if c.row == cls.__name__]
        assert seeds == ([0, 1] if any(name.endswith("random_state") for name in cls().get_params()) else [None])


def test_narrowing_keeps_the_references():
    plan = make_plan([specs()["recovery"]], dataset_names=["artificial"], method_names=["uniform"])
    assert all(c.baseline or c.oracle for c in plan.cells)
    assert "Limit" in {c.row for c in plan.cells}
    assert "LESC (oracle grid)" not in {c.row for c in plan.cells}
    with pytest.raises(InputError, match="nonsense"):
        make_plan([specs()["recovery"]], dataset_names=["artificial"], method_names=["nonsense"])


def test_a_derived_experiment_stands_for_its_source():
    assert [spec.name for spec in sources(["ranks", "recovery", "ablation"])] == ["recovery", "ablation"]


def asked(*names: str) -> list[str]:
    """The data sets that names stand for, none of which is there."""
    return list(make_plan([read_spec(SPEC)], dataset_names=names, groups=GROUPS).missing_data)


def test_names_of_data_sets(bare):
    assert asked("yeast", "alpha", "sjaffe")[-1] == "sjaffe"
    assert len(asked("yeast", "alpha")) == 10
    assert asked("Yeast_Alpha", "yeast-alpha", "alpha") == ["yeast-alpha"]
    with pytest.raises(DataError, match="no data set"):
        make_plan([specs()["recovery"]], dataset_names=["yeats-alpha"], groups=GROUPS)


def test_the_tuned_ablation_is_the_tuned_lcdr(bare):
    plan = make_plan([specs()["ablation"]], dataset_names=["artificial"], seeds=1)
    whole = {c.row: build(c.task["estimator"]) for c in plan.cells}
    for row, preset in (("LF+LC", "paper"), ("LF+LC (tuned)", "tuned")):
        lcdr = LCdr.preset(preset)
        ours = whole[row].enhancer.get_params()
        assert {name: ours[name] for name in ours if name in lcdr.get_params()} == {
            name: value for name, value in lcdr.get_params().items() if name in ours
        }
        if whole[row].reducer != "default":
            ours = whole[row].reducer.get_params()
            assert ours == {name: lcdr.get_params()[name] for name in ours}
    assert whole["X+L"].confidence is whole["X+L"].reducer is None
    assert whole["X+LC"].reducer is None
    assert whole["LF+L"].confidence is None
