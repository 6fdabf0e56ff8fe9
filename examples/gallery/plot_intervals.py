"""
How sure is a degree?
=====================

`Inversion` gives an interval for every degree. Here the truth is known. Ninety per cent of the intervals should
contain it; on this surface, which no linear model of the features describes, it is somewhat fewer.
"""

import matplotlib.pyplot as plt
import numpy as np

import contone

data = contone.datasets.artificial("training", n=300)
L = contone.CumulativeMass().apply(data.D)
method = contone.Inversion().fit(data.X, L)
answer = method.label_distributions_
lower, upper = method.intervals(data.X, L, level=0.9)

inside = (lower <= data.D) & (upper >= data.D)
rows = np.argsort(data.D[:, 0])[::6]
figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
at = np.arange(len(rows))
marked = L[rows, 0] == 1
for chosen, colour, words in ((marked, "#d55e00", "marked"), (~marked, "#0072b2", "not marked")):
    axis.vlines(at[chosen], lower[rows, 0][chosen], upper[rows, 0][chosen], color=colour, lw=3, alpha=0.5, label=words)
    axis.plot(at[chosen], answer[rows, 0][chosen], "_", color=colour, ms=7)
axis.plot(at, data.D[rows, 0], ".", color="black", ms=4, label="truth")
axis.set(xlabel="rows, in the order of the truth", ylabel="degree of the first label")
axis.set_title(f"{100 * inside.mean():.0f} % of all 90 % intervals contain the truth", loc="left")
axis.legend(frameon=False, ncols=3)
plt.show()
