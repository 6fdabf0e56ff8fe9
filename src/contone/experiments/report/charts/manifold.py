"""The artificial set as a surface whose colours are its label distributions: truth, labels, and every row."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from contone import datasets
from contone.experiments.report.schema import Surface
from contone.experiments.store import Store
from contone.measurements import CumulativeMass
from contone.pages.figures import manifold_image, tones

PIXELS = 260


def pictures(store: Store, manifold: Sequence[Surface], shares: Mapping[str, str]) -> list[dict[str, str]]:
    """One picture per row that kept its answer: {title, caption, source, alt}; empty where none did.

    `shares` gives the recovered share of a row in words.
    """
    kept = [(m.row, store.arrays(m.key).get("recovered")) for m in manifold]
    answers = [(row, D) for row, D in kept if D is not None]
    if not answers:
        return []
    data = datasets.artificial()
    L = CumulativeMass().apply(data.D)
    panels = [("Truth", data.D, ""), ("Given: 0/1 labels", L / L.sum(axis=1, keepdims=True), "")]
    panels += [(row, D, _caption(shares.get(row, ""))) for row, D in answers]
    return [
        {
            "title": title,
            "caption": caption,
            "source": _source(manifold_image(data.X, tones(D, data.D), pixels=PIXELS)),
            "alt": f"The surface coloured by its label degrees: {title}. {caption}".strip(),
        }
        for title, D, caption in panels
    ]


def _caption(share: str) -> str:
    """Zeros where the truth has none are infinitely far from it in KL; a share of that says nothing."""
    return "infinitely far in KL" if share == "−∞" else f"{share} recovered" if share else ""


def _source(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"
