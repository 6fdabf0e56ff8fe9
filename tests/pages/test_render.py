"""One document with every kind of block, in every rendering."""

from __future__ import annotations

import json
import math
import re

import pytest

from contone.exceptions import InputError
from contone.pages import escape
from contone.pages.blocks import (
    Cell,
    Charts,
    Column,
    Document,
    Fold,
    Grid,
    Heading,
    Items,
    Picture,
    Pictures,
    Row,
    Section,
    Terms,
    Text,
)
from contone.pages.render import as_plain, render, save
from contone.pages.svg import Chart

GRID = Grid(
    "KL",
    (Column("kl ↓"), Column("remark", is_text=True)),
    (
        Row("LCdr_1", (Cell("0.1", 0.1, best=True, note="±0.01"), Cell("good"))),
        Row("limit", (Cell("0.05", 0.05), Cell("knows")), kind="oracle"),
    ),
    foot=(Row("uniform", (Cell("∞", math.inf), Cell("")), kind="baseline"),),
)
REPORT = Document(
    "A*B",
    "Two methods.",
    (
        Section(
            "results",
            "Results",
            (
                Heading("Part", tag="new"),
                Heading("Other"),
                Text("Plain_text", code="a`b"),
                Text("as\nit stands", style="pre"),
                Items(("one", "two")),
                Items(("lost",), style="missing", title="Missing"),
                Terms((("KL", "a divergence"),)),
                Charts(lambda: [Chart("<svg></svg>", "A caption.", "A chart")]),
                Fold("More", (GRID, Fold("Deep", (Heading("Deepest"),))), about="2 rows"),
            ),
            question="Which is best?",
        ),
        Section("rows", "Rows", (GRID, Pictures(lambda: [Picture("A", "a", "data:,", "alt")]))),
    ),
    foot="Measured.",
)

TABLE = r"""| Method | kl ↓ | remark |
|:--|--:|:--|
| LCdr\_1 | **0.1** (±0.01) | good |
| *limit* (oracle) | 0.05 | knows |
| *uniform* (baseline) | ∞ |  |
"""

MARKDOWN = rf"""# A\*B

Two methods. Made from stored results by `contone report`.

## Results

Which is best?

### Part (new)

### Other

Plain\_text ``a`b``

```text
as
it stands
```

1. one
1. two

Missing

- lost

- KL: a divergence

### More (2 rows)

{TABLE}
#### Deep

##### Deepest

## Rows

{TABLE}"""

LATEX = r"""\begin{table}
\centering\small
\caption{Results: KL}
\label{tab:results-1}
\begin{tabular}{lrl}
\toprule
Method & kl $\downarrow$ & remark \\
\midrule
LCdr\_1 & \textbf{0.1} {\scriptsize $\pm$0.01} & good \\
limit (o) & 0.05 & knows \\
\midrule
uniform & $\infty$ &  \\
\bottomrule
\end{tabular}
\end{table}
"""


def test_markdown_has_every_word_and_table():
    assert render(REPORT, "markdown") == MARKDOWN


def test_latex_has_the_tables_of_results_only():
    head, empty, table = render(REPORT, "latex").partition("\n\n")
    assert [line[0] for line in head.splitlines()] == ["%", "%"]
    assert (empty, table) == ("\n\n", LATEX)


def test_json_has_all_but_the_pictures():
    found = json.loads(render(REPORT, "json"))
    assert found == as_plain(REPORT)
    results, rows = found["sections"]
    assert len(results["blocks"]) == len(REPORT.sections[0].blocks) - 1
    assert len(rows["blocks"]) == 1
    assert [cell["value"] for cell in rows["blocks"][0]["foot"][0]["cells"]] == [None, None]
    assert rows["blocks"][0]["rows"][0]["cells"][0]["value"] == 0.1


def test_a_page_has_every_word():
    page = render(REPORT, "html")
    shown = re.sub(r"<[^>]+>", " ", page)
    for text in ("A*B", "Which is best?", "Part", "Plain_text", "a`b", "lost", "a divergence", "A caption.", "More"):
        assert text in shown, text
    assert page.count("LCdr_1") >= 2


def test_tables_of_a_section_are_found_in_folds_too():
    assert REPORT.section("results").grids() == [GRID]
    assert REPORT.section("rows").grids() == [GRID]


@pytest.mark.parametrize(("value", "order"), [(None, ""), (0.25, "0.25"), (math.inf, "1e300"), (-math.inf, "-1e300")])
def test_a_cell_is_sorted_by_its_number(value, order):
    assert Cell("x", value).order == order


def test_a_file_has_the_form_of_its_suffix(tmp_path):
    for name, form in (("a.md", "markdown"), ("a.TEX", "latex"), ("a.json", "json"), ("a.htm", "html")):
        assert save(REPORT, tmp_path / name).read_text(encoding="utf-8") == render(REPORT, form)
    with pytest.raises(InputError, match=r"the suffix must be one of .html, .htm, .json, .md, .tex"):
        save(REPORT, tmp_path / "a.doc")


def test_texts_are_escaped_as_each_form_asks_and_a_per_cent_sign_stays_with_its_number():
    hostile = Document("<b>&", "50 % of a_b", (Section("s", "<i>", (Text("<script>", code="x < y"),)),))
    page = render(hostile, "html")
    assert "<b>&" not in page
    assert "<script>" not in page.split("<body")[1].split("<script")[0]
    for text in ("&lt;b&gt;&amp;", "&lt;i&gt;", "&lt;script&gt;", "x &lt; y", "50\N{NO-BREAK SPACE}% of a_b"):
        assert text in page
    for form, title in (("markdown", r"\<b\>"), ("latex", r"\textless{}b\textgreater{}\&")):
        text = render(hostile, form)
        assert title in text
        assert "\N{NO-BREAK SPACE}" not in text


def test_json_in_a_page_is_what_it_was_and_nothing_in_it_is_changed_by_the_page():
    text = "".join(map(chr, [*range(0x2070), 0xDC00, 0xD800, *range(0xFFF0, 0x10010)]))
    written = escape.json_for_html(text)
    assert json.loads(written) == text
    assert escape.printable(written) == written
    assert not set("<>&\u2028\u2029") & set(written)


def test_names_do_not_turn_the_line_around_that_they_stand_in():
    assert "\u202e" not in escape.html("a\u202eb") + escape.markdown("a\u202eb") + escape.latex("a\u202eb")
