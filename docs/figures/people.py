"""Draws `people.svg`: what three people answered about six photographs, and the soft labels that come out.

    python docs/figures/people.py

The data are generated: 200 photographs with four features, whose true shares are known, and three people who each
choose one subject per photograph. One of them is careless. Dotted lines are the truth, which only the drawing sees.
"""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from contone import Inversion

SUBJECTS = ("sky", "water", "plants", "people")
COLOURS = ("#4477aa", "#66ccee", "#228833", "#cc6677")
PEOPLE, SHOWN, N = ("Ada", "Ben", "Cleo"), 6, 200
HEADS = "in: what three people chose", "out: soft labels, with 90 % intervals (dotted: the truth)"
INK, FAINT = "#333333", "#dddddd"

rng = np.random.default_rng(11)
X = rng.normal(size=(N, 4))
Z = X @ np.array([[1.2, 0.6, -0.5, -0.9], [-0.2, 0.7, 1.1, -0.6], [-0.5, -0.3, 0.2, 1.0], [0.3, -0.5, 0.4, 0.0]])
Z += 0.5 * rng.normal(size=Z.shape)
D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
care = np.array([1.0, 1.0, 0.35])  # how closely a person follows the photograph
answers = []
for i in range(N):
    for person, sharpness in zip(PEOPLE, care, strict=True):
        shares = D[i] ** sharpness
        answers.append((i, person, rng.choice(4, p=shares / shares.sum())))
items, people, chosen = (np.array(column) for column in zip(*answers, strict=True))

method = Inversion(degradation="votes", random_state=0)
soft = np.asarray(method.fit_enhance(X[items], np.eye(4)[chosen], groups=items, annotators=people))
lower, upper = (np.asarray(end) for end in method.intervals())

# Photographs on which the three agree, differ by one, and all differ.
votes = chosen.reshape(N, 3)
kinds = np.array([len(set(row)) for row in votes])
some = [*np.flatnonzero(kinds == 1)[:2], *np.flatnonzero(kinds == 2)[:2], *np.flatnonzero(kinds == 3)[:2]]

figure = Figure(figsize=(9.6, 3.6))
FigureCanvasSVG(figure)
left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1, 1.75], "wspace": 0.08})
for axes, title in ((left, HEADS[0]), (right, HEADS[1])):
    axes.set_title(title, fontsize=11, color=INK, loc="left", pad=22)
    axes.set_ylim(SHOWN - 0.4, -0.6)
    axes.set_yticks([])
    axes.set_xticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    for row in range(SHOWN - 1):
        axes.axhline(row + 0.5, color=FAINT, linewidth=0.8)
left.set_xlim(-0.95, 3.0)
right.set_xlim(-0.05, 4.35)
for column, person in enumerate(PEOPLE):
    left.text(column + 0.45, -0.68, person, ha="center", fontsize=9, color=INK)
for row, i in enumerate(some):
    left.text(-0.9, row, f"photo {i + 1}", va="center", fontsize=9, color=INK)
    for column in range(3):
        label = votes[i, column]
        left.text(
            column + 0.45,
            row,
            SUBJECTS[label],
            ha="center",
            va="center",
            fontsize=9,
            color=COLOURS[label],
            weight="bold",
        )
    for label in range(4):
        start, share = 1.1 * label, soft[i, label]
        right.barh(row, 0.8, left=start, height=0.46, color="#f2f2f2")
        right.barh(row, 0.8 * share, left=start, height=0.46, color=COLOURS[label], alpha=0.75)
        right.plot([start + 0.8 * lower[i, label], start + 0.8 * upper[i, label]], [row, row], color=INK, linewidth=1.3)
        right.plot(
            [start + 0.8 * D[i, label]] * 2, [row - 0.3, row + 0.3], color="black", linewidth=1.0, linestyle=(0, (1, 1))
        )
        right.text(start + 0.84, row, f"{share:.2f}".lstrip("0"), va="center", fontsize=8.5, color=INK)
for label in range(4):
    right.text(1.1 * label, -0.68, SUBJECTS[label], fontsize=9, color=COLOURS[label], weight="bold")
figure.savefig(
    Path(__file__).with_name("people.svg"), format="svg", bbox_inches="tight", pad_inches=0.08, facecolor="white",
    metadata={"Date": None, "Creator": None},
)  # fmt: skip
