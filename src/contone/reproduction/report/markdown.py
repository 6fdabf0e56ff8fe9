"""summary -> Markdown: docs/reproduction.md, paper | ours | why."""

from __future__ import annotations

from collections.abc import Iterator

from contone.experiments.report import markdown as common
from contone.experiments.report.markdown import table
from contone.pages.escape import markdown as escape
from contone.reproduction import paper
from contone.reproduction.report.comparison import Line, compare, overview
from contone.reproduction.report.schema import COMPARED, PaperSummary

MARKS = {"matches": "=", "close": "≈", "better": "<", "worse": ">", "not comparable": "?"}
"""How the verdict is written beside a figure: our loss against the published one."""

VERDICTS = ("matches", "close", "better", "worse", "not comparable")
"""From good to bad."""

LEGEND = (
    "Cells are *paper / ours*, then the verdict on our loss: `=` within 2 % (or rounding), `≈` within 6 %, `<` better, "
    "`>` worse. Cosine and intersection are judged as one minus themselves. For KL, *ours* follows the paper's own "
    "reading of that row (reversed, zeros dropped or clipped), so that like is compared with like; uniform, "
    "temperature and limit are KL(truth ‖ recovered)."
)


def document(summary: PaperSummary) -> str:
    """The whole document."""
    return "\n".join(_lines(summary)).rstrip() + "\n"


def _lines(summary: PaperSummary) -> Iterator[str]:
    yield f"# {summary.title}\n"
    yield (
        f"Paper: {paper.CITATION} This page is made from stored results "
        "(`contone reproduce`, then `contone report --format markdown`); nothing in it was typed by hand.\n"
    )
    yield from common.headline(summary)
    yield from common.missing(summary)
    yield from common.shares(summary)
    yield from _why(summary)
    for name in COMPARED:
        yield from _experiment(summary, name)
    yield from common.ranks(summary)
    yield from _errata(summary)
    yield from common.provenance(summary)


def _why(summary: PaperSummary) -> Iterator[str]:
    """Paper | ours | why, one line per method and experiment."""
    lines = [(name, line) for name in COMPARED for line in overview(compare(summary, name))]
    if not lines:
        return
    yield "## Paper, ours, why\n"
    yield (
        "Published figures that were run again, all measures and sets together. The difference is the median of "
        "(ours − paper) / paper, of the losses: negative is better than published.\n"
    )
    yield from table(
        ["Experiment", "Paper", "Ours", "Figures", *VERDICTS, "Difference", "Why"],
        [
            [
                name,
                line.method,
                escape(line.row),
                str(line.figures),
                *(str(line.verdicts[v]) for v in VERDICTS),
                line.difference_text,
                line.reason,
            ]
            for name, line in lines
        ],
        left=(0, 1, 2, 10),
    )
    yield "The figures behind these lines follow, one table per measure."
    yield f"{LEGEND}\n"


def _experiment(summary: PaperSummary, name: str) -> Iterator[str]:
    found = [c for c in compare(summary, name) if c.lines]
    if not found:
        return
    section = summary.section(name)
    yield f"## {section.title}\n"
    yield f"{section.question}\n"
    for comparison in found:
        yield f"### {comparison.title} {comparison.arrow}\n"
        methods = list(dict.fromkeys(line.method for line in comparison.lines))
        beside = {line.dataset: line for line in comparison.lines}
        cells = {(line.method, line.dataset): line for line in comparison.lines}
        yield from table(
            ["Set", *methods, "Uniform", "Temperature", "Limit"],
            [
                [
                    escape(ends.label),
                    *(_pair(cells.get((method, dataset))) for method in methods),
                    ends.uniform_text,
                    ends.temperature_text,
                    ends.limit_text,
                ]
                for dataset, ends in beside.items()
            ],
        )
        if comparison.left_out:
            yield f"Published figures without one of ours: {'; '.join(comparison.left_out)}.\n"


def _errata(summary: PaperSummary) -> Iterator[str]:
    yield "## Errata of the paper\n"
    yield "Each recomputed from the paper's printed tables, some from our results too.\n"
    for erratum in summary.errata:
        yield f"- **{erratum.title}.** Paper: {erratum.claim} Found: {erratum.finding}"
    yield ""


def _pair(line: Line | None) -> str:
    if line is None:
        return ""
    return f"{line.published_text} / {line.measured_text} {MARKS[line.verdict]}"
