"""The page about one's own data: what is on it, that names are text, and that a browser shows it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from contone import CumulativeMass, Inversion, Uniform, check
from contone.numerics.simplex import softmax
from contone.pages.render import render, save
from contone.trust import page
from contone.trust.check_result import Finding
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
