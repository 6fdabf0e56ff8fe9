"""Imports point one way only, and `import contone` stays light."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import contone

ROOT = Path(contone.__file__).parent

# From the top down; a module may import from its own layer and from those below it.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"reproduction"},
    {"experiments"},
    {"trust"},
    {"tables", "pages"},
    {"testing"},
    {"limits", "models", "pipeline"},
    {"enhance", "augment", "predict", "measures", "datasets", "train"},
    {"base"},
    {"measurements"},
    {"validation"},
    {"numerics"},
    {"backends"},
    {"runtime"},
    {"exceptions", "typing"},
]
HEIGHT = {part: len(LAYERS) - i for i, layer in enumerate(LAYERS) for part in layer}

HEAVY = {
    *("torch", "dask", "distributed", "faiss", "numba", "matplotlib", "pandas", "polars"),
    *("typer", "rich", "jinja2", "requests", "pooch"),
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Every import of the file, anywhere in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]


def imported(path: Path) -> set[str]:
    """Every module of contone that the file imports, anywhere in it."""
    found: set[str] = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "contone"}


def part(module: str) -> str:
    """The folder or file directly under contone; empty for contone itself."""
    return [*module.split("."), ""][1]


SOURCES = sorted(ROOT.rglob("*.py"))


def test_imports_point_one_way():
    wrong = []
    for path in SOURCES:
        here = part(module_name(path))
        if here == "":  # the package itself collects the public names
            continue
        assert here in HEIGHT, f"contone.{here} belongs to no layer: add it to LAYERS in this test"
        for target in imported(path):
            there = part(target)
            if there in HEIGHT and HEIGHT[there] > HEIGHT[here]:
                wrong.append(f"{module_name(path)} must not import {target}")
            elif there not in HEIGHT and HEIGHT[here] <= HEIGHT["enhance"]:  # taken from the package itself
                wrong.append(f"{module_name(path)} must import {target} from where it is defined")
    assert not wrong


def test_only_the_command_line_knows_the_paper():
    """contone.reproduction is one paper: a leaf that only the commands may reach for."""
    others = [path for path in SOURCES if part(module_name(path)) not in ("reproduction", "cli")]
    assert not [path for path in others if any(part(target) == "reproduction" for target in imported(path))]


def test_no_public_name_pulls_in_anything_heavy(bare_forks):
    # What scikit-learn itself loads where it is installed (pandas, rich) is not ours.
    code = (
        "import json, sys, sklearn.linear_model, sklearn.metrics, sklearn.neighbors\n"
        "def loaded(): return {m.split('.')[0] for m in sys.modules}\n"
        "before = loaded()\nfrom contone import *\nprint(json.dumps(sorted(loaded() - before)))"
    )
    # The functions about files are defined with polars, which comes when one of them is named.
    assert not set(json.loads(bare_forks.run("-c", code).stdout)) & (HEAVY - {"polars"})


def test_all_public_names_import_fast_beyond_scikit_learn(bare_forks):
    # The cost of contone itself, with all that scikit-learn brings loaded already. The budget is "well under a second";
    # CPU time, the best of three, because other work on the machine only ever adds.
    code = (
        "import time, sklearn.base, sklearn.metrics, sklearn.neighbors, scipy.optimize, scipy.sparse.linalg, narwhals\n"
        "t = time.process_time(); from contone import *; print(time.process_time() - t)"
    )
    assert min(float(bare_forks.run("-c", code).stdout) for _ in range(3)) < 1.0


def test_importing_contone_imports_nothing_until_a_name_is_used():
    """Whoever imports it, and however the process was started; the same for `contone --help`."""
    heavy = "{'numpy', 'scipy', 'sklearn', 'pandas', 'polars', 'torch', 'dask'}"
    code = (
        "import sys, time\n"
        "t = time.process_time(); import contone; print(time.process_time() - t < 0.15)\n"
        f"import contone.cli.app; print(bool({heavy} & set(sys.modules)), 'LCdr' in vars(contone))\n"
        "import contone.trust\n"
        "from contone import LCdr, datasets\n"
        "print(contone.check.__name__, LCdr.__name__, datasets.__name__, hasattr(contone, 'nonsense'))\n"
        "print('LCdr' in vars(contone), 'KM' in dir(contone), contone.enhance.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == [
        *("True", "False", "False"),
        *("check", "LCdr", "contone.datasets", "False"),
        *("True", "True", "contone.enhance"),
    ], done.stderr


BLOCK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"typer", "rich", "polars", "matplotlib", "jinja2", "pandas", "pyarrow", "torch"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def test_the_library_works_without_the_extras(bare_forks):
    code = BLOCK + (
        "import contone\ndata = contone.datasets.load('artificial')\n"
        "L = contone.CumulativeMass().apply(data.D)\n"
        "print(contone.evaluate(data.D, contone.Temperature().fit_enhance(data.X, L)).kl)\n"
        "method = contone.Inversion(n_sweeps=20, n_burn=10).fit(data.X[::40], L[::40])\n"
        "print(contone.evaluate(data.D[::40], method.label_distributions_).kl)"
    )
    done = bare_forks.run("-c", code)
    assert done.returncode == 0, done.stderr
    plain, inverted = map(float, done.stdout.split())
    assert 0 < inverted < plain < 1


KIND_TESTS = re.compile(r"\b(is_torch_array|is_dask_array|is_torch_namespace|issparse)\b")


def test_the_kind_of_an_array_is_decided_in_the_backends_and_the_data_checks_only():
    rooms = ("backends", "validation.py", "validation")
    others = [path for path in SOURCES if path.relative_to(ROOT).parts[0] not in rooms]
    wrong = [path for path in others if KIND_TESTS.search(path.read_text(encoding="utf-8"))]
    assert not wrong, "ask contone.backends.get_backend"


def test_private_parts_of_scikit_learn_come_through_one_module():
    for path in SOURCES:
        for node in statements(path) if path.name != "domains.py" else []:
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
                assert "._" not in (node.module or ""), path
                assert not any(alias.name.startswith("_") for alias in node.names), path


def test_what_lies_beside_the_package_asks_for_names_that_exist():
    """Benchmarks, scripts and examples are not run by the suite; what they import from contone must be there."""
    beside = ROOT.parents[1]
    folders = ("benchmarks", "scripts", "docs", "examples")
    files = [path for folder in folders for path in (beside / folder).rglob("*.py") if "_build" not in path.parts]
    assert len(files) > 30
    missing = []
    for path in files:
        for node in statements(path):
            if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "contone":
                continue
            source = source_of(str(node.module))
            missing += [f"{path.name}: {node.module}.{a.name}" for a in node.names if not offers(source, a.name)]
    assert not missing


def source_of(module: str) -> Path:
    """The file of a module of contone."""
    path = ROOT.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def offers(source: Path, name: str) -> bool:
    """Whether `from source import name` finds something: a module, or a name bound at the top of the file."""
    if source.name == "__init__.py":
        if any((source.parent / f"{name}{end}").exists() for end in ("", ".py")):
            return True
        if source.parent == ROOT:
            return hasattr(contone, name)
    return source.exists() and name in bound(source)


@cache
def bound(source: Path) -> set[str]:
    """Names that the file binds: definitions, assignments and imports, wherever they stand."""
    tree, found = ast.parse(source.read_text(encoding="utf-8")), set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
    return found
