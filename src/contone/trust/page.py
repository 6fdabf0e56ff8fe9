"""A `Check`, or what is known of the `People` who answered, as a page of its own: one file, everything inside it.

What a page says is in the templates check.html.j2 and people.html.j2, which compute nothing: tables come to them as
rows of cells, sorted, cut to what a reader can take in, and with their numbers as text.
"""

import datetime
import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from contone.pages import svg, words
from contone.pages.blocks import Cell, Page, Row, Section
from contone.pages.svg import Chart
from contone.trust.check_result import MODEL, Check, DoubtfulEntry, Finding, LabelSummary, RowSummary
from contone.trust.people import Degree, ItemAnswer, People, Person
from contone.typing import Record

MOST_LABELS, MOST_MARKED, MOST_PERSONS = 200, 12, 500
"""Labels that the table of degrees shows, marked labels that a row names, and persons."""
BAR = 6.0
"""Length of the longest bar."""


def document(check: Check, source: str = "The data", *, commands: bool = False) -> Page:
    """The page about a check; for `commands`, what to do is said in options of the command line."""
    sized = f"{words.count(check.n_rows, 'row')}, {words.count(len(check.labels), 'label')}"
    titles = {"ambiguous": "The most ambiguous rows", "doubtful": "Labels that look wrong"}
    shown = {
        "check": check,
        "is_model": check.method == MODEL,
        "advice": check.decision.commands if commands else check.decision.actions,
        "charts": _charts,
        "labels": _labels(check.labels),
        "ambiguous": [Row(str(r.row), (_number(r.score, ".3g"), *_described(r))) for r in check.ambiguous],
        "doubtful": list(map(_doubtful, check.doubtful)),
    }
    return Page(
        f"Can these degrees be believed? {words.clip(source, 60)}",
        f"{source}: {sized}, enhanced by {check.method}{_sampled(check)}.",
        _sections(summary="In short", checks="Checks", labels="Degrees by label", **titles),
        f"{_made_by()} Expected error: KL(D || D^) over models that the labels allow; no truth was used.",
        "check",
        shown,
    )


def people_document(people: People, source: str = "The answers") -> Page:
    """The page about people."""
    by = f" by {len(people.persons):,} people" if people.persons else ""
    shown = {
        "people": people,
        "headline": headline(people),
        "charts": _charts,
        "persons": list(map(_person, people.persons[:MOST_PERSONS])),
        "n_persons_left": max(len(people.persons) - MOST_PERSONS, 0),
        "ambiguous": list(map(_item, people.ambiguous)),
        "doubtful": list(map(_item, people.doubtful)),
        "labels": _labels(people.labels),
    }
    return Page(
        f"People and their answers: {words.clip(source, 60)}",
        f"{source}: {words.count(people.n_answers, 'answer')} about {words.count(people.n_items, 'item')}{by}.",
        _sections(summary="In short", who="People", what="Items and answers", labels="Degrees by label"),
        f"{_made_by()} Intervals hold 90 % of what is possible given the answers; no truth was used.",
        "people",
        shown,
    )


def _sections(**titles: str) -> tuple[Section, ...]:
    """Names and titles for the table of contents; the templates fill them."""
    return tuple(Section(name, title, ()) for name, title in titles.items())


def _made_by() -> str:
    """When and by what a page was made."""
    import contone

    made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Made {made} by contone {contone.__version__}, Python {platform.python_version()}."


def headline(people: People) -> str:
    """Agreement, persons and doubtful answers in one sentence each."""
    alpha, said = people.agreement, ["No item has two different answers to compare: agreement cannot be measured."]
    if alpha is not None and math.isfinite(alpha.alpha):
        level = "well" if alpha.lower >= 0.8 else "tolerably" if alpha.alpha >= 0.667 else "little"
        ends = f"({alpha.lower:.2f} to {alpha.upper:.2f}; 1 is full agreement, 0 is chance)"
        said = [f"People agree {level}: Krippendorff's alpha is {alpha.alpha:.2f} {ends}."]
    if people.persons:
        first, last = people.persons[0], people.persons[-1]
        said.append(f"An answer by {first.name} says {first.bits[0]:.2f} bits, one by {last.name} {last.bits[0]:.2f}.")
    drifting = [person.name for person in people.persons if person.is_drifting]
    if drifting:
        said.append(f"Answers of {', '.join(drifting[:5])} changed in the course of the work.")
    return " ".join(said)


