"""The public names are there, complete, and the same everywhere."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

import contone
from contone import augment, datasets, enhance, measurements, measures, predict
from contone.base import Enhancer

# The names that the design promises; each appears once its part is built.
FOUNDATION = {
    *("Uniform", "Temperature", "Logical", "CumulativeMass", "TopK", "Threshold", "Votes"),
    *("evaluate", "datasets", "measurements", "measures", "show_versions"),
}
PROMISED = {
    *("LCdr", "GLLE", "LESC", "LEMLL", "LP", "ML2", "FCM", "KM", "Inversion"),
    *("LabelConfidence", "HSICReducer", "Augmented", "MaxEnt", "AAKNN", "PTBayes", "FromRegressor"),
    *("GLERB", "GLEMR", "GLESC", "LDLLRR", "LDLForest", "LDLSCL", "FromClassifier"),
}


def test_the_foundation_is_importable_from_contone():
    for name in FOUNDATION:
        assert name in contone.__all__
        assert hasattr(contone, name)


@pytest.mark.parametrize("package", [enhance, augment, predict])
def test_what_a_folder_exports_contone_exports_too(package):
    shown = PROMISED | FOUNDATION
    for name in shown & set(vars(package)):
        assert name in contone.__all__, f"{name} is missing from contone"
        assert getattr(contone, name) is getattr(package, name)


@pytest.mark.parametrize("module", [contone, augment, datasets])
def test_all_is_complete_and_without_repetition(module):
    assert len(module.__all__) == len(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name, None) is not None, name


def test_type_checkers_see_what_users_get():
    stub = ast.parse(Path(contone.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    listed = next(node.value for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(listed)) == contone.__all__


def test_contone_shows_nothing_that_it_does_not_export():
    shown = {
        name for name, value in vars(contone).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert shown <= set(contone.__all__)


def test_every_exported_name_is_documented():
    for name in contone.__all__:
        assert inspect.getdoc(getattr(contone, name)), name


def test_methods_lists_every_enhancer_of_the_folder_baselines_first():
    listed = enhance.methods()
    assert list(listed)[:3] == ["logical", "temperature", "uniform"]
    for name, cls in listed.items():
        assert issubclass(cls, Enhancer)
        assert name == cls.__name__.lower()
        assert cls.__name__ in contone.__all__ or not cls.__module__.startswith("contone.")  # an installed package's
    baselines = [cls.baseline for cls in listed.values()]
    assert baselines == sorted(baselines, reverse=True)


def test_the_version_is_one_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", contone.__version__)
    assert version("contone") == contone.__version__


def test_modules_and_names_agree():
    assert contone.CumulativeMass is measurements.CumulativeMass
    assert contone.evaluate is measures.evaluate
    assert importlib.import_module("contone.datasets") is contone.datasets
    assert callable(contone.datasets.artificial)
    assert callable(contone.datasets.load)
