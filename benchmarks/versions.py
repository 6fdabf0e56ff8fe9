"""What a result was made with: Python, the machine and its load, libraries, BLAS. Imported by the other benchmarks.

    python benchmarks/versions.py numpy torch python-ldl     # one line of JSON; for the interpreter of a peer

It needs nothing beyond the standard library, so that a peer's interpreter runs it, too.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

OWN = ("contone", "numpy", "scipy", "scikit-learn", "numba", "faiss-cpu", "threadpoolctl")
PYLDL = ("python-ldl", "keras", "torch", "numpy", "scipy", "scikit-learn", "numba", "scikit-fuzzy", "qpsolvers")


def collect(*packages: str) -> dict[str, str]:
    """Name -> version, for this interpreter; packages that are not installed are left out."""
    found = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": f"{processor()}, {os.cpu_count()} cores",
    }
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | blas()


def own(*packages: str) -> dict[str, str]:
    """What contone's side was measured with, and how busy the machine was when it began."""
    found = collect(*OWN, *packages)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    if commit.returncode == 0:
        found["contone"] = f"{found.get('contone', 'source')} at {commit.stdout.strip()}"
    return found | {"load at the start": f"{os.getloadavg()[0]:.1f}"}


def of_peer(python: str, *packages: str) -> dict[str, str]:
    """The same of another interpreter."""
    done = subprocess.run([python, __file__, *packages], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def processor() -> str:
    """The name of the processor as Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def blas() -> dict[str, str]:
    """The BLAS that NumPy computes with, where threadpoolctl can tell."""
    try:
        import numpy  # noqa: F401 (it loads its BLAS)
        from threadpoolctl import threadpool_info
    except ImportError:
        return {}
    found = [f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {"BLAS": ", ".join(dict.fromkeys(found))}


def shown(versions: dict[str, str]) -> str:
    """As one line of text."""
    return "; ".join(f"{name} {value}" for name, value in versions.items())


if __name__ == "__main__":
    print(json.dumps(collect(*sys.argv[1:])))
