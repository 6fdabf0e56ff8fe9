"""
The rule decides
================

The same table under four rules. Nothing but the assumption about how the labels were made differs; the weight that
marked labels keep goes from one half to nearly everything.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import contone

root = next(folder for folder in Path.cwd().resolve().parents if (folder / "examples" / "songs.csv").exists())
table = np.genfromtxt(root / "examples" / "songs.csv", delimiter=",", skip_header=1, usecols=range(2, 11))
X, Y = table[:, :6], table[:, 6:].astype(int)

figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
for height, rule in enumerate(("order", "main", "bar", "everything")):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some rules fit these labels badly, and say so
        D = contone.Inversion(degradation=rule).fit_enhance(X, Y)
    kept = (D * Y).sum(axis=1)
    axis.scatter(
        kept, np.full(len(kept), height) + np.linspace(-0.25, 0.25, len(kept)), s=6, color="#0072b2", alpha=0.5
    )
    axis.plot([kept.mean()] * 2, [height - 0.35, height + 0.35], color="black")
axis.set_yticks(range(4), ("marked above unmarked", "more than half", "passes a bar", "nearly everything"))
axis.set_xlabel("weight of a row's marked labels (line: mean)")
axis.spines[["top", "right"]].set_visible(False)
plt.show()
