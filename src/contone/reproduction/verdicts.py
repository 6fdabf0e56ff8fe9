"""published | measured -> verdict: one rule for every table, as data.

Both figures are read as losses (cosine and intersection as one minus themselves), so that a relative difference means
the same for every measure. The first rule that applies gives the verdict.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

PRINTED = 1.5e-4
"""Figures printed with four decimals may be off by this much through rounding alone."""

MATCH, CLOSE = 0.02, 0.06
"""Relative differences up to which a figure matches, or is close."""

RULES: tuple[dict[str, str], ...] = (
    {"name": "not comparable", "text": "one of the two figures is missing or known to be wrong; the reason is given"},
    {"name": "matches", "text": f"within {PRINTED:g} or {MATCH:.0%} of the published figure"},
    {"name": "close", "text": f"within {CLOSE:.0%} of the published figure"},
    {"name": "better", "text": f"more than {CLOSE:.0%} below the published loss"},
    {"name": "worse", "text": f"more than {CLOSE:.0%} above the published loss"},
)
"""The verdicts, in the order in which they are tried."""


@dataclass(frozen=True)
class Verdict:
    """What the comparison of two figures says.

    Attributes
    ----------
    name : str
        One of the names in `RULES`.
    difference : float or None
        (measured - published) / published, of the losses: negative is better than published.
    reason : str
        Why the two cannot be compared, or why they differ where that is known.
    """

    name: str
    difference: float | None = None
    reason: str = ""

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def verdict(
    published: float | None, measured: float | None, *, greater_is_better: bool = False, reason: str = ""
) -> Verdict:
    """The verdict on a measured figure beside a published one.

    Examples
    --------
    >>> verdict(0.0859, 0.0861).name
    'matches'
    >>> verdict(0.9, 0.95, greater_is_better=True).name
    'better'
    """
    if published is None or measured is None:
        return Verdict("not comparable", reason=reason)
    loss, theirs = (1.0 - measured, 1.0 - published) if greater_is_better else (measured, published)
    difference = (loss - theirs) / theirs if theirs > 0 else float("inf")
    if abs(loss - theirs) <= PRINTED or abs(difference) <= MATCH:
        return Verdict("matches", difference)
    if abs(difference) <= CLOSE:
        return Verdict("close", difference, reason)
    return Verdict("better" if difference < 0 else "worse", difference, reason)
