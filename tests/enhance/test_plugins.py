"""Methods from outside: the example package, installed, is seen everywhere; a broken one breaks nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

from contone import enhance
from contone.enhance import plugins
from contone.exceptions import PluginError, PluginWarning
from contone.experiments.describe import build, closure, describe, fingerprint
from contone.experiments.plan import make_plan
from contone.reproduction.specs import specs
from contone.testing import check_enhancer

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
PATH = "contone_shared_labels:SharedLabels"

METHOD = """
from contone.base import Enhancer
from contone.numerics.solution import Solution

class {name}(Enhancer):
    '''All weight on the first label that was given.'''

    reference = "a test"

    def _fit_enhance(self, X, L):
        D = 0.0 * L
        D[range(len(L)), L.argmax(axis=1)] = 1.0
        return Solution(D)
"""


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    """What a test loads is forgotten after it."""
    monkeypatch.setattr(plugins, "_given", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    plugins.installed.cache_clear()
    yield
    plugins.installed.cache_clear()
    for name in set(sys.modules) - modules:
        if name.split(".")[0] in {"contone_shared_labels", "mine", "broken", "leaves"}:
            del sys.modules[name]


@pytest.fixture
def example(monkeypatch):
    """The example's module, importable but not installed."""
    monkeypatch.syspath_prepend(EXAMPLE / "src")


def offer(folder: Path, package: str, value: str) -> None:
    """Make `folder`, which is on sys.path, hold an installed package that names one enhancer."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{plugins.GROUP}]\n{package} = {value}\n")


# ------------------------------------------------------------------------------------------------ the example package


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which pip installed the example package: no network, nothing else."""
    pytest.importorskip("hatchling")
    pytest.importorskip("pip")
    folder = tmp_path_factory.mktemp("site")
    source = folder / "source"
    shutil.copytree(EXAMPLE, source)
    options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", str(folder / "packages"), str(source)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return folder / "packages"


def test_an_installed_package_is_seen_everywhere(site, monkeypatch, run, tmp_path):
    monkeypatch.syspath_prepend(site)
    cls = enhance.methods()["sharedlabels"]
    assert cls.__module__ == "contone_shared_labels"
    assert list(enhance.methods())[:3] == ["logical", "temperature", "uniform"]
    listed = {r["name"]: r for r in json.loads(run("methods", "--json").stdout)}
    assert listed["sharedlabels"]["parameters"] == {"share": 0.5}
    assert "contone-shared-labels" not in run("methods").stderr
    plan = make_plan([specs()["recovery"]], dataset_names=["artificial"], method_names=["SharedLabels"])
    cell = next(c for c in plan.cells if c.row == "SharedLabels")
    assert isinstance(build(cell.task["estimator"]), cls)


def test_the_command_line_uses_an_installed_package(site, process, folder):
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    command = ("enhance", "songs.csv", "-l", "calm,happy,sad", "-m", "sharedlabels", "-p", "share=0", "-o", "soft.csv")
    result = process(*command, cwd=folder, PYTHONPATH=path)
    assert result.returncode == 0, result.stderr
    assert "enhancing with SharedLabels" in result.stderr


def test_the_example_keeps_the_contract(example):
    check_enhancer(plugins.load(PATH)())


