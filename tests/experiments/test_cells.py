"""What a cell computes: every kind of task, and the fingerprint of the code behind it."""

from __future__ import annotations

import ast
import importlib

import numpy as np
import pytest

from contone import Calibrated, CumulativeMass, Inversion, Temperature, datasets, measures
from contone.enhance.inversion.chain import Settings
from contone.exceptions import InputError
from contone.experiments.compute import TASKS, compute, example_rows, record_of
from contone.experiments.describe import _parsed, _spec, _targets, build, closure, describe, fingerprint, named
from contone.experiments.plan import Cell
from contone.experiments.sources import content_hash, load
from contone.trust.trial import Trial

CUMULATIVE = {"class": "CumulativeMass", "params": {"t": 0.5}}


def record(task: dict) -> dict:
    found = compute(Cell("test", "row", "method", "artificial", load("artificial")[3], task, CUMULATIVE))
    assert found["status"] == "done", found.get("traceback")
    return found


def test_scores_are_those_of_the_library():
    data = datasets.artificial()
    R = Temperature(c=0.5).fit_enhance(data.X, CumulativeMass().apply(data.D))
    found = record({"kind": "enhance", "estimator": describe(Temperature(c=0.5))})
    for name, measure in {**measures.MEASURES, **measures.CONVENTIONS}.items():
        assert found["scores"][name] == pytest.approx(measure(data.D, R), rel=1e-12)
    np.testing.assert_allclose(found["surface"], R, atol=1e-5)


def test_the_oracle_grid_takes_the_best_by_the_truth():
    grid = {"c": [0.0, 0.2, 0.5, 1.0, 3.0]}
    found = record(
        {"kind": "oracle_grid", "estimator": describe(Temperature()), "grid": grid, "measure": "intersection"}
    )
    singles = {
        c: record({"kind": "enhance", "estimator": describe(Temperature(c=c))})["scores"]["intersection"]
        for c in grid["c"]
    }
    assert found["extra"] == {"chosen": {"c": max(singles, key=singles.get)}, "by": "intersection"}
    assert found["scores"]["intersection"] == max(singles.values())


def test_a_rehearsed_row_chooses_a_temperature_without_the_truth(monkeypatch):
    monkeypatch.setattr(Inversion, "_settings", lambda self: Settings(n_sweeps=40, n_burn=15))
    options = {"n_iter": 2, "n_replicates": 1, "max_rows": 200}
    found = record({"kind": "rehearsed", "estimator": describe(Temperature(c=0.2)), **options})
    data = datasets.artificial()
    L = CumulativeMass().apply(data.D)
    scores = [measures.evaluate(data.D, Temperature(c=0.2 * t).fit_enhance(data.X, L)).kl for t in (1.0, 10.0)]
    assert found["scores"]["kl"] < min(scores)
    assert found["extra"]["by"] == "rehearsal"
    answer = Temperature(c=0.2 * found["extra"]["chosen"]["temperature"]).fit_enhance(data.X, L)
    assert found["scores"]["kl"] == pytest.approx(measures.evaluate(data.D, answer).kl)


def test_a_graded_row_is_judged_on_the_rows_that_were_not_told():
    data = datasets.artificial()
    L = CumulativeMass().apply(data.D)
    found = record({"kind": "graded", "estimator": describe(Temperature(c=0.05)), "rows": 10})
    told = found["extra"]["told"]
    assert len(set(told)) == 10
    others = np.setdiff1d(np.arange(len(data.D)), told)
    known = np.where(np.isin(np.arange(len(data.D)), told)[:, None], data.D, np.nan)
    R = Calibrated(Temperature(c=0.05)).fit_enhance(data.X, L, degrees=known)
    assert found["scores"]["kl"] == pytest.approx(measures.kl(data.D[others], R[others]))
    plain = Temperature(c=0.05).fit_enhance(data.X, L)
    assert found["scores"]["kl"] < 0.8 * measures.kl(data.D[others], plain[others])


def test_prediction_reports_what_the_learner_was_trained_on():
    learner = describe(build({"class": "MaxEnt", "params": {}}))
    task = {"kind": "predict", "estimator": describe(Temperature()), "learner": learner, "n_splits": 2, "split_seed": 0}
    scores = {name: record({**task, "report": name})["scores"] for name in ("recovered", "truth", "mean")}
    assert scores["truth"]["kl"] < scores["recovered"]["kl"]
    assert scores["truth"]["kl"] < scores["mean"]["kl"]
    assert record({**task, "report": "recovered"})["scores"] == scores["recovered"]


def test_every_kind_of_task_names_modules_that_exist():
    assert {"enhance", "limit", "mean_of_truth", "oracle_grid", "predict"} <= set(TASKS)
    for task in TASKS.values():
        assert task.modules
        for module in task.modules:
            importlib.import_module(module)


