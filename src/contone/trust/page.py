"""A `Check`, or what is known of the `People` who answered, as a page of its own: one file, everything inside it."""

import datetime
import math
import platform
from collections.abc import Iterable, Sequence
from functools import partial

from contone.pages import svg, words
from contone.pages.blocks import Block, Cell, Charts, Column, Document, Grid, Heading, Items, Row, Section, Text
from contone.pages.svg import Chart
from contone.trust.check_result import MODEL, Check, DoubtfulEntry, Finding, LabelSummary, RowSummary
from contone.trust.people import ItemAnswer, People, Person
from contone.trust.verdict import Decision

MOST_LABELS, MOST_MARKED, MOST_PERSONS = 200, 12, 500
"""Labels that the table of degrees shows, marked labels that a row names, and persons."""
BAR = 6.0
"""Length of the longest bar."""
COUNTED = "Rows are counted from 0, as in the file without its header."


def document(check: Check, source: str = "The data", *, commands: bool = False) -> Document:
    """What the page says; for `commands`, what to do is said in options of the command line."""
    return Document(
        f"Can these degrees be believed? {words.clip(source, 60)}",
        f"{source}: {words.count(check.n_rows, 'row')}, {words.count(len(check.labels), 'label')}, enhanced by "
        f"{check.method}{_sampled(check)}.",
        (
            _summary(check, commands=commands),
            _checks(check),
            _labels(check.labels, "row"),
            _ambiguous(check),
            _doubtful(check),
        ),
        f"{_made_by()} Expected error: KL(D || D^) over models that the labels allow; no truth was used.",
    )


def people_document(people: People, source: str = "The answers") -> Document:
    """What the page about people says."""
    about = f"{words.count(people.n_answers, 'answer')} about {words.count(people.n_items, 'item')}"
    about += f" by {len(people.persons):,} people" if people.persons else ""
    short: list[Block] = [Text(headline(people), "strong")]
    if people.findings:
        short = [*verdict_blocks(people.decision, commands=True), *short, *finding_blocks(people.findings)]
    return Document(
        f"Who, what: {words.clip(source, 60)}",
        f"{source}: {about}.",
        (Section("summary", "In short", tuple(short)), _who(people), _what(people), _labels(people.labels, "item")),
        f"{_made_by()} Intervals hold 90 % of what is possible given the answers; no truth was used.",
    )


def _made_by() -> str:
    """When and by what a page was made."""
    import contone

    made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Made {made} by contone {contone.__version__}, Python {platform.python_version()}."


def _summary(check: Check, *, commands: bool) -> Section:
    rule = f"The rule is {check.rule}: {check.rule_words}."
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


def _grid(title: str, head: str, numbers: str, rows: Iterable[Row]) -> Grid:
    """A table with columns of these titles, of numbers where the title has a #."""
    columns = (Column(title.strip("#"), "descending", not title.startswith("#")) for title in numbers.split(", "))
    return Grid(title, tuple(columns), tuple(rows), head)


def _labels(labels: Sequence[LabelSummary], unit: str) -> Section:
    kept = sorted(labels, key=lambda label: -label.degree)[:MOST_LABELS]
    widest = max((label.degree for label in kept), default=1.0) or 1.0
    has_intervals = any(label.lower is not None for label in labels)
    note = f"Mean degree over the {unit}s"
    note += f", and the typical 90 % interval of a single {unit} (median ends)." if has_intervals else "."
    left = len(labels) - len(kept)
    if left:
        note += f" The {len(kept)} labels with the largest mean degree; {left} more are not shown."

    def row(label: LabelSummary) -> Row:
        ends = (label.lower, label.upper) if has_intervals else ()
        marked, degree, *others = (Cell(_percent(v), v) for v in (label.frequency, label.degree, *ends))
        bar = round(BAR * label.degree / widest, 2)
        return Row(label.name, (marked, Cell(degree.text, degree.value, bar=bar), *others))

    titles = "#Marked, #Mean degree" + (", #Lower, #Upper" if has_intervals else "")
    grid = _grid("Degrees by label", "Label", titles, map(row, kept))
    return Section("labels", grid.title, (Text(note, "note"), grid), f"How much does each label describe the {unit}s?")


