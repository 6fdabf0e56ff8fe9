"""The page in a real browser: Debian's Chromium, driven by Playwright; skipped with the reason where there is none."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(NAMES)})")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(full_store, pages, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(pages(full_store), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def show(browser, address):
    """Open the page; gives the page and the list of everything that went wrong."""
    contexts = []

    def load(**options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        wrong: list[str] = []
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: wrong.append(str(e)))
        page.on("request", lambda r: wrong.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
        page.goto(address)
        return page, wrong

    yield load
    for context in contexts:
        context.close()


def test_markup_in_names_is_text(browser, hostile_store, pages, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(pages(hostile_store), encoding="utf-8")
    page = browser.new_page()
    seen: list[str] = []
    page.on("dialog", lambda d: (seen.append(d.message), d.dismiss()))
    page.on("pageerror", lambda e: seen.append(str(e)))
    page.on("request", lambda r: seen.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
    page.on("console", lambda m: seen.append(m.text) if m.type == "error" else None)
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert seen == []
    assert page.locator("img:not([src^='data:'])").count() == 0
    assert page.locator("script").count() == 1
    assert page.locator("[onerror], [onload]").count() == 0
    heads = page.locator("#recovery table.scores").first.locator("thead th").all_inner_texts()
    assert '"><img src=x onerror=alert(1)>' in heads
    drawn = page.locator("svg.chart text").all_text_contents()
    assert any(r"$\frac{1}{0$" in text for text in drawn)
    page.close()


def colour(page, selector: str, what: str = "color") -> str:
    return page.eval_on_selector(selector, f"e => getComputedStyle(e).{what}")


def column(page, place: int) -> list[str]:
    rows = page.locator("#recovery table.scores").first.locator("tbody tr")
    return rows.evaluate_all(f"rows => rows.map(r => r.cells[{place}].dataset.value)")


def test_it_loads_without_errors_and_asks_nobody(show):
    page, wrong = show()
    assert page.title()
    assert page.locator("svg.chart").count() > 5
    assert page.locator("img").evaluate_all("all => all.every(i => i.complete && i.naturalWidth > 0)")
    assert wrong == []


def test_headers_sort(show):
    page, wrong = show()
    head = page.locator("#recovery table.scores").first.locator("thead th").nth(1)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"  # of a share, the highest is wanted first
    values = column(page, 1)
    known = [float(v) for v in values if v]
    assert known == sorted(known, reverse=True)
    assert len(known) > 2
    assert values[len(known) :] == [""] * (len(values) - len(known))  # what has no value stays at the end
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    values = column(page, 1)
    assert [float(v) for v in values if v] == sorted(known)
    assert values[len(known) :] == [""] * (len(values) - len(known))
    name = page.locator("#recovery table.scores").first.locator("thead th").first
    name.locator("button").click()
    assert head.get_attribute("aria-sort") is None
    texts = page.locator("#recovery table.scores").first.locator("tbody th").all_inner_texts()
    assert [t.lower() for t in texts] == sorted(t.lower() for t in texts)
    assert wrong == []


def test_the_theme_follows_the_system_and_the_reader(show):
    light, _ = show(color_scheme="light")
    page, wrong = show(color_scheme="dark")
    assert colour(page, "body", "backgroundColor") != colour(light, "body", "backgroundColor")
    assert colour(page, "svg.chart text", "fill") != colour(light, "svg.chart text", "fill")
    button = page.locator("#theme")
    assert "system" in button.inner_text()
    button.click()
    assert "light" in button.inner_text()
    assert colour(page, "body", "backgroundColor") == colour(light, "body", "backgroundColor")
    page.reload()
    assert "light" in button.inner_text()  # remembered
    button.click()
    assert "dark" in button.inner_text()
    assert colour(page, "body", "backgroundColor") != colour(light, "body", "backgroundColor")
    assert wrong == []


def test_text_can_be_read_on_its_ground(show):
    page, _ = show(color_scheme="light")
    contrast = """variable => {
        const probe = document.createElement("span");
        document.body.append(probe);
        const light = (name) => {
            probe.style.color = `var(--${name})`;
            const c = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
                .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
        };
        const [a, b] = [light(variable), light("ground")].sort((x, y) => y - x);
        probe.remove();
        return (a + 0.05) / (b + 0.05);
    }"""
    grounds = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.add(colour(page, "body", "backgroundColor"))
        for variable in ("ink", "soft", "accent", "bad"):
            assert page.evaluate(contrast, variable) >= 4.5, (scheme, variable)  # WCAG AA
    assert len(grounds) == 2


def test_the_page_never_scrolls_sideways(show):
    page, _ = show()
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inside = page.locator(".scroll table").first
        assert inside.evaluate("t => t.closest('.scroll').getBoundingClientRect().right") <= width


def test_the_keyboard_reaches_everything(show):
    page, _ = show()
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    assert skip.evaluate("e => e === document.activeElement")
    assert skip.bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "summary"
    page.locator("#theme").focus()
    page.keyboard.press("Space")
    assert "light" in page.locator("#theme").inner_text()
    assert colour(page, "#theme", "outlineStyle") != "none"


def test_print_shows_everything_and_is_light(show):
    page, _ = show(color_scheme="dark")
    folded = page.locator("details:not([open])").count()
    page.emulate_media(media="print", color_scheme="light")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator("nav.contents").is_visible()
    assert not page.locator("#theme").is_visible()
    assert colour(page, "body", "backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == folded
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert 3 <= printed.count(b"/Type /Page\n") <= 60


def test_without_scripts_it_is_a_plain_document(show):
    page, wrong = show(java_script_enabled=False)
    assert page.locator("#theme").is_hidden()
    assert page.locator("th button").count() == 0
    assert page.locator("#recovery table.scores").first.is_visible()
    assert wrong == []
