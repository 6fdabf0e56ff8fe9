"""Measurements by name: what a person types, what it stands for, and what can be typed.

Every class says its own names (`Measurement.spoken`, `Measurement.parameter`); a new one is added to `MEASUREMENTS`.

| name | words | stands for |
|---|---|---|
| main | main labels, more than half of the weight | CumulativeMass(0.5), the convention of the field |
| everything | everything that matters, nearly all of the weight | CumulativeMass(0.9) |
| bar | whatever passes a bar | Threshold, its height estimated |
| best | the k best | TopK, k the most frequent number of labels per row |
| order | marked above unmarked, no more | the order alone, of each row's own number of labels or levels |
| votes | votes, how many people chose each label | Votes: counts, or one class per row |
| marks | marks, all labels that hold | Marks: one row per answer of a person |
| levels | levels, one for every label | Levels: 0 to 3, 0 to 100, no / unsure / yes; the range is that of Y |
| auto | | the likeliest of these |

``cumulative:0.9``, ``threshold:0.2`` and ``topk:3`` (or ``the 3 best``) set the parameter; ``cumulative`` alone is
"main", ``topk`` "best", and ``threshold`` a bar at 1 / q.
"""

import re
from typing import Any

from contone.exceptions import InputError
from contone.measurements.bar import Threshold
from contone.measurements.base import Measurement, Spoken
from contone.measurements.levels import Levels, Marks
from contone.measurements.mass import CumulativeMass
from contone.measurements.order import Order
from contone.measurements.topk import TopK
from contone.measurements.votes import Votes
from contone.validation.domains import StrOptions

MEASUREMENTS: tuple[type[Measurement], ...] = (CumulativeMass, Threshold, TopK, Order, Votes, Marks, Levels)
"""Every measurement that has a name."""
SPOKEN: dict[str, tuple[type[Measurement] | None, Spoken]] = {
    **{name: (cls, spoken) for cls in MEASUREMENTS for name, spoken in cls.spoken.items()},
    "auto": (None, Spoken("auto", None)),
}
"""Short names, the classes that they stand for, and their words."""
TYPED = {cls.parameter[0]: (cls, cls.parameter[1]) for cls in MEASUREMENTS if cls.parameter is not None}
"""Names that take a number after a colon, the classes, and the types of the number."""
ALONE = {"cumulative": "main", "topk": "best", "threshold": "threshold"}
"""What such a name means without a number."""


def parse_rule(text: str) -> Measurement | str:
    """A measurement from what a person typed; a short name where the labels have to say the rest.

    Examples
    --------
    >>> parse_rule("main labels, more than half of the weight"), parse_rule("cumulative:0.9"), parse_rule("the 3 best")
    (CumulativeMass(t=0.5), CumulativeMass(t=0.9), TopK(k=3))
    >>> parse_rule("Whatever passes a bar")
    'bar'
    """
    typed = " ".join(text.lower().split()).rstrip(".")
    number = re.fullmatch(r"(?:the )?(\d+) best|best: ?(\d+)", typed)
    if number:
        return TopK(int(number[1] or number[2]))
    name, colon, value = (part.strip() for part in typed.partition(":"))
    if colon and name in TYPED:
        return _with_number(*TYPED[name], value, text)
    short = ALONE.get(typed) or _short_name(typed)
    if short is None:
        raise InputError(f"there is no rule {text!r}; there are: {known_rules()}.")
    cls, spoken = SPOKEN.get(short, (None, None))
    return short if cls is None or spoken is None or spoken.parameters is None else cls(*spoken.parameters)


def known_rules() -> str:
    """What can be typed, in one line."""
    named = ", ".join(f"{s} ({spoken.words})" if spoken.words != s else s for s, (_, spoken) in SPOKEN.items())
    return f"{named}; or with a number: {', '.join(f'{name}:NUMBER' for name in TYPED)}"


def _short_name(typed: str) -> str | None:
    meant = (s for s, (_, spoken) in SPOKEN.items() if typed in (s, spoken.words, spoken.words.partition(",")[0]))
    return next(meant, None)


def _with_number(cls: type[Measurement], kind: type, value: str, text: str) -> Measurement:
    try:
        return cls(*[kind(value)])
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"degradation {text!r}: {value!r} is not a number that {cls.__name__} can take.") from error


class RuleText(StrOptions):
    """The domain of a parameter that takes a measurement as text."""

    def __init__(self) -> None:
        super().__init__({*SPOKEN, *ALONE})

    def is_satisfied_by(self, val: Any) -> bool:
        try:
            return isinstance(val, str) and parse_rule(val) is not None
        except InputError:
            return False

    def __str__(self) -> str:
        return f"a rule as text: {known_rules()}"
