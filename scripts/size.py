"""How large the code is and how far a call walks through it, held to a budget: growth is a decision, not an accident.

    python scripts/size.py            # lines per room and the walks; exit code 1 where something is over its budget
    python scripts/size.py --files    # every file as well

A room is a folder directly under `src/contone`; `.` holds the files beside them. Docstrings, comments and blank lines
do not count. A walk is the number of distinct files of contone that a second call of `fit_enhance` enters (the first
one imports and compiles). Whoever needs more raises the figure below in the same commit, and says why there.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1] / "src" / "contone"

LINES = {
    ".": 858,
    "augment": 423,
    "backends": 1004,
    "base": 366,
    "cli": 1230,  # answers of people: suggest and plan
    "datasets": 470,
    "enhance": 7715,  # answers of people, two kinds of items, also on a GPU; DLDL and LEIC; single precision
    "experiments": 2120,
    "measurements": 601,
    "numerics": 1045,
    "pages": 458,
    "predict": 659,
    "reproduction": 702,
    "runtime": 487,  # files: texts and tables that come with the package, for all rooms
    "tables": 3872,  # exports of annotation tools both ways, answers of people, next answers, what small files claim
    "trust": 2260,  # the verdict, answers of people and their page; rehearsals of votes and levels
    "validation": 773,
}
"""Most lines of code per room."""

WALKS = {"Inversion": 22, "LCdr": 20, "KM": 10}
"""Most files that a call of each method enters."""


def code_lines(path: Path) -> int:
    """Lines of a file that are neither blank nor comment nor part of a docstring."""
    text = path.read_text(encoding="utf-8")
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for entry in body if isinstance(body, list) else []:
            value = entry.value if isinstance(entry, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                prose.update(range(entry.lineno, (entry.end_lineno or entry.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), start=1)
    return sum(bool(line) and not line.startswith("#") and number not in prose for number, line in lines)


def room(path: Path) -> str:
    """The folder directly under contone that a file is in; `.` for none."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else "."


def walk(method: str) -> list[Path]:
    """The files of contone that a second call of the method's `fit_enhance` enters."""
    import numpy as np

    sys.path.insert(0, str(ROOT.parent))  # this checkout, whatever is installed
    import contone

    generator = np.random.default_rng(0)
    X, D = generator.normal(size=(60, 5)), generator.dirichlet(np.ones(4), 60)
    L = contone.CumulativeMass().apply(D)
    cls = getattr(contone, method)
    cls().fit_enhance(X, L)
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        cls().fit_enhance(X, L)
    finally:
        sys.setprofile(None)
    return sorted(path for path in map(Path, entered) if path.is_relative_to(ROOT))


def main(arguments: list[str]) -> int:
    sizes = {path: code_lines(path) for path in sorted(ROOT.rglob("*.py"))}
    rooms, files = Counter[str](), Counter(map(room, sizes))
    for path, lines in sizes.items():
        rooms[room(path)] += lines
    walks = {method: walk(method) for method in WALKS}
    for name, lines in rooms.most_common():
        print(f"{name:<13} {lines:>6,} lines {files[name]:>4} files   budget {LINES.get(name, 0):>6,}")
    print(f"{'all':<13} {sum(rooms.values()):>6,} lines {len(sizes):>4} files   budget {sum(LINES.values()):>6,}")
    for method, entered in walks.items():
        n_rooms = len({room(path) for path in entered})
        print(f"{method}().fit_enhance enters {len(entered)} files in {n_rooms} rooms   budget {WALKS[method]}")
    if "--files" in arguments:
        for path, lines in sizes.items():
            print(f"{lines:>6,} {path.relative_to(ROOT)}")
        for method, entered in walks.items():
            print(f"{method}: {' '.join(str(path.relative_to(ROOT)) for path in entered)}")
    over = [f"{name} has {lines:,} lines" for name, lines in rooms.items() if lines > LINES.get(name, 0)]
    over += [
        f"{method} enters {len(entered)} files" for method, entered in walks.items() if len(entered) > WALKS[method]
    ]
    if over:
        print(
            f"over budget: {'; '.join(over)}. Make it smaller, or raise the budget here and say why.", file=sys.stderr
        )
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
