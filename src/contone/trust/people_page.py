"""Answers of several people as a page of its own: who answered how, what is ambiguous, what looks wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Sequence
from pathlib import Path

from contone.enhance.inversion import Inversion
from contone.pages import html, words
from contone.pages.blocks import Block, Cell, Column, Document, Grid, Row, Section, Text
from contone.runtime.files import replacing
from contone.trust.page import finding_blocks, made_by, verdict_blocks
from contone.trust.people import Degree, ItemAnswer, People, Person, look_at_people
from contone.typing import Data

MOST_PERSONS, MOST_LABELS = 500, 200
BAR = 6.0
"""Length of the longest bar."""


def write_people_page(
    method: Inversion,
    Y: Data,
    groups: Sequence[Hashable],
    annotators: Sequence[Hashable] | None,
    path: str | os.PathLike[str],
    source: str = "The answers",
    *,
    X: Data = None,
    overwrite: bool = True,
) -> People:
    """Look at answers that a method was fitted to and write the page about them, whole or not at all.

    With their features X, answers are left out and predicted, and the page leads with the verdict.
    """
    people = look_at_people(method, Y, groups, annotators, X)
    with replacing(path, overwrite=overwrite) as temporary:
        Path(temporary).write_text(html.page(document(people, source)), encoding="utf-8")
    return people


def document(people: People, source: str = "The answers") -> Document:
    """The page as a document."""
    about = f"{words.count(people.n_answers, 'answer')} about {words.count(people.n_items, 'item')}"
    about += f" by {len(people.persons):,} people" if people.persons else ""
    labels = [Row(label[0], _degree(label)) for label in sorted(people.labels, key=lambda d: -d[1])[:MOST_LABELS]]
    note = "Mean over the items, and the typical 90 % interval of a single item (median ends)."
    degrees = Grid("Degrees by label", _columns("Mean degree", "Lower", "Upper"), tuple(labels), "Label")
    return Document(
        f"Who, what: {words.clip(source, 60)}",
        f"{source}: {about}.",
        (
            _summary(people),
            _who(people),
            _what(people),
            Section("labels", degrees.title, (Text(note, "note"), degrees), "How much does each label describe items?"),
        ),
        f"{made_by()} Intervals hold 90 % of what is possible given the answers; no truth was used.",
    )


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


def _summary(people: People) -> Section:
    blocks: tuple[Block, ...] = (Text(headline(people), "strong"),)
    if people.findings:
        blocks = (*verdict_blocks(people.decision, commands=True), *blocks, *finding_blocks(people.findings))
    return Section("summary", "In short", blocks)


def _who(people: People) -> Section:
    columns = (
        *_columns("Answers", "Bits per answer", "Sharpness"),
        Column("Says too often", is_text=True),
        *_columns("Change"),
    )
    rows = tuple(Row(person.name, _person(person)) for person in people.persons[:MOST_PERSONS])
    note = (
        "Bits: what one answer says about an item; sharpness: how far it follows the item's degrees (1 is a typical "
        "person, 0 is chance). Change: how far the answers of the second half agree better (+) or worse (−) with their "
        "items than those of the first; marked where it is beyond three standard errors."
    )
    blocks: tuple[Block, ...] = (Text("The answers do not say whose they are: name the column of the person."),)
    if rows:
        more = len(people.persons) - len(rows)
        note += f" {more} more people, who say less, are not shown." if more else ""
        blocks = (Text(note, "note"), Grid("Persons", columns, rows, "Person"))
    return Section("who", "Who", blocks, "Whose answers are worth most, and whose changed?")


def _person(person: Person) -> tuple[Cell, ...]:
    change = Cell()
    if person.drift is not None:
        text = f"{person.drift:+.2f} ± {person.drift_error:.2f}".replace("-", "−")
        change = Cell(text, person.drift, state="doubtful" if person.is_drifting else "")
    return (
        Cell(f"{person.answers:,}", person.answers),
        *(Cell(f"{v:.2f}", v, note=f"{low:.2f} to {high:.2f}") for v, low, high in (person.bits, person.sharpness)),
        Cell(person.too_often),
        change,
    )


def _what(people: People) -> Section:
    def row(found: ItemAnswer, *more: Cell) -> Row:
        return Row(
            found.item, (Cell(found.said), *more, Cell(f"{found.score:.2f}", found.score), Cell(_told(found.degrees)))
        )

    said, largest = Column("Answers", is_text=True), Column("Degrees (90 % interval)", is_text=True)
    unsure = tuple(map(row, people.ambiguous))
    ambiguous = Grid("Ambiguous items", (said, *_columns("Second label at least"), largest), unsure, "Item")
    wrong = tuple(row(found, Cell(found.person)) for found in people.doubtful)
    columns = (Column("Answer", is_text=True), Column("Person", is_text=True), *_columns("Supported"), largest)
    doubtful = Grid("Doubtful answers", columns, wrong, "Item")
    blocks: list[Block] = [
        Text("Ambiguous: people differ, and their care does not explain it. Keep these as they are.", "note"),
        ambiguous if unsure else Text("No item is clearly ambiguous."),
        Text("Doubtful: what the others said, and the features, speak against this answer. Look at these.", "note"),
        doubtful if wrong else Text("No answer is doubtful."),
    ]
    return Section("what", "What", tuple(blocks), "Which items are ambiguous, and which answers look wrong?")


def _columns(*titles: str) -> tuple[Column, ...]:
    return tuple(Column(title, "descending") for title in titles)


def _degree(label: Degree) -> tuple[Cell, ...]:
    first, *ends = (Cell(f"{100 * v:.1f} %", v) for v in label[1:])
    return (Cell(first.text, first.value, bar=round(BAR * label[1], 2)), *ends)


def _told(degrees: tuple[Degree, ...]) -> str:
    return ", ".join(f"{name} {100 * d:.0f} % ({100 * low:.0f} to {100 * high:.0f})" for name, d, low, high in degrees)
