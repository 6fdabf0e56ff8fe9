"""A neutral comparison: anybody's methods on anybody's data, with baselines and references beside them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import contone
from contone import LP, Temperature, datasets
from contone.base import Enhancer
from contone.datasets import Dataset
from contone.exceptions import DataError, InputError
from contone.experiments.benchmark import make_spec
from contone.experiments.plan import make_plan
from contone.experiments.report.make import make_report, missing_data
from contone.experiments.run import run
from contone.experiments.sources import load
from contone.experiments.spec import Spec, read_spec
from contone.experiments.store import Store, load_results
from contone.measurements import TopK
from contone.pages import escape
from contone.pages.render import render
from contone.reproduction import paper


def small_set(name: str, seed: int = 0, n: int = 40) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Z = np.exp(X @ rng.normal(size=(3, 4)))
    D = Z / Z.sum(axis=1, keepdims=True)
    return Dataset(X, D, ("x", "y", "z"), ("a", "b", "c", "d"), name=name)


def plan_benchmark(spec: Spec, sets, store: Store, **how):
    """The plan of one spec on one data set, or several."""
    return make_plan([spec], dataset_names=sets if isinstance(sets, list) else [sets], folder=store.root, **how)


@pytest.fixture(scope="module")
def found(tmp_path_factory, make_limits_cheap):
    """A benchmark of three rows on two sets in memory."""
    with pytest.MonkeyPatch.context() as patch:
        make_limits_cheap(patch)
        methods = {"LP": LP(), "sharp": Temperature(c=3.0), "Temperature": Temperature()}
        sets = [small_set("one"), small_set("two", 1)]
        return contone.benchmark(methods, sets, store=tmp_path_factory.mktemp("benchmark"))


def test_baselines_and_references_stand_beside(found):
    kinds = {row.name: row.kind for row in found.report.shares.rows}
    assert kinds["LP"] == "method"
    assert kinds["sharp"] == kinds["Uniform"] == kinds["Temperature"] == kinds["Logical"] == "baseline"
    assert kinds["Limit"] == kinds["Mean of truth"] == "oracle"
    shares = {row.name: [cell.value for cell in row.cells[1:]] for row in found.report.shares.rows}
    assert shares["Uniform"] == [0.0, 0.0]
    assert shares["Limit"] == [1.0, 1.0]


def test_scores_are_those_of_the_methods_alone(found):
    data = small_set("one")
    R = LP().fit_enhance(data.X, contone.CumulativeMass().apply(data.D))
    for name, value in contone.evaluate(data.D, R, measures="all").items():
        assert found.scores(name)["LP"]["one"] == pytest.approx(value), name
    with pytest.raises(InputError, match="measure='nonsense'"):
        found.scores("nonsense")


def test_the_report_is_neutral(found, tmp_path, undrawn):
    for form in ("html", "markdown", "latex", "json"):
        text = render(found.report, form)
        assert "LP" in text
        for word in ("Errata", "errata", "LCdr", "Published", paper.CITATION, "the paper"):
            assert word not in text, (form, word)
        assert "published" not in text
    found.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    json.loads((found.save(tmp_path / "page.json")).read_text(encoding="utf-8"))
    with pytest.raises(InputError, match="suffix"):
        found.save(tmp_path / "page.pdf")


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_ranks_tests_and_means_are_in_every_document(found, form):
    text = render(found.report, form)
    ranks, tests = found.report.section("ranks").grids()
    assert [row.name for row in ranks.foot] == ["Friedman p", "Critical difference (Nemenyi, 0.05)"]
    means = [row.cells[1] for row in found.report.section("recovery").grids()[1].rows]
    cells = [cell for row in (*ranks.rows, *ranks.foot, *tests.rows) for cell in row.cells]
    written = escape.latex if form == "latex" else str
    assert all(written(cell.text) in text for cell in (*cells, *means))


def test_few_sets_are_said_and_get_no_diagram(found, undrawn):
    html = render(found.report, "html")
    assert 'id="ranks-all-kl-title"' not in html
    assert "needs at least 5 data sets" in html
    assert any("2 data sets cannot show" in sentence for sentence in found.report.sentences)


def test_a_second_run_computes_only_what_is_new(found):
    again = contone.benchmark({"LP": LP()}, [small_set("one")], store=found.store)
    (runs,) = again.report.section("provenance").grids()
    done = {column.title: cell.text for column, cell in zip(runs.columns, runs.rows[-1].cells, strict=True)}
    assert done["Done"] == "0"
    assert int(done["Reused"]) > 0


def test_zero_is_not_missing_and_comes_before_minus_infinity(found, capsys, undrawn):
    from contone.cli.experiment import print_tables

    print_tables(found.report)
    lines = capsys.readouterr().out.splitlines()
    order = [name for line in lines for name in ("Uniform", "Logical") if line.startswith(name)]
    assert order == ["Uniform", "Logical"]
    kl = found.report.section("recovery").grids()[1]
    assert kl.title == "KL ↓"
    assert [row.cells[0].text for row in kl.rows if row.name == "Logical"] == ["−∞"]
    logical = next(row for row in found.report.shares.rows if row.name == "Logical")
    assert logical.cells[0].value == -math.inf


def test_baselines_stand_beside_rows_that_only_use_them():
    for row in ({"wrap": "Augmented"}, {"rehearse": {"n_iter": 1}}, {"grade": {"rows": 10}}):
        made = make_spec(spec=Spec("x", "X", rows=({"methods": "all", "presets": [], **row},)))
        assert {"Uniform", "Temperature", "Logical"} <= {name for row in made.rows for name in row.get("methods", [])}


def test_methods_are_named_in_many_ways():
    plain = make_spec(["glle", "GLLE (paper)", Temperature(c=2.0)])
    names = [row["name"] for row in plain.rows if "class" in row]
    assert names == ["GLLE", "GLLE (paper)", "Temperature"]
    assert {row["methods"] for row in make_spec("all").rows if isinstance(row.get("methods"), str)} == {"all"}
    for wrong, message in (
        (["nonsense"], "no method 'nonsense'"),
        (["GLLE (nonsense)"], "no preset 'nonsense'"),
        ([3], "not a name"),
        ([], "at least one"),
        (["LP", "lp"], "twice"),
        ({"x": 3}, "'x'"),
    ):
        with pytest.raises(InputError, match=message):
            make_spec(wrong)


class Mine(Enhancer):
    """A method of one's own."""

    reference = "nobody"

    def _fit_enhance(self, X, L):
        from contone.numerics.solution import Solution

        return Solution((L + 1.0) / (L + 1.0).sum(axis=1, keepdims=True))


