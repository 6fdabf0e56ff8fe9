"""What the reference says of parameters is what the signatures say."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import contone
import contone.limits
import contone.models
import contone.testing

docscrape = pytest.importorskip("numpydoc.docscrape")

FURTHER = [
    contone.measurements.Order,
    contone.models.save_model,
    contone.models.load_model,
    contone.datasets.load,
    contone.datasets.artificial,
    contone.limits.limit,
    contone.testing.check_enhancer,
]
PUBLIC = [o for o in (getattr(contone, name) for name in contone.__all__) if callable(o)] + FURTHER
MADE_BY_US = {contone.Check}  # a result: nobody calls it


@pytest.mark.parametrize("thing", [o for o in PUBLIC if o not in MADE_BY_US], ids=lambda o: o.__name__)
def test_documented_parameters_and_defaults_are_those_of_the_signature(thing):
    documented = docscrape.NumpyDocString(inspect.getdoc(thing))["Parameters"]
    signature = {name: p for name, p in inspect.signature(thing).parameters.items() if name != "self"}
    names = [name for entry in documented for name in _names(entry.name)]
    assert sorted(names) == sorted(signature)
    for entry in documented:
        stated = _stated_defaults(entry.type, len(_names(entry.name)))
        for name, value in zip(_names(entry.name), stated, strict=True):
            actual = signature[name].default
            if actual is inspect.Parameter.empty:
                assert value is _NOT_SAID, f"{name} has no default"
            else:
                assert value is not _NOT_SAID or actual is None, f"the default of {name}, {actual!r}, is not said"
                assert value is _NOT_SAID or value == actual, f"{name}: documented {value!r}, actual {actual!r}"


_NOT_SAID = object()


def _names(names):
    return [name.strip().lstrip("*") for name in names.split(",")]


def _stated_defaults(kind, count):
    """The values behind ``default=``: one for each name, or one for all of them."""
    found = re.search(r"default=(.+)$", kind)
    if not found:
        return [_NOT_SAID] * count
    value = ast.literal_eval(found.group(1).strip())
    return list(value) if count > 1 and isinstance(value, tuple) and len(value) == count else [value] * count


def test_every_public_name_is_in_the_reference():
    page = (Path(__file__).parents[1] / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", page, re.MULTILINE))
    assert set(contone.__all__) <= listed
