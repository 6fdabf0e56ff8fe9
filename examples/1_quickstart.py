"""1. Quickstart: hide the degrees of a known data set, recover them from yes/no labels, and score the answer."""

from contone import CumulativeMass, Temperature, Uniform, datasets, evaluate

data = datasets.artificial()  # features X (2601, 3) and the true degrees D (2601, 3)
L = CumulativeMass().apply(data.D)  # what annotators would say: 0 or 1

print("degrees:", data.D[0].round(2), " labels:", L[0])

for method in (Uniform(), Temperature(c=0.2)):
    D_hat = method.fit_enhance(data.X, L)
    scores = evaluate(data.D, D_hat)
    print(
        f"{type(method).__name__:12} KL {scores.kl:.4f}  Chebyshev {scores.chebyshev:.4f}  row 0: {D_hat[0].round(2)}"
    )
