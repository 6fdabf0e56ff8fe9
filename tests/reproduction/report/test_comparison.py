"""Published | measured | verdict, and its renderings as JSON, Markdown and LaTeX."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from contone.experiments.report.scores import ENDS, ends, share
from contone.experiments.store import Result, Results, load_results
from contone.limits import recovered
from contone.pages.render import FORMATS, as_plain, render
from contone.reproduction import paper
from contone.reproduction.published import Published, Verdict, bound, comparison, overview, published_figures, verdict
from contone.reproduction.report import TABLES, make_report


@pytest.fixture(scope="module")
def results(full_store):
    return load_results(full_store)


@pytest.fixture(scope="module")
def figures(results):
    """The published figures of the ablation; in those of one set, the artificial set stands in for the paper's."""
    found = published_figures(results, "ablation", paper.ablation())
    verdict = Verdict("close", 0.05, "it stands in")
    return [
        replace(f, dataset="artificial", measured=0.1, status="done", verdict=verdict) if f.dataset == "flickr" else f
        for f in found
    ]


def test_every_published_figure_stands_in_a_table_or_is_counted_as_left_out(results):
    for name, (table, _) in TABLES.items():
        figures = published_figures(results, name, table())
        assert len(figures) == (
            sum(len(c) for rows in table().values() for c in rows.values()) if results.of(name) else 0
        )
        for measure in {figure.measure for figure in figures}:
            (note,) = comparison(results, name, measure, figures)  # none of the paper's sets was run
            left_out = sum(map(int, re.findall(r"(\d+) on", note.text)))
            assert left_out == sum(len(cells) for cells in table()[measure].values())


def of_ours(row: str, dataset: str, status: str = "done", error: float | None = None, **scores: float) -> Result:
    records = ({"extra": {"standard_error": dict.fromkeys(scores, error)}},) if status == "done" else ()
    return Result("recovery", dataset, row, row, "method", status=status, scores=scores, records=records)


def test_a_figure_without_one_of_ours_says_why_and_kl_is_read_as_the_row_was_printed():
    ours = Results(
        [
            of_ours("LCdr", "yeast-cold", kl_reversed_drop=0.2, kl_reversed_clip=9.0, kl=9.0, cosine=0.9),
            of_ours("LP (paper)", "yeast-cold", kl_reversed_drop=9.0, kl_reversed_clip=0.1, kl=9.0),
            of_ours("LCdr", "yeast-heat", status="failed"),
            of_ours("LP (paper)", "yeast-dtt", status="pending"),
        ]
    )
    table = {
        "kl": {"LCdr": {"cold": 0.201, "heat": 0.1, "dtt": 0.1, "spo": 0.1}, "LP": {"cold": 0.08}},
        "cosine": {"LCdr": {"cold": 0.8}},
    }
    found = {(f.method, f.measure, f.dataset): f for f in published_figures(ours, "recovery", table)}
    said = {place: (f.measured, f.read_as, f.status, f.verdict.name, f.verdict.reason) for place, f in found.items()}
    lcdr = paper.counterparts()["recovery"].reasons["LCdr"]
    drop, clip, no = "kl_reversed_drop", "kl_reversed_clip", "not comparable"
    assert said == {
        ("LCdr", "kl", "yeast-cold"): (0.2, drop, "done", "matches", ""),
        ("LCdr", "kl", "yeast-heat"): (None, drop, "failed", no, "the run failed"),
        ("LCdr", "kl", "yeast-dtt"): (None, drop, "pending", no, "not run yet"),
        ("LCdr", "kl", "yeast-spo"): (None, drop, "no data", no, "yeast-spo was not run"),
        ("LP", "kl", "yeast-cold"): (0.1, clip, "done", "worse", ""),
        ("LCdr", "cosine", "yeast-cold"): (0.9, "cosine", "done", "better", lcdr),
    }
    assert published_figures(Results([]), "recovery", table) == []
    note, grid, left_out = comparison(ours, "recovery", "kl", list(found.values()))[1:]
    assert "in the other direction" in note.text
    assert [(row.name, [c.text for c in row.cells[:2]]) for row in grid.rows] == [
        ("cold", ["0.2010 / 0.2000", "0.0800 / 0.1000"])
    ]
    assert [c.note for c in grid.rows[0].cells[:2]] == ["matches, −0.5 %", "worse, +25 %"]
    assert left_out.text == (
        "Published figures without a measured one: 1 on heat (the run failed); 1 on dtt (not run); "
        "1 on spo (not available locally)."
    )
    _, grid = comparison(ours, "recovery", "cosine", list(found.values()))  # read as printed, and nothing left out
    assert grid.rows[0].cells[0].note == "better, −50 %"


