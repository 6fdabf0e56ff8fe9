"""What goes to stdout and stderr, whatever these are: closed, full, cut off, ASCII; and no traceback on Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from contone.cli import terminal

UNIFORM = ("enhance", "in.csv", "-l", "a,b", "-m", "uniform", "-o")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in.csv").write_text("x,café,a,b\n1,é,1,0\n2,ü,0,1\n3,ß,1,1\n", encoding="utf-8")
    return tmp_path


def test_a_stdout_that_a_shell_closed_is_an_error(folder):
    """In a new interpreter, which finds its own words for such a stream."""
    line = f"{sys.executable} -m contone {' '.join(UNIFORM)} - >&-"
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


@pytest.mark.parametrize("wanted", [("methods",), (*UNIFORM, "-")], ids=" ".join)
@pytest.mark.parametrize("where", ["closed", "/dev/full"])
def test_a_result_that_goes_nowhere_is_an_error(folder, forks, wanted, where):
    with ExitStack() as files:
        stdout = where if where == "closed" else files.enter_context(open(where, "w"))
        done = forks.run("-m", "contone", *wanted, cwd=folder, stdout=stdout)
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


def test_closed_streams_are_no_matter_where_a_file_is_written(folder, forks):
    done = forks.run("-m", "contone", *UNIFORM, "o.csv", cwd=folder, stdout="closed", stderr="closed")
    assert done.returncode == 0
    assert (folder / "o.csv").exists()


def test_ascii_streams_get_escapes_and_data_stays_utf_8(folder, process):
    done = process(*UNIFORM, "-", cwd=folder, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("x,café,a,b")
    assert "caf\\xe9" in done.stderr


def test_a_reader_that_stops_early_is_no_traceback(folder, forks):
    ours, theirs = os.pipe()
    with open(ours, "rb") as reader, open(theirs, "wb") as writer:
        reader.close()
        done = forks.run("-m", "contone", "methods", cwd=folder, stdout=writer)
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


INTERRUPTED = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "contone.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from contone.cli import main
main()
"""


def test_ctrl_c_while_the_commands_are_loaded_is_no_traceback(bare_forks):
    done = bare_forks.run("-c", INTERRUPTED)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_names_never_reach_the_terminal_as_orders(folder, run, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "in.csv").write_text("x,\x1b]0;owned\x07a,b\u202e\n1,1,0\n2,0,1\n")
    done = run("enhance", "in.csv", "-l", "*a,b*", "-m", "uniform", "-o", "o.csv")
    assert done.exit_code == 0, done.stderr
    assert "\\x1b]0;owned\\x07a, b\\u202e" in done.stderr
    wrong = run("enhance", "in.csv", "-l", "nothing", "-m", "uniform", "-o", "p.csv")
    assert wrong.exit_code == 2
    for text in (done.stderr, wrong.stderr):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_what_is_harmless_is_left_as_it_is():
    for text in ("plain", "naïve 日本 🎵", "two\nlines\tand a tab", "می\u200cخواهم"):
        assert terminal.clean(text) == text


def test_a_wrong_memory_limit_is_a_sentence(folder, process):
    done = process(*UNIFORM, "o.csv", cwd=folder, CONTONE_MEMORY_LIMIT="abc")
    assert done.returncode == 1
    assert "error: CONTONE_MEMORY_LIMIT='abc' is not a size: write for example 8GB, or off." in done.stderr


def test_json_escapes_what_a_terminal_would_obey(capsys):
    odd = {"labels": ["a\x1b[2J", "\u202eb", "c\u2028d", "\x7f", "\x85", "é"]}
    terminal.print_json(odd)
    printed = capsys.readouterr().out
    assert not set("\x1b\u202e\u2028\x7f\x85") & set(printed)
    assert "é" in printed
    assert json.loads(printed) == odd
