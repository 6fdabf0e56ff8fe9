"""
Train on degrees
================

A learner trained on 0/1 labels, on the degrees that `Inversion` recovers from them, and on the truth, judged on new
rows.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestRegressor

import contone

train = contone.datasets.artificial("training", n=300, seed=0)
test = contone.datasets.artificial("training", n=500, seed=1)
L = contone.CumulativeMass().apply(train.D)

targets = {
    "0/1 labels": L / L.sum(axis=1, keepdims=True),
    "softmax(L)": contone.Temperature(c=1.0).fit_enhance(train.X, L),
    "Inversion": contone.Inversion().fit_enhance(train.X, L),
    "the truth": train.D,
}
scores = {}
for name, D in targets.items():
    learner = contone.FromRegressor(RandomForestRegressor(n_estimators=100, min_samples_leaf=3, random_state=0))
    scores[name] = contone.evaluate(test.D, learner.fit(train.X, D).predict(test.X)).kl

figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
bars = axis.barh(list(scores), list(scores.values()), color=["#999999", "#56b4e9", "#0072b2", "black"])
axis.bar_label(bars, fmt=" %.4f")
axis.invert_yaxis()
axis.set(xlabel="KL divergence on new rows (less is better)", xlim=(0, 1.15 * max(scores.values())))
axis.spines[["top", "right"]].set_visible(False)
plt.show()