def test_the_bound_is_the_floor_less_three_of_its_errors():
    found = Results([of_ours("Floor", "a", error=0.01, kl=0.2, cosine=0.9), of_ours("Floor", "b", kl=0.2)])
    assert bound(found, "recovery", "a", "Floor", "kl") == pytest.approx(0.17)
    assert bound(found, "recovery", "a", "Floor", "cosine") == pytest.approx(0.93)
    nothing = [("a", "Floor", "clark"), ("b", "Floor", "kl"), ("c", "Floor", "kl"), ("a", "", "kl")]
    assert [bound(found, "recovery", *place) for place in nothing] == [None] * 4
    pending = replace(of_ours("Floor", "a", kl=0.2), records=())
    assert bound(Results([pending]), "recovery", "a", "Floor", "kl") is None


@pytest.mark.parametrize(
    ("measured", "name"), [(0.1021, "close"), (0.1059, "close"), (0.1061, "worse"), (0.0939, "better")]
)
def test_verdicts_change_at_two_and_six_per_cent(measured, name):
    assert verdict(0.1, measured, reason="why") == Verdict(name, pytest.approx(10 * measured - 1), "why")
    assert verdict(0.1, 0.1019, reason="why") == Verdict("matches", pytest.approx(0.019))
    assert verdict(0.001, 0.00114).name == "matches"  # as far as rounding goes
    assert verdict(0.001, 0.00116).name == "worse"


def test_the_overview_has_the_median_difference_of_a_method(figures):
    one = next(f for f in figures if f.status == "done")

    def figure(difference: float | None, name: str = "close", reason: str = "") -> Published:
        return replace(one, method="M", row="ours", verdict=Verdict(name, difference, reason))

    grid = overview([figure(0.01), figure(0.3, "worse", "why"), figure(0.02), figure(float("inf"), "worse"),
                     figure(None, "not comparable")])  # fmt: skip
    (row,) = grid.rows
    told = dict(zip([column.title for column in grid.columns], row.cells, strict=True))
    assert (told["Median difference"].text, told["Median difference"].value) == ("+2.0 %", 0.02)
    assert {name: told[name].value for name in ("Figures", "close", "worse", "not comparable", "better")} == {
        "Figures": 5, "close": 2, "worse": 2, "not comparable": 1, "better": 0,
    }  # fmt: skip
    assert (told["Our row"].text, told["Why they differ"].text) == ("ours", "why")
    assert overview([figure(None, "not comparable")]).rows[0].cells[-2].text == ""


def test_lines_have_the_two_ends_beside_them(results, figures):
    _, grid, _ = comparison(results, "ablation", "chebyshev", figures)
    assert [column.title for column in grid.columns] == ["LF+LC", "X+LC", "LF+L", "X+L", *ENDS]
    (row,) = grid.rows
    for cell, name in zip(row.cells[4:], ENDS, strict=True):
        assert cell.text == f"{results.score('recovery', 'artificial', name, 'chebyshev'):.4f}"
    assert {cell.note for cell in row.cells[:4]} == {"close, +5.0 %"}
    assert {cell.state for cell in row.cells[:4]} == {"close"}


