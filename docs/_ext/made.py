"""What the build makes for a page: the output of commands, pages that a command wrote, a picture per method.

``run``
    Runs shell commands in the page's own working folder and shows them with their output. A command that fails fails
    the build, so no page shows a command that does not work. The commands of a page run in the order of the page.
``embed``
    Shows an HTML page that a command of this page wrote, in a frame, with a link to it.
``method-picture``
    What one method makes of a small data set, beside the truth and the labels; with ``rankings``, of marked labels that
    are ranked. Networks need torch, which the extra ``docs`` brings.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ROOT = Path(__file__).resolve().parents[2]


class Run(SphinxDirective):
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"quiet": directives.flag, "lines": directives.positive_int}

    def run(self) -> list[nodes.Node]:
        """One block with every command and what it printed; ``quiet`` shows the commands only."""
        shown = []
        for command in "\n".join(self.content).replace("\\\n", "").splitlines():
            if not command.strip():
                continue
            output = _run(command, work_folder(self.env.app, self.env.docname))
            shown.append(f"$ {command}")
            if "quiet" not in self.options:
                lines = output.rstrip().splitlines()
                limit = self.options.get("lines", len(lines))
                shown += lines[:limit] + (["..."] if len(lines) > limit else [])
        block = nodes.literal_block("\n".join(shown), "\n".join(shown), language="console")
        self.set_source_info(block)
        return [block]


class Embed(SphinxDirective):
    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"height": directives.positive_int, "title": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        source = work_folder(self.env.app, self.env.docname) / self.arguments[0]
        if not source.is_file():
            raise self.error(f"no command of this page wrote {self.arguments[0]}")
        name = f"{self.env.docname.replace('/', '-')}-{source.name}"
        target = Path(self.env.app.outdir) / "_made" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        link = "../" * self.env.docname.count("/") + f"_made/{name}"
        title = nodes.unescape(self.options["title"])
        html = (
            f'<iframe class="made" src="{link}" title="{title}" loading="lazy" '
            f'height="{self.options.get("height", 520)}"></iframe>'
            f'<p><a href="{link}">{title}, on a page of its own</a></p>'
        )
        return [nodes.raw("", html, format="html")]


class MethodPicture(SphinxDirective):
    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"rankings": directives.flag}

    def run(self) -> list[nodes.Node]:
        name, ranked = self.arguments[0], "rankings" in self.options
        path = Path(self.env.app.srcdir) / "_generated" / f"method_{name}.png"
        if not path.exists():
            draw_method(name, path, ranked=ranked)
        given = "the ranks of the marked labels" if ranked else "the 0/1 labels"
        alt = f"Three surfaces coloured by the degrees of three labels: the truth, {given}, what {name} recovers"
        image = nodes.image(uri="/" + path.relative_to(self.env.app.srcdir).as_posix(), alt=alt, width="100%")
        caption = nodes.caption("", f"{name} on contone's artificial data: red, green and blue are three degrees.")
        return [nodes.figure("", image, caption)]


def work_folder(app: Sphinx, page: str) -> Path:
    """The folder in which the commands of a page run; it starts with the example tables in it."""
    folder = Path(app.doctreedir).parent / "work" / page.replace("/", "-")
    if not folder.exists():
        folder.mkdir(parents=True)
        for table in sorted((ROOT / "examples").glob("*.csv")):
            shutil.copy(table, folder)
        own = Path(app.srcdir) / f"{page}_files"
        if own.is_dir():
            shutil.copytree(own, folder, dirs_exist_ok=True)
    return folder


def draw_method(name: str, path: Path, *, ranked: bool = False) -> None:
    """Write the picture of one method: truth, labels (or the ranks of those that are marked), answer."""
    import warnings

    import matplotlib
    import matplotlib.figure
    import numpy as np

    matplotlib.use("agg")
    import contone
    from contone.pages.figures import draw_manifold, save, tones

    data = contone.datasets.artificial()
    side = round(len(data.X) ** 0.5)
    some = np.arange(len(data.X)).reshape(side, side)[::2, ::2].ravel()  # every other line of the grid
    X, D = data.X[some], data.D[some]
    L = contone.CumulativeMass().apply(D)
    if ranked:  # a marked label has its place in the order of all of them, an unmarked one 0
        L = np.where(L > 0, D.argsort(axis=1).argsort(axis=1) + 1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture shows what a warning would say
        answer = getattr(contone, name)().fit_enhance(X, L)
    panels = {"truth": tones(D, D), "ranks" if ranked else "labels": L / L.max(), name: tones(answer, D)}
    figure = matplotlib.figure.Figure(figsize=(7.5, 2.45), layout="constrained", facecolor="white")
    for axis, (title, colours) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        draw_manifold(axis, X, colours)
        axis.set_title(title, fontsize=10, fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path, dpi=120)


def _run(command: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "96",
        "PYTHONPATH": str(ROOT / "src"),
    }
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output = ANSI.sub("", done.stdout).replace(str(folder), ".")
    if done.returncode:
        raise ExtensionError(f"a command of the documentation failed ({done.returncode}): {command}\n{output}")
    return output


def mark_up(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make docstrings, which are laid out for readers of the code, safe as markup.

    Bars are numbers of elements, not substitutions. In a module's docstring an indented block is a formula and stays as
    it is, and headings are bold lines, because the page around it has headings of its own.
    """
    formula = what == "module"
    made: list[str] = []
    for line in lines:
        indented = line.startswith("    ")
        if formula and indented and made and not made[-1].strip() and not _inside_block(made):
            made += ["::", ""]
        if formula and line and set(line) <= {"-"} and made and made[-1].strip():
            made[-1:] = [f"**{made[-1].strip()}**", ""]
            continue
        literal = (formula and indented) or line.lstrip().startswith((">>>", "..."))
        parts = line.split("``")  # every other one is code
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        made.append(line if literal else "``".join(parts))
    lines[:] = made


def _inside_block(lines: list[str]) -> bool:
    """Whether the last line that is not empty belongs to an indented block."""
    written = [line for line in lines if line.strip()]
    return bool(written) and written[-1].startswith("    ")


def start_afresh(app: Sphinx) -> None:
    """Commands are run again in empty folders; the pages then show what today's code prints."""
    shutil.rmtree(Path(app.doctreedir).parent / "work", ignore_errors=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("run", Run)
    app.add_directive("embed", Embed)
    app.add_directive("method-picture", MethodPicture)
    app.connect("builder-inited", start_afresh)
    app.connect("autodoc-process-docstring", mark_up, priority=400)  # before numpydoc
    return {"parallel_read_safe": False, "parallel_write_safe": True}
