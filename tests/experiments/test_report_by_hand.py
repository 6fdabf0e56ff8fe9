"""What a report says of results that were made by hand: every sentence, every table, every mark of a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from contone.experiments.report import charts, make, ranks
from contone.experiments.report.scores import mean_of, score_folds, score_grid, share, share_grid
from contone.experiments.statistics import Ranking, Wilcoxon
from contone.experiments.store import Result, Results, Store, load_results
from contone.pages import svg
from contone.pages.blocks import Cell, Column, Fold, Grid, Items, Row, Terms

MEASURES = ("kl", "chebyshev", "clark", "canberra", "cosine", "intersection")


def cell(row: str, dataset: str, *, seed: int | None = None, kind: str = "method", experiment: str = "benchmark", n=0):
    """The plain values of a cell; n makes its key another one."""
    return {
        **{"key": f"{experiment} {row} {dataset} {seed} {n}", "experiment": experiment, "dataset": dataset, "row": row},
        **{"method": row, "setting": {}, "seed": seed, "baseline": kind == "baseline", "oracle": kind == "oracle"},
        "task": {"kind": "enhance", "estimator": {"class": row, "params": {"a": 1, "b": None}}},
    }


def keep(store: Store, planned: dict, value: float, cpu: float = 1.0, **more) -> None:
    """A finished cell: the same value for every measure, one minus it for scores."""
    scores = {m: 1 - value if m in ("cosine", "intersection") else value for m in MEASURES}
    record = {"key": planned["key"], "status": "done", "cell": planned, "scores": scores, "solution": {}}
    record |= {"warnings": [], "time": {"cpu": cpu, "wall": 2 * cpu}, "extra": {}}
    store.add({**record, "data": {"n": 30, "d": 2, "q": 4, "labels_per_row": 1.256}, **more})


def fail(store: Store, planned: dict, status: str = "failed", error: str = "ValueError: no") -> None:
    store.add({"key": planned["key"], "status": status, "cell": planned, "error": error, "traceback": "where it was"})


KINDS = {"Uniform": "baseline", "Temperature": "baseline", "Limit": "oracle", "LP": "method", "KM": "method"}
LOSSES = {"Uniform": 1.0, "Temperature": 0.6, "Limit": 0.2, "LP": 0.4, "KM": 0.8}


@pytest.fixture
def store(tmp_path) -> Store:
    """Five rows on two sets; LP with three seeds; a failure, a row without its extra, one that is yet to come."""
    found, planned = Store(tmp_path / "store"), []
    for dataset, shift in (("yeast-one", 0.0), ("two", 0.04)):
        for row, kind in KINDS.items():
            for seed in (0, 1, 2) if row == "LP" else (None,):
                one = cell(row, dataset, seed=seed, kind=kind)
                planned.append(one)
                off = 0.0 if row in ("Uniform", "Limit") else shift
                keep(found, one, LOSSES[row] + off + (0.01 * (seed - 1) if seed is not None else 0.0))
    extra = [cell(name, "two") for name in ("Bad", "Left", "Later")]
    fail(found, extra[0])
    fail(found, extra[1], "left out", "MissingExtraError: needs torch: pip install it")
    about = {"versions": {"numpy": "2.0", "contone": "9"}, "machine": {"system": "S", "cores": 2}}
    run = found.open_run(
        {
            **about,
            "command": "contone benchmark --store here --seeds 3",
            "missing_data": {"two": "x", "gone": "put it"},
        },
        [*planned, *extra],
    )
    found.close_run(run, state="finished", done=13, reused=1, failed=1)
    return found


def test_a_result_is_the_mean_of_its_seeds_with_their_deviation(store):
    results = load_results(store)
    lp = results.get("benchmark", "two", "LP")
    assert lp.scores["kl"] == pytest.approx(0.44)
    assert lp.deviation["kl"] == pytest.approx(0.01)
    assert (len(lp.records), lp.status, lp.kind, lp.stale) == (3, "done", "method", False)
    assert [results.get("benchmark", "two", row).status for row in ("Bad", "Left", "Later")] == [
        "failed", "left out", "pending",
    ]  # fmt: skip
    assert results.get("benchmark", "two", "KM").deviation == {}
    assert results.score("benchmark", "two", "Bad", "kl") is None
    assert [r.dataset for r in results.of("benchmark", row="KM")] == ["yeast-one", "two"]


def test_a_table_of_scores_has_means_shares_and_what_is_missing(store):
    results = load_results(store)
    grid = score_grid(results, "benchmark", "kl")
    assert grid.title == "KL ↓"
    assert [(column.title, column.hint) for column in grid.columns[2:]] == [("one", "yeast-one"), ("two", "two")]
    rows = {row.name: row.cells for row in grid.rows}
    assert [c.text for c in rows["LP"]] == ["72 %", "0.4200", "0.4000", "0.4400"]  # (1 - s) / (1 - .2): 75 and 70 %
    assert [c.note for c in rows["LP"]] == ["", "", "± 0.0100", "± 0.0100"]
    assert [(c.text, c.state) for c in rows["Bad"][2:]] == [("", ""), ("failed", "failed")]
    assert [c.text for c in rows["Left"][2:]] == ["", "left out"]
    assert "Later" not in rows
    assert [row.name for row in grid.rows if any(c.best for c in row.cells)] == ["LP"]
    cosine = score_grid(results, "benchmark", "cosine")
    assert cosine.title == "Cosine ↑"
    assert [row.name for row in cosine.rows if any(c.best for c in row.cells)] == ["LP"]
    folds = score_folds(results, "benchmark")
    assert [fold.is_open for fold in folds] == [True] + [False] * 5
    shares = share_grid(results, "benchmark")
    assert [row.name for row in shares.rows] == ["Limit", "LP", "Temperature", "KM", "Uniform"]
    assert shares.rows[1].cells[0].value == pytest.approx((0.75 + 0.7) / 2)
    assert share(results, "benchmark", "two", "KM") == pytest.approx((1 - 0.84) / 0.8)
    assert share(results, "benchmark", "two", "Bad") is None
    assert mean_of([]) is None


def report_of(store: Store) -> make.Report:
    return make.make_report(store)


def test_the_sentences_of_a_comparison(store):
    asked, furthest, ahead, few = report_of(store).sentences
    assert asked.startswith("Every method is given the features and the logical labels of 2 data sets, and")
    assert furthest.startswith("LP comes furthest: on average it covers 72 % of the way")
    assert ahead == (
        "1 of 2 methods is ahead of the best baseline, Temperature, which uses no features and covers 48 %."
    )
    assert few.startswith("2 data sets cannot show that one method is better than another in general")
    assert report_of(store).about.startswith("5 methods on 2 data sets")  # with those that failed
    one = make.furthest({"a": 0.1, "b": 0.3}, 1)
    assert one.startswith("b comes furthest: it covers 30 % of the way")


def test_what_is_missing_is_said_line_by_line(store):
    summary = report_of(store).section("summary")
    (missing,) = (b for b in summary.blocks if isinstance(b, Items) and b.style == "missing")
    assert missing.items == (
        "1 of 13 planned table cells have not been run yet.",
        "1 table cells failed.",
        "gone: put it",
        "Left is left out: needs torch: pip install it",
    )
    again = cell("KM", "two", n=1)  # the code has changed since
    store.open_run({"versions": {}, "machine": {}}, [again])
    found = report_of(store)
    (missing,) = (b for b in found.section("summary").blocks if isinstance(b, Items) and b.style == "missing")
    assert missing.items[2] == (
        "1 table cells come from an earlier version of the code, the data or the parameters; "
        "'contone benchmark' renews them."
    )
    assert found.stale == 1
    (grid,) = summary.grids()
    assert [(row.name, [c.text for c in row.cells]) for row in grid.rows] == [
        ("yeast-one", ["30", "2", "4", "1.26"]), ("two", ["30", "2", "4", "1.26"]),
    ]  # fmt: skip


def test_settings_failures_and_provenance(store):
    keep(store, cell("KM", "two"), 0.84, cpu=3.5, solution={"converged": False},
         warnings=["took 3 steps", "took 12.5 steps", "other"])  # fmt: skip
    found = report_of(store)
    rows = {row.name: row.cells for row in found.section("rows").grids()[0].rows}
    assert [c.text for c in rows["LP"][:4]] == ["6.0", "3", "yes", "a = 1, b = None"]
    assert [c.text for c in rows["KM"][:3]] == ["4.5", "1", "not all"]
    assert rows["KM"][4].note == "other took 12.5 steps (and 1 like it)"
    assert rows["Bad"][0].text == "0.0"
    (failure,) = found.section("failures").blocks
    assert failure.title == "Bad on two (benchmark): ValueError: no"
    assert found.failures == (failure.title,)
    terms = dict(next(b for b in found.section("provenance").blocks if isinstance(b, Terms)).entries)
    assert terms["Results"] == (
        "10 of 13 table cells done, 1 failed, 1 not run yet, 0 from an earlier version of code or parameters"
    )
    assert terms["Computing time"] == "16 s of CPU time, all cells together"
    assert (terms["Machine"], terms["Versions"]) == ("system S, cores 2", "numpy 2.0, contone 9")
    assert terms["Seeds"] == "0, 1, 2"
    (runs,) = found.section("provenance").grids()
    told = {c.title: v.text for c, v in zip(runs.columns, runs.rows[0].cells, strict=True)}
    assert (told["State"], told["Done"], told["Reused"], told["Failed"]) == ("finished", "13", "1", "1")
    assert told["Command"] == "contone benchmark --seeds 3"
    assert told["Took"] == "0 s"


def test_a_data_set_has_the_sizes_of_the_first_row_that_was_run_on_it():
    def result(row, *records):
        sizes = tuple({"data": {"n": n, "d": 2, "q": 3, "labels_per_row": 1.5}} for n in records)
        return Result("e", "x", row, row, "method", records=sizes)

    grid = make._dataset_grid(Results([result("later"), result("a", 30), result("b", 40)]))
    assert [(row.name, row.cells[0].text) for row in grid.rows] == [("x", "30")]
    assert make._dataset_grid(Results([result("later")])).rows == ()


def test_numbers_in_a_table_are_as_people_read_them():
    records = [{"Row": "a", "Big": 12.34567, "Small": 0.00012345, "Usual": 0.5, "Count": 12345, "Word": "w"},
               {"Row": "b", "Big": 10.0, "Small": 0.0, "Usual": -0.25, "Count": 0, "Word": None,
                "Late": Cell("c")}]  # fmt: skip
    grid = make.as_table("t", records, "whole", {"b": "oracle"})
    assert [[c.text for c in row.cells] for row in grid.rows] == [
        ["12.35", "0.0001234", "0.5000", "12,345", "w", ""],
        ["10", "0.0000", "-0.2500", "0", "", "c"],
    ]
    assert [column.is_text for column in grid.columns] == [False, False, False, False, True, True]
    assert ([row.kind for row in grid.rows], grid.head, grid.style) == (["method", "oracle"], "Row", "whole")
    assert make.as_table("t", []) == Grid("t", (), ())


# ------------------------------------------------------------------------------------------------ ranks


def group(**changes) -> ranks.RankGroup:
    tests = {"b": Wilcoxon(0.03, 4, 0, 1), "c": Wilcoxon(1.0, 1, 3, 1)}
    ranking = Ranking({"a": 1.2, "b": 2.0, "c": 2.8}, "a", tests, 0.01, 1.5, {"a": {}, "b": {}, "c": {}})
    base = {"name": "g", "title": "G", "datasets": tuple("vwxyz"), "rankings": {"clark": ranking, "kl": ranking}}
    return ranks.RankGroup(**{**base, **changes})


def tables(one: ranks.RankGroup) -> list[Grid]:
    return ranks.section(make.RANKS, [one]).grids()


def test_ranks_and_tests_stand_beside_what_was_printed():
    printed = {"clark": {"a": 1.2049, "b": 2.0061}}
    found, tests = tables(group(printed_ranks=printed, printed_p={"clark": {"b": 0.03 + 2e-6, "c": 1.0}}))
    assert [column.title for column in found.columns] == ["Clark ↓", "KL ↓"]
    first = {row.name: row.cells[0] for row in found.rows}
    assert [(c.text, c.best, c.note, c.state) for c in first.values()] == [
        ("1.20", True, "printed 1.20", ""), ("2.00", False, "printed 2.01", "off"), ("2.80", False, "", ""),
    ]  # fmt: skip
    assert [[c.text for c in row.cells] for row in found.foot] == [["1.0e-02"] * 2, ["1.50"] * 2]
    told = {row.name: [(c.text, c.note, c.state) for c in row.cells] for row in tests.rows}
    assert told["a"] == [("reference", "", "")] * 2
    assert told["b"] == [("3.00e-02", "4–0–1, printed 3.00e-02", "off"), ("3.00e-02", "4–0–1", "")]
    assert told["c"][0] == ("1.00e+00", "1–3–1, printed 1.00e+00", "")


@pytest.mark.parametrize(("datasets", "is_few"), [("vwxy", True), ("vwxyz", False)])
def test_diagrams_need_five_data_sets(datasets, is_few):
    blocks = ranks.section(make.RANKS, [group(datasets=tuple(datasets))]).blocks
    titles = [block.title for block in blocks if isinstance(block, Fold)]
    assert ("Diagrams in the other measures" in titles) is not is_few
    said = [getattr(block, "text", "") for block in blocks]
    assert any("needs at least 5 data sets to mean anything, and there are 4" in text for text in said) is is_few
    untested = Ranking({"a": 1.0, "b": 2.0}, "a", {})
    foot = tables(group(rankings={"kl": untested}))[0].foot
    assert [row.cells[0].text for row in foot] == ["", ""]


def test_rows_are_ranked_where_all_have_a_score_from_three_rows_and_two_sets_on():
    def results(rows: str, sets: str, without: str = "") -> Results:
        return Results(
            Result("e", d, r, r, "method", status="done", scores=dict.fromkeys(MEASURES, i + j / 10))
            for i, r in enumerate(rows) for j, d in enumerate(sets) if (r + d) != without
        )  # fmt: skip

    def ranked(rows: str, sets: str, without: str = ""):
        return ranks.group_of_results(results(rows, sets, without), "e", "n", "t", list(rows), list(sets))

    assert ranked("ab", "xy") is ranked("abc", "x") is ranked("abc", "xy", "cy") is None
    found = ranked("abcd", "xy", "dy")
    assert (found.name, found.title, found.datasets) == ("n", "t", ("x", "y"))
    assert found.rankings["kl"].average_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert found.rankings["cosine"].average_ranks == {"a": 3.0, "b": 2.0, "c": 1.0}
    assert (found.rankings["kl"].reference, found.rankings["cosine"].reference) == ("a", "c")


# ------------------------------------------------------------------------------------------------ pictures


@pytest.fixture
def figures(monkeypatch) -> Iterator[list]:
    """The drawings as Matplotlib holds them."""
    found, to_svg = [], svg.to_svg
    monkeypatch.setattr(svg, "to_svg", lambda figure, *text: found.append(figure) or to_svg(figure, *text))
    return found


def points(axis, marker: str) -> list[tuple[float, float]]:
    return [
        (float(x), float(y))
        for line in axis.lines if line.get_marker() == marker
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]  # fmt: skip


def test_shares_are_dots_with_an_arrow_for_what_lies_far_below(figures):
    values = {"a": (0.5, (0.4, 0.6)), "b": (-3.0, (-6.2, 0.2)), "c": (None, (None, None)), "L": (1.0, (1.0, 1.0))}
    rows = tuple(
        Row(
            name,
            tuple(Cell("" if v is None else f"{v:g}", v) for v in (mean, *each)),
            "oracle" if name == "L" else "method",
        )
        for name, (mean, each) in values.items()
    )
    columns = (Column("Mean"), Column("x", hint="x"), Column("y", hint="y"))
    (chart,) = charts.recovered(Grid("t", columns, rows))
    (axis,) = figures[0].axes
    assert points(axis, "o") == [(0.4, 0), (0.6, 0), (0.2, 1), (1.0, 3), (1.0, 3)]
    assert points(axis, "<") == [(charts.LEFT, 1)]
    plain = [line for line in axis.lines if line.get_marker() == "None"]
    spans = [list(map(float, line.get_xdata())) for line in plain if len(set(line.get_ydata())) == 1]
    assert spans == [[0.4, 0.6], [0.2, 0.2], [1.0, 1.0]]
    means = [(float(line.get_xdata()[0]), list(map(float, line.get_ydata()))) for line in plain
             if len(set(line.get_xdata())) == 1 and len(set(line.get_ydata())) == 2][2:]  # fmt: skip
    assert [(x, sum(ends) / 2) for x, ends in means] == [(0.5, 0), (1.0, 3)]  # none below the edge
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b", "c", "L, oracle"]
    bottom, top = axis.get_ylim()
    assert -1 < top < 0 < 3 < bottom < 4
    low, high = axis.get_xlim()
    assert -0.7 < low < charts.LEFT
    assert 1 < high < 1.2
    assert "Mean share over 2 data sets, best first: a 0.5; b -3; L, oracle 1." in chart.svg
    charts.recovered(Grid("t", columns, rows), narrow=True)
    assert figures[1].get_size_inches()[0] < figures[0].get_size_inches()[0]


@pytest.mark.parametrize(("n_labels", "named", "step"), [(3, True, 1), (9, False, 1), (10, False, 3)])
def test_an_instance_shows_truth_labels_and_answers(figures, n_labels, named, step):
    labels = [f"label {j}" if n_labels == 9 else f"l{j}" for j in range(n_labels)]
    truth = [[(i + j) / 100 for j in range(n_labels)] for i in range(5)]
    first = {"rows": [4, 7, 8, 9, 11], "labels": labels, "truth": truth,
             "logical": [[1, 0] + [1] * (n_labels - 2)] * 5, "recovered": [[0.3] * n_labels] * 5}  # fmt: skip
    result = Result("e", "d", "LP", "LP", "method", records=({"examples": first},))
    (chart,) = charts.instances([result], ["LP"])
    axes = figures[0].axes
    assert [axis.get_title("left") for axis in axes] == [f"instance {i}" for i in first["rows"][: charts.SHOWN]]
    axis = axes[1]
    assert [bar.get_height() for bar in axis.patches] == truth[1]
    assert [x for x, _ in points(axis, "s")] == [0, *range(2, n_labels)]
    assert all(y < 0 for _, y in points(axis, "s"))  # below the axis
    assert points(axis, "o") == [(j, 0.3) for j in range(n_labels)]
    ticks = [label.get_text() for label in axis.get_xticklabels()]
    assert ticks == (labels if named else [str(j + 1) for j in range(0, n_labels, step)])
    assert f"Instance 7: labels 1, 3{', 4' if n_labels > 3 else ''}" in chart.svg
    assert axes[0].get_ylim()[0] == 0
    assert not math.isnan(axes[0].get_ylim()[1])
