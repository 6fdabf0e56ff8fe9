"""summary -> Markdown: docs/reproduction.md, paper | ours | why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contone.reproduction.report.charts import short
from contone.reproduction.report.comparison import COMPARED, compare, overview
from contone.reproduction.report.page import as_clock, best_first, matrix

MARKS = {"matches": "=", "close": "≈", "better": "<", "worse": ">", "not comparable": "?"}
"""How the verdict is written beside a figure: our loss against the published one."""

VERDICTS = ("matches", "close", "better", "worse", "not comparable")
"""From good to bad."""

MACHINE = ("system", "processor", "cores")
"""What of the machine is worth a line in a document that is kept."""

LEGEND = (
    "Cells are *paper / ours*, then the verdict on our loss: `=` within 2 % (or rounding), `≈` within 6 %, `<` better, "
    "`>` worse. Cosine and intersection are judged as one minus themselves. For KL, *ours* follows the paper's own "
    "reading of that row (reversed, zeros dropped or clipped), so that like is compared with like; uniform, "
    "temperature and limit are KL(truth ‖ recovered)."
)


def document(summary: Mapping[str, Any]) -> str:
    """The whole document."""
    return "\n".join(_lines(summary)).rstrip() + "\n"


def _lines(summary: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {summary['title']}\n"
    yield (
        f"Paper: {summary['paper']} This page is made from stored results "
        "(`contone reproduce`, then `contone report --format markdown`); nothing in it was typed by hand.\n"
    )
    yield "## What came out\n"
    yield from (f"{i}. {sentence}" for i, sentence in enumerate(summary["headline"]["sentences"], 1))
    yield ""
    yield from _missing(summary)
    yield from _shares(summary)
    yield from _why(summary)
    for name in COMPARED:
        yield from _experiment(summary, name)
    yield from _ranks(summary["ranks"])
    yield from _errata(summary["errata"])
    yield from _provenance(summary)


def _missing(summary: Mapping[str, Any]) -> Iterator[str]:
    missing, counts = summary["missing"], summary["counts"]
    notes = [f"{name}: {why}" for kind in ("datasets", "methods") for name, why in missing[kind].items()]
    if counts["pending"]:
        notes.append(f"{counts['pending']} of {counts['planned']} planned table cells were not run yet.")
    if counts.get("stale"):
        notes.append(f"{counts['stale']} table cells come from an earlier version of the code or the parameters.")
    if counts["failed"]:
        notes.append(f"{counts['failed']} table cells failed.")
    if notes:
        yield "Missing from these results, or not up to date:\n"
        yield from (f"- {note}" for note in notes)
        yield ""


def _shares(summary: Mapping[str, Any]) -> Iterator[str]:
    shares = best_first(matrix(summary["recovery"]["recovered"], {}))
    if not shares["rows"]:
        return
    yield "## Recovered share\n"
    yield (
        "The share of the way from the uniform distribution (0 %) to the limit of what features and labels allow "
        "(100 %), in KL. Best in bold, among rows that have not seen the truth.\n"
    )
    yield from table(
        ["Method", "mean", *(c["label"] for c in shares["columns"])],
        [
            [
                _named(r),
                r["mean"]["text"],
                *(f"**{c['text']}**" if c["best"] else c["text"] for c in r["cells"]),
            ]
            for r in shares["rows"]
        ],
    )


def _why(summary: Mapping[str, Any]) -> Iterator[str]:
    """Paper | ours | why, one line a method and experiment."""
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
                line["method"],
                line["row"],
                str(line["figures"]),
                *(str(line["verdicts"][v]) for v in VERDICTS),
                line["difference_text"],
                line["reason"],
            ]
            for name, line in lines
        ],
        left=(0, 1, 2, 10),
    )
    yield "The figures behind these lines follow, one table a measure."
    yield f"{LEGEND}\n"


def _experiment(summary: Mapping[str, Any], name: str) -> Iterator[str]:
    found = [c for c in compare(summary, name) if c["lines"]]
    if not found:
        return
    yield f"## {summary[name]['title']}\n"
    yield f"{summary[name]['question']}\n"
    for comparison in found:
        yield f"### {comparison['title']} {comparison['arrow']}\n"
        lines = comparison["lines"]
        methods = list(dict.fromkeys(line["method"] for line in lines))
        beside = {line["dataset"]: line for line in lines}
        cells = {(line["method"], line["dataset"]): line for line in lines}
        yield from table(
            ["Set", *methods, "Uniform", "Temperature", "Limit"],
            [
                [
                    short(dataset),
                    *(_pair(cells.get((method, dataset))) for method in methods),
                    ends["uniform_text"],
                    ends["temperature_text"],
                    ends["limit_text"],
                ]
                for dataset, ends in beside.items()
            ],
        )
        if comparison["left_out"]:
            yield f"Published figures without one of ours: {'; '.join(comparison['left_out'])}.\n"


def _ranks(section: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {section['title']}\n"
    yield f"{section['warning']}\n"
    for group in section["groups"]:
        measures = group["measures"]
        yield f"### {group['title']}\n"
        yield "Average ranks, 1 is best" + (
            "; in brackets as printed where that differs.\n" if measures[0]["published"] else ".\n"
        )
        yield from table(
            ["Method", *(f"{m['title']} {m['arrow']}" for m in measures)],
            [[name, *(_rank(m, name) for m in measures)] for name in measures[0]["average_ranks"]],
        )


def _errata(errata: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Errata of the paper\n"
    yield "Each recomputed from the paper's printed tables, some from our results too.\n"
    for erratum in errata:
        yield f"- **{erratum['title']}.** Paper: {erratum['claim']} Found: {erratum['finding']}"
    yield ""


def _provenance(summary: Mapping[str, Any]) -> Iterator[str]:
    found = summary["provenance"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    machine = ", ".join(f"{key} {found['machine'][key]}" for key in MACHINE if key in found["machine"])
    commands = dict.fromkeys(re.sub(r" --store[ =]\S+", "", run["command"]) for run in found["runs"])
    yield "## Provenance\n"
    yield f"- Versions: {versions}"
    yield f"- Machine: {machine}"
    yield f"- Seeds: {', '.join(map(str, found['seeds'])) or 'none'}; CPU time {as_clock(found['cpu_seconds'])}"
    yield from (f"- Command: `{command}`" for command in commands if command)
    yield f"- Made {found['generated']}"
    yield ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> Iterator[str]:
    """A table; the columns in `left` are set to the left, all others to the right.

    Examples
    --------
    >>> print("\\n".join(table(["a", "b"], [["x|y", "1"]])).rstrip())
    | a | b |
    |:--|--:|
    | x\\|y | 1 |
    """
    yield _joined(head)
    yield "|" + "|".join(":--" if i in left else "--:" for i in range(len(head))) + "|"
    yield from (_joined(row) for row in rows)
    yield ""


def _joined(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _named(row: Mapping[str, Any]) -> str:
    return row["name"] if row["kind"] == "method" else f"*{row['name']}* ({row['kind']})"


def _pair(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return ""
    return f"{line['published_text']} / {line['measured_text']} {MARKS[line['verdict']]}"


def _rank(measure: Mapping[str, Any], name: str) -> str:
    rank = measure["average_ranks"].get(name)
    if rank is None:
        return ""
    printed = measure["published"]["average_ranks"].get(name) if measure["published"] else None
    return f"{rank:.2f}" + (f" ({printed:.2f})" if printed is not None and abs(printed - rank) > 0.0051 else "")