def _ambiguous(check: Check) -> Section:
    rows = (Row(str(r.row), (_number(r.score, ".3g"), *_described(r))) for r in check.ambiguous)
    grid = _grid("The most ambiguous rows", "Row", "#Expected KL, Marked, Largest degrees", rows)
    note = Text(f"Rows with the largest expected error (KL). {COUNTED}", "note")
    return Section("ambiguous", grid.title, (note, grid), "Where would a person's opinion help most?")


def _doubtful(check: Check) -> Section:
    def row(entry: DoubtfulEntry) -> Row:
        wrong = Cell(f"{100 * entry.probability:.0f} %", entry.probability)
        given = "marked" if entry.given else "not marked"
        return Row(str(entry.row), (Cell(entry.label), Cell(given), wrong, *_described(entry)))

    titles = "Label, Given as, #Wrong with, Marked, Largest degrees"
    grid = _grid("Labels that look wrong", "Row", titles, map(row, check.doubtful))
    note = Text(
        "Probability that an entry is wrong, if 5 % of them were, or what the parameter noise says "
        "(contone.doubtful_labels). High values may be slips, or simply rare rows.",
        "note",
    )
    none = Text("No label looks wrong, or none could be doubted under this rule.")
    question = "Which labels do the features and the other labels speak against?"
    return Section("doubtful", grid.title, (note, grid) if check.doubtful else (none,), question)


def headline(people: People) -> str:
    """Agreement, persons and doubtful answers in one sentence each."""
    said = []
    alpha = people.agreement
    if alpha is not None and math.isfinite(alpha.alpha):
        level = "well" if alpha.lower >= 0.8 else "tolerably" if alpha.alpha >= 0.667 else "little"
        said.append(
            f"People agree {level}: Krippendorff's alpha is {alpha.alpha:.2f} ({alpha.lower:.2f} to {alpha.upper:.2f}; "
            "1 is full agreement, 0 is chance)."
        )
    else:
        said.append("No item has two different answers to compare: agreement cannot be measured.")
    if people.persons:
        first, last = people.persons[0], people.persons[-1]
        said.append(f"An answer by {first.name} says {first.bits[0]:.2f} bits, one by {last.name} {last.bits[0]:.2f}.")
    drifting = [person.name for person in people.persons if person.is_drifting]
    if drifting:
        said.append(f"Answers of {', '.join(drifting[:5])} changed in the course of the work.")
    return " ".join(said)


def _who(people: People) -> Section:
    shown = people.persons[:MOST_PERSONS]
    note = (
        "Bits: what one answer says about an item; sharpness: how far it follows the item's degrees (1 is a typical "
        "person, 0 is chance). Change: how far the answers of the second half agree better (+) or worse (−) with their "
        "items than those of the first; marked where it is beyond three standard errors."
    )
    if more := len(people.persons) - len(shown):
        note += f" {more} more people, who say less, are not shown."
    blocks: tuple[Block, ...] = (Text("The answers do not say whose they are: name the column of the person."),)
    if shown:
        titles = "#Answers, #Bits per answer, #Sharpness, Says too often, #Change"
        blocks = (Text(note, "note"), _grid("Persons", "Person", titles, map(_person, shown)))
    return Section("who", "Who", blocks, "Whose answers are worth most, and whose changed?")


def _person(person: Person) -> Row:
    change = Cell()
    if person.drift is not None:
        text = f"{person.drift:+.2f} ± {person.drift_error:.2f}".replace("-", "−")
        change = Cell(text, person.drift, state="doubtful" if person.is_drifting else "")
    worth = (Cell(f"{v:.2f}", v, note=f"{low:.2f} to {high:.2f}") for v, low, high in (person.bits, person.sharpness))
    return Row(person.name, (_number(person.answers, ","), *worth, Cell(person.too_often), change))


