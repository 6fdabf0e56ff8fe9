"""The experiments of the paper, one TOML file each, and the names of its data sets."""

from collections.abc import Iterable
from importlib.resources import files

from contone.experiments.benchmark import with_references
from contone.experiments.spec import Spec, read_spec
from contone.reproduction.paper import DATASETS

ORDER = ("recovery", "ranks", "augmentation", "ablation", "sensitivity", "prediction")
"""The experiments in the order of the paper."""

GROUPS: dict[str, tuple[str, ...]] = {
    "paper": tuple(DATASETS.values()),
    "yeast": tuple(name for name in DATASETS.values() if name.startswith("yeast-")),
    **{short: (full,) for short, full in DATASETS.items()},
}
"""Names that stand for data sets: all of the paper's, the ten of Yeast, and the paper's short names."""


def specs() -> dict[str, Spec]:
    """The experiments that come with contone, in the order of the paper."""
    folder = files("contone.reproduction.specs")
    return {n: read_spec((folder / f"{n}.toml").read_text(encoding="utf-8"), f"the spec {n}") for n in ORDER}


def sources(names: Iterable[str]) -> list[Spec]:
    """The specs to run for these experiments: a derived one (ranks) stands for the one that it is computed from."""
    known = specs()
    return [with_references(known[name]) for name in dict.fromkeys(known[name].derived_from or name for name in names)]
