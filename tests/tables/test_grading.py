"""From suggestion to enhanced file: the sheet and the page, rows found again, and what is refused."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest

from contone import CumulativeMass, Inversion, enhance_file, read_table, suggest_file
from contone.enhance.inversion import expected_error
from contone.exceptions import ArgumentError, DataError, LabelError, LabelWarning
from contone.numerics.simplex import softmax
from contone.tables import Progress

pl = pytest.importorskip("polars")
pytest.importorskip("jinja2")

SHORT = Inversion(n_sweeps=20, n_burn=8)
HOSTILE = "</script><img src=x onerror=alert(1)>"
LABELS = ["calm", HOSTILE, "sad"]
PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00"
    b"\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A file of 40 rows, its true degrees, and its folder."""
    folder = tmp_path_factory.mktemp("songs")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    D = softmax(X @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(40, 3)))
    L = CumulativeMass().apply(D).astype(int)
    (folder / "cover.png").write_bytes(PIXEL)
    (folder / "secret.png").write_bytes(b"not a picture")
    frame = pl.DataFrame(
        {
            "song": [f"S{i:02d}" for i in range(40)],
            "words": [f"{HOSTILE} line {i}, " * 4 for i in range(40)],
            "cover": ["cover.png" if i % 2 else "secret.png" for i in range(40)],
            "x": X[:, 0],
            "y": X[:, 1],
            **{name: L[:, j] for j, name in enumerate(LABELS)},
        }
    )
    frame.write_csv(folder / "songs.csv")
    return folder / "songs.csv", D


@pytest.fixture(scope="module")
def sheet(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("sheet") / "grade.csv"
    done = suggest_file(table[0], path, labels=LABELS, k=6, method=SHORT)
    return pl.read_csv(path, infer_schema=False), done


def filled(sheet, D, scale=1.0):
    rows = sheet["contone_row"].cast(pl.Int64).to_list()
    return sheet.with_columns(
        pl.Series(f"{name}_degree", [f"{scale * D[i, j]:.6f}" for i in rows]) for j, name in enumerate(LABELS)
    )


def read(source, graded, **settings):
    """Degrees (n, q) of the rows of a file, as they are read back."""
    return read_table(source, labels=LABELS, graded=graded, **settings).graded


def enhance(table, graded, tmp_path, **settings):
    target = tmp_path / "soft.csv"
    done = enhance_file(table[0], target, labels=LABELS, graded=graded, overwrite=True, **{"method": SHORT, **settings})
    return done, pl.read_csv(target).select([f"{name}_degree" for name in LABELS]).to_numpy()


def test_a_sheet_comes_back_as_shares_or_percentages_in_any_order(table, sheet, tmp_path, monkeypatch):
    monkeypatch.setattr(expected_error, "N_MODELS", 3)
    monkeypatch.setattr(expected_error, "TAILS", (math.inf, math.inf, 6.0))
    frame, done = sheet
    assert len(set(done.rows)) == 6
    rows = list(done.rows)
    for scale, order in ((1.0, [0, 1, 2, 3, 4, 5]), (100.0, [5, 3, 4, 0, 1, 2])):
        filled(frame, table[1], scale)[order].write_csv(tmp_path / "graded.csv")
        G = read(table[0], tmp_path / "graded.csv")
        np.testing.assert_allclose(G[rows], table[1][rows], atol=1e-5)
        assert np.isnan(np.delete(G, rows, axis=0)).all()
    answer, D = enhance(table, tmp_path / "graded.csv", tmp_path)
    np.testing.assert_allclose(D[rows], table[1][rows], atol=1e-5)
    before, after = answer.fitted.compare_errors(Progress())
    assert 0 < after < before


def test_blank_rows_are_not_graded_and_rows_are_found_by_id(table, sheet, tmp_path):
    made = [f"{name}_degree" for name in LABELS]
    few = filled(sheet[0], table[1]).select("song", *made)
    few.with_columns(pl.Series(name, [None, *few[name][1:]]) for name in made).write_csv(tmp_path / "graded.csv")
    G = read(table[0], tmp_path / "graded.csv", ids=["song"])
    rows = list(sheet[1].rows)
    np.testing.assert_allclose(G[rows[1:]], table[1][rows[1:]], atol=1e-5)
    assert np.isnan(np.delete(G, rows[1:], axis=0)).all()


def test_other_methods_are_calibrated(table, sheet, tmp_path):
    filled(sheet[0], table[1]).write_csv(tmp_path / "graded.csv")
    done, D = enhance(table, tmp_path / "graded.csv", tmp_path, method="temperature")
    assert type(done.method).__name__ == "Calibrated"
    assert done.fitted.compare_errors(Progress()) == (done.method.error_before_, done.method.error_after_)
    np.testing.assert_allclose(D[list(sheet[1].rows)], table[1][list(sheet[1].rows)], atol=1e-5)


def test_graded_rows_are_not_suggested_again(table, sheet, tmp_path):
    filled(sheet[0], table[1]).write_csv(tmp_path / "graded.csv")
    more = suggest_file(
        table[0], tmp_path / "more.tsv", labels=LABELS, k=99, method=SHORT, graded=tmp_path / "graded.csv"
    )
    assert len(more.rows) == 34
    assert not set(more.rows) & set(sheet[1].rows)


def test_what_is_wrong_is_said_by_row(table, sheet, tmp_path):
    frame, first = filled(sheet[0], table[1]), sheet[1].rows[0]

    def refused(changed, error, match, source=table[0]):
        changed.write_csv(tmp_path / "graded.csv")
        with pytest.raises(error, match=match):
            read(source, tmp_path / "graded.csv")

    def with_first(name, value):
        return frame.with_columns(pl.Series(name, [value, *frame[name][1:]]))

    refused(with_first("sad_degree", "0.9"), LabelError, f"row {first} sum to")
    refused(with_first("sad_degree", "much"), DataError, "'much', which is not a degree")
    refused(with_first("contone_check", "0" * 12), DataError, rf"made for other rows.*\(rows {first}\)")
    refused(frame.drop("sad_degree", "sad"), ArgumentError, "no column 'sad_degree'")
    refused(frame.drop("contone_row"), ArgumentError, "does not say which rows")
    refused(sheet[0], DataError, "no graded row")
    refused(frame.vstack(frame[:1]), DataError, f"grades row {first} twice")
    # A row of the table that has changed since, another one moved: the first is refused, by its number.
    lines = table[0].read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(f"S{first:02d}"))
    lines[place] = lines[place].replace("line", "verse")
    changed = tmp_path / "songs.csv"
    changed.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    refused(frame, DataError, rf"1 of its rows are not in the table \(rows {first}\)", source=changed)


