"""The page about one's own data: what is on it, that names are text, and that a browser shows it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from rendered import paragraphs, section_of, tables

from contone import CumulativeMass, Inversion, Uniform, check
from contone.numerics.simplex import softmax
from contone.pages import svg
from contone.pages.render import render, save
from contone.trust import page
from contone.trust.check_result import DoubtfulEntry, Finding, LabelSummary, RowSummary
from contone.trust.verdict import decide

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

HOSTILE = '"><img src=x onerror=alert(1)>'
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


def html(*given, **how) -> str:
    return render(page.document(*given, **how), "html")


@pytest.fixture(scope="module")
def found():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    D = softmax(0.8 * rng.normal(size=(80, 4)))
    Y = pd.DataFrame(CumulativeMass().apply(D), columns=[HOSTILE, "$\\frac{1}{0$", "c", "d"])
    return check(Inversion(n_sweeps=30, n_burn=10), X, Y, n_replicates=4)


def test_the_page_is_whole_and_small(found):
    text = html(found, HOSTILE)
    assert len(text.encode()) < 2_000_000
    assert HOSTILE not in text
    for part in ("In short", "Checks", "Degrees by label", "ambiguous rows", "look wrong"):
        assert part in text
    for finding in found.findings:
        assert finding.title in text


def test_the_page_says_why_and_what_to_do_in_the_reader_s_language(found):
    doubted = replace(found, decision=decide([Finding("spread", "t", "doubtful", 1.0, "A sentence.")]), findings=())
    text = html(doubted, commands=True)
    assert "Because the labels do not tell how uneven degrees are." in text
    assert "--graded" in text
    assert "degrees=" in html(doubted)
    fine = replace(doubted, decision=decide([]))
    assert "No check speaks against it." in html(fine)


def test_a_million_rows_and_many_labels_stay_small(found):
    many = tuple(replace(found.labels[0], name=f"label {k} " + "x" * 30) for k in range(5000))
    text = html(replace(found, labels=many, n_rows=1_000_000), "large.parquet")
    assert len(text.encode()) < 2_000_000
    assert "1,000,000 rows, 5,000 labels, enhanced by Inversion; this page looks at 80 rows drawn at random" in text
    streamed = html(replace(found, findings=(), n_rows=1_000_000, n_fitted=50_000), "large.parquet")
    assert "fitted to a sample of 50,000 rows; this page looks at 80 rows drawn at random among these" in streamed
    assert "4800 more are not shown" in text


def test_labels_are_sorted_by_their_degrees_with_bars_and_typical_intervals(found):
    labels = (
        LabelSummary("a", 0.25, 0.2, 0.1, 0.35),
        LabelSummary("b", 0.5, 0.6, 0.4, 0.7),
        LabelSummary("c", 0.0, 0.0),
    )
    text = html(replace(found, labels=labels))
    ((columns, rows),) = tables(text, "labels")
    assert columns == dict.fromkeys(["Marked", "Mean degree", "Lower", "Upper"], False)
    assert [(name, *(cell.text for cell in cells)) for name, cells in rows] == [
        ("b", "50.0 %", "60.0 %", "40.0 %", "70.0 %"),
        ("a", "25.0 %", "20.0 %", "10.0 %", "35.0 %"),
        ("c", "0.0 %", "0.0 %", "", ""),
    ]
    assert [cells[1].bar for _, cells in rows] == [page.BAR, page.BAR / 3, 0.0]
    assert [cells[3].value for _, cells in rows] == [0.7, 0.35, None]  # what a click sorts by
    assert paragraphs(text, "labels")[-1].endswith("typical 90 % interval of a single row (median ends).")
    plain = html(replace(found, labels=labels[2:]))
    assert paragraphs(plain, "labels")[-1] == "Mean degree over the rows."
    assert list(tables(plain, "labels")[0][0]) == ["Marked", "Mean degree"]


def test_rows_and_entries_are_described(found):
    marked = tuple(f"m{k}" for k in range(14))
    row = RowSummary(7, 0.12345, marked, (("a", 0.617), ("b", 0.2)))
    entry = DoubtfulEntry(3, "c", False, 0.955, marked[:12], (("a", 0.5),))
    text = html(replace(found, ambiguous=(row,), doubtful=(entry, replace(entry, row=4, given=True))))
    ((columns, ambiguous),), ((_, doubtful),) = (tables(text, name) for name in ("ambiguous", "doubtful"))
    ((_, first),), (wrong, other) = ambiguous, doubtful
    assert [cell.text for cell in first] == ["0.123", ", ".join(marked[:12]) + " and 2 more", "a 62 %, b 20 %"]
    assert [name for name, _ in (*ambiguous, *doubtful)] == ["7", "3", "4"]
    assert columns == {"Expected KL": False, "Marked": True, "Largest degrees": True}
    assert first[0].value == 0.12345
    assert [cell.text for cell in wrong[1]] == ["c", "not marked", "96 %", ", ".join(marked[:12]), "a 50 %"]
    assert other[1][1].text == "marked"
    none = html(replace(found, doubtful=()))
    assert tables(none, "doubtful") == []
    assert paragraphs(none, "doubtful")[-1].startswith("No label looks wrong")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((80, 80, None), "Inversion."),
        ((81, 80, None), "Inversion; this page looks at 80 rows drawn at random."),
        ((500, 80, 80), "; the method was fitted to a sample of 80 rows, which this page is about."),
        (
            (500, 80, 81),
            "; the method was fitted to a sample of 81 rows; this page looks at 80 rows drawn at random among",
        ),
    ],
)
def test_the_page_says_which_rows_it_is_about(found, sizes, said):
    n, checked, fitted = sizes
    assert said in page.document(replace(found, n_rows=n, n_checked=checked, n_fitted=fitted)).about


def test_a_picture_has_a_dot_per_category_and_a_bar_where_something_was_expected(found, monkeypatch):
    drawings, told, to_svg = [], [], svg.to_svg

    def kept(figure, *text):
        drawings.append(figure)
        told.append(text)
        return to_svg(figure, *text)

    monkeypatch.setattr(svg, "to_svg", kept)
    banded = Finding("n", "T", "fine", 0.0, "Said.", {"a": 0.2, "b": 1.5}, "axis", [0.1, 1.0], [0.3, 1.2])
    share = Finding("s", "T", "fine", 0.0, "Said.", {"a": 0.2, "b": 0.5}, "share of rows")
    number = Finding("k", "T", "fine", 0.0, "Said.", {"a": 2.0, "b": 5.0}, "KL")
    nothing = Finding("z", "T", "fine", 0.0, "Said.", {"a": 0.0}, "KL")
    text = html(replace(found, findings=(banded, share, number, nothing, Finding("e", "T", "fine", 0, "."))))
    checks = section_of(text, "checks").split("<h3>")[1:]
    assert [check.count('<svg class="chart"') for check in checks] == [1, 1, 1, 1, 0]
    axis = drawings[0].axes[0]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in axis.lines] == [(0.2, 1), (1.5, 0)]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    (bars,) = axis.collections
    assert [segment.tolist() for segment in bars.get_segments()] == [[[0.1, 1], [0.3, 1]], [[1.0, 0], [1.2, 0]]]
    assert told[0][2] == "Said. a: 0.2 (expected 0.1 to 0.3); b: 1.5 (expected 1 to 1.2)."
    assert told[0][3] == {"dot-0": "a: 0.2 (expected 0.1 to 0.3)", "dot-1": "b: 1.5 (expected 1 to 1.2)"}
    assert told[1][2] == "Said. a: 0.2; b: 0.5."
    assert [drawing.axes[0].get_xlim() for drawing in drawings[1:]] == [
        (0.0, 1.0),
        (0.0, pytest.approx(5.5)),
        (0.0, 1.0),
    ]
    for drawing in drawings:  # every dot is inside
        low, high = drawing.axes[0].get_ylim()
        n = len(drawing.axes[0].lines)
        assert -1 < low < 0
        assert n - 1 < high < n


def test_the_file_appears_whole(found, tmp_path):
    path = save(page.document(replace(found, findings=())), tmp_path / "page.html")
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_a_browser_shows_it_sorts_it_and_asks_nobody(found, tmp_path):
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser_path = next((b for name in NAMES if (b := shutil.which(name))), None)
    if browser_path is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(NAMES)})")
    path = save(page.document(found, HOSTILE), tmp_path / "page.html")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        for width, scheme in ((1280, "light"), (390, "dark")):
            context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
            shown, wrong = context.new_page(), []
            shown.on("console", lambda m, wrong=wrong: wrong.append(m.text) if m.type == "error" else None)
            shown.on("pageerror", lambda e, wrong=wrong: wrong.append(str(e)))
            shown.on("dialog", lambda d, wrong=wrong: (wrong.append(d.message), d.dismiss()))
            shown.on(
                "request", lambda r, wrong=wrong: wrong.append(r.url) if not r.url.startswith(("file:", "data:")) else 0
            )
            shown.goto(path.as_uri())
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
            assert shown.locator("[onerror], img").count() == 0
            assert shown.locator("svg.chart").count() >= 6
            head = shown.locator("#labels thead th").nth(2)
            head.locator("button").press("Enter")
            values = shown.locator("#labels tbody tr").evaluate_all("rows => rows.map(r => +r.cells[2].dataset.value)")
            assert values == sorted(values, reverse=True)
            tips = shown.locator("svg.chart g > title").all_text_contents()
            assert sum(tip.startswith(f"{HOSTILE}: ") for tip in tips) >= 1
            shown.keyboard.press("Home")
            assert shown.locator("#labels tbody th", has_text=HOSTILE).count() == 1
            assert wrong == []
            context.close()
        browser.close()


def test_summary_and_notebook(found):
    X, L = np.zeros((10, 1)), np.eye(2)[np.arange(10) % 2]
    plain = Uniform().fit(X, L)
    assert plain.summary().startswith("Uniform: 10 rows, 2 labels")
    assert "<pre>Uniform: 10 rows" in plain._repr_mimebundle_()["text/html"]
    assert "<pre>Uniform: " not in Uniform()._repr_mimebundle_()["text/html"]
    text = Inversion(n_sweeps=20, n_burn=5).fit(X, L).summary()
    assert "rule: main labels" in text
    assert "90 % interval" in text
