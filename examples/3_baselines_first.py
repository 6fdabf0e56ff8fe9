"""3. Baselines first: the best row of the paper beside two lines that use no features, and Inversion beside both.

With the Yeast data available (`contone data fetch`, or the folder CONTONE_DATA) this compares the published scores of
LCdr with the uniform distribution, softmax(0.2 L) and `Inversion`; without it, the artificial set serves.
"""

import numpy as np

from contone import CumulativeMass, Inversion, Temperature, Uniform, datasets, evaluate
from contone.reproduction import paper

available = [s for s in paper.YEAST if datasets.status(paper.DATASETS[s]).where != "missing"]
names = {s: paper.DATASETS[s] for s in available} or {"artificial": "artificial"}
rows: dict[str, list[float]] = {"Uniform": [], "Temperature": [], "Inversion": []}

for full in names.values():
    data = datasets.load(full)
    L = CumulativeMass().apply(data.D)
    for method in (Uniform(), Temperature(c=0.2), Inversion()):
        rows[type(method).__name__].append(evaluate(data.D, method.fit_enhance(data.X, L)).chebyshev)
if available:
    published = paper.recovery()["chebyshev"]
    rows |= {f"{method}, published": [published[method][s] for s in available] for method in paper.METHODS}

print(f"mean Chebyshev distance to the truth over {len(names)} data sets (less is better)")
for row, values in sorted(rows.items(), key=lambda item: float(np.mean(item[1]))):
    print(f"  {row:18} {np.mean(values):.4f}")
