"""The summary: plain values, honest verdicts, everything that the page needs."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import fields, is_dataclass

import pytest

from contone import Temperature, Uniform
from contone.experiments.cells import Cell
from contone.experiments.data import load
from contone.experiments.describe import describe
from contone.experiments.plan import make_plan
from contone.experiments.report.schema import plain
from contone.experiments.run import run
from contone.experiments.spec import read_spec
from contone.experiments.store import Store
from contone.reproduction import paper
from contone.reproduction.report.summary import summarise
from contone.reproduction.specs import specs
from contone.reproduction.verdicts import RULES, verdict


@pytest.fixture(scope="module")
def store(tmp_path_factory, run_cheaply):
    """A store with the baselines and the references on the artificial set, one failure, and a curve."""
    folder = Store(tmp_path_factory.mktemp("store"))
    spec = specs()["recovery"]
    plan = make_plan([spec], dataset_names=["artificial"], method_names=["Uniform"])
    bad = Cell(
        experiment="recovery",
        row="Bad",
        method="Temperature",
        dataset="artificial",
        data_hash=load("artificial")[3],
        task={"kind": "enhance", "estimator": {"class": "Temperature", "params": {"c": -1}}},
        degradation=spec.degradation,
    )
    about = {"command": "test", "missing_data": {"flickr": "not available locally"}, "missing_methods": {}}
    run_cheaply([*plan.cells, bad], folder, about=about)
    sweep = """
        name = "sensitivity"
        title = "t"
        question = "q?"
        datasets = ["artificial"]
        [[rows]]
        class = "Temperature"
        sweep = { c = [0.1, 0.5] }
    """
    run_cheaply(make_plan([read_spec(sweep)]).cells, folder)
    return folder


@pytest.fixture(scope="module")
def summary(store):
    return summarise(store)


def test_it_is_plain(summary):
    read = plain(summary)
    assert json.loads(json.dumps(read, allow_nan=False)) == read
    assert set(read) == {f.name for f in fields(summary)}


def test_it_cannot_be_changed(summary):
    def walk(value):
        if is_dataclass(value):
            assert type(value).__dataclass_params__.frozen
            for f in fields(value):
                walk(getattr(value, f.name))
        elif isinstance(value, (list, tuple)):
            for inner in value:
                walk(inner)

    walk(summary)


def test_baselines_and_limit_stand_beside_every_score(summary):
    for table in [*summary.recovery.tables, summary.shares]:
        kinds = {row.name: row.kind for row in table.rows}
        assert kinds["Uniform"] == kinds["Temperature"] == "baseline"
        assert kinds["Limit"] == kinds["Mean of truth"] == "oracle"


def test_recovered_is_anchored(summary):
    shares = {r.name: r.cells[0].value for r in summary.shares.rows}
    assert shares["Uniform"] == 0.0
    assert shares["Limit"] == 1.0
    assert 0.2 < shares["Temperature"] < 0.5
    # L / |L| has zeros where the truth has none: infinitely far from it, which JSON cannot say but the text does.
    assert shares["Logical"] == -math.inf
    assert [r["cells"][0]["value"] for r in plain(summary)["shares"]["rows"] if r["name"] == "Logical"] == [None]
    texts = {r.name: r.cells[0].text for r in summary.shares.rows}
    assert texts["Logical"] == "−∞"


def test_the_best_has_not_seen_the_truth(summary):
    (kl,) = (t for t in summary.recovery.tables if t.measure == "kl")
    best = [row.name for row in kl.rows if row.cells[0].best]
    assert best == ["Temperature"]


def test_published_rows_are_shown_even_where_ours_are_missing(summary):
    (clark,) = (t for t in summary.recovery.tables if t.measure == "clark")
    assert set(paper.DATASETS.values()) <= set(clark.datasets)
    theirs = next(row for row in clark.rows if row.published_as == "LP")
    cell = next(c for c in theirs.cells if c.dataset == "yeast-alpha")
    assert cell.published.value == paper.recovery()["clark"]["LP"]["alpha"]
    assert cell.status == "no data"
    assert cell.published.verdict.name == "not comparable"
    assert "yeast-alpha was not run" in cell.published.verdict.reason


MEASURES = ("chebyshev", "clark", "canberra", "kl", "cosine", "intersection", "kl_reversed_drop", "kl_reversed_clip")


def fill(
    store: Store,
    experiment: str,
    table: dict[str, dict[str, float]],
    oracles: tuple[str, ...] = (),
    errors: dict[str, float] | None = None,
) -> None:
    """Put results into a store, ``table[row][dataset]``, the same value for every measure."""
    planned = []
    for row, values in table.items():
        for dataset, value in values.items():
            cell = {
                **{"key": f"{experiment} {row} {dataset}", "experiment": experiment, "dataset": dataset, "row": row},
                **{"method": row, "setting": {}, "seed": None, "baseline": False, "oracle": row in oracles, "task": {}},
            }
            record = {"key": cell["key"], "status": "done", "cell": cell, "scores": dict.fromkeys(MEASURES, value)}
            record |= {"solution": {}, "warnings": [], "time": {"cpu": 1.0, "wall": 1.0}}
            record |= {"extra": {"standard_error": dict.fromkeys(MEASURES, (errors or {}).get(row))}}
            store.add({**record, "data": {"n": 1, "d": 1, "q": 2, "labels_per_row": 1.0}})
            planned.append(cell)
    store.open_run({"versions": {}, "machine": {}}, planned)


@pytest.mark.parametrize(("error", "impossible"), [(0.0005, True), (0.01, False)])
def test_published_figures_that_cannot_be_are_not_compared(tmp_path, error, impossible):
    store = Store(tmp_path)
    table = {"Truth": 0.0262, "Floor": 0.0260, "LCdr (paper)": 0.03, "ML2 (paper)": 0.03}
    scores = {row: {"yeast-spoem": value} for row, value in table.items()}
    fill(store, "prediction", scores, ("Truth", "Floor"), errors={"Floor": error})
    (kl,) = (t for t in summarise(store).prediction.tables if t.measure == "kl")
    found = {r.published_as: r.cells[0].published.verdict for r in kl.rows if r.published_as}
    # Printed .0007, where the best learner on the truth reaches .0260: impossible, unless that figure is uncertain.
    assert (found["LCdr"].name == "not comparable") == impossible
    assert ("trained on the truth" in found["LCdr"].reason) == impossible
    # ML2's .0286 is above the floor and can be compared.
    assert found["ML2"].name == "close"


def test_our_results_are_ranked_and_tested(tmp_path):
    store = Store(tmp_path)
    loss = {"LCdr": 0.3, "GLLE (paper)": 0.2, "LP (paper)": 0.4, "Best": 0.1, "Limit": 0.01}
    sets = list(paper.DATASETS.values())[:7]
    fill(store, "recovery", {r: {d: v + i / 1000 for i, d in enumerate(sets)} for r, v in loss.items()}, ("Limit",))
    groups = {g.name: g for g in summarise(store).ranks.groups}
    assert set(groups) == {"paper", "counterparts", "all"}
    clark = {name: next(m for m in g.measures if m.measure == "clark") for name, g in groups.items()}
    assert clark["all"].average_ranks == {"Best": 1.0, "GLLE (paper)": 2.0, "LCdr": 3.0, "LP (paper)": 4.0}
    assert clark["all"].reference == "Best"
    assert clark["counterparts"].reference == "LCdr"
    assert clark["counterparts"].wilcoxon["GLLE (paper)"].outcome == "loss"
    assert clark["counterparts"].wilcoxon["LP (paper)"].p_value == pytest.approx(2 / 128)
    assert clark["counterparts"].published is None
    assert clark["paper"].published.average_ranks["LCdr"] == 1.0
    assert clark["all"].nemenyi["Best"]["LP (paper)"] < 0.05


def test_failures_are_shown_and_are_no_results(summary):
    (failure,) = summary.failures
    assert failure.row == "Bad"
    assert "Traceback" in failure.traceback
    for table in summary.recovery.tables:
        bad = next(row for row in table.rows if row.name == "Bad")
        assert bad.cells[0].status == "failed"
        assert bad.cells[0].value is None
    assert summary.counts.failed == 1


def test_curves_pictures_and_provenance(summary, store):
    (curve,) = summary.sensitivity.curves
    assert curve.values == (0.1, 0.5)
    assert len(curve.scores["kl"]) == 2
    assert {m.row for m in summary.manifold} >= {"Uniform", "Limit"}
    assert store.arrays(summary.manifold[0].key)["recovered"].shape == (2601, 3)
    example = summary.examples[0].instances[0]
    assert sum(example.truth) == pytest.approx(1)
    assert sum(example.recovered["Temperature"]) == pytest.approx(1)
    assert summary.provenance.runs[0].command == "test"
    assert summary.missing.datasets == {"flickr": "not available locally"}
    assert len(summary.headline.sentences) >= 3
    said = " ".join(summary.headline.sentences)
    # Nothing is said about data that nobody asked for, and the limit is not called what the data allow.
    assert "The paper's data sets were not run" in said
    assert "not a bound" in said
    assert "allow" not in said


def test_a_file_that_was_edited_is_named_and_its_cell_is_pending(store, tmp_path):
    shutil.copytree(store.root, tmp_path / "copy")
    copy = Store(tmp_path / "copy")
    key = next(r["key"] for r in copy.results() if r["cell"]["row"] == "Temperature" and not r["cell"]["setting"])
    path = copy.root / "results" / f"{key}.json"
    path.write_text(path.read_text().replace('"kl": 0.', '"kl": 0.0'))
    (copy.root / "runs" / "foreign.json").write_text("{}")
    found = summarise(Store(copy.root))
    assert len(found.provenance.damaged) == 2
    assert any(str(path) in text for text in found.provenance.damaged)
    (kl,) = (t for t in found.recovery.tables if t.measure == "kl")
    assert next(r for r in kl.rows if r.name == "Temperature").cells[0].status == "pending"


def test_an_empty_store_has_a_summary(tmp_path):
    empty = summarise(Store(tmp_path))
    json.dumps(plain(empty), allow_nan=False)
    assert empty.counts.planned == 0
    assert [group.name for group in empty.ranks.groups] == ["paper"]


def test_a_whole_run_replaces_rows_that_are_gone(tmp_path):
    store = Store(tmp_path)
    spec = specs()["recovery"]
    cells = [
        Cell("recovery", row, "Uniform", "artificial", load("artificial")[3], task, spec.degradation)
        for row, task in (
            ("old name", {"kind": "enhance", "estimator": describe(Uniform())}),
            ("Temperature", {"kind": "enhance", "estimator": describe(Temperature())}),
        )
    ]
    run(cells, store, jobs=1)
    run(cells[1:], store, jobs=1)
    assert {c["row"] for c in store.plan()} == {"old name", "Temperature"}
    run(cells[1:], store, jobs=1, about={"whole": True})
    assert {c["row"] for c in store.plan()} == {"Temperature"}


@pytest.mark.parametrize(
    ("published", "measured", "greater", "name"),
    [
        (0.1, 0.1, False, "matches"),
        (0.1, 0.1019, False, "matches"),
        (0.1, 0.105, False, "close"),
        (0.1, 0.08, False, "better"),
        (0.1, 0.12, False, "worse"),
        (0.9, 0.95, True, "better"),
        (0.9, 0.85, True, "worse"),
        (0.9944, 0.99445, True, "matches"),
        (0.1, math.inf, False, "worse"),
        (None, 0.1, False, "not comparable"),
        (0.1, None, False, "not comparable"),
    ],
)
def test_verdicts(published, measured, greater, name):
    assert verdict(published, measured, greater_is_better=greater).name == name
    assert name in {rule.name for rule in RULES}
