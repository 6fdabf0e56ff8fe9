"""A `Check` as a page of its own: one file, everything inside it."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from contone.pages import html, svg, words
from contone.pages.blocks import Block, Cell, Charts, Column, Document, Grid, Heading, Items, Row, Section, Text
from contone.pages.svg import Chart
from contone.runtime.files import replacing
from contone.trust.check_result import MODEL, Check, DoubtfulEntry, Finding, LabelSummary, RowSummary
from contone.trust.verdict import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LABELS, MOST_MARKED = 200, 12
"""Labels that the table of degrees shows, and marked labels that a row names."""
BAR = 6.0
"""Length of the longest bar."""
ASSUMES = {
    "CumulativeMass": "Marked are a row's largest labels, just as many as are needed for that share of its weight.",
    "Threshold": "Marked are the labels of a row whose weight passes the bar, and the largest one where none does.",
    "TopK": "Marked is the same number of labels in every row, the largest ones.",
    "Order": "Marked labels have more weight than the others; how much more, the labels do not say.",
}
"""What each rule assumes, by its class."""
COUNTED = "Rows are counted from 0, as in the file without its header."


def document(check: Check, source: str = "The data", *, commands: bool = False) -> str:
    """The page as one text; for `commands`, what to do is said in options of the command line."""
    return html.page(
        Document(
            f"Can these degrees be believed? {words.clip(source, 60)}",
            f"{source}: {words.count(check.n_rows, 'row')}, {words.count(len(check.labels), 'label')}, enhanced by "
            f"{check.method}{_sampled(check)}.",
            (
                _summary(check, commands=commands),
                _checks(check),
                _labels(check),
                _ambiguous(check),
                _doubtful(check),
                _pairs(check),
            ),
            f"{made_by()} Expected error: KL(D || D^) over models that the labels allow; no truth was used.",
        )
    )


def made_by() -> str:
    """When and by what a page was made."""
    import contone

    made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Made {made} by contone {contone.__version__}, Python {platform.python_version()}."


def write(
    check: Check,
    path: str | os.PathLike[str],
    source: str = "The data",
    *,
    overwrite: bool = True,
    commands: bool = False,
) -> Path:
    """Write the page, whole or not at all."""
    text = document(check, source, commands=commands)
    with replacing(path, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def _summary(check: Check, *, commands: bool) -> Section:
    assumed = ASSUMES.get(check.rule.partition("(")[0], "")
    if "at_least_one=False" in check.rule:
        assumed = "Marked are the labels of a row whose weight passes the bar; a row where none does has no label."
    rule = f"The rule is {check.rule}. {assumed}".strip()
    if check.method != MODEL:
        rule = f"{check.method} assumes no rule; it is compared with Inversion's model of the same rows. {rule}"
    blocks = verdict_blocks(check.decision, commands=commands)
    return Section("summary", "In short", (*blocks, Text(check.headline()), Text(rule, "note")))


def verdict_blocks(decision: Decision, *, commands: bool) -> list[Block]:
    """The verdict, why, and what to do."""
    because = f"Because {'; '.join(decision.reasons)}." if decision.reasons else "No check speaks against it."
    advice = decision.commands if commands else decision.actions
    word = Text(decision.word.capitalize(), f"decision {decision.word.replace(' ', '-')}")
    return [word, Text(because, "strong"), *([Items(advice)] if advice else [])]


def finding_blocks(findings: Sequence[Finding]) -> list[Block]:
    """Checks with their verdicts, sentences and pictures."""
    blocks: list[Block] = []
    for finding in findings:
        blocks.append(Heading(finding.title, tag=finding.verdict, state=finding.verdict))
        blocks += [Text(finding.sentence), Charts(partial(_charts, finding), "checks")]
    return blocks


def _checks(check: Check) -> Section:
    question = "Do the degrees agree with the labels, and with a model of how labels are made?"
    note = "None of these checks needs the truth."
    if check.method == MODEL:
        question = "Does the model make labels like these, and does the answer depend on what nobody knows?"
        note += " Dots are your labels; bars are where the model expects 90 % of such data."
    blocks = [Text(note, "note"), *finding_blocks(check.findings)]
    return Section("checks", "Checks", (*blocks, *(Text(text, "note") for text in check.not_checked)), question)


def _labels(check: Check) -> Section:
    kept = sorted(check.labels, key=lambda label: -label.degree)[:MOST_LABELS]
    widest = max((label.degree for label in kept), default=1.0) or 1.0
    has_intervals = any(label.lower is not None for label in check.labels)
    note = "Mean degree over the rows"
    note += ", and the typical 90 % interval of a single row (median ends)." if has_intervals else "."
    left = len(check.labels) - len(kept)
    if left:
        note += f" The {len(kept)} labels with the largest mean degree; {left} more are not shown."

    def row(label: LabelSummary) -> Row:
        ends = (label.lower, label.upper) if has_intervals else ()
        marked, degree, *others = (Cell(_percent(v), v) for v in (label.frequency, label.degree, *ends))
        bar = round(BAR * label.degree / widest, 2)
        return Row(label.name, (marked, Cell(degree.text, degree.value, bar=bar), *others))

    titles = ["Marked", "Mean degree", *(["Lower", "Upper"] if has_intervals else [])]
    columns = tuple(Column(title, "descending") for title in titles)
    grid = Grid("Degrees by label", columns, tuple(map(row, kept)), "Label")
    question = "How much does each label describe the rows?"
    return Section("labels", grid.title, (Text(note, "note"), grid), question)


def _ambiguous(check: Check) -> Section:
    columns = (Column("Expected KL", "descending"), *(Column(t, is_text=True) for t in ("Marked", "Largest degrees")))
    rows = [Row(str(r.row), (Cell(f"{r.score:.3g}", r.score), *_described(r))) for r in check.ambiguous]
    grid = Grid("The most ambiguous rows", columns, tuple(rows), "Row")
    note = Text(f"Rows with the largest expected error (KL). {COUNTED}", "note")
    return Section("ambiguous", grid.title, (note, grid), "Where would a person's opinion help most?")


def _doubtful(check: Check) -> Section:
    question = "Which labels do the features and the other labels speak against?"
    title = "Labels that look wrong"
    if not check.doubtful:
        blocks: tuple[Block, ...] = (Text("No label looks wrong, or none could be doubted under this rule."),)
        return Section("doubtful", title, blocks, question)
    rows = []
    for entry in check.doubtful:
        given = "marked" if entry.given else "not marked"
        wrong = Cell(f"{100 * entry.probability:.0f} %", entry.probability)
        rows.append(Row(str(entry.row), (Cell(entry.label), Cell(given), wrong, *_described(entry))))
    titles = {"Label": True, "Given as": True, "Wrong with": False, "Marked": True, "Largest degrees": True}
    columns = tuple(Column(name, "descending", is_text) for name, is_text in titles.items())
    note = Text(
        "Probability that an entry is wrong, if 5 % of them were, or what the parameter noise says "
        "(contone.doubtful_labels). High values may be slips, or simply rare rows.",
        "note",
    )
    return Section("doubtful", title, (note, Grid(title, columns, tuple(rows), "Row")), question)


def _pairs(check: Check) -> Section:
    rows = [Row(a, (Cell(b), Cell(f"{v:+.2f}".replace("-", "−"), v))) for a, b, v in check.pairs]
    columns = (Column("Label", is_text=True), Column("Correlation", "descending"))
    grid = Grid("Labels that go together", columns, tuple(rows), "Label")
    beyond = " beyond what the features explain" if check.method == MODEL else ""
    note = (
        f"Correlation of the log degrees{beyond}. Degrees of a row sum to 1, so that labels compete: values are a "
        "little negative where nothing goes on."
    )
    return Section("pairs", grid.title, (Text(note, "note"), grid))


def _sampled(check: Check) -> str:
    """Which rows the page is about, where it is not all of them."""
    looked = f"{check.n_checked:,} rows drawn at random"
    if check.n_fitted is not None:
        among = f"; this page looks at {looked} among these" if check.n_checked < check.n_fitted else ""
        return f"; the method was fitted to a sample of {check.n_fitted:,} rows{among or ', which this page is about'}"
    return f"; this page looks at {looked}" if check.n_checked < check.n_rows else ""


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _described(row: RowSummary | DoubtfulEntry) -> tuple[Cell, Cell]:
    more = len(row.marked) - MOST_MARKED
    marked = ", ".join(row.marked[:MOST_MARKED]) + (f" and {more} more" if more > 0 else "")
    return Cell(marked), Cell(", ".join(f"{name} {100 * value:.0f} %" for name, value in row.degrees))


def _charts(finding: Finding) -> list[Chart]:
    """Dots for what was observed, bars for what was expected; nothing where there is nothing to draw."""
    if not finding.observed:
        return []
    names = words.clip_all(list(finding.categories), 30 if finding.lower else 52)
    places = list(range(len(names)))
    sideways = max(map(len, names)) > (6 if len(names) > 4 else 14)
    with svg.style():
        drawing = svg.canvas(6.0, 0.55 + 0.2 * len(names) if sideways else 2.0)
        axis = drawing.subplots()
        if sideways:
            places = places[::-1]
            if finding.lower:
                axis.hlines(places, finding.lower, finding.upper, color=svg.LINE, linewidth=6)
            _dots(axis, finding.observed, places)
            axis.set_yticks(places, names)
            axis.set_ylim(-0.6, len(names) - 0.4)
            axis.set_xlabel(finding.axis)
            svg.bare(axis, "left")
        else:
            if finding.lower:
                axis.vlines(places, finding.lower, finding.upper, color=svg.LINE, linewidth=9)
            _dots(axis, places, finding.observed)
            axis.set_xticks(places, names)
            axis.set_ylabel(finding.axis)
            svg.bare(axis, "bottom")
        if not finding.lower:
            is_share = finding.axis.startswith(("share", "weight"))
            end = 1.0 if is_share else 1.1 * max(finding.observed) or 1.0
            (axis.set_xlim if sideways else axis.set_ylim)(0.0, end)
        told = _told(finding)
        tips = {f"dot-{k}": text for k, text in enumerate(told)}
        description = f"{finding.sentence} {'; '.join(told)}."
        drawn = svg.to_svg(drawing, f"check-{finding.name}", finding.title, description, tips)
    return [Chart(drawn)]


def _dots(axis: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """One artist each, so that each can be pointed at."""
    for k, place in enumerate(zip(x, y, strict=True)):
        axis.plot(*([value] for value in place), "o", color=svg.ACCENT, markersize=4.5, clip_on=False, gid=f"dot-{k}")


def _told(finding: Finding) -> list[str]:
    """Each category with what was observed and what was expected, in words."""
    bands = zip(finding.lower, finding.upper, strict=True) if finding.lower else [None] * len(finding.observed)
    return [
        f"{name}: {value:.3g}" + (f" (expected {band[0]:.3g} to {band[1]:.3g})" if band else "")
        for name, value, band in zip(finding.categories, finding.observed, bands, strict=True)
    ]