def test_the_tests_of_the_example_pass(forks):
    path = os.pathsep.join([str(EXAMPLE / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = forks.run("-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE / "tests", env=environment)
    assert done.returncode == 0, done.stdout


# --------------------------------------------------------------------------------------------------------- by its path


def test_a_class_of_the_working_folder(folder, run):
    (folder / "mine.py").write_text(METHOD.format(name="First"))
    command = ("enhance", "songs.csv", "-l", "calm,happy,sad", "-o", "soft.csv")
    result = run(*command, "--method", "mine:First")
    assert result.exit_code == 0, result.output
    assert set(pl.read_csv(folder / "soft.csv")["calm_degree"]) <= {0.0, 1.0}
    assert "first" in enhance.methods()
    assert json.loads(run("methods", "mine:First", "--json").stdout)["summary"].startswith("All weight")


def test_python_takes_a_path_for_a_file_too(folder, example):
    from contone.tables import enhance_file

    done = enhance_file("songs.csv", "soft.csv", labels="calm,happy,sad", method=PATH)
    assert type(done.method).__name__ == "SharedLabels"


def test_a_benchmark_shows_it(folder, run, monkeypatch, cheap_limits, undrawn):
    (folder / "mine.py").write_text(METHOD.format(name="First"))
    command = ("benchmark", "--methods", "mine:First,uniform", "--max-rows", "30", "--no-estimate", "--jobs", "1")
    result = run(*command, "--json")
    assert result.exit_code == 0, result.output
    shares = json.loads(result.stdout)["shares"]["rows"]
    assert {row["name"] for row in shares} >= {"Uniform", "First", "Limit", "Mean of truth"}


def test_an_experiment_describes_and_builds_it(example):
    cls = plugins.load(PATH)
    described = describe(cls(share=0.25))
    assert described == {"class": PATH, "params": {"share": 0.25}}
    assert build(described).share == 0.25
    assert {"contone_shared_labels", "contone.base"} <= closure(cls.__module__)
    plan = make_plan([specs()["recovery"]], dataset_names=["artificial"], method_names=["sharedlabels"])
    assert "SharedLabels" in {c.row for c in plan.cells}


def test_the_fingerprint_follows_the_modules_of_a_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "leaves"
    package.mkdir()
    (package / "__init__.py").write_text("from .stem import grow\n")
    (package / "stem.py").write_text("import leaves.bark\nimport json\n\ndef grow():\n    from leaves import root\n")
    (package / "root.py").write_text("from . import stem\n")
    (package / "bark.py").write_text("")
    assert closure("leaves") == {"leaves", "leaves.stem", "leaves.root", "leaves.bark"}
    assert fingerprint("leaves") != fingerprint("leaves.bark")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("mine", "not of the form module:Class"),
        ("mine:", "not of the form module:Class"),
        ("no_such_module:Thing", "Install the package, or run the command in the folder"),
        ("json:JSONEncoder", "not a class derived from contone.base.Enhancer"),
        ("json:nothing", "Name a class that is in the module"),
        ("contone.base:Enhancer", "lacks _fit_enhance"),
        ("contone.augment:Augmented", "give every parameter a default"),
    ],
)
def test_what_cannot_be_loaded_is_said(path, message):
    with pytest.raises(PluginError, match=message):
        plugins.load(path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 +", "SyntaxError"),
        ("import sys; sys.exit(3)", "SystemExit"),
        ("raise OSError", "OSError: no message"),
        (METHOD.format(name="GLLE"), "contone itself has a method called GLLE"),
    ],
)
def test_a_module_that_cannot_be_used_is_a_wrong_command_line(folder, run, flat, source, message):
    (folder / "broken.py").write_text(source)
    result = run("enhance", "songs.csv", "-l", "calm,happy", "-m", "broken:GLLE", "-o", "soft.csv")
    assert result.exit_code == 2
    assert message in flat(result.stderr)
    assert "Traceback" not in result.stderr


RAISES = """
from contone.base import Enhancer

class Mine(Enhancer):
    def _fit_enhance(self, X, L):
        return {}["none"]
"""


def test_a_method_that_raises_is_a_sentence_and_a_traceback_on_request(folder, forks):
    (folder / "broken.py").write_text(RAISES)
    wanted = ("enhance", "songs.csv", "-l", "calm,happy,sad", "-m", "broken:Mine", "-o", "soft.csv")
    quiet, loud = (forks.run("-m", "contone", *debug, *wanted, cwd=folder) for debug in ((), ("--debug",)))
    assert quiet.returncode == loud.returncode == 1
    assert "unexpected KeyError: 'none' (broken.py, line 6, in _fit_enhance)" in quiet.stderr
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in loud.stderr
    assert not (folder / "soft.csv").exists()


def test_two_methods_of_one_name_are_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text(METHOD.format(name="First"))
    (tmp_path / "broken.py").write_text(METHOD.format(name="First"))
    first = plugins.load("mine:First")
    assert plugins.load("mine:First") is first
    with pytest.raises(PluginError, match="another method called First"):
        plugins.load("broken:First")


# ----------------------------------------------------------------------------------------------- broken, but installed


@pytest.mark.parametrize(
    ("value", "source", "why"),
    [
        ("broken:Method", "import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("broken:Method", "raise SystemExit", "SystemExit"),
        ("broken:Method", "", "AttributeError"),
        ("broken:Method", "class Method: pass", "not a class derived from contone.base.Enhancer"),
        ("broken:Uniform", METHOD.format(name="Uniform"), "contone itself has a method called Uniform"),
    ],
)
def test_a_broken_package_is_left_out_with_its_name(tmp_path, monkeypatch, run, value, source, why):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken.py").write_text(source)
    offer(tmp_path, "sorrow", value)
    with pytest.warns(PluginWarning, match=f"'sorrow' of the package 'sorrow' is left out: .*{why}"):
        known = enhance.methods()
    assert "method" not in known
    assert known["uniform"] is enhance.Uniform
    assert enhance.methods().keys() == known.keys()  # said once
    plugins.installed.cache_clear()
    result = run("methods", "--json")
    assert result.exit_code == 0
    assert result.stderr.count("warning: The method 'sorrow'") == 1
    assert len(json.loads(result.stdout)) == len(known)


def test_a_broken_package_costs_one_line_of_any_command(folder, monkeypatch, run):
    monkeypatch.syspath_prepend(folder)
    offer(folder, "sorrow", "broken:Gone")
    result = run("enhance", "songs.csv", "-l", "calm,happy,sad", "-p", "n_sweeps=5", "-p", "n_burn=2", "-o", "soft.csv")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("sorrow") == 2  # the method and the package, in one line
    assert "PluginWarning" not in result.stderr


def test_a_sound_package_beside_a_broken_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text(METHOD.format(name="First"))
    offer(tmp_path, "joy", "mine:First")
    offer(tmp_path, "sorrow", "broken:Gone")
    with pytest.warns(PluginWarning, match="sorrow"):
        assert "first" in enhance.methods()


# ------------------------------------------------------------------------------------------------------ the checks bite


def test_the_checks_find_what_is_wrong():
    from contone.base import Enhancer
    from contone.numerics.solution import Solution

    class Careless(Enhancer):
        def __init__(self, weight=1.0):
            self.weight = weight

        def _fit_enhance(self, X, L):
            D = L + self.weight * np.random.rand(*L.shape) * (np.arange(L.shape[1]) + 1)  # noqa: NPY002
            return Solution(D / D.sum(axis=1, keepdims=True))

    with pytest.raises(AssertionError) as caught:
        check_enhancer(Careless(), scikit_learn=False)
    said = str(caught.value)
    for name in ("deterministic", "global_random_state_untouched", "order"):
        assert f"check_{name} " in said
    for name in ("parameters", "documentation"):
        assert f"check_{name} " in said
    for name in ("answer_on_simplex", "errors", "few_rows", "memory_estimate"):
        assert f"check_{name} " not in said


def test_the_method_of_the_guide_has_every_property_that_we_ask_of_ours(monkeypatch):
    guide = EXAMPLE.parents[1] / "docs" / "how-to" / "add-a-method.md"
    code = guide.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    module = ModuleType("my_module")
    monkeypatch.setitem(sys.modules, "my_module", module)
    exec(code, vars(module))
    check_enhancer(module.Halves())
