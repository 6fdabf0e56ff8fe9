"""
Thirty graded rows
==================

Where people chose the two best labels, nothing in the labels tells how uneven degrees are. A few rows that somebody
graded do: here the error of the rows that were *not* graded, against the number of graded ones.
"""

import matplotlib.pyplot as plt
import numpy as np

import contone

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
Z = X @ rng.normal(scale=0.5, size=(5, 6)) + rng.normal(scale=0.5, size=(300, 6)) * [2.0, 0.3, 1.0, 0.3, 1.5, 0.6]
D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
rule = contone.TopK(2)
L = rule.apply(D)
order = rng.permutation(300)
rest = order[100:]

counts = (0, 5, 10, 30, 100)
errors = []
for count in counts:
    graded = np.full_like(D, np.nan)
    graded[order[:count]] = D[order[:count]]
    method = contone.Inversion(degradation=rule)
    answer = method.fit_enhance(X, L, degrees=graded) if count else method.fit_enhance(X, L)
    errors.append(contone.evaluate(D[rest], answer[rest]).kl)

figure, axis = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
axis.plot(range(len(counts)), errors, "o-", color="#0072b2")
uniform = contone.evaluate(D[rest], np.full((200, 6), 1 / 6)).kl
axis.axhline(uniform, color="0.6", ls=":")
axis.annotate("uniform", (len(counts) - 1, uniform), ha="right", va="top", color="0.4")
axis.set_xticks(range(len(counts)), counts)
axis.set(xlabel="graded rows", ylabel="KL divergence of the other rows", ylim=(0, None))
axis.spines[["top", "right"]].set_visible(False)
plt.show()