def test_bad_places_are_refused_before_any_work(table, tmp_path):
    with pytest.raises(ArgumentError, match=r"must end in \.html"):
        suggest_file(table[0], tmp_path / "grade.pdf", labels=LABELS)
    with pytest.raises(ArgumentError, match="suggested by inversion"):
        suggest_file(table[0], tmp_path / "grade.html", labels=LABELS, method="temperature")


# ----------------------------------------------------------------------------------------------------- in a browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


def degrees(shown):
    return [int(v) for v in shown.locator("#labels input[type=number]").evaluate_all("all => all.map(i => i.value)")]


@pytest.fixture
def graded_page(table, tmp_path):
    """The page of four rows in a browser, which rows they are, and what went wrong in it."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser_path = next((b for name in NAMES if (b := shutil.which(name))), None)
    if browser_path is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(NAMES)})")
    page = tmp_path / "grade.html"
    chosen = suggest_file(table[0], page, labels=LABELS, k=4, method=SHORT, ids="song").rows
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
        shown, wrong = context.new_page(), []
        shown.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        shown.on("pageerror", lambda e: wrong.append(str(e)))
        shown.on("dialog", lambda d: (wrong.append(d.message), d.dismiss()))
        shown.on("request", lambda r: wrong.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else 0)
        shown.goto(page.as_uri())
        yield shown, chosen
        assert wrong == []
        browser.close()


def test_done_on_a_row_that_nobody_touched_asks_once(graded_page):
    shown, _ = graded_page
    ask, count = shown.locator("#ask"), shown.locator("#count")
    assert not ask.is_visible()
    shown.locator("#done").click()
    assert ask.is_visible()
    assert count.inner_text().startswith("0 of 4 graded")
    shown.reload()  # the question stays
    ask.wait_for()
    shown.locator("#labels input[type=number]").nth(0).fill("60")
    shown.locator("#labels input[type=number]").nth(0).blur()
    assert not ask.is_visible()  # it was answered by a grade
    shown.locator("#done").click()
    assert count.inner_text().startswith("1 of 4 graded")
    for _ in range(2):  # the second time, equal degrees are meant
        shown.locator("#done").click()
    assert count.inner_text().startswith("2 of 4 graded")
    shown.locator("#equal").click()  # whoever says "all equal" is not asked
    shown.locator("#done").click()
    assert count.inner_text().startswith("3 of 4 graded")


def test_a_person_grades_in_a_browser(table, tmp_path, graded_page):
    shown, chosen = graded_page
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    assert shown.locator("[onerror]").count() == 0
    assert shown.locator("#row dd", has_text=HOSTILE).count() == 1
    # The row of the picture that is one shows it; the other file is not read into the page.
    assert shown.locator("#row img").count() == chosen[0] % 2
    assert b"not a picture" not in (tmp_path / "grade.html").read_bytes()
    assert sorted(degrees(shown)) == [33, 33, 34]
    # Keys: the first label to 60, the second to 40; the third has to make room; sums stay at 100.
    shown.keyboard.press("1")
    for _ in range(3):
        shown.keyboard.press("PageUp")
    assert sum(degrees(shown)) == 100
    shown.locator("#labels input[type=number]").nth(0).fill("60")
    shown.locator("#labels input[type=number]").nth(1).fill("40")
    shown.locator("#labels input[type=number]").nth(1).blur()
    assert degrees(shown) == [60, 40, 0]
    order = shown.locator("#labels .label label").evaluate_all("all => all.map(l => l.firstChild.textContent)")
    shown.keyboard.press("Enter")
    shown.keyboard.press("s")  # the second row is skipped
    shown.reload()  # nothing is lost
    assert shown.locator("#count").inner_text() == "1 of 4 graded, 1 skipped"
    assert "(3 of 4)" in shown.locator("#card-h").inner_text()
    shown.locator("#labels input[type=range]").nth(0).focus()
    shown.keyboard.press("ArrowRight")
    assert sum(degrees(shown)) == 100
    shown.locator("#equal").click()
    assert sorted(degrees(shown)) == [33, 33, 34]
    shown.locator("#done").click()
    with shown.expect_download() as waiting:
        shown.locator("#save").click()
    waiting.value.save_as(tmp_path / "graded.csv")
    with pytest.warns(LabelWarning, match="Their degrees are kept"):  # "all equal" is not what its labels say
        done, answer = enhance(table, tmp_path / "graded.csv", tmp_path)  # found by fingerprint
    assert done.method.solution_.info["graded_rows"] == 2
    for D in (answer, read(table[0], tmp_path / "graded.csv", ids=["song"])):  # and by id
        np.testing.assert_allclose([D[chosen[0]][LABELS.index(name)] for name in order], [0.6, 0.4, 0.0], atol=1e-9)
        np.testing.assert_allclose(np.sort(D[chosen[2]]), [0.33, 0.33, 0.34])


def test_pictures_of_other_folders_stay_outside_the_page(table, tmp_path):
    """A table from elsewhere may name any file: only pictures beside it or below it are put into the page."""
    from contone.pages.grading import _Pictures

    inside, outside = tmp_path / "table" / "covers", tmp_path / "private.png"
    inside.mkdir(parents=True)
    (inside / "cover.png").write_bytes(PIXEL)
    outside.write_bytes(PIXEL)
    (inside / "link.png").symlink_to(outside)
    pictures = _Pictures(tmp_path / "table")
    assert pictures.embed("covers/cover.png").startswith("data:image/png")
    for name in ("../private.png", str(outside), "covers/link.png", "covers/../../private.png", "file:///x.png"):
        assert pictures.embed(name) == ""
    assert pictures.embed("javascript:alert(1).png") == pictures.embed("\0.png") == ""
