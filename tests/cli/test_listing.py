"""`contone methods`, `contone measures`, `--version`, the help texts and the page made from them."""

from __future__ import annotations

import json
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import contone
from contone import enhance, measures
from contone.base import InductiveMixin
from contone.tables.grading import fingerprints

ROOT = Path(__file__).parents[2]
REFERENCE = runpy.run_path(str(ROOT / "scripts" / "cli_reference.py"))
examples, markdown = REFERENCE["examples"], REFERENCE["markdown"]
COMMANDS = dict(REFERENCE["commands"]())


def task(i):
    """A task of Label Studio with three answers."""
    regions = [{"from_name": "q", "type": "choices", "value": {"choices": ["abc"[(i + w) % 3]]}} for w in range(3)]
    annotations = [{"completed_by": w, "result": [region]} for w, region in enumerate(regions)]
    return {"id": i, "data": {"text": f"text {i % 4}"}, "annotations": annotations}


def test_methods_as_json_say_what_the_library_says(run):
    listed = {r["name"]: r for r in json.loads(run("methods", "--json").stdout)}
    assert list(listed) == list(enhance.methods())
    for name, cls in enhance.methods().items():
        record = listed[name]
        assert record["class"] == cls.__name__
        assert record["baseline"] is cls.baseline
        assert record["inductive"] is issubclass(cls, InductiveMixin)
        assert set(record["presets"]) == set(cls.PRESETS)
        assert set(record["parameters"]) == set(cls().get_params(deep=False))
        assert record["summary"]
        assert record["reference"]


@pytest.mark.parametrize("width", [40, 60, 80, 140])
@pytest.mark.parametrize("command", ["methods", "measures"])
def test_lists_fit_the_terminal(run, monkeypatch, command, width):
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(command)
    assert result.exit_code == 0
    assert max(len(line) for line in result.stdout.splitlines()) <= width
    for name in enhance.methods() if command == "methods" else {**measures.MEASURES, **measures.FURTHER}:
        assert name in result.stdout


def test_one_method_in_full(run):
    result = run("methods", "temperature")
    assert "softmax(c L)" in result.stdout
    assert "c=0.2" in result.stdout
    assert json.loads(run("methods", "Temperature", "--json").stdout)["parameters"] == {"c": 0.2}


def test_an_unknown_method_is_a_wrong_command_line(run, flat):
    result = run("methods", "magic")
    assert result.exit_code == 2
    assert "no method 'magic'; there are: logical, temperature, uniform" in flat(result.stderr)
    assert result.stdout == ""


def test_measures_as_json_have_direction_and_formula(run):
    listed = {r["name"]: r for r in json.loads(run("measures", "--json").stdout)}
    assert [n for n, r in listed.items() if r["reported"]] == list(measures.MEASURES)
    assert all((r["better"] == "greater") == measures.get(n).greater_is_better for n, r in listed.items())
    assert {*measures.FURTHER, "kl_reversed_drop", "kl_reversed_clip"} <= set(listed)


def test_version_and_module_and_script(process):
    said = f"contone {contone.__version__}\n"
    assert process("--version").stdout == said
    script = Path(sys.executable).with_name("contone")
    started = [script] if script.exists() else [sys.executable, "-m", "contone"]
    assert subprocess.run([*started, "--version"], capture_output=True, text=True, check=True).stdout == said


def test_an_unknown_command_is_a_wrong_command_line(run):
    assert run("nonsense").exit_code == 2
    assert run("methods", "--nonsense").exit_code == 2


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_one_sentence_says_what_to_install(bare_forks, missing):
    code = (
        "import sys; missing = sys.argv.pop(1)\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] == missing]  # scikit-learn may use it\n"
        "sys.modules.update({name: None for name in [missing, *loaded]})\n"
        "from contone.cli import main; main()"
    )
    result = bare_forks.run("-c", code, missing, "--version")
    assert result.returncode == 2
    assert "pip install 'contone[cli]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


# ------------------------------------------------------------------------------------------------------ help texts


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_text_that_fits_a_narrow_terminal(run, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "60")
    result = run(*name.split()[1:], "--help")
    assert result.exit_code == 0
    assert max(len(line) for line in result.stdout.splitlines()) <= 60


@pytest.mark.parametrize("name", [n for n, c in COMMANDS.items() if not hasattr(c, "commands")])
def test_every_command_has_examples_and_options_explained(name):
    assert examples(COMMANDS[name])
    assert all(line.split("contone ", 1)[-1] for line in examples(COMMANDS[name]))
    assert all(p.help for p in COMMANDS[name].params)


# Other commands run for long or need a network; their examples belong to their own tests.
LOCAL = [line for name in ("enhance", "methods", "measures") for line in examples(COMMANDS[f"contone {name}"])]


@pytest.mark.parametrize("line", LOCAL)
def test_the_examples_in_the_help_texts_run(folder, run, undrawn, line):
    shutil.copy(folder / "songs.parquet", folder / "large.parquet")
    if "--graded" in line:
        songs = pl.read_csv(folder / "songs.csv", infer_schema=False)[:3]
        known = {"contone_row": [0, 1, 2], "contone_check": fingerprints(songs)}
        shares = {"calm_degree": [50, 20, 30], "happy_degree": [30, 40, 30], "sad_degree": [20, 40, 40]}
        pl.DataFrame({**known, **shares}).write_csv(folder / "graded.csv")
    if "--worker" in line:
        rows = [(f"s{i}", f"w{w}", "abc"[(i + w) % 3]) for i in range(9) for w in range(3)]
        pl.DataFrame(rows, ["item", "who", "mood"], orient="row").write_csv(folder / "answers.csv")
    if "label-studio" in line:
        (folder / "label-studio.json").write_text(json.dumps([task(i) for i in range(9)]))
    result = run(*shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    assert ("the expected error (mean KL)" in result.output) == ("--graded" in line)


def test_the_reference_page_is_made_from_the_help_texts():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == markdown(), "docs/cli.md is not what the help texts say: run `make docs`"
