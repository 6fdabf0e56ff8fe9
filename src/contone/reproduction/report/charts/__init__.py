"""Pictures of the report: one idea a file. Each takes plain values of the summary and gives `Chart`s."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chart:
    """A picture, ready for the page.

    Attributes
    ----------
    svg : str
        An SVG element with its alternative text inside.
    caption : str
        How to read it, in a sentence or two.
    title : str
        A short heading, where several charts stand in one section.
    """

    svg: str
    caption: str = ""
    title: str = ""


def short(dataset: str) -> str:
    """The name of a data set where room is short.

    Examples
    --------
    >>> short("yeast-alpha"), short("sjaffe")
    ('alpha', 'sjaffe')
    """
    return dataset.removeprefix("yeast-")
