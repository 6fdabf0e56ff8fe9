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
