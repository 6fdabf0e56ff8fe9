"""Published | measured | verdict, and its renderings as JSON, Markdown and LaTeX."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from contone.experiments.report.matrix import scores
from contone.experiments.report.schema import Published, Verdict, plain
from contone.experiments.report.view import ends, share_of
from contone.limits import recovered
from contone.reproduction import paper
from contone.reproduction.report.comparison import compare, overview
from contone.reproduction.report.render import FORMATS, render
from contone.reproduction.report.summary import summarise
from contone.reproduction.report.tables import FULL_TO_SHORT


@pytest.fixture(scope="module")
def summary(full_store):
    """The full store's summary, in which the artificial set stands in for one of the paper's."""
    found = summarise(full_store)

    def stand_in(row, cell):
        if cell.dataset != "artificial" or not row.published_as:
            return cell
        verdict = Verdict("close", 0.05, "it stands in")
        return replace(cell, published=Published(0.1, "0.1000", cell.value, "chebyshev", verdict))

    table, *others = found.ablation.tables
    rows = tuple(replace(row, cells=tuple(stand_in(row, cell) for cell in row.cells)) for row in table.rows)
    return replace(found, ablation=replace(found.ablation, tables=(replace(table, rows=rows), *others)))


def test_every_published_figure_is_a_line_or_is_counted_as_left_out(summary):
    published = {"recovery": paper.recovery(), "ablation": paper.ablation(), "prediction": paper.prediction()}
    for name, theirs in published.items():
        for comparison in compare(summary, name):
            left_out = sum(int(text.split()[0]) for text in comparison.left_out)
            printed = sum(len(cells) for cells in theirs[comparison.measure].values())
            assert left_out == printed
            assert all(line.dataset not in FULL_TO_SHORT for line in comparison.lines)


def test_lines_have_the_two_ends_beside_them(summary):
    comparison = next(c for c in compare(summary, "ablation") if c.lines)
    main = scores(summary.recovery)
    assert {line.method for line in comparison.lines} == {"LF+LC", "X+LC", "LF+L", "X+L"}
    for line in comparison.lines:
        for key, row in (("uniform", "Uniform"), ("temperature", "Temperature"), ("limit", "Limit")):
            assert getattr(line, f"{key}_text") == f"{main[comparison.measure, row, 'artificial']:.4f}"
        assert line.verdict == "close"
        assert line.difference_text == "+5.0 %"


def test_shares_agree_with_their_definition(summary):
    own, main = scores(summary.ablation), scores(summary.recovery)
    beside = ends("kl", "artificial", own, main)
    kl = own["kl", "LF+LC", "artificial"]
    assert share_of("LF+LC", "artificial", own, main) == recovered(kl, beside["uniform"], beside["limit"])
    assert share_of("Uniform", "artificial", main, main) == 0
    assert share_of("Limit", "artificial", main, main) == 1
    assert share_of("no such row", "artificial", own, main) is None


def test_the_overview_counts_every_line(summary):
    comparisons = compare(summary, "ablation")
    lines = sum(len(c.lines) for c in comparisons)
    assert sum(o.figures for o in overview(comparisons)) == lines
    for o in overview(comparisons):
        assert sum(o.verdicts.values()) == o.figures
        assert o.reason == "it stands in"


@pytest.mark.parametrize("store", ["bare_store", "full_store"])
@pytest.mark.parametrize("form", sorted({*FORMATS.values()} - {"html"}))
def test_every_rendering_of_every_store(store, form, request):
    text = render(request.getfixturevalue(store), form)
    assert len(text) > 1000
    assert text.endswith("\n")
    assert "None" not in text


@pytest.mark.parametrize("form", sorted({*FORMATS.values()}))
def test_names_that_are_markup_do_no_harm(hostile_store, pages, form):
    text = pages(hostile_store) if form == "html" else render(hostile_store, form)
    if form == "html":
        assert "<img src=x" not in text
        assert 'id="example-"' not in text
    elif form == "markdown":
        assert_rectangular(text)
        outside = re.sub(r"^- Command: `.*`$", "", text, flags=re.M)  # code is shown as it is
        assert not re.search(r"(?<!\\)<img", outside)
    elif form == "latex":
        assert r"\$\textbackslash{}frac\{1\}\{0\$" in text
        assert r"\textbackslash{}i" in text


def test_json_is_the_summary(full_store):
    read = json.loads(render(full_store, "json"))
    again = plain(summarise(full_store))
    again["provenance"]["generated"] = read["provenance"]["generated"]
    assert read == again


def assert_rectangular(text: str) -> None:
    widths: list[int] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            widths.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(widths)) <= 1
            widths = []


def test_markdown_tables_are_rectangular(full_store):
    text = render(full_store, "markdown")
    assert_rectangular(text)
    assert "## Recovered share" in text
    assert "*Limit* (oracle) | 100 %" in text
    assert "## Errata of the paper" in text


def test_latex_tables_are_rectangular_and_balanced(full_store):
    text = render(full_store, "latex")
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") > 5
    for columns, body in re.findall(r"\\begin\{tabular\}\{(l?r+)\}(.*?)\\end\{tabular\}", text, flags=re.S):
        for line in body.splitlines():
            if line.endswith(r"\\"):
                assert line.count("&") - line.count(r"\&") == len(columns) - 1
    for line in text.splitlines():
        bare = re.sub(r"\\[{}]", "", line.partition("%")[0] if line.startswith("%") else line)
        assert bare.count("{") == bare.count("}")
    assert r"Bad \textless{}\&\textgreater{}" in text
    assert r"\textbf{" in text
