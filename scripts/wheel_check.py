"""Build the wheel and try it as a user gets it: alone in a new environment, away from the source tree.

    python scripts/wheel_check.py

Checks that every file of the package is in the wheel (templates, specifications, styles, py.typed) and nothing else,
that the library works with its required dependencies only, that the command says what to install where its extra is
missing, and that it works with the extra, on tables of every kind and, where ../shared/multilabel exists, on real ones;
the same for pages, whose extra is `report`. Needs Python with venv and pip, and a package index.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "contone"
Result = TypeVar("Result")

LIBRARY = """
import pathlib, sys, contone
here = pathlib.Path(contone.__file__).resolve()
assert pathlib.Path(sys.prefix).resolve() in here.parents, f"imported from {here}, not from the wheel"
data = contone.datasets.load("artificial")
L = contone.CumulativeMass().apply(data.D)
for method in (contone.Temperature(), contone.GLLE(), contone.Inversion(random_state=0)):
    D = method.fit_enhance(data.X[:200], L[:200])
    assert D.shape == (200, data.D.shape[1]) and (D >= 0).all() and abs(D.sum(axis=1) - 1).max() < 1e-9, method
    print("  ", type(method).__name__, "KL", round(float(contone.evaluate(data.D[:200], D).kl), 4))
contone.show_versions()
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="contone-wheel-") as name:
        folder = Path(name)
        wheel = step("build the wheel", lambda: build(folder))
        step("its files are those of the package", lambda: check_content(wheel))
        python = step("a new environment", lambda: environment(folder))
        step("install the wheel alone", lambda: pip(python, str(wheel)))
        step("the library works", lambda: run(python, "-I", "-c", LIBRARY, cwd=folder))
        step("the command says what it needs", lambda: check_without_extra(python, folder))
        step("install its command line", lambda: pip(python, f"{wheel}[cli]"))
        step("the command works", lambda: check_command(python, folder))
        step("tables, as README installs it", lambda: check_tables(python, folder))
        step("a page says what it needs", lambda: check_without_report(python, folder))
        step("install the report", lambda: pip(python, f"{wheel}[report]"))
        step("a page is written", lambda: check_report(python, folder))
    print("the wheel is good")
    return 0


def step(title: str, work: Callable[[], Result]) -> Result:
    print(f"{title} ...", flush=True)
    started = time.perf_counter()
    result = work()
    print(f"   {time.perf_counter() - started:.1f} s", flush=True)
    return result


