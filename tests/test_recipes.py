"""The recipes run, and degrees are better targets than labels."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

RECIPES = sorted((Path(__file__).parents[1] / "examples" / "recipes").glob("*.py"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_recipe(path, tmp_path, forks):
    pytest.importorskip(path.stem.split("_")[0])
    environment = {**os.environ, "CONTONE_CACHE": str(tmp_path)}
    environment.pop("CONTONE_DATA", None)
    done = forks.run(path, cwd=tmp_path, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr
    degrees, labels = (float(kl) for kl in re.findall(r"truth (\d\.\d+)", done.stdout))
    assert degrees < labels


def test_the_readme_names_every_recipe():
    text = (RECIPES[0].parent / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.name}`" in text for path in RECIPES)
