"""The recipes run, and degrees are better targets than labels."""

from __future__ import annotations

import importlib
import re
import runpy
from pathlib import Path

import pytest

from contone.testing import check_enhancer

RECIPES = sorted((Path(__file__).parents[1] / "examples" / "recipes").glob("*.py"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_recipe(path, tmp_path, monkeypatch, forks, capsys):
    library = path.stem.split("_")[0]
    pytest.importorskip(library)
    monkeypatch.delenv("CONTONE_DATA", raising=False)
    monkeypatch.setenv("CONTONE_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    if library == "torch":
        runpy.run_path(str(path))
        said = capsys.readouterr().out
    else:  # libraries that bring threads of their own
        done = forks.run(path, timeout=240)
        assert done.returncode == 0, done.stderr
        said = done.stdout
    degrees, labels = (float(kl) for kl in re.findall(r"truth (\d\.\d+)", said))
    assert degrees < labels


def test_the_method_of_the_how_to_passes_every_check(tmp_path, monkeypatch):
    text = (Path(__file__).parents[1] / "docs" / "how-to" / "add-a-method.md").read_text(encoding="utf-8")
    (tmp_path / "my_module.py").write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    check_enhancer(importlib.import_module("my_module").Halves())


def test_the_readme_names_every_recipe():
    text = (RECIPES[0].parent / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.name}`" in text for path in RECIPES)