def test_shares_agree_with_their_definition(results):
    lower, _, upper = ends(results, "ablation", "artificial", "kl")
    kl = results.score("ablation", "artificial", "LF+LC", "kl")
    assert share(results, "ablation", "artificial", "LF+LC") == recovered(kl, lower, upper)
    assert share(results, "recovery", "artificial", "Uniform") == 0
    assert share(results, "recovery", "artificial", "Limit") == 1
    assert share(results, "ablation", "artificial", "no such row") is None


def test_the_overview_counts_every_figure(figures):
    grid = overview(figures)
    counts = {row.name: [cell.value for cell in row.cells[1:-2]] for row in grid.rows}
    assert sum(found[0] for found in counts.values()) == sum(figure.status == "done" for figure in figures)
    for row in grid.rows:
        assert sum(counts[row.name][1:]) == counts[row.name][0]
        assert row.cells[-1].text == "it stands in"


@pytest.mark.parametrize("store", ["bare_store", "full_store"])
@pytest.mark.parametrize("form", sorted({*FORMATS.values()} - {"html"}))
def test_every_rendering_of_every_store(store, form, request):
    report = make_report(request.getfixturevalue(store))
    text = render(report, form)
    assert len(text) > 1000
    assert text.endswith("\n")
    own = replace(report, sections=tuple(s for s in report.sections if s.name != "failures"))  # no code of tracebacks
    assert "None" not in render(own, form)


@pytest.mark.parametrize("form", sorted({*FORMATS.values()}))
def test_names_that_are_markup_do_no_harm(hostile_store, pages, form):
    text = pages(hostile_store) if form == "html" else render(make_report(hostile_store), form)
    if form == "html":
        assert "<img src=x" not in text
        assert 'id="example-"' not in text
    elif form == "markdown":
        assert_rectangular(text)
        assert not re.search(r"(?<!\\)<img", text)
    elif form == "latex":
        assert r"\$\textbackslash{}frac\{1\}\{0\$" in text
        assert r"\textbackslash{}i" in text


def test_json_is_the_report_without_its_pictures(full_store):
    report = make_report(full_store)
    read = json.loads(render(report, "json"))
    assert read == as_plain(report)
    assert [section["title"] for section in read["sections"]] == [section.title for section in report.sections]
    assert "<svg" not in json.dumps(read)


def assert_rectangular(text: str) -> None:
    widths: list[int] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            widths.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(widths)) <= 1
            widths = []


def test_markdown_tables_are_rectangular(full_store):
    text = render(make_report(full_store), "markdown")
    assert_rectangular(text)
    assert "### Recovered share" in text
    assert "*Limit* (oracle) | 100 %" in text
    assert "## Errata" in text


def test_latex_tables_are_rectangular_and_balanced(full_store):
    text = render(make_report(full_store), "latex")
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") > 5
    for columns, body in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, flags=re.S):
        for line in body.splitlines():
            if line.endswith(r"\\"):
                assert line.count("&") - line.count(r"\&") == len(columns) - 1
    for line in text.splitlines():
        bare = re.sub(r"\\[{}]", "", line.partition("%")[0] if line.startswith("%") else line)
        assert bare.count("{") == bare.count("}")
    assert r"Bad \textless{}\&\textgreater{}" in text
    assert r"\textbf{" in text


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_ranks_and_tests_are_in_every_document(full_store, form):
    """As on the page: means, average ranks, Friedman, Nemenyi's critical difference and Wilcoxon's tests."""
    report, text = make_report(full_store), render(make_report(full_store), form)
    grids = report.section("ranks").grids()
    assert len(grids) == 2
    for row in (*grids[0].rows, *grids[0].foot, *grids[1].rows):
        assert all(cell.text in text for cell in row.cells)
    for words in ("Friedman p", "Critical difference (Nemenyi, 0.05)", "Wilcoxon signed-rank tests", "Mean"):
        assert words in text
