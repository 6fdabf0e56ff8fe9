"""Do the tests notice a fault? Small faults are put into the code, one at a time, and judged by the tests of a room.

    python scripts/mutants.py                         # every room, 20 faults each; continues where it stopped
    python scripts/mutants.py numerics -n 40          # one room
    python scripts/mutants.py augment --again         # those that passed unnoticed once more, after a new test
    python scripts/mutants.py --list                  # what passed unnoticed, from the stored results

A fault is a comparison moved by one, + for -, * for /, a number plus one, a condition turned around, or `and` for `or`.
Which ones are tried depends on the seed alone, so that a second run continues the first. Named constants of a module,
default values and seeds are choices: they are left alone. What else may be changed without harm is listed in
`mutants.toml`, with the reason.

A room's tests and the examples in its docstrings run once, traced, to find which of them reach which line. A fault is
then judged by the test files that reach its line: first the tests that do, the quick ones first, until one fails or
`--seconds` of CPU time are used up (measured without a fault). Real data are not used. Everything happens in a copy,
`.mutants/src` (the environment variable MUTANTS names another folder).

mutmut and cosmic-ray do not serve here. mutmut (3.x) puts a switch into every function, which numba cannot compile, and
finds tests by import path, which pytest's importlib mode does not give. cosmic-ray edits the working tree and runs one
command per fault: a whole room each time. Both start an interpreter per fault; here it is forked from one that has
imported the libraries.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORK = Path(os.environ.get("MUTANTS", ROOT / ".mutants"))
COPY = WORK / "src"
HARMLESS = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text(encoding="utf-8"))["harmless"]
LIBRARIES = ("numpy", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "numba", "pandas", "polars")
LIBRARIES += ("pytest", "coverage", "narwhals", "pooch", "torch")
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
ALSO = {  # tests of a room that do not lie where its name says
    "enhance/inversion": ("tests/enhance/test_inversion.py", "tests/trust/test_chances.py"),
    "base": ("tests/test_estimators.py", "tests/test_unasked.py"),
    "pages": ("tests/reproduction/report/test_charts.py",),
    "experiments": ("tests/reproduction/report",),
    "testing": ("tests/enhance/test_plugins.py", "tests/test_estimators.py"),
}
USAGE_ERROR = 4
"""Of pytest."""
CLUSTERS = "not worker and not client_never and not dask_runs"
"""Not those that start a cluster, whose workers wait forever in a fork."""
WAIT = 15
"""Seconds of the clock for every CPU second that is allowed: a test may wait for what never comes, and others compute,
too."""
COMPILING = 60
"""CPU seconds more where numba compiles everything anew: what is killed for that would pass for noticed."""
BESIDE = ("measures", "models", "limits", "pipeline", "train", "testing")
"""Files beside the rooms, each a room of its own here."""


@dataclass(frozen=True)
class Fault:
    """One change of one place: the text from `start` to `end` of the file becomes `text`."""

    file: str
    function: str
    line: int
    change: str
    start: int
    end: int
    text: str
    key: str
    compiled: bool

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.change}"

    @property
    def harmless(self) -> bool:
        return any(
            fnmatch(self.file, entry["file"])
            and fnmatch(self.function, entry.get("function", "*"))
            and fnmatch(self.change, entry.get("change", "*"))
            for entry in HARMLESS
        )


# ---------------------------------------------------------------- faults


def faults(path: Path) -> Iterator[Fault]:
    """Every fault of a file."""
    source = path.read_bytes()
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    file = path.relative_to(COPY).as_posix()
    seen: dict[str, int] = defaultdict(int)
    for node, function, line, body, compiled in places(ast.parse(source)):
        for text in changes(node):
            start, end = (
                starts[a - 1] + b for a, b in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
            )
            before = " ".join(source[start:end].decode().split())
            change = f"{before} -> {text[1:-1] if text.startswith('(') else text}"
            # Which function says what, and which of its equal places it is: other changes of the file do not matter.
            known = f"{file}|{function}|{hashlib.sha256(body.encode()).hexdigest()[:12]}|{change}"
            seen[known] += 1
            yield Fault(file, function, line, change, start, end, text, f"{known}|{seen[known]}", compiled)


Place = tuple[ast.expr, str, int, str, bool]


def places(tree: ast.Module) -> Iterator[Place]:
    """Expressions that may be changed, with the function, the line of their statement, and the function's content."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    handed = {ast.unparse(a) for call in calls if ast.unparse(call.func) == "in_both_precisions" for a in call.args}

    def visit(
        node: ast.AST, function: str, line: int, body: str, compiled: bool
    ) -> Iterator[tuple[ast.expr, str, int, str, bool]]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults", "bases"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                    continue
                inner, at, text, fast = function, line, body, compiled
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    inner = f"{function}.{child.name}".lstrip(".")
                    if isinstance(child, ast.FunctionDef):
                        text = ast.dump(child)
                        names = {ast.unparse(d).split("(")[0].split(".")[-1] for d in child.decorator_list}
                        fast = compiled or child.name in handed
                        fast = fast or bool(names & {"compiled", "inlined", "njit", "jit", "overload"})
                        if "overload" in names:
                            continue
                if isinstance(child, ast.Assign | ast.AnnAssign) and not text:
                    continue  # constants of the module or class: choices
                if isinstance(child, ast.Call) and ast.unparse(child).endswith("default_rng(0)"):
                    continue  # which of many seeds
                if isinstance(child, ast.stmt):
                    at = child.lineno
                if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
                    continue
                if isinstance(child, ast.expr):
                    yield child, inner, at, text, fast
                yield from visit(child, inner, at, text, fast)
                if isinstance(child, ast.If | ast.IfExp | ast.While):
                    turned = ast.copy_location(ast.UnaryOp(ast.Not(), child.test), child.test)
                    turned.turned = True  # type: ignore[attr-defined]
                    yield turned, inner, at, text, fast

    yield from visit(tree, "", 1, "", False)


