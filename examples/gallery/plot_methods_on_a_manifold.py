"""
Every method on one picture
===========================

Red, green and blue are the degrees of three labels on a surface. Methods see the features and the 0/1 labels; what
they make of them is coloured in the same way. Below each: the share of the way from uniform to the limit that it
recovers.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import contone
from contone.limits import limit, recovered
from contone.pages.figures import draw_manifold, tones

data = contone.datasets.artificial()
side = round(len(data.X) ** 0.5)
some = np.arange(len(data.X)).reshape(side, side)[::2, ::2].ravel()
X, D = data.X[some], data.D[some]
L = contone.CumulativeMass().apply(D)

methods = [contone.Temperature(), contone.LP(), contone.GLLE(), contone.KM(), contone.LCdr(), contone.Inversion()]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # some answers are nearly uniform, and say so; the picture shows it
    answers = {type(method).__name__: method.fit_enhance(X, L) for method in methods}

worst, best = contone.evaluate(D, np.full_like(D, 1 / 3)).kl, contone.evaluate(D, limit(X, L, D).distributions).kl
figure, axes = plt.subplots(2, 4, figsize=(10, 5.2), layout="constrained")
panels = {"truth": (tones(D, D), ""), "labels": (L.astype(float), "what methods see")}
for name, answer in answers.items():
    share = recovered(contone.evaluate(D, answer).kl, worst, best)
    panels[name] = (tones(answer, D), f"{100 * share:.0f} % recovered")
for axis, (name, (colours, caption)) in zip(axes.ravel(), panels.items(), strict=True):
    draw_manifold(axis, X, colours)
    axis.set_title(name)
    axis.text(0.5, 0.0, caption, transform=axis.transAxes, ha="center", va="top")
plt.show()
