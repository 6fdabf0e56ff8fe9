"""summary -> Markdown: the parts that every report has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from contone.experiments.report.matrix import Matrix, MatrixRow, matrix, sorted_by_mean
from contone.experiments.report.schema import Ranking, Summary
from contone.experiments.report.view import RANK_TOLERANCE
from contone.pages import words
from contone.pages.escape import markdown as escape

MACHINE = ("system", "processor", "cores")
"""What of the machine is worth a line in a document that is kept."""


def headline(summary: Summary) -> Iterator[str]:
    """What came out, in sentences."""
    yield "## What came out\n"
    yield from (f"{i}. {escape(sentence)}" for i, sentence in enumerate(summary.headline.sentences, 1))
    yield ""


def missing(summary: Summary) -> Iterator[str]:
    """What is not here, or not up to date."""
    counts = summary.counts
    absent = {**summary.missing.datasets, **summary.missing.methods}
    notes = [f"{escape(name)}: {escape(why)}" for name, why in absent.items()]
    notes += [escape(text) for text in summary.provenance.damaged]
    if counts.pending:
        notes.append(f"{counts.pending} of {counts.planned} planned table cells were not run yet.")
    if counts.stale:
        notes.append(f"{counts.stale} table cells come from an earlier version of the code or the parameters.")
    if counts.failed:
        notes.append(f"{counts.failed} table cells failed.")
    if notes:
        yield "Missing from these results, or not up to date:\n"
        yield from (f"- {note}" for note in notes)
        yield ""


def shares(summary: Summary) -> Iterator[str]:
    """The recovered shares."""
    shown = sorted_by_mean(matrix(summary.shares))
    if not shown.rows:
        return
    yield "## Recovered share\n"
    yield (
        "The share of the way from the uniform distribution (0 %) to the limit (100 %), in KL. The limit is what "
        "learners trained on the truth reach from features and labels: a strong reference, not a bound. Best in bold, "
        "among rows that have not seen the truth.\n"
    )
    yield from score_table(shown)


def score_table(shown: Matrix) -> Iterator[str]:
    """A matrix as a table."""
    yield from table(
        ["Method", "mean", *(escape(label) for _, label in shown.columns)],
        [[named(r), r.mean.text, *(f"**{c.text}**" if c.best else c.text for c in r.cells)] for r in shown.rows],
    )


def ranks(summary: Summary) -> Iterator[str]:
    """Average ranks of every group."""
    if not summary.ranks.groups:
        return
    yield f"## {escape(summary.ranks.title)}\n"
    yield f"{escape(summary.ranks.warning)}\n"
    for group in summary.ranks.groups:
        yield f"### {escape(group.title)}\n"
        printed = "; in brackets as printed where that differs.\n" if group.measures[0].published else ".\n"
        yield f"Average ranks, 1 is best{printed}"
        yield from table(
            ["Method", *(f"{m.title} {m.arrow}" for m in group.measures)],
            [[escape(name), *(_rank(m, name) for m in group.measures)] for name in group.measures[0].average_ranks],
        )


def provenance(summary: Summary) -> Iterator[str]:
    """Where the numbers come from."""
    found = summary.provenance
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    machine = ", ".join(f"{key} {found.machine[key]}" for key in MACHINE if key in found.machine)
    commands = dict.fromkeys(re.sub(r" --store[ =]\S+", "", run.command) for run in found.runs)
    yield "## Provenance\n"
    yield f"- Versions: {versions}"
    yield f"- Machine: {machine}"
    yield f"- Seeds: {', '.join(map(str, found.seeds)) or 'none'}; CPU time {words.duration(found.cpu_seconds)}"
    yield from (f"- Command: {code(command)}" for command in commands if command)
    yield f"- Made {found.generated}"
    yield ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> Iterator[str]:
    """A table of escaped cells; the columns in `left` are set to the left, all others to the right.

    Examples
    --------
    >>> print("\\n".join(table(["a", "b"], [["x", "1"]])).rstrip())
    | a | b |
    |:--|--:|
    | x | 1 |
    """
    yield _joined(head)
    yield "|" + "|".join(":--" if i in left else "--:" for i in range(len(head))) + "|"
    yield from (_joined(row) for row in rows)
    yield ""


def code(text: str) -> str:
    """Text in the type of code, whatever backticks it holds.

    Examples
    --------
    >>> code("a"), code("a`b")
    ('`a`', '``a`b``')
    """
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{' '.join(text.split(chr(10)))}{fence}"


def named(row: MatrixRow) -> str:
    """The name of a row, with its kind where it is not a method."""
    return escape(row.name) if row.kind == "method" else f"*{escape(row.name)}* ({row.kind})"


def _joined(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _rank(measure: Ranking, name: str) -> str:
    rank = measure.average_ranks.get(name)
    if rank is None:
        return ""
    printed = measure.published.average_ranks.get(name) if measure.published else None
    differs = printed is not None and abs(printed - rank) > RANK_TOLERANCE
    return f"{rank:.2f}" + (f" ({printed:.2f})" if differs else "")


def document(summary: Summary) -> str:
    """The report of a comparison."""
    return "\n".join(_lines(summary)).rstrip() + "\n"


def _lines(summary: Summary) -> Iterator[str]:
    yield f"# {escape(summary.title)}\n"
    yield f"{escape(summary.about)} This page is made from stored results by `contone report --format markdown`.\n"
    yield from headline(summary)
    yield from missing(summary)
    yield from shares(summary)
    yield "## Scores\n"
    yield f"{escape(summary.recovery.question)} Best in bold, among rows that have not seen the truth.\n"
    for one in summary.recovery.tables:
        shown = matrix(one)
        if shown.rows:
            yield f"### {one.title} {one.arrow}\n"
            yield from score_table(shown)
    yield from ranks(summary)
    yield from provenance(summary)
