"""The artificial set as a surface whose colours are its label distributions: truth, labels, and every row."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from contone.experiments.describe import build
from contone.experiments.results import Result
from contone.experiments.sources import load
from contone.experiments.store import Store
from contone.pages.blocks import Grid, Picture
from contone.pages.figures import manifold_image, tones

PIXELS = 360


def pictures(store: Store, results: Sequence[Result], shares: Grid) -> list[Picture]:
    """Truth and labels, and one picture per row that kept its answer, the best one first; empty where none did."""
    cell = results[0].records[0]["cell"]
    same = [result for result in results if result.dataset == cell["dataset"]]
    kept = {r.row: found for r in same if (found := store.arrays(r.records[0]["key"]))}
    answers = [(row, kept[row.name]["recovered"]) for row in shares.rows if row.name in kept]
    if not answers:
        return []
    data = load(cell["dataset"], cell["source"])
    L = build(cell["degradation"]).apply(data.D)
    panels = [("Truth", data.D, ""), ("Given: 0/1 labels", L / L.sum(axis=1, keepdims=True), "")]
    place = [column.hint for column in shares.columns].index(cell["dataset"])
    for row, answer in answers:
        share = row.cells[place].text
        # Zeros where the truth has none are infinitely far from it in KL; a share of that says nothing.
        caption = "infinitely far in KL" if share == "−∞" else f"{share} recovered" if share else ""
        panels.append((row.name, answer, caption))
    shown = []
    for title, D, caption in panels:
        image = base64.b64encode(manifold_image(data.X, tones(D, data.D), pixels=PIXELS)).decode()
        described = f"The surface coloured by its label degrees: {title}. {caption}".strip()
        shown.append(Picture(title, caption, f"data:image/png;base64,{image}", described))
    return shown