def test_a_record_says_how_its_cell_ended():
    one = Cell("test", "row", "method", task={"kind": "enhance"})
    done = record_of(one, Trial({"scores": {}}, 2.0, 0.5, warnings=((UserWarning, "b"), (UserWarning, "a"))), 10.0)
    assert done["time"] == {"started": 8.0, "cpu": 0.5, "wall": 2.0}
    assert (done["status"], done["warnings"]) == ("done", ["UserWarning: a", "UserWarning: b"])
    for is_left_out, status in ((False, "failed"), (True, "left out")):
        found = record_of(one, Trial(None, 2.0, 0.5, "why", "where", is_left_out), 10.0)
        assert (found["status"], found["error"], found["traceback"]) == (status, "why", "where")
        assert "scores" not in found


def test_warnings_are_kept():
    found = compute(
        Cell(
            *("test", "row", "method", "artificial", load("artificial")[3]),
            {"kind": "enhance", "estimator": describe(build({"class": "LCdr", "params": {}}))},
            CUMULATIVE,
        )
    )
    assert any("NearUniformWarning" in text for text in found["warnings"])


def test_examples_follow_the_truth_alone():
    D = datasets.artificial().D
    rows = example_rows(D)
    peaks = D[rows].max(axis=1)
    assert len(set(rows)) == 4
    assert (np.diff(peaks) > 0).all()
    assert len(example_rows(D[:2])) == 2


def test_content_hash_sees_values_and_shapes():
    A = np.arange(6.0).reshape(2, 3)
    assert content_hash(A) == content_hash(np.asfortranarray(A))
    assert content_hash(A) != content_hash(A.reshape(3, 2))
    assert content_hash(A) != content_hash(A + 1e-15)


def test_names_of_classes():
    path = "contone.enhance.rectified.RectifiedSoftmax"
    assert describe(named(path)())["class"] in (path, "RectifiedSoftmax")
    for wrong in ("Nonsense", "os.path", "contone.enhance.rectified.Nonsense"):
        with pytest.raises(InputError):
            named(wrong)


def test_a_fingerprint_imports_nothing(bare_forks):
    code = (
        "import sys; from contone.experiments.describe import closure; found = closure('contone.backends')\n"
        "assert 'contone.backends.torch.graph' in found\n"
        "sys.exit(bool({'torch', 'dask', 'contone.backends.torch'} & set(sys.modules)))"
    )
    assert bare_forks.run("-c", code).returncode == 0


def test_only_statements_count_in_the_fingerprint(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "fingerprinted.py"

    def of(source: str) -> str:
        module.write_text(source)
        importlib.invalidate_caches()
        _parsed.cache_clear()
        _spec.cache_clear()
        return fingerprint("fingerprinted")

    plain = of("def f(x):\n    return x + 1\n")
    assert of('"""Doc."""\ndef f( x ):\n    "Doc."\n    # why\n    return x + 1\n') == plain
    assert of("def f(x):\n    return x + 2\n") != plain
    # A change in a module that is imported counts, too, and one that is imported from the folder of the module.
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__init__.py").write_text("from .one import a")
    (tmp_path / "folder" / "one.py").write_text("from .two import a")
    (tmp_path / "folder" / "two.py").write_text("a = 1")
    assert closure("folder") == {"folder", "folder.one", "folder.two"}
    assert _spec("folder.one.below") is _spec("folder.nothing") is _spec("nothing_there.below") is None
    assert closure("folder.nothing") == {"folder.nothing"}
    assert of("from contone.numerics.simplex import softmax\n") != of("from contone.numerics.simplex import x\n")
    _parsed.cache_clear()


def test_imports_of_a_package_are_followed_wherever_they_start():
    """Absolute ones and relative ones, of contone and of the package itself; others are not."""

    def targets(statement, package):
        return _targets(ast.parse(statement).body[0], package)

    assert targets("import contone, contone.numerics.simplex, numpy", "x") == ["contone.numerics.simplex"]
    assert targets("from contone.numerics import simplex, nothing", "x") == [
        "contone.numerics.simplex",
        "contone.numerics",
    ]
    assert targets("from contone.numerics.simplex import softmax", "x") == ["contone.numerics.simplex"]
    assert targets("from . import simplex", "contone.numerics") == ["contone.numerics.simplex"]
    assert targets("from .simplex import softmax", "contone.numerics") == ["contone.numerics.simplex"]
    assert targets("from ..numerics import simplex", "contone.enhance") == ["contone.numerics.simplex"]
    assert targets("from numpy import linalg", "x") == targets("import numpy.linalg", "") == []