def run(*command: str | Path, cwd: Path, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """The finished process; its output is shown where its exit code is not the expected one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != expected:
        sys.exit(f"{command}\nexit code {done.returncode}, expected {expected}\n{done.stdout}\n{done.stderr}")
    return done


def pip(python: Path, *what: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-compile")
    run(python, "-m", "pip", "install", *quiet, "-c", ROOT / "constraints.txt", *what, cwd=ROOT)


def build(folder: Path) -> Path:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps")
    run(sys.executable, "-m", "pip", "wheel", *quiet, "--wheel-dir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("contone-*.whl")
    return wheel


def environment(folder: Path) -> Path:
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    return folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def check_content(wheel: Path) -> None:
    """The package's files, one for one; only metadata beside them."""
    in_tree = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    in_wheel = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    if in_wheel != in_tree:
        sys.exit(f"missing: {sorted(in_tree - in_wheel)}\nunexpected: {sorted(in_wheel - in_tree)}")
    for ending in ("py.typed", ".j2", ".css", ".toml", ".csv"):
        if not any(name.endswith(ending) for name in in_wheel):
            sys.exit(f"no file that ends with {ending} in the wheel")


def check_without_extra(python: Path, folder: Path) -> None:
    done = run(python, "-m", "contone", "--version", cwd=folder, expected=2)
    if "contone[cli]" not in done.stderr or "Traceback" in done.stderr:
        sys.exit(f"without its extra the command says: {done.stderr}")


def check_command(python: Path, folder: Path) -> None:
    contone = python.parent / ("contone.exe" if os.name == "nt" else "contone")
    version = run(contone, "--version", cwd=folder).stdout.split()
    installed = run(
        python, "-I", "-c", "from importlib.metadata import version; print(version('contone'))", cwd=folder
    ).stdout.strip()
    if version != ["contone", installed]:
        sys.exit(f"contone --version says {version}, the metadata says {installed}")
    methods = json.loads(run(contone, "methods", "--json", cwd=folder).stdout)
    if not methods:
        sys.exit("contone methods --json lists nothing")
    print(f"   contone {installed}, {len(methods)} methods")
    (folder / "in.csv").write_text("x,a,b\n1,1,0\n2,0,1\n3,1,1\n", encoding="utf-8")
    run(contone, "enhance", "in.csv", "--labels", "a,b", "-m", "temperature", "-o", "out.csv", cwd=folder)
    if len((folder / "out.csv").read_text(encoding="utf-8").splitlines()) != 4:
        sys.exit("contone enhance did not write three rows")


EXTRAS = ("matplotlib", "torch", "pandas", "pyarrow", "faiss")
"""What README's install does not bring, and what the tests of the source tree have."""
REAL = ROOT.parent / "shared" / "multilabel"
SHORT = ("-p", "n_sweeps=24", "-p", "n_burn=8")


def check_tables(python: Path, folder: Path) -> None:
    """Tables of every kind through the default method with nothing but the extra `cli` installed."""
    there = f"from importlib.util import find_spec; print([m for m in {EXTRAS!r} if find_spec(m)])"
    if (found := run(python, "-I", "-c", there, cwd=folder).stdout.strip()) != "[]":
        sys.exit(f"{found} came with the command line: what is tested here is not what README installs")
    rng = random.Random(0)
    rows = [([rng.gauss(0, 1) for _ in range(3)], [int(rng.random() < 0.4) for _ in "abcd"]) for _ in range(60)]
    lines = [",".join(map(str, (*(round(v, 3) for v in x), *y))) for x, y in rows]
    names = [*(f"@attribute x{j} numeric" for j in range(3)), *(f"@attribute {name} {{0,1}}" for name in "abcd")]
    (folder / "t.arff").write_text("\n".join(["@relation 't: -C -4'", *names, "@data", *lines]), encoding="utf-8")
    (folder / "t.csv").write_text("\n".join(["x,y,z,a,b,c,d", *lines]), encoding="utf-8")
    classes = "\n".join(f"{x[0]:.3f},{'abc'[i % 3]}" for i, (x, _) in enumerate(rows))
    (folder / "classes.csv").write_text(f"x,class\n{classes}", encoding="utf-8")
    votes = "\n".join(f"i{i},w{w},{'abc'[(i * w) % 3]}" for i in range(20) for w in range(3))
    (folder / "votes.csv").write_text(f"task,worker,label\n{votes}", encoding="utf-8")
    tables = [("t.arff",), ("t.csv", "-l", "a,b,c,d"), ("classes.csv", "-l", "class"), ("votes.csv",)]
    tables += [(str(REAL / name),) for name in ("Arts1500.arff.gz", "birds.arff.gz") if (REAL / name).is_file()]
    for table in tables:
        started = time.perf_counter()
        run(python, "-m", "contone", "enhance", *table, *SHORT, "--force", "-o", "soft.csv", cwd=folder)
        header, *lines = (folder / "soft.csv").read_text(encoding="utf-8").splitlines()
        degrees = [j for j, name in enumerate(next(csv.reader([header]))) if name.endswith("_degree")]
        for line in csv.reader(lines):
            values = [float(line[j]) for j in degrees]
            if not (min(values) >= 0 and abs(sum(values) - 1) < 1e-6):
                sys.exit(f"{table[0]}: the degrees {values} are not degrees")
        print(f"   {Path(table[0]).name}: {len(lines)} rows, {time.perf_counter() - started:.0f} s", flush=True)


PAGE = ("check", "in.csv", "--labels", "a,b", "-m", "temperature", "-o", "page.html")


def check_without_report(python: Path, folder: Path) -> None:
    done = run(python, "-m", "contone", *PAGE, cwd=folder, expected=1)
    if "contone[report]" not in done.stderr or "Traceback" in done.stderr:
        sys.exit(f"without matplotlib a page says: {done.stderr}")


def check_report(python: Path, folder: Path) -> None:
    rows = "".join(f"{i / 7:.3f},{i % 2},{int(i % 3 > 0)},{int(i % 6 < 3)}\n" for i in range(60))
    (folder / "in.csv").write_text(f"x,a,b,c\n{rows}", encoding="utf-8")
    run(python, "-m", "contone", *PAGE, "--unlabelled", "drop", cwd=folder)
    if b"</html>" not in (folder / "page.html").read_bytes():
        sys.exit("contone check did not write a page")


if __name__ == "__main__":
    sys.exit(main())
