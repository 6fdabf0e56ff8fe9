"""Everything that a release needs, tried without releasing.

    python scripts/release_check.py

Builds sdist and wheel twice and compares the bytes; checks metadata, version, changelog, citation and licence; looks at
what ships and how large it is; builds a wheel from the sdist; installs the wheel alone in a new environment
(`wheel_check`), runs ``contone benchmark`` there and a smoke suite against the installed package.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

import wheel_check
from wheel_check import ROOT, check_content, pip, run, step

MAX_BYTES = 2_000_000
MUST_SHIP = ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "tests/", "examples/songs.csv")
MUST_NOT_SHIP = (".venv", "docs/_build", "__pycache__", ".git/", "contone-results", "benchmarks/results/")
DEMO = ("--store", "demo", "--max-rows", "300", "--seeds", "1", "--no-estimate")
SMOKE = ("tests/test_public.py", "tests/test_measures.py", "tests/measurements", "tests/enhance/test_baselines.py")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="contone-release-") as name:
        folder = Path(name)
        version = step("version, changelog and citation agree", check_words)
        sdist, wheel = step("build sdist and wheel", lambda: build(folder / "first"))
        step("the same bytes again", lambda: check_same((sdist, wheel), build(folder / "second")))
        step("metadata", lambda: check_metadata(wheel, version))
        step("what ships", lambda: (check_content(wheel), check_sdist(sdist)))
        step("size", lambda: check_size(sdist, wheel))
        step("a wheel from the sdist", lambda: check_from_sdist(sdist, wheel, folder))
        python = step("a new environment", lambda: wheel_check.environment(folder))
        step("install the wheel alone", lambda: pip(python, str(wheel)))
        step("the library works", lambda: run(python, "-I", "-c", wheel_check.LIBRARY, cwd=folder))
        step("the command says what it needs", lambda: wheel_check.check_without_extra(python, folder))
        step(
            "install its command line, its pages and pytest",
            lambda: pip(python, f"{wheel}[report]", "pytest>=8.3", "hypothesis>=6.100"),
        )
        step("the command works", lambda: wheel_check.check_command(python, folder))
        step("contone benchmark", lambda: run(python.parent / "contone", "benchmark", *DEMO, cwd=folder))
        step("a smoke suite", lambda: smoke(python, folder))
    print(f"contone {version} could be released")
    return 0


def check_words() -> str:
    """The version, where the package, the changelog and the citation say the same."""
    package = (ROOT / "src/contone/__init__.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "([^"]+)"', package)
    changelog = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    citation = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    said = [found.group(1) if found else None for found in (version, changelog, citation)]
    if len(set(said)) != 1 or said[0] is None:
        sys.exit(f"package, changelog and citation say {said}")
    if "MIT" not in (ROOT / "LICENSE").read_text(encoding="utf-8"):
        sys.exit("LICENSE is not the MIT licence that pyproject.toml names")
    return said[0]


def build(folder: Path) -> tuple[Path, Path]:
    """Sdist and wheel, built in an environment of their own with the time of the last commit in them."""
    folder.mkdir()
    python = folder / "build-venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(sys.executable, "-m", "venv", folder / "build-venv", cwd=folder)
    pip(python, "hatchling>=1.25")
    seconds = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    os.environ["SOURCE_DATE_EPOCH"] = seconds or "1700000000"
    run(python, "-m", "hatchling", "build", "-d", folder / "dist", cwd=ROOT)
    (sdist,) = (folder / "dist").glob("contone-*.tar.gz")
    (wheel,) = (folder / "dist").glob("contone-*.whl")
    return sdist, wheel


def check_same(first: tuple[Path, Path], second: tuple[Path, Path]) -> None:
    for one, other in zip(first, second, strict=True):
        if _digest(one) != _digest(other):
            sys.exit(f"two builds of {one.name} differ")


def check_metadata(wheel: Path, version: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode("utf-8"))
        licences = [n for n in archive.namelist() if n.endswith("licenses/LICENSE")]
    expected = {"Name": "contone", "Version": version, "License-Expression": "MIT"}
    found = {key: metadata[key] for key in expected}
    if found != expected or not licences or not metadata["Summary"] or not metadata["Requires-Python"]:
        sys.exit(f"metadata: {found}, licence files {licences}, summary {metadata['Summary']!r}")
    if metadata["Description-Content-Type"] != "text/markdown" or "# contone" not in metadata.get_payload():
        sys.exit("the README is not the long description")


def check_sdist(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames() if "/" in name]
    missing = [part for part in MUST_SHIP if not any(name.startswith(part) for name in names)]
    unwanted = [name for name in names for part in MUST_NOT_SHIP if part in name]
    if missing or unwanted:
        sys.exit(f"sdist: missing {missing}, unwanted {unwanted[:10]}")


def check_size(*files: Path) -> None:
    for file in files:
        size = file.stat().st_size
        print(f"   {file.name}: {size / 1e6:.2f} MB")
        if size > MAX_BYTES:
            sys.exit(f"{file.name} has {size:,} bytes, more than {MAX_BYTES:,}")


def check_from_sdist(sdist: Path, wheel: Path, folder: Path) -> None:
    """Whoever builds from the sdist gets the files of the wheel."""
    target = folder / "from-sdist"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps")
    run(sys.executable, "-m", "pip", "wheel", *quiet, "--wheel-dir", target, sdist, cwd=folder)
    (built,) = target.glob("contone-*.whl")
    with zipfile.ZipFile(built) as one, zipfile.ZipFile(wheel) as other:
        if {i.filename: i.CRC for i in one.infolist()} != {i.filename: i.CRC for i in other.infolist()}:
            sys.exit("the wheel built from the sdist differs from the one built from the tree")


def smoke(python: Path, folder: Path) -> None:
    """A part of the suite against the installed package, with nothing of the tree on the path but the tests."""
    tests = [ROOT / test for test in SMOKE]
    options = ("-q", "-o", "addopts=", "-o", "pythonpath=", "--import-mode=importlib", "-p", "no:cacheprovider")
    run(python, "-I", "-m", "pytest", *options, *tests, cwd=folder)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
