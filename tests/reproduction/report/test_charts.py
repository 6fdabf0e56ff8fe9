"""The pictures: what they show is what the numbers say, holes and outliers included."""

from __future__ import annotations

import re

import pytest

from contone.pages import svg
from contone.reproduction.report.charts import ablation, augmentation, examples, ranks, recovered, sensitivity


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


def test_recovered_orders_by_mean_and_keeps_what_has_none():
    rows = [
        {"name": "low", "kind": "method", "mean": -30.0, "values": [-60.0, 0.0]},
        {"name": "far", "kind": "baseline", "mean": None, "values": [None, 0.2]},
        {"name": "high", "kind": "method", "mean": 0.9, "values": [0.9, 0.9]},
        {"name": "nothing", "kind": "method", "mean": None, "values": [None, None]},
    ]
    assert [r["name"] for r in recovered.ordered(rows)] == ["high", "low", "far"]
    chart = recovered.chart({"datasets": ["artificial", "yeast-cold"], "rows": rows})
    labels = [t for t in drawn(chart.svg) if t in ("high", "low", "far, baseline")]
    assert labels == ["high", "low", "far, baseline"]
    assert "high 90 %" in chart.svg
    assert recovered.chart({"datasets": [], "rows": []}) is None


def measure(names: list[str]) -> dict:
    return {
        "measure": "kl",
        "title": "KL",
        "average_ranks": {name: 1.0 + i for i, name in enumerate(names)},
        "nemenyi": {a: {b: 1.0 if abs(i - j) < 2 else 0.01 for j, b in enumerate(names)} for i, a in enumerate(names)},
        "critical_difference": 1.5,
    }


@pytest.mark.parametrize("count", [3, 6, 24])
def test_ranks_name_every_method(count):
    names = [f"method {i}" for i in range(count)]
    group = {"name": "g", "title": "Group", "datasets": ["a", "b"]}
    chart = ranks.chart(group, measure(names))
    shown = " ".join(drawn(chart.svg))
    assert all(re.search(rf"\b{name}\b", shown) for name in names)
    assert "critical difference 1.50" in shown
    assert ranks.chart(group, {**measure(names), "nemenyi": None}) is None


def pair(method: str, *values: float | None) -> dict:
    keys = ("alone", "augmented", "alone_published", "augmented_published")
    return {"method": method, **dict(zip(keys, values, strict=True))}


def test_augmentation_writes_an_outlier_instead_of_drawing_it():
    pairs = [pair("GLLE", 0.2, 0.21, 0.3, 0.29), pair("ML2", 7.5, 0.22, 2.9, None), pair("LP", None, 0.19, 0.2, 0.2)]
    bars = {"dataset": "yeast-cdc", "measure": "clark", "title": "Clark", "pairs": pairs}
    chart = augmentation.chart(bars)
    assert "7.500" in drawn(chart.svg)
    ticks = [float(t) for t in drawn(chart.svg) if re.fullmatch(r"\d\.\d{1,2}", t)]
    assert max(ticks) < 1
    assert "alone not known" in chart.svg
    assert augmentation.chart({**bars, "pairs": [pair("GLLE", None, None, 0.3, 0.3)]}) is None


def test_ablation_is_relative_to_uniform():
    cells = [{"dataset": "a", "value": 0.05, "published": 0.2}, {"dataset": "b", "value": None, "published": 0.1}]
    table = {"title": "Chebyshev", "datasets": ["a", "b"], "rows": [{"name": "LF+LC", "cells": cells}]}
    chart = ablation.chart(table, {"a": 0.1, "b": 0.1})
    assert "Published, mean multiple of uniform: LF+LC 2.00." in chart.svg
    assert "Measured, mean multiple of uniform: LF+LC 0.50." in chart.svg
    assert "b" not in drawn(chart.svg)
    assert ablation.chart(table, {}) is None


def test_sensitivity_leaves_holes_out():
    curve = {
        "row": "LCdr",
        "dataset": "sjaffe",
        "parameter": "n_neighbors",
        "paper_value": 10,
        "values": [3, 10, 50],
        "scores": {"kl": [0.2, None, 0.1]},
        "uniform": {"kl": None},
    }
    (chart,) = sensitivity.charts(
        [curve, {**curve, "dataset": "x", "scores": {"kl": [None] * 3}}], {"n_neighbors": "k"}
    )
    assert chart.title == "sjaffe"
    assert "LCdr, k 3: 0.2000, 50: 0.1000." in chart.svg
    assert {"3", "10", "50", "k"} <= set(drawn(chart.svg))


def test_examples_say_which_labels_apply():
    instance = {"row": 7, "truth": [0.5, 0.5], "logical": [1, 0], "recovered": {"LCdr": [0.6, 0.4]}}
    example = {"dataset": "sjaffe", "labels": ["HAP", "SAD"], "instances": [instance]}
    (chart,) = examples.charts([example, {**example, "instances": []}], ["LCdr", "not there"])
    assert "Instance 7: labels 1 apply; truth 0.500, 0.500; LCdr 0.600, 0.400." in chart.svg
    assert {"HAP", "SAD", "LCdr", "truth", "yes"} <= set(drawn(chart.svg))
