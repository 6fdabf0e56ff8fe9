"""LightGBM trained on degrees: every row counts once per label, with its degree as weight."""

import numpy as np
from lightgbm import LGBMClassifier

from contone import CumulativeMass, FromClassifier, Inversion, Logical, datasets, evaluate

data = datasets.load("artificial")
L = CumulativeMass().apply(data.D)
train, test = np.arange(0, len(L), 4), np.arange(1, len(L), 4)
booster = LGBMClassifier(n_estimators=50, learning_rate=0.1, min_child_samples=50, verbose=-1)

for title, method in (("degrees", Inversion()), ("labels", Logical())):
    degrees = method.fit_enhance(data.X[train], L[train])
    model = FromClassifier(booster).fit(data.X[train], degrees)
    print(f"trained on {title:8} KL to the truth {evaluate(data.D[test], model.predict(data.X[test])).kl:.4f}")
