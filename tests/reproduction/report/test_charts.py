"""The pictures: what they show is what the numbers say, holes and outliers included."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from contone.experiments.report import charts
from contone.experiments.report.ranks import RankGroup, diagrams
from contone.experiments.report.scores import share_grid
from contone.experiments.statistics import Ranking
from contone.experiments.store import Result, Results
from contone.pages import svg
from contone.pages.blocks import Grid
from contone.reproduction import charts as of_paper
from contone.reproduction.published import published_figures


def drawn(text: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", text)


def test_svg_has_its_own_names_and_the_pages_colours():
    texts = []
    for name in ("one", "two"):
        with svg.style():
            figure = svg.canvas(2, 1)
            axis = figure.subplots()
            axis.plot([0, 1], [0, 2], color=svg.ACCENT, marker="o")
            axis.set_title("a < b")
            texts.append(svg.to_svg(figure, name, "A title", 'Words & "more"'))
    assert "var(--accent)" in texts[0]
    assert "a &lt; b" in texts[0]
    assert "Words &amp; &quot;more&quot;" in texts[0]
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in texts]
    assert not ids[0] & ids[1]
    for text in texts:
        assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
        for pair in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text):
            assert f'id="{pair[0] or pair[1]}"' in text
    assert texts[0].replace("one-", "two-") == texts[1]  # the same drawing gives the same text


SHARES = {
    "low": ("method", (-60.0, 0.0)),
    "infinite": ("method", (-math.inf, 0.1)),
    "far": ("baseline", (None, 0.2)),
    "Uniform": ("baseline", (0.0, 0.0)),
    "high": ("method", (0.9, 0.9)),
    "nothing": ("method", (None, None)),
    "Limit": ("oracle", (1.0, 1.0)),
}


def test_recovered_orders_by_mean_and_keeps_what_has_none():
    sets = ("artificial", "yeast-cold")
    found = [
        Result("x", dataset, name, name, kind, status="done", scores={"kl": 1 - share})
        if share is not None
        else Result("x", dataset, name, name, kind)
        for name, (kind, shares) in SHARES.items()
        for dataset, share in zip(sets, shares, strict=True)
    ]
    grid = share_grid(Results(found), "x")
    assert [row.name for row in grid.rows] == ["Limit", "high", "Uniform", "low", "infinite", "far"]
    assert [row.cells[0].value for row in grid.rows] == pytest.approx([1.0, 0.9, 0.0, -30.0, -math.inf, None])
    (chart,) = charts.recovered(grid)
    labels = [t for t in drawn(chart.svg) if t in ("high", "low", "far, baseline")]
    assert labels == ["high", "low", "far, baseline"]
    assert "high 90 %" in chart.svg
    assert charts.recovered(Grid("", (), ())) == []


def ranked(names: list[str]) -> Ranking:
    nemenyi = {a: {b: 1.0 if abs(i - j) < 2 else 0.01 for j, b in enumerate(names)} for i, a in enumerate(names)}
    return Ranking({name: 1.0 + i for i, name in enumerate(names)}, names[0], {}, 0.01, 1.5, nemenyi)


@pytest.mark.parametrize("count", [3, 6, 24])
def test_ranks_name_every_method(count):
    names = [f"method {i}" for i in range(count)]
    group = RankGroup("g", "Group", ("a", "b", "c", "d", "e"), {"kl": ranked(names)})
    (chart,) = diagrams(group, ["kl"])
    shown = " ".join(drawn(chart.svg))
    assert all(re.search(rf"\b{name}\b", shown) for name in names)
    assert "critical difference 1.50" in shown
    untested = Ranking(dict.fromkeys(names, 1.0), names[0], {})
    assert diagrams(replace(group, rankings={"kl": untested}), ["kl"]) == []
    # Below five data sets a diagram would suggest more than the test can say.
    assert diagrams(replace(group, datasets=("a", "b", "c", "d")), ["kl"]) == []


def scored(experiment: str, row: str, dataset: str, value: float) -> Result:
    scores = {"chebyshev": value, "clark": value}
    return Result(experiment, dataset, row, row, "method", status="done", scores=scores)


def test_augmentation_has_a_panel_per_method_that_was_run():
    ends = [scored("augmentation", "Uniform", "yeast-cdc", 0.1)]
    measured = [scored("augmentation", "GLLE", "yeast-cdc", 0.2), scored("augmentation", "LCdr-GLLE", "yeast-cdc", 0.1)]
    measured.append(scored("augmentation", "ML2", "yeast-cdc", math.inf))
    table = {"clark": {"GLLE": {"cdc": 0.3, "elu": 9.0}}}
    results = Results([*ends, *measured])
    (chart,) = of_paper.augmentation(results, published_figures(results, "augmentation", table))
    assert "GLLE, mean multiple of uniform: alone 2.00, augmented 1.00, alone, published 3.00." in chart.svg
    assert {"GLLE", "cdc"} <= set(drawn(chart.svg))
    assert not {"ML2", "elu"} & set(drawn(chart.svg))
    assert of_paper.augmentation(Results(measured), []) == []


@pytest.fixture
def figures(monkeypatch):
    """The drawings as Matplotlib holds them, in the order in which they were made."""
    found = []
    to_svg = svg.to_svg
    monkeypatch.setattr(svg, "to_svg", lambda figure, *text: found.append(figure) or to_svg(figure, *text))
    return found


def marks(axis) -> list[tuple[str, float, float]]:
    """Single marks: their shape and place."""
    lines = [line for line in axis.lines if len(line.get_xdata()) == 1]
    return [(line.get_marker(), *map(float, (line.get_xdata()[0], line.get_ydata()[0]))) for line in lines]


def test_marks_of_a_panel_stand_at_their_ratio_and_beside_their_set(figures):
    score = {"Uniform": 0.1, "LP": 0.05, "LCdr-LP": 0.9}
    sets = ("yeast-cdc", "yeast-elu")
    measured = [scored("augmentation", row, d, v * (1 + i)) for row, v in score.items() for i, d in enumerate(sets)]
    measured.append(Result("augmentation", "yeast-spo", "LP", "LP", "method", status="done", scores={"clark": 0.0}))
    results = Results([*measured, scored("augmentation", "Uniform", "yeast-spo", 0.0)])  # nothing is a multiple of 0
    table = {"clark": {"LP": {"cdc": 0.16, "elu": 0.32}, "LCdr-LP": {"cdc": 0.15}}}
    of_paper.augmentation(results, published_figures(results, "augmentation", table))
    (figure,) = figures
    (axis,) = figure.axes
    heights = [-0.24, -0.08, 0.08, 0.24]  # alone, augmented, and both as published
    assert marks(axis) == [
        ("o", pytest.approx(0.5), pytest.approx(heights[0])),
        ("o", pytest.approx(0.5), pytest.approx(1 + heights[0])),
        (">", of_paper.RIGHT, pytest.approx(heights[1])),  # further off: an arrow at the edge
        (">", of_paper.RIGHT, pytest.approx(1 + heights[1])),
        ("o", pytest.approx(1.6), pytest.approx(heights[2])),
        ("o", pytest.approx(1.6), pytest.approx(1 + heights[2])),
        ("D", pytest.approx(1.5), pytest.approx(heights[3])),
    ]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["cdc", "elu"]
    assert list(axis.get_yticks()) == [0, 1]
    bottom, top = axis.get_ylim()  # the first set on top, and all marks within
    assert top < min(heights)
    assert bottom > 1 + max(heights)
    assert bottom < 2
    assert any(list(line.get_xdata()) == [1, 1] for line in axis.lines)  # the uniform distribution


def test_a_curve_passes_through_its_points_and_rings_the_papers_value(figures):
    def result(row: str, setting: dict, score: float | None) -> Result:
        scores = {} if score is None else {"kl": score}
        return Result("sensitivity", "sjaffe", row, row, "method", status="done", setting=setting, scores=scores)

    found = [result("LCdr", {"alpha": v}, s) for v, s in ((0.0001, 0.4), (0.1, 0.3), (10.0, None), (1.0, 0.2))]
    found += [result("other", {"alpha": v}, s) for v, s in ((0.1, 0.5), (0.01, 0.6))]
    found += [result("LCdr", {"n_neighbors": v}, s) for v, s in ((10, 0.3), (3, 0.25))]
    results = Results([*found, result("Uniform", {}, 0.45)])
    (chart,) = of_paper.sensitivity(of_paper.curves(results))
    (figure,) = figures
    first, second = figure.axes
    assert [label.get_text() for label in first.get_xticklabels()] == ["1e−4", "0.01", "0.1", "1", "10"]
    assert (first.get_xlabel(), second.get_xlabel(), first.get_ylabel()) == ("α", "k", "KL")
    assert first.get_ylim()[0] == 0

    def lines(axis):
        return [list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in axis.lines]

    # Steps of equal width, in the order of the values; what was not measured is left out.
    assert lines(first)[1:5] == [[(0, 0.4), (2, 0.3), (3, 0.2)], [(2, 0.3)], [(2, 0.5), (1, 0.6)], [(2, 0.5)]]
    assert lines(second)[1:] == [[(1, 0.3), (0, 0.25)], [(1, 0.3)]]
    assert [line.get_fillstyle() for line in first.lines[1:5]] == ["full", "none"] * 2
    assert set(first.lines[0].get_ydata()) == set(second.lines[0].get_ydata()) == {0.45}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["LCdr", "other", "uniform"]
    assert "Uniform: 0.4500." in chart.svg
    assert "LCdr, α 0.0001: 0.4000, 0.1: 0.3000, 1: 0.2000." in chart.svg


def test_ablation_is_relative_to_uniform():
    ends = [scored("ablation", "Uniform", "yeast-cdc", 0.1)]
    measured = [scored("ablation", "LF+LC", "yeast-cdc", 0.05), Result("ablation", "yeast-elu", "LF+LC", "x", "method")]
    table = {"chebyshev": {"LF+LC": {"cdc": 0.2, "elu": 0.1}}}
    results = Results([*ends, *measured])
    (chart,) = of_paper.ablation(results, published_figures(results, "ablation", table))
    assert "Published, mean multiple of uniform: LF+LC 2.00." in chart.svg
    assert "Measured, mean multiple of uniform: LF+LC 0.50." in chart.svg
    assert "elu" not in drawn(chart.svg)
    assert of_paper.ablation(Results(measured), []) == []


def test_sensitivity_leaves_holes_out():
    found = [
        Result(
            *("sensitivity", dataset, "LCdr", "LCdr", "method"),
            setting={"n_neighbors": value},
            scores={} if score is None else {"kl": score},
        )
        for dataset, scores in {"sjaffe": (0.2, None, 0.1), "x": (None,) * 3}.items()
        for value, score in zip((3, 10, 50), scores, strict=True)
    ]
    (chart,) = of_paper.sensitivity(of_paper.curves(Results(found)))
    assert chart.title == "sjaffe"
    assert "LCdr, k 3: 0.2000, 50: 0.1000." in chart.svg
    assert {"3", "10", "50", "k"} <= set(drawn(chart.svg))


def test_examples_say_which_labels_apply():
    kept = {
        "rows": [7],
        "labels": ["HAP", "SAD"],
        "truth": [[0.5, 0.5]],
        "logical": [[1, 0]],
        "recovered": [[0.6, 0.4]],
    }
    results = [Result("x", "sjaffe", "LCdr", "LCdr", "method", records=({"examples": kept},))]
    (chart,) = charts.instances(results, ["LCdr", "not there"])
    assert "Instance 7: labels 1 apply; truth 0.500, 0.500; LCdr 0.600, 0.400." in chart.svg
    assert {"HAP", "SAD", "LCdr", "truth", "yes"} <= set(drawn(chart.svg))
    assert charts.instances([], ["LCdr"]) == []
    other = kept | {"rows": [3], "recovered": [[0.9, 0.1]]}  # every data set has its own
    results.append(Result("x", "yeast-heat", "LCdr", "LCdr", "method", records=({"examples": other},)))
    first, second = charts.instances(results, ["LCdr"])
    assert (first.title, second.title) == ("sjaffe", "yeast-heat")
    assert "LCdr 0.600, 0.400" in first.svg
    assert "Instance 3: labels 1 apply; truth 0.500, 0.500; LCdr 0.900, 0.100." in second.svg