def changes(node: ast.expr) -> Iterator[str]:
    """What an expression may become."""
    if getattr(node, "turned", False):
        yield f"({ast.unparse(node)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        sides = (node.left, node.right)  # texts are put together, not added
        if not any(
            isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and type(s.value) is str) for s in sides
        ):
            yield f"({ast.unparse(ast.BinOp(node.left, SWAPS[type(node.op)](), node.right))})"
    elif isinstance(node, ast.BoolOp):
        yield f"({ast.unparse(ast.BoolOp(SWAPS[type(node.op)](), node.values))})"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        yield f"({ast.unparse(ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators))})"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield repr(node.value + 1)


# ---------------------------------------------------------------- rooms, and the tests that reach a line


def rooms() -> dict[str, list[Path]]:
    """The files of every room below the command line; `enhance/inversion` is a room of its own."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((COPY / "contone").rglob("*.py")):
        parts = path.relative_to(COPY / "contone").parts
        if parts[:2] == ("enhance", "inversion"):
            found["enhance/inversion"].append(path)
        elif len(parts) > 1 and parts[0] != "cli":
            found[parts[0]].append(path)
        elif path.stem in BESIDE:
            found[path.stem].append(path)
    return dict(sorted(found.items()))


def tests_of(room: str) -> list[str]:
    """The tests of a room, and the files whose docstrings have examples."""
    own = [f"tests/{room}", f"tests/test_{room.replace('/', '_')}.py", *ALSO.get(room, ())]
    if room == "enhance":  # without those of Inversion, in a folder of their own
        own = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / room).glob("test_*.py"))
    examples = [str(path) for path in rooms()[room] if ">>> " in path.read_text(encoding="utf-8")]
    return [name for name in own if (ROOT / name).exists()] + examples


def _too_long(*_: object) -> None:
    raise TimeoutError("a test that takes longer than a fault is judged")


class Meter:
    """A plugin of pytest: CPU seconds per test, and the name of the running test for the tracer."""

    def __init__(self, switch: Callable[[str], object], limit: float) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()
        self._switch, self._since, self._limit = switch, 0.0, limit
        for timer in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(timer, _too_long)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.add(_address(report.nodeid, report.location))

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._since = time.process_time()
        self._switch(_address(nodeid, location))
        signal.setitimer(signal.ITIMER_PROF, self._limit)  # what takes longer would not judge a fault anyway
        signal.setitimer(signal.ITIMER_REAL, WAIT * self._limit)

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        self.seconds[_address(nodeid, location)] += time.process_time() - self._since
        self._switch("")


def _address(nodeid: str, location: tuple[str, int | None, str]) -> str:
    """What pytest finds a test by; the name of an example outside the tree lacks its file."""
    return location[0] + nodeid if nodeid.startswith("::") else nodeid


def pytest_in_a_fork(arguments: list[str], seconds: float, trace: Path | None = None, fresh: bool = False) -> int:
    """Run pytest on the copy; its exit code, or -9 where it took more than the CPU seconds."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.setpgid(0, 0)
    quiet = os.open(WORK / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    limit = (3600 if trace else int(seconds + time.process_time())) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(WAIT * limit)
    os.chdir(ROOT)
    sys.path.insert(0, str(COPY))
    os.environ.update(PYTHONPATH=str(COPY), OMP_NUM_THREADS="1")
    os.environ.pop("CONTONE_DATA", None)
    temporary = tempfile.mkdtemp(prefix="contone-mutants-")
    if fresh:  # numba keeps what it compiled of callers, too, whose own files have not changed
        import numba

        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = temporary
    import pytest

    code = 3
    try:
        options = [
            "-o",
            "addopts=",
            "--rootdir",
            str(ROOT),
            "-c",
            str(ROOT / "pyproject.toml"),
            "--doctest-modules",
            "--import-mode=importlib",
            "-m",
            "not exhaustive",
            "-k",
            CLUSTERS,
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:cov",
            "-p",
            "no:xdist",
        ]
        options += ["--basetemp", str(Path(temporary) / "pytest"), "--tb=line"]
        if trace is None:
            code = int(pytest.main([*options, "-x", *arguments]))
        else:
            import coverage

            tracer = coverage.Coverage(data_file=str(trace), source=[str(COPY)], config_file=False)
            meter = Meter(tracer.switch_context, 2 * seconds)
            tracer.start()
            code = int(pytest.main([*options, *arguments], plugins=[meter]))
            tracer.stop()
            tracer.save()
            trace.with_suffix(".json").write_text(
                json.dumps({name: spent for name, spent in meter.seconds.items() if name not in meter.failed})
            )
    except BaseException:
        traceback.print_exc()
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        sys.stdout.flush()
        os._exit(code)


class Reach:
    """Which tests of a room reach which line, and how long they take."""

    def __init__(self, room: str, again: bool, seconds: float) -> None:
        import coverage

        store = WORK / f"reach-{room.replace('/', '-')}.sqlite"
        if again or not store.with_suffix(".json").exists():
            store.unlink(missing_ok=True)
            code = pytest_in_a_fork(tests_of(room), seconds, trace=store)
            if code not in (0, 1):
                sys.exit(f"the tests of {room} did not run ({code}): {WORK / 'output.txt'}")
            if code:
                print(f"{room}: some tests fail without a fault; they are not used")
        self.seconds: dict[str, float] = json.loads(store.with_suffix(".json").read_text())
        self.data = coverage.CoverageData(str(store))
        self.data.read()
        self.files: dict[str, list[str]] = defaultdict(list)
        for name in self.seconds:
            self.files[name.split("::")[0]].append(name)

    def tests(self, fault: Fault, budget: float) -> list[str]:
        """The tests that judge a fault: those that reach its line, then the others of their files, to the budget."""
        lines = self.data.contexts_by_lineno(str(COPY / fault.file))
        reached = {name for name in lines.get(fault.line, []) if name}
        if fault.compiled:  # the tracer does not see compiled code: the tests of its folder
            folder = f"tests/{Path(fault.file).relative_to('contone').parent.as_posix()}/"
            reached = {name for name in self.seconds if name.startswith(folder)}
        if not reached and "" in lines.get(fault.line, []):  # runs at import only
            reached = {name for names in lines.values() for name in names if name}
        beside = {name for file in {name.split("::")[0] for name in reached} for name in self.files[file]} - reached
        chosen, total = [], 0.0
        for group in (reached, beside):
            for name in sorted(group, key=lambda name: self.seconds.get(name, 0.0)):
                total += self.seconds.get(name, 0.0)
                if chosen and total > budget:
                    break
                chosen.append(name)
        return chosen


# ---------------------------------------------------------------- judging


def judge(fault: Fault, tests: list[str], seconds: float) -> str:
    """ "noticed", "unnoticed" or "unreached"."""
    if not tests:
        return "unreached"
    path = COPY / fault.file
    source, status = path.read_bytes(), path.stat()
    listed = WORK / "tests.txt"
    listed.write_text("\n".join(tests))
    try:
        path.write_bytes(fault.apply(source))
        # Another second for every fault: what Python and numba keep of a file goes by its time.
        stamp = 1_000_000_000 + int(hashlib.sha256(fault.key.encode()).hexdigest()[:7], 16)
        os.utime(path, (stamp, stamp))
        code = pytest_in_a_fork([f"@{listed}"], 10 + 3 * seconds + COMPILING * fault.compiled, fresh=fault.compiled)
    finally:
        path.write_bytes(source)
        os.utime(path, (status.st_atime, status.st_mtime))
    # A file that cannot be imported has no tests, which is an error of use; so is a test that is not there any more.
    if code == USAGE_ERROR == pytest_in_a_fork([f"@{listed}", "--collect-only"], 10 + 3 * seconds):
        sys.exit(f"{fault.file}: its tests are not those that were traced. Trace them again (--again).")
    return "unnoticed" if code == 0 else "noticed"


def results() -> dict[str, dict[str, str]]:
    """What was judged so far, by the key of the fault; the last judgement counts."""
    store = WORK / "results.jsonl"
    lines = store.read_text(encoding="utf-8").splitlines() if store.exists() else []
    return {entry["key"]: entry for entry in map(json.loads, lines)}


def sample(files: Iterable[Path], number: int, seed: int) -> list[Fault]:
    """The first faults in a random order that depends on the seed and on each fault alone."""
    found = [fault for path in files for fault in faults(path) if not fault.harmless]
    return sorted(found, key=lambda fault: random.Random(f"{seed}|{fault.key}").random())[:number]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("room", nargs="*", help="rooms below src/contone; all where none is named")
    parser.add_argument("-n", "--number", type=int, default=20, help="faults per room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", default="", help="faults of files whose path contains this only")
    parser.add_argument("--seconds", type=float, default=30.0, help="CPU seconds of tests per fault")
    parser.add_argument("--again", action="store_true", help="trace again, and judge again what passed unnoticed")
    parser.add_argument("--list", action="store_true", help="print stored results only")
    given = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    lock = (WORK / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        parser.error(f"another run uses {WORK}; the environment variable MUTANTS names another folder")
    shutil.copytree(ROOT / "src" / "contone", COPY / "contone", dirs_exist_ok=True, copy_function=copy_changed,
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    for path in COPY.rglob("*.py"):
        if not (ROOT / "src" / path.relative_to(COPY)).exists():
            path.unlink()
    known, all_rooms = results(), rooms()
    if unknown := set(given.room) - set(all_rooms):
        parser.error(f"no such room: {', '.join(sorted(unknown))}; there are {', '.join(all_rooms)}")
    os.nice(10)
    if not given.list:
        for name in LIBRARIES:
            importlib.import_module(name)
    table = []
    for room in given.room or all_rooms:
        chosen = sample((path for path in all_rooms[room] if given.file in path.as_posix()), given.number, given.seed)
        due = [f for f in chosen if f.key not in known or (given.again and known[f.key]["verdict"] != "noticed")]
        if due and not given.list:
            reach = Reach(room, given.again, given.seconds)
            for number, fault in enumerate(due, start=1):
                tests = reach.tests(fault, given.seconds)
                verdict = judge(fault, tests, sum(reach.seconds.get(name, 0.0) for name in tests))
                known[fault.key] = {"key": fault.key, "verdict": verdict}
                with (WORK / "results.jsonl").open("a", encoding="utf-8") as store:
                    store.write(json.dumps(known[fault.key]) + "\n")
                print(f"{room} {number}/{len(due)}: {verdict}  {fault}", flush=True)
        judged = [(f, known[f.key]["verdict"]) for f in chosen if f.key in known]
        if given.list:
            for fault, verdict in judged:
                if verdict != "noticed":
                    print(f"{verdict}  {fault}")
        if judged:
            table.append((room, len(judged), sum(verdict == "noticed" for _, verdict in judged)))
    print("\n| room | faults | noticed |\n|---|---|---|")
    for room, tried, noticed in table:
        print(f"| {room} | {tried} | {noticed} ({100 * noticed / tried:.0f} %) |")
    return 0


def copy_changed(source: str, target: str) -> None:
    """Copy a file where its content differs, so that what is kept of the others stays valid."""
    if not Path(target).exists() or Path(source).read_bytes() != Path(target).read_bytes():
        shutil.copy2(source, target)


if __name__ == "__main__":
    sys.exit(main())
