"""
The error, without the truth
============================

`expected_error_` says how far the answer is expected to be from the truth, with an interval. On generated tables,
from nearly even to very uneven degrees, it can be compared with the actual error.
"""

import matplotlib.pyplot as plt
import numpy as np

import contone

rng = np.random.default_rng(3)
figure, axis = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
for spread in (0.2, 0.7, 2.0):
    X = rng.normal(size=(100, 4))
    Z = X @ rng.normal(scale=0.5, size=(4, 5)) + rng.normal(size=(100, 5))
    Z = spread * Z / Z.std()
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    L = contone.CumulativeMass().apply(D)
    method = contone.Inversion(n_sweeps=120).fit(X, L)
    actual = contone.evaluate(D, method.label_distributions_).kl
    expected = method.expected_error_
    low, high = expected.lower, expected.upper
    axis.plot([actual] * 2, [low, high], color="#0072b2", lw=2)
    axis.plot(actual, expected.mean, "o", color="#0072b2")
    axis.annotate(f" spread {spread}", (actual, expected.mean), fontsize=8)
ends = (2e-4, 1.0)
axis.plot(ends, ends, color="0.7", lw=1, zorder=0)
axis.set(
    xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="actual KL", ylabel="expected KL with its 90 % interval"
)
plt.show()
