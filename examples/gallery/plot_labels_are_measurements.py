"""
What a row of labels says
=========================

Three labels, of which the first two are marked. The triangle holds all distributions; the coloured part are those
that the rule turns into exactly these labels. `Inversion` weighs that part with a model learnt from all rows, and
answers with the mean.
"""

import matplotlib.pyplot as plt
import numpy as np

from contone import CumulativeMass, Threshold, TopK

corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 3**0.5 / 2]])
steps = 220
grid = np.array([(i, j, steps - i - j) for i in range(1, steps) for j in range(1, steps - i)]) / steps
place = grid @ corners

rules = {
    "more than half of the weight": CumulativeMass(0.5),
    "nearly all of the weight": CumulativeMass(0.9),
    "whatever passes 0.3": Threshold(0.3),
    "the two best": TopK(2),
}
figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
for axis, (words, rule) in zip(axes, rules.items(), strict=True):
    inside = (rule.apply(grid) == [1, 1, 0]).all(axis=1)
    axis.scatter(*place[~inside].T, s=1, color="0.9")
    axis.scatter(*place[inside].T, s=1, color="#0072b2")
    mean = grid[inside].mean(axis=0)
    axis.plot(*(mean @ corners), "o", color="black")
    axis.set_title(words, fontsize=10)
    for corner, name in zip(corners, ("calm", "happy", "sad"), strict=True):
        axis.annotate(name, corner, ha="center", va="bottom" if corner[1] else "top", fontsize=9)
    axis.text(0.5, -0.17, "mean: " + " / ".join(f"{d:.2f}" for d in mean), ha="center", fontsize=9)
    axis.set_aspect("equal")
    axis.axis("off")
plt.show()
