"""The rules that make labels, in plain words: what a person types, what it stands for, and how it is said back.

| name | words | stands for |
|---|---|---|
| main | main labels, more than half of the weight | CumulativeMass(0.5), the convention of the field |
| everything | everything that matters, nearly all of the weight | CumulativeMass(0.9) |
| bar | whatever passes a bar | Threshold, its height estimated |
| best | the k best | TopK, k the most frequent number of labels per row |
| order | marked above unmarked, no more | the order alone, of each row's own number of labels or levels |
| auto | | the likeliest of these |

``cumulative:0.9``, ``threshold:0.2`` and ``topk:3`` (or ``the 3 best``) set the parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from contone.base import StrOptions
from contone.degrade import CumulativeMass, Degradation, Threshold, TopK
from contone.exceptions import InputError

WORDS = {
    "main": "main labels, more than half of the weight",
    "everything": "everything that matters, nearly all of the weight",
    "bar": "whatever passes a bar",
    "best": "the k best",
    "order": "marked above unmarked, no more",
    "auto": "auto",
}
"""Short names, and the words that mean the same."""
NEARLY_ALL = 0.9
"""The share of the weight that "everything that matters" has."""
CLASSES: dict[str, tuple[Callable[..., Degradation], type]] = {
    "cumulative": (CumulativeMass, float),
    "threshold": (Threshold, float),
    "topk": (TopK, int),
}
OLDER = ("cumulative", "topk", "threshold")
"""Names of classes without a parameter: CumulativeMass(0.5), the order alone, Threshold(1 / q)."""


def parse_rule(text: str) -> Degradation | str:
    """A rule from what a person typed; a short name where the labels have to say the rest.

    Examples
    --------
    >>> parse_rule("main labels, more than half of the weight"), parse_rule("cumulative:0.9"), parse_rule("the 3 best")
    (CumulativeMass(t=0.5), CumulativeMass(t=0.9), TopK(k=3))
    >>> parse_rule("Whatever passes a bar")
    'bar'
    """
    typed = " ".join(text.lower().split()).rstrip(".")
    if typed in OLDER:
        return CumulativeMass() if typed == "cumulative" else typed
    number = re.fullmatch(r"(?:the )?(\d+) best|best: ?(\d+)", typed)
    if number:
        return TopK(int(number[1] or number[2]))
    name, colon, value = (part.strip() for part in typed.partition(":"))
    if colon and name in CLASSES:
        rule, kind = CLASSES[name]
        try:
            return rule(kind(value))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"degradation {text!r}: {value!r} is not a number that {rule.__name__} can take."
            ) from error
    short = next((s for s, words in WORDS.items() if typed in (s, words, words.partition(",")[0])), None)
    if short is None:
        raise InputError(f"there is no rule {text!r}; there are: {known_rules()}.")
    return {"main": CumulativeMass(), "everything": CumulativeMass(NEARLY_ALL)}.get(short, short)


def known_rules() -> str:
    """What can be typed, in one line."""
    named = ", ".join(f"{s} ({words})" if words != s else s for s, words in WORDS.items())
    return f"{named}; or with a parameter: cumulative:0.9, threshold:0.2, topk:3"


def in_words(rule: Degradation) -> str:
    """What a rule says about the labels that a row was given.

    Examples
    --------
    >>> in_words(CumulativeMass(0.5)), in_words(Threshold(0.25)), in_words(TopK(1))
    ('main labels, more than half of the weight', 'whatever passes a bar of 25 % of the weight', 'the best')
    """
    if isinstance(rule, CumulativeMass):
        if rule.t == 0.5:
            return WORDS["main"]
        return f"the largest labels, until they have more than {100 * rule.t:.3g} % of the weight"
    if isinstance(rule, Threshold):
        return f"{WORDS['bar']} of {100 * rule.tau:.3g} % of the weight"
    if type(rule) is TopK:
        return "the best" if rule.k == 1 else f"the {rule.k} best"
    return WORDS["order"] if not rule.scale_matters else str(rule)


class RuleText(StrOptions):
    """The domain of a parameter that takes a rule as text."""

    def __init__(self) -> None:
        super().__init__({*WORDS, *OLDER})

    def is_satisfied_by(self, val: Any) -> bool:
        try:
            return isinstance(val, str) and parse_rule(val) is not None
        except InputError:
            return False

    def __str__(self) -> str:
        return f"a rule as text: {known_rules()}"
