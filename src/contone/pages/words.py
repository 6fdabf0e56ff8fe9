"""Numbers as people read them, one way for every page and command."""

import math
from collections.abc import Sequence


def number(value: float | None) -> str:
    """A score with four decimals; nothing where there is none.

    Examples
    --------
    >>> number(0.01236), number(math.inf), number(None)
    ('0.0124', '∞', '')
    """
    if value is None or math.isnan(value):
        return ""
    return f"{value:.4f}" if math.isfinite(value) else ("∞" if value > 0 else "−∞")


def percent(share: float | None) -> str:
    """A share in whole per cent.

    Examples
    --------
    >>> percent(-0.126), percent(-math.inf)
    ('−13 %', '−∞')
    """
    if share is None or math.isnan(share):
        return ""
    return f"{round(100 * share)} %".replace("-", "−") if math.isfinite(share) else ("∞" if share > 0 else "−∞")


def difference(relative: float | None) -> str:
    """A relative difference with its sign.

    Examples
    --------
    >>> difference(0.0213), difference(-0.3), difference(0.0)
    ('+2.1 %', '−30 %', '0 %')
    """
    if relative is None:
        return ""
    share = 100 * relative
    if abs(share) < 0.05:
        return "0 %"
    return (f"{share:+.0f} %" if abs(share) >= 10 else f"{share:+.1f} %").replace("-", "−")


def duration(seconds: float | None) -> str:
    """A length of time.

    Examples
    --------
    >>> duration(3.4), duration(75), duration(4000), duration(None)
    ('3 s', '1 min 15 s', '1 h 06 min', '')
    """
    if seconds is None:
        return ""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def count(amount: int, noun: str, plural: str = "") -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "data set"), count(3, "data set")
    ('1 data set', '3 data sets')
    """
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def clip(text: str, length: int = 28) -> str:
    """A name where room is short: its beginning and its end.

    Examples
    --------
    >>> clip("short"), clip("a name that goes on and on, to its end", 20)
    ('short', 'a name tha…o its end')
    """
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def clip_all(texts: Sequence[str], length: int = 28) -> list[str]:
    """Names clipped so that different ones stay different."""
    short = [clip(text, length) for text in texts]
    return short if len(set(short)) == len(short) else [f"{i}: {text}" for i, text in enumerate(short, 1)]
