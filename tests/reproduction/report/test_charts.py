"""The pictures: what they show is what the numbers say, holes and outliers included."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from contone.experiments.report.charts import examples, ranks, recovered
from contone.experiments.report.schema import (
    Cell,
    Example,
    Figure,
    Instance,
    Published,
    RankGroup,
    Ranking,
    Row,
    Share,
    Table,
    Verdict,
)
from contone.pages import svg
from contone.reproduction.report.charts import ablation, augmentation, sensitivity
from contone.reproduction.report.schema import Bar, Bars, Curve


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
        Share("low", "method", -30.0, (-60.0, 0.0)),
        Share("infinite", "method", -math.inf, (-math.inf, 0.1)),
        Share("far", "baseline", None, (None, 0.2)),
        Share("zero", "baseline", 0.0, (0.0, 0.0)),
        Share("high", "method", 0.9, (0.9, 0.9)),
        Share("nothing", "method", None, (None, None)),
    ]
    assert [r.name for r in recovered.ordered(rows)] == ["high", "zero", "low", "infinite", "far"]
    chart = recovered.chart(Figure(("artificial", "yeast-cold"), tuple(rows)))
    labels = [t for t in drawn(chart.svg) if t in ("high", "low", "far, baseline")]
    assert labels == ["high", "low", "far, baseline"]
    assert "high 90 %" in chart.svg
    assert recovered.chart(Figure((), ())) is None


def measure(names: list[str]) -> Ranking:
    return Ranking(
        measure="kl",
        title="KL",
        arrow="↓",
        average_ranks={name: 1.0 + i for i, name in enumerate(names)},
        friedman=None,
        nemenyi={a: {b: 1.0 if abs(i - j) < 2 else 0.01 for j, b in enumerate(names)} for i, a in enumerate(names)},
        critical_difference=1.5,
        reference=names[0],
        wilcoxon={},
    )


@pytest.mark.parametrize("count", [3, 6, 24])
def test_ranks_name_every_method(count):
    names = [f"method {i}" for i in range(count)]
    group = RankGroup("g", "Group", ("a", "b", "c", "d", "e"), ())
    chart = ranks.chart(group, measure(names))
    shown = " ".join(drawn(chart.svg))
    assert all(re.search(rf"\b{name}\b", shown) for name in names)
    assert "critical difference 1.50" in shown
    assert ranks.chart(group, replace(measure(names), nemenyi=None)) is None
    # Below five data sets a diagram would suggest more than the test can say.
    assert ranks.chart(replace(group, datasets=("a", "b", "c", "d")), measure(names)) is None


def test_augmentation_writes_an_outlier_instead_of_drawing_it():
    pairs = [Bar("GLLE", 0.2, 0.21, 0.3, 0.29), Bar("ML2", 7.5, 0.22, 2.9, None), Bar("LP", None, 0.19, 0.2, 0.2)]
    bars = Bars("yeast-cdc", "clark", "Clark", tuple(pairs))
    chart = augmentation.chart(bars)
    assert "7.500" in drawn(chart.svg)
    ticks = [float(t) for t in drawn(chart.svg) if re.fullmatch(r"\d\.\d{1,2}", t)]
    assert max(ticks) < 1
    assert "alone not known" in chart.svg
    assert augmentation.chart(replace(bars, pairs=(Bar("GLLE", None, None, 0.3, 0.3),))) is None


def test_ablation_is_relative_to_uniform():
    def printed(value: float) -> Published:
        return Published(value, "", None, "chebyshev", Verdict("worse"))

    cells = (Cell("a", 0.05, "", published=printed(0.2)), Cell("b", None, "", published=printed(0.1)))
    rows = (Row("LF+LC", "method", cells),)
    table = Table("chebyshev", "Chebyshev", "", "↓", False, ("a", "b"), rows)
    chart = ablation.chart(table, {"a": 0.1, "b": 0.1})
    assert "Published, mean multiple of uniform: LF+LC 2.00." in chart.svg
    assert "Measured, mean multiple of uniform: LF+LC 0.50." in chart.svg
    assert "b" not in drawn(chart.svg)
    assert ablation.chart(table, {}) is None


def test_sensitivity_leaves_holes_out():
    curve = Curve("LCdr", "sjaffe", "n_neighbors", 10, (3, 10, 50), {"kl": (0.2, None, 0.1)}, {"kl": None})
    empty = replace(curve, dataset="x", scores={"kl": (None,) * 3})
    (chart,) = sensitivity.charts([curve, empty], {"n_neighbors": "k"})
    assert chart.title == "sjaffe"
    assert "LCdr, k 3: 0.2000, 50: 0.1000." in chart.svg
    assert {"3", "10", "50", "k"} <= set(drawn(chart.svg))


def test_examples_say_which_labels_apply():
    instance = Instance(7, (0.5, 0.5), (1, 0), {"LCdr": (0.6, 0.4)})
    example = Example("sjaffe", ("HAP", "SAD"), (instance,))
    (chart,) = examples.charts([example, replace(example, instances=())], ["LCdr", "not there"])
    assert "Instance 7: labels 1 apply; truth 0.500, 0.500; LCdr 0.600, 0.400." in chart.svg
    assert {"HAP", "SAD", "LCdr", "truth", "yes"} <= set(drawn(chart.svg))