def test_a_class_of_ones_own_runs(tmp_path, cheap_limits):
    spec = read_spec('name = "mine"\ntitle = "Mine <b>"\n[[rows]]\nmethods = ["Uniform"]')
    plan = plan_benchmark(make_spec(spec=spec), small_set("one"), Store(tmp_path))
    assert {c.row for c in plan.cells} == {"Uniform", "Temperature", "Logical", "Limit", "Mean of truth"}
    rows = [row for row in make_spec([Mine]).rows if row.get("name") == "Mine"]
    assert rows[0]["class"].endswith(":Mine")


def test_a_spec_is_an_experiment_of_ones_own(tmp_path, cheap_limits):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ntitle = "My comparison"\nquestion = "Which?"\ndatasets = ["artificial"]\nseeds = 1\n'
        '[degradation]\nclass = "TopK"\nparams = { k = 1 }\n'
        '[[rows]]\nclass = "Temperature"\nname = "warm"\nparams = { c = 1.0 }\n'
    )
    spec = make_spec(spec=path)
    plan = plan_benchmark(spec, [], Store(tmp_path))
    assert {c.degradation["class"] for c in plan.cells} == {"TopK"}
    assert {c.dataset for c in plan.cells} == {"artificial"}
    with pytest.raises(InputError, match="cannot be read"):
        make_spec(spec=tmp_path / "nothing.toml")


def test_the_rule_of_the_labels_can_be_chosen(tmp_path):
    spec = make_spec(["Temperature"], degradation=TopK(1))
    plan = plan_benchmark(spec, "artificial", Store(tmp_path))
    assert plan.cells[0].degradation == {"class": "TopK", "params": {"k": 1}}


def test_data_sets_that_were_not_asked_for_are_not_missing(found, monkeypatch, tmp_path):
    assert missing_data(load_results(Store(found.store))) == {}
    monkeypatch.delenv("CONTONE_DATA", raising=False)
    monkeypatch.setenv("CONTONE_CACHE", str(tmp_path))
    plan = plan_benchmark(make_spec(["LP"]), ["artificial", "flickr"], Store(tmp_path))
    assert set(plan.missing_data) == {"flickr"}
    with pytest.raises(DataError, match="no data set 'flikr'"):
        plan_benchmark(make_spec(["LP"]), ["flikr"], Store(tmp_path))


def test_two_different_sets_of_one_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="Two different data sets are called 'one'"):
        plan_benchmark(make_spec(["LP"]), [small_set("one"), small_set("one", 1)], Store(tmp_path))


def test_a_sample_stands_for_a_large_set_and_says_so(tmp_path):
    spec, large = make_spec(["LP"]), small_set("large")
    n = len(large.X)
    (sampled,), (whole,), (same,) = (
        {c.dataset: c for c in plan_benchmark(spec, large, Store(tmp_path), max_rows=rows).cells}.values()
        for rows in (n // 2, None, n)
    )
    assert sampled.dataset == f"large ({n // 2} rows)"
    assert sampled.data_hash != whole.data_hash
    assert (same.dataset, same.data_hash) == ("large", whole.data_hash)
    found = load(sampled.dataset, sampled.source)  # as a worker finds it
    assert found.content == sampled.data_hash
    assert all((row == large.X).all(axis=1).any() for row in found.X)
    again = plan_benchmark(spec, large, Store(tmp_path), max_rows=n // 2).cells[-1]
    assert again.data_hash == sampled.data_hash
    for wrong in (1, True, 2.5):
        with pytest.raises(InputError, match="max_rows"):
            plan_benchmark(spec, large, Store(tmp_path), max_rows=wrong)


def test_a_spec_names_the_sets_that_it_samples(tmp_path, cheap_limits):
    text = 'name = "x"\ntitle = "X"\nmax_rows = { artificial = 50 }\n[[rows]]\nmethods = ["Uniform"]'
    plan = plan_benchmark(read_spec(text), "artificial", Store(tmp_path))
    assert {c.dataset for c in plan.cells} == {"artificial (50 rows)"}
    assert run(plan.cells, Store(tmp_path), jobs=1).failed == 0
    for wrong in ("0", "true", '"many"'):
        with pytest.raises(InputError, match="'max_rows' must be"):
            read_spec(text.replace("50", wrong))


def test_an_empty_store_has_a_page(tmp_path):
    for form in ("html", "markdown", "latex", "json"):
        assert render(make_report(Store(tmp_path)), form)


def test_workers_find_data_in_files(tmp_path):
    plan = plan_benchmark(make_spec(["LP"]), small_set("one"), Store(tmp_path))
    cheap = [c for c in plan.cells if c.row != "Limit"]
    assert run(cheap, Store(tmp_path), jobs=2).failed == 0
    assert datasets.names()
