"""The page: one file, nothing outside it, every picture with words, nothing computed by the template."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest

from contone.experiments.store import Store
from contone.reproduction.report import make_report

VOID = {"meta", "link", "img", "br", "hr", "input"}
STORES = ("bare_store", "full_store", "empty_store")


class Reader(HTMLParser):
    """Collects what the tests ask about, and finds elements that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.parents: list[tuple[str, ...]] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.parents.append(tuple(self.open))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> closes {self.open[-3:]}")
        while self.open and self.open.pop() != tag:
            pass

    def all(self, *names: str):
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module", params=STORES)
def text(request, pages):
    return pages(request.getfixturevalue(request.param))


@pytest.fixture(scope="module")
def full(full_store, pages):
    return pages(full_store)


@pytest.fixture(scope="module")
def tables(full_store):
    """The tables of scores: title and grid."""
    report = make_report(full_store)
    found = [report.section(name).grids() for name in ("recovery", "ablation", "augmentation")]
    return [(g.title, g) for grids in found for g in grids if g.style == "scores" and g.title != "Recovered share"]


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_it_is_one_file(text):
    assert not re.findall(r"https?:", text)
    assert "@import" not in text
    for attributes in read(text).all("img", "script", "link", "a", "use", "image"):
        for name in ("src", "href"):
            if attributes.get(name):
                assert attributes[name].startswith(("#", "data:")), attributes
    assert len(text.encode()) < 5_000_000


def test_it_is_well_formed(text):
    reader = read(text)
    assert not reader.wrong
    assert not reader.open
    ids = Counter(attributes["id"] for _, attributes in reader.tags if "id" in attributes)
    assert not [name for name, count in ids.items() if count > 1]
    for _, attributes in reader.tags:
        for name in ("aria-labelledby", "href"):
            targets = (attributes.get(name) or "").split()
            assert all(t.removeprefix("#") in ids for t in targets if name != "href" or t.startswith("#")), attributes
    headings = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(b - a <= 1 or (a, b) == (2, 4) for a, b in pairwise(headings))


def test_every_figure_has_words(text):
    reader = read(text)
    pictures = reader.all("img")
    assert all(len(attributes.get("alt") or "") > 10 for attributes in pictures)
    drawings = reader.all("svg")
    assert all(a["role"] == "img" and a["aria-labelledby"] for a in drawings)
    for title, words in re.findall(r"<title id=.*?>(.*?)</title><desc id=.*?>(.*?)</desc>", text):
        assert len(title) > 10
        assert len(words) > 20
    assert len(re.findall("<desc ", text)) == len(drawings)


def test_drawings_follow_the_theme(full):
    drawings = re.findall(r"<svg.*?</svg>", full, flags=re.S)
    assert len(drawings) > 5
    for drawing in drawings:
        assert not re.findall(r"#[0-9a-f]{6}\b", drawing)
        assert "<text" in drawing  # words are words, not outlines
        assert "DejaVu" not in drawing
        assert "var(--ink)" in drawing


def test_tables_have_names_and_scroll_in_their_own_frame(text):
    reader = read(text)
    framed = [a for a in reader.all("div") if "scroll" in (a.get("class") or "")]
    assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in framed)
    for (tag, _), parents in zip(reader.tags, reader.parents, strict=True):
        if tag == "table":
            assert "div" in parents
    assert all(a.get("scope") in ("col", "row") for a in reader.all("th"))


TEMPLATES = sorted(t for t in (files("contone") / "pages" / "templates").iterdir() if t.name.endswith(".j2"))
PRINTING = {"text", "identifier", "code", "safe", "join", "capitalize", "replace", "length"}
"""Filters that say how a value stands on the page; numbers come as text."""
ASKED = {"section", "grids", "draw", "headline"}
"""Methods of values that a template may call: what they give is settled before."""


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_templates_compute_nothing(template):
    """No arithmetic, no variables, no cutting, and of filters and methods those that print or name: by its syntax."""
    assert computations(template.read_text("utf-8")) == []
    assert len(TEMPLATES) >= 8


def computations(source: str) -> list[str]:
    """What a template works out for itself, with the line it stands in."""
    jinja2 = pytest.importorskip("jinja2")
    nodes, tree = jinja2.nodes, jinja2.Environment().parse(source)
    counted = (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow, nodes.Neg)
    found = list(tree.find_all((*counted, nodes.Slice, nodes.Assign, nodes.AssignBlock)))
    found += [f for f in tree.find_all(nodes.Filter) if f.name not in PRINTING]
    calls = [call for call in tree.find_all(nodes.Call) if not isinstance(call.node, nodes.Name)]
    found += [call for call in calls if not isinstance(call.node, nodes.Getattr) or call.node.attr not in ASKED]
    return [f"{node.lineno}: {node}" for node in found]


