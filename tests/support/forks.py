"""Processes that import nothing: a server has imported contone once and forks a child for every start.

A child has its own arguments, environment, working folder, streams and, on request, session, and ends as any Python
process does; only the interpreter and the imports are those of the server. What a test wants to know of the start
itself (the import, options of the interpreter, modules that are missing) needs a new interpreter, not this.

`Forks` is the side of the tests, `serve` that of the server. They speak through a socket: one message per start, with
the streams of the child and a pipe beside it, on which its process id and, at the end, its exit code come back.
"""

from __future__ import annotations

import array
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

CONTONE = (
    *("contone.cli.app", "contone.trust", "contone.predict", "contone.tables.streaming", "contone.reproduction.report"),
    *("polars", "rich.console"),
)
"""What a command imports."""
BELOW = ("numpy", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "narwhals", "pooch")
"""What contone imports whatever is done with it: children that import contone themselves."""
DEVNULL, PIPE = subprocess.DEVNULL, subprocess.PIPE


class Child:
    """A running child, with the names of `subprocess.Popen`."""

    def __init__(self, status: int, streams: dict[str, IO[str]]) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self.stdin, self.stdout, self.stderr = (streams.get(name) for name in ("stdin", "stdout", "stderr"))
        self.returncode: int | None = None
        self.pid = int(self._status.readline())

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = int(self._status.readline())
            self._status.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a forked child", timeout or 0.0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        texts: dict[str, str] = {}

        def drain(name: str, stream: IO[str]) -> None:
            with stream:
                texts[name] = stream.read()

        open_ends = [(name, getattr(self, name)) for name in ("stdout", "stderr") if getattr(self, name) is not None]
        readers = [threading.Thread(target=drain, args=end, daemon=True) for end in open_ends]
        for reader in readers:
            reader.start()
        deadline = time.monotonic() + (timeout or 3600)
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
        self.wait(max(0.0, deadline - time.monotonic()))
        return texts.get("stdout"), texts.get("stderr")

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait(60)


class Forks:
    """Start ``python ARGUMENTS`` without its imports: ``-m``, ``-c`` or a script, ``-W`` before it."""

    def __init__(self, preload: tuple[str, ...] = CONTONE) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), *preload], pass_fds=[theirs.fileno()], stdin=DEVNULL
        )
        theirs.close()

    def start(
        self,
        *arguments: Any,
        cwd: str | Path | None = None,
        env: dict[str, str] | None = None,
        stdout: Any = None,
        stderr: Any = None,
        start_new_session: bool = False,
    ) -> Child:
        """`stdout` and `stderr`: a file, PIPE, None for this process's own, or "closed"."""
        status, theirs = os.pipe()
        mine: dict[str, IO[str]] = {}
        passed, ours = {"status": theirs, "stdin": os.open(os.devnull, os.O_RDONLY)}, [theirs]
        ours.append(passed["stdin"])
        for number, (name, wanted) in enumerate((("stdout", stdout), ("stderr", stderr)), start=1):
            if wanted == PIPE:
                end, passed[name] = os.pipe()
                mine[name] = os.fdopen(end, encoding="utf-8")
                ours.append(passed[name])
            elif wanted != "closed":
                passed[name] = number if wanted is None else wanted.fileno()
        request = {
            "arguments": [str(a) for a in arguments],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "session": start_new_session,
            "passed": list(passed),
        }
        with tempfile.TemporaryFile() as text:  # an environment may be longer than a message
            text.write(json.dumps(request).encode())
            text.flush()
            self._socket.sendmsg(
                [b"start"],
                [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [text.fileno(), *passed.values()]))],
            )
        for number in ours:
            os.close(number)
        return Child(status, mine)

    def run(self, *arguments: Any, timeout: float = 120, **options: Any) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with the output captured as text; `stdout` and `stderr` may be given all the same."""
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            child = self.start(*arguments, **{"stdout": out, "stderr": err, **options})
            try:
                child.wait(timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                raise
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(arguments), child.wait(), out.read(), err.read())

    def close(self) -> None:
        self._socket.close()
        self._server.wait(60)


# ------------------------------------------------------------------------------------------------------- the server


def serve(connection: socket.socket) -> dict[str, Any]:
    """Fork for every message. Returns in the child, with what it shall do; ends where nobody is left to ask."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 16, 8)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            connection.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            with open(descriptors[0], encoding="utf-8") as text:
                text.seek(0)
                request: dict[str, Any] = json.load(text)
            passed = dict(zip(request["passed"], descriptors[1:], strict=True))
            if (child := os.fork()) == 0:
                _take_over(request, passed)
                return request
            for name, number in passed.items():
                if name != "status":
                    os.close(number)
            os.write(passed["status"], b"%d\n" % child)
            os.write(passed["status"], b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            os._exit(0)
        for number in descriptors:
            os.close(number)


def _take_over(request: dict[str, Any], passed: dict[str, int]) -> None:
    """Streams, session, folder, environment and signals of a new process."""
    if request["session"]:
        os.setsid()
    for target, name in enumerate(("stdin", "stdout", "stderr")):
        if name in passed:
            os.dup2(passed[name], target)
        else:
            os.close(target)
    os.closerange(3, 64)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [folder for folder in folders if folder and folder not in sys.path]
    importlib.invalidate_caches()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, closefd=False) if "stdout" in passed else None  # noqa: SIM115
    sys.stderr = (
        open(2, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
        if "stderr" in passed
        else None
    )


def _go(arguments: list[str]) -> None:
    """What `python ARGUMENTS` does once it has started."""
    import runpy
    import types
    import warnings

    if arguments[0] == "-W":
        warnings.simplefilter(arguments[1])
        arguments = arguments[2:]
    how, *rest = arguments
    if how == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        code, *more = rest
        sys.argv, sys.path[0] = ["-c", *more], ""
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(code, "<string>", "exec"), main.__dict__)
    else:
        sys.argv, sys.path[0] = arguments, os.path.dirname(how)
        runpy.run_path(how, run_name="__main__")


if __name__ == "__main__":
    import gc

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which then go away
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    _go(serve(socket.socket(fileno=int(sys.argv[1])))["arguments"])
