"""Wrong arguments and hostile names, for every command: a sentence and an exit code, and a terminal left alone."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("typer")
import command
import corpus

pytestmark = pytest.mark.usefixtures("put_together_once")

TABLE = ("in.csv", "-l", "a,b")
QUICK = (*TABLE, "-m", "uniform")
DEGREES = "id,a_degree,b_degree\n1,0.5,0.5\n2,0.2,0.8\n"
WRONG = {
    "compare a method that is none": ("compare", *QUICK, "-m", "nosuch"),
    "compare a function": ("compare", *QUICK, "-m", "os:system"),
    "compare a name that is missing": ("compare", *QUICK, "-m", "os:nothing"),
    "compare a path": ("compare", *QUICK, "-m", "../x:y"),
    "compare in no processes": ("compare", *QUICK, "--jobs", 0),
    "compare in too many processes": ("compare", *QUICK, "--jobs", 99999),
    "compare without a time": ("compare", *QUICK, "--budget", "nan"),
    "compare into no folder": ("compare", *QUICK, "--figure", "nowhere/x.svg"),
    "compare into a folder": ("compare", *QUICK, "--figure", "sub.svg"),
    "compare into a format that is none": ("compare", *QUICK, "--figure", "x.txt"),
    "compare by a rule that is none": ("compare", *QUICK, "--rule", "threshold:nan"),
    "compare without a column": ("compare", "in.csv", "-l", "zz"),
    "check into a format that is none": ("check", *TABLE, "-o", "x.txt"),
    "check into no folder": ("check", *TABLE, "-o", "nowhere/x.html"),
    "check with a word for a number": ("check", *TABLE, "-p", "n_sweeps=abc"),
    "check with a parameter that is none": ("check", *TABLE, "-p", "nosuch=1"),
    "fit into a folder": ("fit", *QUICK, "-o", "sub.svg"),
    "fit into no folder": ("fit", *QUICK, "-o", "nowhere/x"),
    "fit through a link to nowhere": ("fit", *QUICK, "-o", "link.contone"),
    "fit with code": ("fit", *TABLE, "-m", "temperature", "-p", "c=__import__('os')", "-o", "z"),
    "apply a table": ("apply", "in.csv", "in.csv", "-o", "o.csv"),
    "apply to a table without the features": ("apply", "m.contone", "truth.csv", "-o", "o.csv"),
    "apply for no labels": ("apply", "m.contone", "in.csv", "-o", "o.csv", "--top", 0),
    "apply with a level beyond 1": ("apply", "m.contone", "in.csv", "-o", "o.csv", "--intervals", 2),
    "apply into a format that is none": ("apply", "m.contone", "in.csv", "-o", "o.xyz"),
    "show a folder": ("show", "sub.svg"),
    "evaluate what is not there": ("evaluate", "truth.csv", "nan.csv"),
    "evaluate other rows": ("evaluate", "truth.csv", "in.csv"),
    "evaluate by an item that is none": ("evaluate", "truth.csv", "truth.csv", "--item", "zz"),
    "evaluate by an item that repeats": ("evaluate", "truth.csv", "twice.csv", "--item", "id"),
    "evaluate a model": ("evaluate", "truth.csv", "m.contone"),
    "benchmark nothing": ("benchmark", "--methods", ","),
    "benchmark a method that is none": ("benchmark", "--methods", "nosuch"),
    "benchmark a function": ("benchmark", "--methods", "os:system"),
    "benchmark on nothing": ("benchmark", "--datasets", ""),
    "benchmark without the degrees": ("benchmark", "--datasets", "in.csv", "--degrees", "zz", "--dry-run"),
    "benchmark by a file that is no TOML": ("benchmark", "--spec", "in.csv"),
    "benchmark by a folder": ("benchmark", "--spec", "sub.svg"),
    "benchmark in no processes": ("benchmark", "--methods", "uniform", "--jobs", 0),
    "benchmark into a format that is none": ("benchmark", "--methods", "uniform", "--out", "x.xyz"),
    "benchmark into a file": ("benchmark", "--methods", "uniform", "--store", "in.csv"),
    "benchmark below a file": ("benchmark", "--methods", "uniform", "--store", "in.csv/store"),
    "reproduce into a file": ("reproduce", "--store", "in.csv"),
    "report on nothing": ("report", "--store", "nowhere"),
    "report on a file": ("report", "--store", "in.csv"),
    "reproduce what is none": ("reproduce", "--only", "x"),
    "describe a path": ("data", "info", "../x"),
    "fetch what is none": ("data", "fetch", "nosuch"),
    "show a method that is none": ("methods", "nosuch"),
    "run a command that is none": ("nosuch",),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    where = tmp_path_factory.mktemp("model")
    (where / "in.csv").write_bytes(corpus.ROWS)
    ended = command.run("fit", where / "in.csv", "-l", "a,b", "-m", "temperature", "-o", where / "m.contone")
    assert ended.code == 0
    return (where / "m.contone").read_bytes()


@pytest.fixture
def desk(folder, model):
    (folder / "sub.svg").mkdir()
    (folder / "link.contone").symlink_to("nowhere/x")
    (folder / "truth.csv").write_text(DEGREES)
    (folder / "nan.csv").write_text(DEGREES.replace("0.2", "nan"))
    (folder / "twice.csv").write_text(DEGREES.replace("\n2,", "\n1,"))
    (folder / "m.contone").write_bytes(model)
    return folder


PIPES = {
    "enhance": ("enhance", "pipe.csv", "-l", "a,b", "-m", "uniform", "-o", "o.csv"),
    "labels": ("enhance", "in.csv", "-l", "@pipe.csv", "-m", "uniform", "-o", "o.csv"),
    "graded": ("enhance", *TABLE, "-m", "inversion", "--graded", "pipe.csv", "-o", "o.csv"),
    "suggest": ("suggest", "pipe.csv", "-l", "a,b", "-o", "o.csv"),
    "check": ("check", "pipe.csv", "-l", "a,b"),
    "apply": ("apply", "pipe.csv", "in.csv", "-o", "o.csv"),
    "show": ("show", "pipe.csv"),
    "evaluate": ("evaluate", "pipe.csv", "truth.csv"),
    "benchmark": ("benchmark", "--spec", "pipe.csv"),
    "data": ("benchmark", "--datasets", "./pipe.csv", "--methods", "uniform", "--dry-run", "--no-estimate"),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("case", PIPES)
def test_a_pipe_is_refused_wherever_a_file_is_read(desk, case):
    """Nobody writes to it: whoever opens it waits for ever."""
    os.mkfifo(desk / "pipe.csv")
    ended = command.run(*PIPES[case])
    assert ended.code in (1, 2)
    assert "file" in ended.err


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named(desk, case):
    kept = sorted(p.name for p in desk.iterdir())
    ended = command.run(*WRONG[case])
    assert ended.code in (1, 2)
    assert len(ended.err.split()) > 4
    assert sorted(p.name for p in desk.iterdir()) == kept


EVIL = ("</td><img src=x onerror=alert(1)>", "\x1b]0;title\x07\x1b[2J", "$\\frac{1}{0$", "[bold red]a[/bold red]")


@pytest.fixture
def evil(folder):
    """A table whose columns are named by an enemy, and a file called the same."""
    name = "x\x1b[31m<b>.csv"
    header = ",".join(f'"{entry}"' for entry in EVIL)
    rows = "".join(f"{k},{k % 2},{(k + 1) % 2},{int(k % 3 == 0)}\n" for k in range(12))
    (folder / name).write_text(f"{header}\n{rows}")
    return name, ",".join(entry.replace(",", "?") for entry in EVIL[1:])


def test_names_do_not_reach_the_terminal_as_orders(folder, evil):
    name, labels = evil
    seen = [
        command.run("enhance", name, "-l", labels, "-m", "temperature", "-o", "o.csv"),
        command.run("fit", name, "-l", labels, "-m", "temperature", "-o", "m.contone"),
        command.run("show", "m.contone"),
        command.run("apply", "m.contone", name, "-o", "p.csv"),
        command.run("evaluate", "o.csv", "p.csv"),
        command.run("enhance", name, "-l", "nosuch", "-m", "uniform", "-o", "q.csv"),
        command.run("compare", name, "-l", labels, "-m", "uniform", "--replicates", 1),
    ]
    assert [ended.code for ended in seen] == [0, 0, 0, 0, 0, 2, 0]
    for ended in seen:
        assert "\x1b" not in ended.out + ended.err
        assert "\x07" not in ended.out + ended.err


@pytest.mark.slow
def test_names_do_not_become_markup_in_a_page(folder, evil):
    name, labels = evil
    ended = command.run("check", name, "-l", labels, "-p", "n_sweeps=20", "-p", "n_burn=8", "-o", "page.html")
    assert ended.code == 0
    page = (folder / "page.html").read_text()
    assert "<img src=x" not in page
    assert "<b>.csv" not in page
    assert "\x1b" not in page


def test_a_full_disk_behind_a_model_or_a_file(desk, monkeypatch):
    """What was there stays, and the message says what happened."""
    before = (desk / "m.contone").read_bytes()

    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("contone.runtime.files.os.replace", full)
    for arguments in (
        ("fit", *TABLE, "-m", "temperature", "-o", "m.contone", "--force"),
        ("apply", "m.contone", "in.csv", "-o", "o.csv"),
        ("enhance", *QUICK, "-o", "o.csv"),
    ):
        kept = sorted(p.name for p in desk.iterdir())
        ended = command.run(*arguments)
        assert ended.code == 1
        assert "No space left" in ended.err
        assert sorted(p.name for p in desk.iterdir()) == kept
    assert (desk / "m.contone").read_bytes() == before