@pytest.mark.parametrize(
    "code",
    [
        *("{{ 100 * a }}", "{{ a / b }}", "{{ a - 1 }}", "{{ -a }}", "{{ a % 2 }}", "{{ a[:3] }}", "{% set a = 1 %}"),
        *("{{ a | sort }}", "{{ a | sum }}", "{{ a | max }}", "{{ a | round(2) }}", "{{ a | selectattr('b') | list }}"),
        *(
            "{{ '%.1f' | format(a) }}",
            "{{ '{:,}'.format(a) }}",
            "{{ a.append(1) }}",
            "{% if a | count + 1 %}{% endif %}",
        ),
    ],
)
def test_what_a_template_would_work_out_is_seen(code):
    assert computations(code)


def test_all_that_was_asked_for_is_there(full):
    for name in ("recovery", "ranks", "augmentation", "ablation", "sensitivity", "prediction", "examples", "manifold"):
        assert f'<section id="{name}"' in full
    for chart in ("recovered", "augmentation", "ablation", "sensitivity-artificial", "example-artificial"):
        assert f'id="{chart}-title"' in full, chart
    assert 'id="ranks-paper-kl-title"' in full
    assert full.count('id="erratum-') >= 10
    assert "contone reproduce --test" in full  # provenance
    assert full.count("data:image/png") >= 5  # the manifold


def test_baselines_and_oracles_are_marked_in_every_matrix(full):
    tables = re.findall(r'<table class="sortable scores">.*?</table>', full, flags=re.S)
    assert len(tables) >= 10
    for table in tables:
        rows = dict(re.findall(r'<th scope="row">([^<]+)<span class="tag">(\w+)', table))
        assert rows["Uniform"] == "baseline"
        assert rows["Limit"] == "oracle"


def test_failures_are_shown_with_their_traceback_and_cannot_break_the_page(full):
    assert "Bad &lt;&amp;&gt;" in full
    assert "Bad <" not in full
    assert re.search(
        r"<details[^>]*><summary>[^<]*Bad[^<]*</summary><div class=\"inside\">\s*<pre>Traceback", full, flags=re.S
    )
    assert re.search(r'class="[^"]*failed"', full)


def test_a_partial_store_says_what_is_missing(bare_store, pages):
    text = pages(bare_store)
    assert "Not everything is here" in text
    assert "put yeast-alpha into the folder CONTONE_DATA" in text
    for name in ("augmentation", "ablation", "sensitivity", "prediction"):
        assert f"contone reproduce --only {name}" in text


def test_an_empty_store_has_a_page(empty_store, pages):
    text = pages(empty_store)
    assert "No recovery results" in text
    assert "Errata" in text


def values(row):
    """The scores of a row by data set: the recovered share and the mean come first."""
    return row.cells[2:]


def test_the_best_is_best(tables):
    kl = next(grid for title, grid in tables if title.startswith("KL"))
    cells = {row.name: values(row)[0] for row in kl.rows if row.kind != "oracle"}
    best = [name for name, cell in cells.items() if cell.best]
    known = {name: cell.value for name, cell in cells.items() if cell.value is not None}
    assert best == [min(known, key=known.__getitem__)]


def test_the_best_of_a_column_is_one_value_also_where_baselines_were_added(tables):
    assert len(tables) >= 10
    for title, grid in tables:
        rows = [row for row in grid.rows if row.kind != "oracle"]
        for place in range(2, len(grid.columns)):
            found = [row.cells[place].value for row in rows if row.cells[place].value is not None]
            marked = {row.cells[place].text for row in rows if row.cells[place].best}
            best = max(found) if title.endswith("↑") else min(v for v in found if abs(v) < 1e299)
            assert marked
            assert all(abs(float(text) - best) < 1.1e-4 for text in marked)


def test_the_ends_of_the_share_are_at_their_places_in_every_section(tables):
    for _, grid in tables:
        shares = {row.name: row.cells[0] for row in grid.rows}
        assert shares["Uniform"].text == "0 %"
        assert shares["Limit"].text == "100 %"
        assert all(share.text != "−0 %" for share in shares.values())
