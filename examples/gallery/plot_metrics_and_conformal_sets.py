"""
Metrics of scikit-learn, sets of MAPIE
======================================

Degrees are rows of probabilities: scikit-learn's metrics score them as they are, and a classifier trained on them goes
into MAPIE, which gives sets of labels that hold the next person's answer as often as it promises.
"""

import matplotlib.pyplot as plt
import numpy as np
from mapie.classification import SplitConformalClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score, top_k_accuracy_score

import contone

rng = np.random.default_rng(0)
data = contone.datasets.artificial("training", n=1500, seed=0)
votes = rng.multinomial(2, data.D)  # two people each
further = np.array([rng.choice(data.D.shape[1], p=d) for d in data.D])  # one more, whom nobody shows to the model
train, calibrate, test = np.split(np.arange(1500), [300, 900])

# %%
# The degrees of the training rows, scored by what a further person says.
D = contone.Inversion(degradation="votes").fit_enhance(data.X[train], votes[train])
shares = (votes[train] + 0.5) / (votes[train] + 0.5).sum(axis=1, keepdims=True)
for name, P in (("Inversion", D), ("counting", shares)):
    said = further[train]
    print(f"{name:10} log loss {log_loss(said, P):.3f}, top 1 {top_k_accuracy_score(said, P, k=1):.3f}, "
          f"area under the curve {roc_auc_score(said, P, multi_class='ovr'):.3f}")  # fmt: skip

# %%
# A classifier trained on the degrees, and sets by split conformal prediction.
rows = contone.weighted_rows(data.X[train], D)
classifier = LogisticRegression(max_iter=1000).fit(rows.X, rows.y, sample_weight=rows.sample_weight)
promised = [0.6, 0.7, 0.8, 0.9, 0.95]
mapie = SplitConformalClassifier(classifier, confidence_level=promised, prefit=True)
mapie.conformalize(data.X[calibrate], further[calibrate])
_, sets = mapie.predict_set(data.X[test])  # (n, q, levels)
kept = sets[np.arange(len(test)), further[test]].mean(axis=0)
sizes = sets.sum(axis=1).mean(axis=0)

figure, axis = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
axis.plot([0.55, 1], [0.55, 1], color="#999999", linewidth=1)
axis.plot(promised, kept, "o", color="#0072b2")
for x, y, size in zip(promised, kept, sizes, strict=True):
    axis.annotate(f"{size:.2f} labels", (x, y), xytext=(6, -10), textcoords="offset points", fontsize=8)
axis.set(xlabel="promised share of answers in the set", ylabel="share of new answers in it", xlim=(0.55, 1.05))
axis.spines[["top", "right"]].set_visible(False)
plt.show()
