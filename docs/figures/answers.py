"""Draws the pictures of docs/people.md: what people answered to one item, and its degrees. All of it is generated.

python docs/figures/answers.py            # writes answers_*.svg beside it
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contone import Inversion
from contone.numerics.simplex import softmax

FOLDER = Path(__file__).parent
LABELS = ("joy", "fear", "anger", "surprise")
INK, SOFT, TONE = "#333", "#ccc", "#3b6ea5"
CELL, LEFT, TOP, BARS = 26, 70, 34, 190


def make(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers (n, 4), the item and the person of each: 60 items, three of eight people each."""
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(60, 4)) * 1.2
    item = np.repeat(np.arange(60), 3)
    who = np.concatenate([rng.permutation(8)[:3] for _ in range(60)])
    seen = Z[item] + rng.normal(size=(8, 4))[who] * 0.7
    if kind == "votes":
        chosen = np.array([rng.multinomial(1, p) for p in softmax(seen)])
        return chosen.astype(float), item, who
    noisy = seen + rng.logistic(size=seen.shape)
    if kind == "rankings":
        return np.argsort(np.argsort(noisy, axis=1), axis=1) + 1.0, item, who
    cuts = [0.0] if kind == "marks" else [0.0, 1.0, 2.0]
    return (noisy[:, :, None] > np.array(cuts)).sum(axis=2).astype(float), item, who


def draw(kind: str, answers: np.ndarray, degrees: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> str:
    """A grid of answers, people in rows, beside bars of degrees with their 90 % intervals."""
    width, height = LEFT + 4 * CELL + 70 + BARS + 60, TOP + 4 * CELL + 8
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="11" fill="{INK}"><title>{kind}: three answers to one item, and its degrees</title>'
    ]
    out.append(f'<text x="{LEFT}" y="14">what three people said</text>')
    out.append(f'<text x="{LEFT + 4 * CELL + 70}" y="14">degrees, with 90 % intervals</text>')
    for j, name in enumerate(LABELS):
        y = TOP + j * CELL
        out.append(f'<text x="{LEFT - 6}" y="{y + 17}" text-anchor="end">{name}</text>')
        for r, value in enumerate(answers[:, j]):
            shade = value / max(float(answers.max()), 1.0)
            out.append(
                f'<rect x="{LEFT + r * CELL * 1.3:.0f}" y="{y + 2}" width="{CELL}" height="{CELL - 4}" fill="{TONE}" '
                f'fill-opacity="{0.08 + 0.8 * shade:.2f}"/>'
                f'<text x="{LEFT + r * CELL * 1.3 + CELL / 2:.0f}" y="{y + 17}" text-anchor="middle" '
                f'fill="{"#fff" if shade > 0.5 else INK}">{value:g}</text>'
            )
        x, low, high = LEFT + 4 * CELL + 70, ends[0][j] * BARS, ends[1][j] * BARS
        out.append(f'<rect x="{x}" y="{y + 5}" width="{degrees[j] * BARS:.0f}" height="{CELL - 10}" fill="{TONE}"/>')
        out.append(
            f'<line x1="{x + low:.0f}" x2="{x + high:.0f}" y1="{y + 13}" y2="{y + 13}" stroke="{INK}" '
            'stroke-width="1.5"/>'
        )
        out.append(f'<text x="{x + high + 6:.0f}" y="{y + 17}">{degrees[j]:.0%}</text>')
    return "\n".join([*out, "</svg>", ""])


def main() -> None:
    """Every picture."""
    for kind in ("votes", "marks", "levels", "rankings"):
        answers, item, who = make(kind)
        X = np.zeros((len(item), 1))
        people = None if kind == "rankings" else who
        method = Inversion(degradation="order" if kind == "rankings" else kind, features=False)
        D = method.fit_enhance(X, answers, groups=item, annotators=people)
        lower, upper = method.intervals(level=0.9)
        shown = int(np.argmax([np.ptp(answers[item == i].sum(axis=0)) for i in range(60)]))
        picture = draw(kind, answers[item == shown], D[shown], (lower[shown], upper[shown]))
        (FOLDER / f"answers_{kind}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
