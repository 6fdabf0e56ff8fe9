"""Specs expand to cells; keys follow content and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contone import GLLE, LP, Temperature, Uniform
from contone.enhance import methods
from contone.exceptions import DataError, InputError
from contone.experiments.compute import TASKS, attempt, compute, example_rows, modules_of
from contone.experiments.describe import build, closure, describe, fingerprint, seeded
from contone.experiments.plan import Cell, make_plan
from contone.experiments.sources import load
from contone.experiments.spec import Spec, read_spec

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


def cell(**changes) -> Cell:
    base = {
        "experiment": "e",
        "row": "r",
        "method": "Temperature",
        "dataset": "artificial",
        "data_hash": "0",
        "task": {"kind": "enhance", "estimator": describe(Temperature())},
        "degradation": {"class": "CumulativeMass", "params": {"t": 0.5}},
    }
    return Cell(**{**base, **changes})


def test_rows_of_a_spec():
    plan = make_plan([read_spec(SPEC)])
    assert [(c.row, c.setting, c.oracle) for c in plan.cells] == [
        ("Uniform", {}, False),
        ("Temperature", {}, False),
        ("curve", {"c": 0.1}, False),
        ("curve", {"c": 0.2}, False),
        ("grid", {}, True),
    ]
    # The curve passes through the default, which is computed once.
    assert plan.cells[1].key == plan.cells[3].key


def planned(*rows: dict, **fields) -> list[Cell]:
    """The cells of a spec with these rows on the artificial set."""
    return make_plan([Spec("t", "T", datasets=("artificial",), rows=rows, **fields)]).cells


def test_a_row_of_methods_has_their_presets_but_none_twice():
    cells = planned({"methods": ["GLLE", "LP"]})
    presets = [f"GLLE ({name})" for name in GLLE.PRESETS]
    different = [
        p
        for p, name in zip(presets, GLLE.PRESETS, strict=True)
        if GLLE.preset(name).get_params() != GLLE().get_params()
    ]
    rows = dict.fromkeys(c.row for c in cells)
    assert [row for row in rows if row.startswith("GLLE")] == ["GLLE", *different]
    alone = planned({"methods": ["GLLE"], "presets": ["paper"], "defaults": False})
    assert {c.row for c in alone} == {"GLLE (paper)"}
    assert {c.row for c in planned({"methods": ["GLLE", "Uniform"], "presets": ["paper"], "defaults": False})} == {
        "GLLE (paper)", "Uniform",  # which has no such preset
    }  # fmt: skip
    assert {c.row for c in planned({"methods": ["GLLE"], "except": ["GLLE (paper)"]})}.isdisjoint({"GLLE (paper)"})
    named = planned({"methods": ["LP"], "presets": [], "name": "LCdr-{method}", "wrap": "Augmented"})
    assert [(c.row, c.method, c.task["estimator"]["class"]) for c in named] == [("LCdr-LP", "LP", "Augmented")]
    assert named[0].task["estimator"]["params"]["enhancer"] == describe(LP())
    with pytest.raises(InputError, match="no method 'Nothing'"):
        planned({"methods": ["Nothing"]})
    with pytest.raises(InputError, match=r"a row needs methods, class, task; it has \['rows'\]"):
        planned({"rows": 3})


def test_baselines_are_marked_unless_they_are_changed():
    plain, graded = planned({"methods": ["Uniform"]})[0], planned({"methods": ["Uniform"], "grade": {"rows": 5}})[0]
    assert (plain.baseline, graded.baseline) == (True, False)
    assert graded.task == {"kind": "graded", "rows": 5, "estimator": describe(Uniform())}
    assert plain.task["kind"] == "enhance"
    assert not planned({"methods": ["Uniform"], "wrap": "Augmented"})[0].baseline
    own, oracle = planned(
        {"class": "Uniform"}, {"class": "Temperature", "name": "best", "oracle": True, "params": {"c": 2}}
    )
    assert (own.baseline, own.oracle, oracle.oracle, oracle.row) == (True, False, True, "best")
    (task,) = planned({"task": "limit", "learners": ["a"], "oracle": True, "name": "L"})
    assert (task.row, task.method, task.oracle, task.task) == ("L", "limit", True, {"kind": "limit", "learners": ["a"]})


def test_a_class_has_parameters_presets_and_parts_that_are_left_out():
    found = planned({"class": "GLLE", "preset": "paper", "params": {"max_iter": 7}})[0]
    expected = {**GLLE.preset("paper", max_iter=7).get_params(), "random_state": 0}
    assert {**build(found.task["estimator"]).get_params(), "random_state": 0} == expected
    (without,) = planned({"class": "Augmented", "params": {"enhancer": describe(LP())}, "without": ["reducer"]})
    assert build(without.task["estimator"]).reducer is None
    assert build(without.task["estimator"]).enhancer.get_params() == LP().get_params()
    for wrong in ({"class": "Augmented"}, {"class": "LP", "params": {"alfa_": 1}}):
        with pytest.raises(InputError, match=r"class = .*(enhancer|alfa_)"):
            planned(wrong)
    (grid,) = planned({"class": "Temperature", "grid": {"c": [1.0, 2.0]}, "measure": "clark"})
    assert grid.oracle
    assert grid.task == {"kind": "oracle_grid", "grid": {"c": [1.0, 2.0]}, "measure": "clark",
                         "estimator": describe(Temperature())}  # fmt: skip


def test_random_rows_have_seeds_and_others_none():
    random = {"class": "ConLE", "name": "slow"}
    seeds = [c.seed for c in planned(random, {"class": "LP"}, seeds=3, seeds_of={"other": 1})]
    assert seeds == [0, 1, 2, None]
    assert [c.seed for c in planned(random, seeds=3, seeds_of={"slow": 2})] == [0, 1]
    cell = planned(random, seeds=2)[1]
    assert cell.task["estimator"]["params"]["random_state"] == 1
    # Rows that are drawn have seeds, too, although nothing in the method is random.
    assert [c.seed for c in planned({"methods": ["LP"], "presets": [], "grade": {"rows": 5}}, seeds=2)] == [0, 1]
    inside = {"class": "A", "params": {"random_state": 4, "enhancer": {"class": "B", "params": {"random_state": 5}}}}
    assert seeded(inside, 1)["params"]["enhancer"]["params"]["random_state"] == 1


def test_a_predictive_experiment_hands_recovered_degrees_to_its_learner():
    learner = {"learner": {"class": "MaxEnt", "params": {}}, "n_splits": 3, "split_seed": 1}
    found, truth = planned(
        {"class": "LP"}, {"class": "LP", "name": "T", "task_options": {"report": "truth"}}, learner=learner
    )
    assert (found.task["kind"], found.task["report"], found.task["n_splits"]) == ("predict", "recovered", 3)
    assert found.task["learner"] == describe(build(learner["learner"]))
    assert truth.task["report"] == "truth"


def test_a_plan_is_narrowed_to_methods_and_rows_and_keeps_what_stands_beside():
    spec = Spec("t", "T", datasets=("artificial",), rows=(
        {"methods": ["Uniform", "GLLE", "LP"]}, {"task": "mean_of_truth"},
    ))  # fmt: skip
    kept = {c.row for c in make_plan([spec], method_names=["lp"]).cells}
    assert kept == {"Uniform", "mean_of_truth", "LP", *(c.row for c in planned({"methods": ["LP"]}))}
    assert {c.row for c in make_plan([spec], method_names=["GLLE (PAPER)"]).cells} == {
        "Uniform", "mean_of_truth", "GLLE (paper)",
    }  # fmt: skip
    with pytest.raises(InputError, match="No experiment has a method 'nothing'; there are: glle"):
        make_plan([spec], method_names=["nothing"])
    with pytest.raises(InputError, match="at least one data set"):
        make_plan([Spec("t", "T", rows=spec.rows)])


def test_a_cell_says_where_it_stands():
    assert str(cell()) == "e: r on artificial"
    assert str(cell(seed=0, setting={"alpha": 0.1})) == "e: r on artificial (alpha=0.1, seed 0)"
    assert cell().names == {"temperature", "r"}
    assert cell(seed=1).plain()["key"] == cell(seed=1).key


def test_two_sets_of_one_name_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        np.savez(tmp_path / folder / "mine.npz", X=rng.normal(size=(9, 2)), D=rng.dirichlet([1, 1, 1], size=9))
    spec = read_spec(SPEC)
    with pytest.raises(InputError, match="Two different data sets are called 'mine'"):
        make_plan([spec], dataset_names=[str(tmp_path / name / "mine.npz") for name in "ab"])


def test_numbers_of_a_spec_are_whole_and_above_zero():
    base = 'name = "x"\ntitle = "X"\n'
    assert read_spec(base + "seeds = 1").n_seeds("any") == 1
    spec = read_spec(base + "seeds = 4\nseeds_of = { slow = 1 }")
    assert [spec.n_seeds("slow"), spec.n_seeds("any"), spec.n_seeds("slow", 7)] == [1, 4, 7]
    for wrong in ("seeds_of = { a = 0 }", "max_rows = { a = true }", "max_rows = 3", "seeds = 1.5"):
        with pytest.raises(InputError, match=wrong.split(" =")[0]):
            read_spec(base + wrong)
    assert read_spec(base + '[degradation]\nclass = "TopK"').degradation == {"class": "TopK", "params": {}}
    assert read_spec(base).degradation == {"class": "CumulativeMass", "params": {"t": 0.5}}


def test_the_code_of_a_task_is_that_of_every_class_it_names_and_of_its_kind():
    task = {"kind": "graded", "estimator": describe(LP()), "more": [{"deep": describe(Temperature())}], "rows": 3}
    expected = {LP.__module__, Temperature.__module__, *TASKS["graded"].modules}
    assert modules_of(task) == sorted(expected)
    assert modules_of("nothing") == modules_of({"kind": "nothing"}) == []


def test_a_trial_takes_the_first_rows_and_a_record_says_what_was_done():
    one = cell(data_hash=load("artificial").content)
    short = attempt(one, 7)
    assert short.answer["data"]["n"] == 7
    assert len(short.answer["surface"]) == 7
    found = compute(one)
    D = load("artificial").D
    data = found["data"]
    assert (data["n"], data["d"], data["q"]) == (*load("artificial").X.shape, D.shape[1])
    assert 1 <= data["labels_per_row"] <= 3
    assert found["examples"]["rows"] == example_rows(D)
    assert found["examples"]["truth"] == D[example_rows(D)].tolist()
    assert found["time"]["started"] > 1e9
    assert found["solution"]["converged"] is True
    for changes in ({"seed": 1}, {"setting": {"c": 1}}, {"source": {"name": "other"}}):  # the picture needs one answer
        kept = compute(cell(data_hash=one.data_hash, **changes))
        assert "surface" not in kept
    assert "surface" in compute(cell(data_hash=one.data_hash, seed=0))
    wrong = compute(cell(data_hash=one.data_hash, degradation=describe(LP())))
    assert "is not a degradation" in wrong["error"]
    assert compute(cell())["error"].startswith("InputError: artificial has other content here")


def test_examples_are_even_quantiles_of_the_peaks():
    D = np.array([[p, 1 - p] for p in np.linspace(0.5, 1.0, 101)])
    assert example_rows(D[::-1]) == [95, 65, 35, 5]
    assert example_rows(D[:2]) == [0, 1]


@pytest.mark.parametrize("change", [{"seed": 1}, {"data_hash": "1"}, {"task": {"kind": "limit"}}])
def test_the_key_follows_content(change):
    assert cell(**change).key != cell().key


@pytest.mark.parametrize("change", [{"row": "other"}, {"experiment": "other"}, {"oracle": True}])
def test_the_key_ignores_the_place(change):
    assert cell(**change).key == cell().key


def test_parameters_are_content():
    other = {"kind": "enhance", "estimator": describe(Temperature(c=0.3))}
    assert cell(task=other).key != cell().key


def test_estimators_survive_as_plain_values():
    for cls in methods().values():
        assert describe(build(describe(cls()))) == describe(cls())
    assert build(describe(Temperature(c=0.7))).c == 0.7
    with pytest.raises(InputError, match="plain values"):
        describe(object())


def test_the_fingerprint_follows_imports():
    found = closure(Uniform.__module__)
    assert {"contone.enhance.baselines", "contone.base", "contone.numerics.simplex"} <= found
    assert fingerprint("contone.measures") != fingerprint("contone.measurements")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not valid TOML"),
        ('name = "x"', "'title'"),
        ('name = "x"\ntitle = "X"\nsedes = 3', "'sedes'"),
        ('name = "x"\ntitle = "X"\nseeds = 0', "'seeds'"),
        ('name = "x"\ntitle = "X"\nrows = 3', r"\[\[rows\]\]"),
        ('name = "x"\ntitle = "X"\ndegradation = 3', "'degradation'"),
    ],
)
def test_a_wrong_spec_is_refused_by_the_key(text, message):
    with pytest.raises(InputError, match=message):
        read_spec(text, "mine.toml")


def test_one_set_under_two_spellings_is_one_set(bare, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    content = {"X": rng.normal(size=(20, 2)), "D": rng.dirichlet([1, 1, 1], size=20)}
    for name in ("mine.npz", "copy.npz"):
        np.savez(tmp_path / name, **content)
    monkeypatch.setenv("CONTONE_DATA", str(tmp_path))
    plan = make_plan([read_spec(SPEC)], dataset_names=["mine", "MINE", "Mine", "copy"])
    assert {c.dataset for c in plan.cells} == {"mine"}
    assert plan.duplicates == {"copy": "mine"}
    assert len(plan.cells) == 5


def test_a_file_is_what_was_named_and_a_name_may_be_missing(bare, monkeypatch, tmp_path):
    """A file of one's own called as a known set is that file; a known set that is damaged here is missing."""
    rng, spec = np.random.default_rng(0), read_spec(SPEC)
    own = tmp_path / "own" / "yeast-alpha.npz"
    own.parent.mkdir()
    np.savez(own, X=rng.normal(size=(9, 2)), D=rng.dirichlet([1, 1, 1], size=9))
    plan = make_plan([spec], dataset_names=[str(own), "yeast-cold"])
    assert {(c.dataset, c.source["file"]) for c in plan.cells} == {("yeast-alpha", str(own))}
    assert set(plan.missing_data) == {"yeast-cold"}
    (tmp_path / "Yeast_cold.mat").write_bytes(b"no data")
    monkeypatch.setenv("CONTONE_DATA", str(tmp_path))
    plan = make_plan([spec], dataset_names=["yeast-cold", "artificial"])
    assert set(plan.missing_data) == {"yeast-cold"}
    assert "Yeast_cold.mat" in plan.missing_data["yeast-cold"]
    assert {c.dataset for c in plan.cells} == {"artificial"}
    assert {(*c.source,) for c in plan.cells} == {()}
    (own.parent / "yeast-elu.npz").write_bytes(b"no data")
    with pytest.raises(DataError, match=r"yeast-elu\.npz"):
        make_plan([spec], dataset_names=[str(own.parent / "yeast-elu.npz")])


@pytest.mark.parametrize("wrong", [1, True, 2.5, "9"])
def test_a_sample_has_two_rows_at_least(wrong):
    with pytest.raises(InputError, match="max_rows=.*at least 2"):
        make_plan([read_spec(SPEC)], max_rows=wrong)
    spec = replace(read_spec(SPEC), max_rows={"artificial": 7})
    assert {c.dataset for c in make_plan([spec]).cells} == {"artificial (7 rows)"}
    assert {c.dataset for c in make_plan([spec], max_rows=2).cells} == {"artificial (2 rows)"}


def test_a_task_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="no task 'limits'"):
        make_plan([read_spec('name = "x"\ntitle = "X"\ndatasets = ["artificial"]\n[[rows]]\ntask = "limits"')])
