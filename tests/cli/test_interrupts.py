"""Ctrl-C while the command is being imported."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from contone.cli import INTERRUPTED


def _hear_ctrl_c() -> None:
    """What runs in the background of a shell is started deaf to it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")
@pytest.mark.parametrize(
    ("how", "wanted", "reached"),
    [("module", "--version", b"typer"), ("script", "--version", b"typer"), ("module", "methods", b"numpy")],
)
def test_ctrl_c_during_the_import_leaves_no_traceback(tmp_path, how, wanted, reached):
    """Before the command has begun, and in it, where it imports what it works with."""
    script = tmp_path / "contone"
    script.write_text("from contone.cli import main\nmain()\n")
    command = ["-m", "contone"] if how == "module" else [str(script)]
    # Python says on stderr what it has imported; the signal is sent as soon as a module is reached.
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", *command, wanted],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=_hear_ctrl_c,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if reached in line:
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=60)
    said = b"\n".join(line for line in err.splitlines() if not line.startswith(b"import time:"))
    assert said.strip() == b"interrupted"
    assert out == b""
    assert process.returncode == INTERRUPTED
