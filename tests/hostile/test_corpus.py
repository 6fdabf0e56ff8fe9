"""Malformed files of every format end in a sentence on stderr, whatever is wrong, and leave nothing behind."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

pytest.importorskip("typer")
import command
import corpus

from contone.exceptions import DataError
from contone.experiments import sources

pytestmark = pytest.mark.usefixtures("put_together_once")

ENHANCE = ("-m", "uniform", "-o", "o.csv")
TABLES, LABEL_FILES, DATA_SETS = corpus.tables(), corpus.label_files(), corpus.data_sets()


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    return corpus.valid(tmp_path_factory.mktemp("valid"))


def enhance(path: Path, labels: str = "a,b") -> command.Ended:
    return command.run("enhance", path, "-l", labels, *ENHANCE)


def described(name: str) -> command.Ended:
    return command.run(
        "benchmark", "--datasets", f"./{name}", "--methods", "uniform", "--dry-run", "--no-estimate", "--jobs", 1
    )


def assert_refused(ended: command.Ended, folder: Path, kept: set[str]) -> None:
    """An exit code, a sentence, and no file beside those that were there."""
    assert ended.code in (1, 2)
    assert len(ended.err.split()) > 5
    assert "Traceback" not in ended.err
    assert {p.name for p in folder.iterdir()} == kept


@pytest.mark.parametrize("name", TABLES)
def test_tables(folder, name):
    (folder / name).write_bytes(TABLES[name])
    assert_refused(enhance(Path(name), "0,1" if "libsvm" in name else "a,b"), folder, {"in.csv", name})


@pytest.mark.parametrize("name", LABEL_FILES)
def test_lists_of_labels(folder, name):
    (folder / name).write_bytes(LABEL_FILES[name])
    assert_refused(enhance(Path("in.csv"), name), folder, {"in.csv", name})


@pytest.mark.parametrize("name", DATA_SETS)
def test_data_sets(folder, name):
    (folder / name).write_bytes(DATA_SETS[name])
    assert_refused(described(name), folder, {"in.csv", name})


def test_models(folder, valid):
    for name, content in corpus.models(valid[".contone"]).items():
        (folder / name).write_bytes(content)
        kept = {p.name for p in folder.iterdir()}
        assert_refused(command.run("show", name), folder, kept)
        assert_refused(command.run("apply", name, "in.csv", "-o", "o.csv"), folder, kept)


@pytest.mark.parametrize("how", range(6))
def test_any_file_with_any_damage(folder, valid, how):
    """Cut, or with bits turned: refused with a sentence, or read, where the damage left a file that can be read."""
    for ending, content in valid.items():
        name = f"spoiled{ending}"
        (folder / name).write_bytes(corpus.spoiled(content, how, 6))
        if ending == ".contone":
            ended = command.run("apply", name, "in.csv", "-o", "o.csv")
        elif ending in (".npz", ".mat"):
            with contextlib.suppress(DataError):
                sources.read(sources.as_source(f"./{name}"))
            continue
        elif ending == ".xml":
            ended = enhance(Path("in.csv"), name)
        else:
            ended = enhance(Path(name))
        assert ended.code == 0 or len(ended.err.split()) > 5, name
        assert (folder / "o.csv").exists() == (ended.code == 0), name
        (folder / "o.csv").unlink(missing_ok=True)


def test_the_valid_files_are_valid(folder, valid):
    for ending, content in valid.items():
        (folder / f"valid{ending}").write_bytes(content)
        if ending in (".npz", ".mat"):
            assert sources.read(sources.as_source(f"./valid{ending}")).D.shape == (3, 2)
        elif ending == ".contone":
            assert command.run("show", f"valid{ending}").code == 0
        elif ending != ".xml":
            labels = "label_0,label_1" if ending == ".libsvm" else "a,b"
            assert enhance(Path(f"valid{ending}"), labels).code == 0, ending
            (folder / "o.csv").unlink()