def _sampled(check: Check) -> str:
    """Which rows the page is about, where it is not all of them."""
    looked = f"{check.n_checked:,} rows drawn at random"
    if check.n_fitted is not None:
        among = f"; this page looks at {looked} among these" if check.n_checked < check.n_fitted else ""
        return f"; the method was fitted to a sample of {check.n_fitted:,} rows{among or ', which this page is about'}"
    return f"; this page looks at {looked}" if check.n_checked < check.n_rows else ""


def _number(value: float | None, form: str, **more: Any) -> Cell:
    """A number as people read it; nothing where there is none."""
    text = "" if value is None else format(value, form).replace("-", "−").replace("%", " %")
    return Cell(text, value, **more)


def _labels(labels: Sequence[LabelSummary]) -> Record:
    """The labels with the largest degrees, and how many more there are."""
    kept = sorted(labels, key=lambda label: -label.degree)[:MOST_LABELS]
    widest = max((label.degree for label in kept), default=1.0) or 1.0
    has_intervals = any(label.lower is not None for label in labels)

    def row(label: LabelSummary) -> Row:
        degree = _number(label.degree, ".1%", bar=round(BAR * label.degree / widest, 2))
        ends = (label.lower, label.upper) if has_intervals else ()
        return Row(label.name, (_number(label.frequency, ".1%"), degree, *(_number(end, ".1%") for end in ends)))

    return {"rows": list(map(row, kept)), "has_intervals": has_intervals, "n_left": len(labels) - len(kept)}


def _described(row: RowSummary | DoubtfulEntry) -> tuple[Cell, Cell]:
    """The labels that a row has, and its largest degrees."""
    more = len(row.marked) - MOST_MARKED
    marked = ", ".join(row.marked[:MOST_MARKED]) + (f" and {more} more" if more > 0 else "")
    return Cell(marked), _listed(row.degrees)


def _listed(degrees: Iterable[tuple[str, float] | Degree]) -> Cell:
    """Labels with their degrees, and the ends of their intervals where they have some."""

    def said(name: str, degree: float, *ends: float) -> str:
        interval = f" ({' to '.join(f'{100 * end:.0f}' for end in ends)})" if ends else ""
        return f"{name} {100 * degree:.0f} %{interval}"

    return Cell(", ".join(said(*each) for each in degrees))


def _doubtful(entry: DoubtfulEntry) -> Row:
    given = Cell("marked" if entry.given else "not marked")
    return Row(str(entry.row), (Cell(entry.label), given, _number(entry.probability, ".0%"), *_described(entry)))


def _person(person: Person) -> Row:
    worth = [_number(v, ".2f", note=f"{low:.2f} to {high:.2f}") for v, low, high in (person.bits, person.sharpness)]
    change = _number(person.drift, "+.2f", state="doubtful" if person.is_drifting else "")
    if person.drift is not None:
        change = replace(change, text=f"{change.text} ± {person.drift_error:.2f}")
    return Row(person.name, (_number(person.answers, ","), *worth, Cell(person.too_often), change))


def _item(found: ItemAnswer) -> Row:
    who = () if found.person is None else (Cell(found.person),)
    return Row(found.item, (Cell(found.said), *who, _number(found.score, ".2f"), _listed(found.degrees)))


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
            axis.set_xlim(0.0, 1.0 if finding.axis.startswith(("share", "weight")) else 1.1 * max(observed) or 1.0)
        told = _told(finding)
        tips = {f"dot-{k}": text for k, text in enumerate(told)}
        description = f"{finding.sentence} {'; '.join(told)}."
        drawn = svg.to_svg(drawing, f"check-{finding.name}", finding.title, description, tips)
    return [Chart(drawn)]


def _told(finding: Finding) -> list[str]:
    """Each category with what was observed and what was expected, in words."""
    each = zip_longest(finding.shown.items(), finding.lower, finding.upper)
    bands = ((f"{name}: {value:.3g}", low, high) for (name, value), low, high in each)
    return [text if low is None else f"{text} (expected {low:.3g} to {high:.3g})" for text, low, high in bands]
