"""Where (X, D) comes from: data sets with known label distributions.

`load(name)` finds a published set in the folder named by CONTONE_DATA, in the user's cache, or downloads it (checked
against the registry's hash). `artificial()` generates Geng's three-label manifold and needs nothing.
"""

from contone.datasets.artificial import artificial
from contone.datasets.dataset import Dataset, read
from contone.datasets.fetch import Status, canonical, fetch, load, names, own_names, status

__all__ = ["Dataset", "Status", "artificial", "canonical", "fetch", "load", "names", "own_names", "read", "status"]
