"""Run the suite with the oldest versions of the dependencies that pyproject.toml allows.

    python scripts/oldest.py                # the required dependencies, the command line's
    python scripts/oldest.py -k glle        # arguments go to pytest

Turns every ``name>=version`` of pyproject.toml into ``name==version``, installs that in a new environment (kept in
.venv-oldest, so that a second run starts at once) and runs the part of the suite that needs no optional package. Run it
with the oldest Python that is supported.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-oldest"
EXTRAS = ("cli",)

TOOLS = ("pytest", "pytest-xdist", "hypothesis", "array-api-strict", "pandas", "pyarrow", "clarabel", "proxsuite")
"""What the tests import; at any version that fits, because users do not install it."""

NOT_HERE = "not (conle or levi or lible or test_an_experiment_describes_and_builds_it)"
"""These need torch, which is left out because its oldest builds are large."""

TESTS = (
    *(
        "tests/test_public.py",
        "tests/test_base.py",
        "tests/enhance/test_baselines.py",
        "tests/validation/test_containers.py",
    ),
    *("tests/test_measures.py", "tests/measurements/test_rules.py", "tests/test_estimators.py"),
    *("tests/numerics", "tests/enhance", "tests/augment", "tests/predict", "tests/datasets", "tests/tables"),
    *("tests/cli/test_enhance.py", "tests/cli/test_listing.py"),
)


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = re.fullmatch(r">=\s*([\d.]+)", project["requires-python"])
    if oldest and not sys.version.startswith(oldest[1] + "."):
        print(f"note: this is Python {sys.version.split()[0]}, the oldest supported one is {oldest[1]}", flush=True)
    declared = list(project["dependencies"])
    for extra in EXTRAS:
        declared += project["optional-dependencies"][extra]
    pins = [pinned(requirement) for requirement in declared]
    print("\n".join(pins), flush=True)
    python = environment(pins)
    paths = [test for test in TESTS if (ROOT / test).exists()]
    chosen = ["-m", "not slow and not exhaustive", "-k", NOT_HERE, *paths, *sys.argv[1:]]
    tests = [python, "-m", "pytest", "-q", "-n", "2", "-W", "default", *chosen]
    return subprocess.run(tests, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode


def pinned(requirement: str) -> str:
    """The oldest version that a requirement allows: name[extras]>=1.2 becomes name[extras]==1.2."""
    found = re.fullmatch(r"([\w.\[\],-]+)>=([\w.]+)", requirement)
    if found is None:
        sys.exit(f"{requirement!r} in pyproject.toml has no lower bound of the form name>=version")
    return f"{found[1]}=={found[2]}"


def environment(pins: list[str]) -> str:
    python = str(VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    stamp = VENV / "pins.txt"
    content = "\n".join(pins)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == content:
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    quiet = ("--quiet", "--disable-pip-version-check", "--prefer-binary")
    install = [python, "-m", "pip", "install", *quiet]
    subprocess.run([*install, *pins, *TOOLS], cwd=ROOT, check=True)
    subprocess.run([*install, "--no-deps", "-e", "."], cwd=ROOT, check=True)
    stamp.write_text(content, encoding="utf-8")
    return python


if __name__ == "__main__":
    sys.exit(main())