def _what(people: People) -> Section:
    def row(found: ItemAnswer) -> Row:
        shares = (
            f"{name} {100 * d:.0f} % ({100 * low:.0f} to {100 * high:.0f})" for name, d, low, high in found.degrees
        )
        who = (Cell(found.person),) if found.person is not None else ()
        return Row(found.item, (Cell(found.said), *who, _number(found.score, ".2f"), Cell(", ".join(shares))))

    unsure, wrong = (tuple(map(row, rows)) for rows in (people.ambiguous, people.doubtful))
    blocks: tuple[Block, ...] = (
        Text("Ambiguous: people differ, and their care does not explain it. Keep these as they are.", "note"),
        _grid("Ambiguous items", "Item", "Answers, #Second label at least, Degrees (90 % interval)", unsure)
        if unsure
        else Text("No item is clearly ambiguous."),
        Text("Doubtful: what the others said, and the features, speak against this answer. Look at these.", "note"),
        _grid("Doubtful answers", "Item", "Answer, Person, #Supported, Degrees (90 % interval)", wrong)
        if wrong
        else Text("No answer is doubtful."),
    )
    return Section("what", "What", blocks, "Which items are ambiguous, and which answers look wrong?")


def _sampled(check: Check) -> str:
    """Which rows the page is about, where it is not all of them."""
    looked = f"{check.n_checked:,} rows drawn at random"
    if check.n_fitted is not None:
        among = f"; this page looks at {looked} among these" if check.n_checked < check.n_fitted else ""
        return f"; the method was fitted to a sample of {check.n_fitted:,} rows{among or ', which this page is about'}"
    return f"; this page looks at {looked}" if check.n_checked < check.n_rows else ""


def _number(value: float, how: str) -> Cell:
    return Cell(f"{value:{how}}".replace("-", "−"), value)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _described(row: RowSummary | DoubtfulEntry) -> tuple[Cell, Cell]:
    more = len(row.marked) - MOST_MARKED
    marked = ", ".join(row.marked[:MOST_MARKED]) + (f" and {more} more" if more > 0 else "")
    return Cell(marked), Cell(", ".join(f"{name} {100 * value:.0f} %" for name, value in row.degrees))


def _charts(finding: Finding) -> list[Chart]:
    """Dots for what was observed, bars for what was expected; nothing where there is nothing to draw."""
    if not finding.shown:
        return []
    names = words.clip_all(list(finding.shown), 30 if finding.lower else 52)
    places, observed = range(len(names))[::-1], list(finding.shown.values())
    with svg.style():
        drawing = svg.canvas(6.0, 0.55 + 0.2 * len(names))
        axis = drawing.subplots()
        axis.hlines(places[: len(finding.lower)], finding.lower, finding.upper, color=svg.LINE, linewidth=6)
        for k, place in enumerate(zip(observed, places, strict=True)):  # one artist each, that can be pointed at
            at = ([value] for value in place)
            axis.plot(*at, "o", color=svg.ACCENT, markersize=4.5, clip_on=False, gid=f"dot-{k}")
        axis.set_yticks(places, names)
        axis.set_ylim(-0.6, len(names) - 0.4)
        axis.set_xlabel(finding.axis)
        svg.bare(axis, "left")
        if not finding.lower:
            is_share = finding.axis.startswith(("share", "weight"))
            axis.set_xlim(0.0, 1.0 if is_share else 1.1 * max(observed) or 1.0)
        told = _told(finding)
        tips = {f"dot-{k}": text for k, text in enumerate(told)}
        description = f"{finding.sentence} {'; '.join(told)}."
        drawn = svg.to_svg(drawing, f"check-{finding.name}", finding.title, description, tips)
    return [Chart(drawn)]


def _told(finding: Finding) -> list[str]:
    """Each category with what was observed and what was expected, in words."""
    bands = zip(finding.lower, finding.upper, strict=True) if finding.lower else [None] * len(finding.shown)
    return [
        f"{name}: {value:.3g}" + (f" (expected {band[0]:.3g} to {band[1]:.3g})" if band else "")
        for (name, value), band in zip(finding.shown.items(), bands, strict=True)
    ]
