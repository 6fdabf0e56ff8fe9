"""The examples run, without network and without data, and say something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from contone import enhance

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_examples_are_numbered_like_chapters():
    assert [int(p.name.split("_")[0]) for p in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("CONTONE_DATA", raising=False)
    monkeypatch.setenv("CONTONE_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for network in (
        enhance.ConLE,
        enhance.LEIC,
        enhance.LEVI,
        enhance.LIBLE,
    ):  # how well they learn does not matter
        for name in {"epochs", "pretrain_epochs"} & {*network.__init__.__kwdefaults__}:
            monkeypatch.setitem(network.__init__.__kwdefaults__, name, 2)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


QUICK = {
    *("plot_intervals", "plot_labels_are_measurements", "plot_metrics_and_conformal_sets", "plot_temperature"),
    "plot_train_on_degrees",
}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.exhaustive)
        for path in sorted((Path(__file__).parents[1] / "examples" / "gallery").glob("*.py"))
    ],
)
def test_the_gallery_draws(path, monkeypatch):
    """Every example ends in one figure; the site's build runs all of them."""
    plt = pytest.importorskip("matplotlib.pyplot")
    if "mapie" in path.read_text(encoding="utf-8"):
        pytest.importorskip("mapie")
    plt.switch_backend("agg")
    monkeypatch.chdir(path.parent)
    runpy.run_path(str(path))
    assert len(plt.get_fignums()) == 1
    plt.close("all")


def test_the_readme_runs(forks):
    """The Python in the README is run as it stands."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) <= 12
    done = forks.run("-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
