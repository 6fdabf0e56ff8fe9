"""4. Compare methods: every method of the library on one data set, with the time each takes."""

import time
import warnings

from contone import CumulativeMass, datasets, enhance, evaluate

data = datasets.artificial("training", n=150)
L = CumulativeMass().apply(data.D)

print(f"{'method':14}{'KL':>8}{'cosine':>8}{'seconds':>9}")
for name, method in enhance.methods().items():
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a method may warn that its answer is nearly uniform; the score says so, too
        D_hat = method().fit_enhance(data.X, L)
    seconds = time.perf_counter() - start
    scores = evaluate(data.D, D_hat)
    print(f"{name:14}{scores.kl:8.4f}{scores.cosine:8.4f}{seconds:9.2f}")
