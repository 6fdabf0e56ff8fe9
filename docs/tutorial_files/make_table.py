"""The tutorial's table: photographs with features of an imaginary vision model and the subjects that people ticked.

The true degrees are known because the table is generated. They go to a file of their own, which only the last step of
the tutorial opens.
"""

import csv

import numpy as np

from contone import CumulativeMass

SUBJECTS = ("sky", "water", "plants", "people", "buildings")
FEATURES = ("blue", "green", "edges", "texture", "warmth", "contrast")
N_OLD, N_NEW = 240, 40

rng = np.random.default_rng(7)
n = N_OLD + N_NEW
X = rng.normal(size=(n, len(FEATURES)))
pull = np.array(
    [
        [1.0, 0.8, -0.4, -0.4, -0.3],
        [-0.2, 0.2, 1.1, -0.3, -0.5],
        [-0.6, -0.3, 0.1, 0.2, 1.0],
        [-0.3, 0.4, 0.6, -0.2, 0.1],
        [0.0, -0.3, 0.0, 0.7, 0.0],
        [0.1, 0.0, 0.0, 0.2, 0.4],
    ]
)
Z = 0.6 * X @ pull + rng.normal(size=(n, 5)) * [0.3, 0.9, 0.3, 1.0, 0.4]
D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
L = CumulativeMass(0.5).apply(D)


def write(name, header, rows):
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def record(i):
    features = [f"{x:.2f}" for x in X[i]]
    if i % 17 == 3:
        features[4] = ""  # a camera that did not note it
    return [f"IMG_{i:04}", *features]


old, new = range(N_OLD), range(N_OLD, n)
write("photos.csv", ["photo", *FEATURES, *SUBJECTS], ([*record(i), *L[i]] for i in old))
write("new_photos.csv", ["photo", *FEATURES], (record(i) for i in new))
truth = [f"{s}_degree" for s in SUBJECTS]
write("truth.csv", ["photo", *truth], ([f"IMG_{i:04}", *(f"{d:.9f}" for d in D[i])] for i in old))
