"""LightGBM trained on degrees, without copying rows: an objective that takes them as they are."""

import lightgbm
import numpy as np
from scipy.special import softmax

from contone import CumulativeMass, Inversion, Logical, datasets, evaluate
from contone.train import lightgbm_objective

data = datasets.load("artificial")
L = CumulativeMass().apply(data.D)
train, test = np.arange(0, len(L), 4), np.arange(1, len(L), 4)

for title, method in (("degrees", Inversion()), ("labels", Logical())):
    degrees = method.fit_enhance(data.X[train], L[train])
    rows = lightgbm.Dataset(data.X[train], degrees.argmax(axis=1))  # labels must be there, and are not looked at
    how = {"objective": lightgbm_objective(degrees), "num_class": degrees.shape[1], "verbose": -1}
    booster = lightgbm.train(how, rows, num_boost_round=50)
    answer = softmax(booster.predict(data.X[test]), axis=1)
    print(f"trained on {title:8} KL to the truth {evaluate(data.D[test], answer).kl:.4f}")
