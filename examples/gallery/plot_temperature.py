"""
How soft should labels be?
==========================

softmax(c L) knows nothing but the labels, and one number c decides how good it is. Without the truth nobody can see
the black curve; a rehearsal draws the blue ones, from data like yours whose truth is known, and finds nearly the same
minimum.
"""

import matplotlib.pyplot as plt
import numpy as np

import contone

data = contone.datasets.artificial("training", n=300)
L = contone.CumulativeMass().apply(data.D)
rehearsal = contone.Rehearsal(data.X, L, n_replicates=3)

cs = np.linspace(0.05, 1.6, 40)
curve = {c: contone.Temperature(c=c) for c in cs}
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
for number, replicate in enumerate(rehearsal.replicates):
    kl = [contone.evaluate(replicate.distributions, m.fit_enhance(data.X, replicate.labels)).kl for m in curve.values()]
    axis.plot(cs, kl, color="#0072b2", alpha=0.6, label="rehearsed" if number == 0 else None)
kl = [contone.evaluate(data.D, m.fit_enhance(data.X, L)).kl for m in curve.values()]
axis.plot(cs, kl, color="black", label="true, which nobody sees")
chosen = contone.Temperature(c="auto").fit(data.X, L).c_
axis.axvline(chosen, color="#d55e00", ls="--", label=f"c='auto': {chosen:.2f}")
axis.set(xlabel="c", ylabel="KL divergence", ylim=(0, None))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
