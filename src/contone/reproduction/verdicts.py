"""published | measured -> verdict: one rule for every table, as data.

Both figures are read as losses (cosine and intersection as one minus themselves), so that a relative difference means
the same for every measure. The first rule that applies gives the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

ROUNDING = 1.5e-4
"""Figures printed with four decimals may be off by this much through rounding alone."""

MATCH_RATIO, CLOSE_RATIO = 0.02, 0.06
"""Relative differences up to which a figure matches, or is close."""


@dataclass(frozen=True)
class Verdict:
    """What the comparison of a published figure with ours says.

    Attributes
    ----------
    name : str
        "matches", "close", "better", "worse" or "not comparable".
    difference : float or None
        (measured - published) / published, of the losses: negative is better than published.
    reason : str
        Why the two cannot be compared, or why they differ where that is known.
    """

    name: str
    difference: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Rule:
    """A verdict, and when it is given."""

    name: str
    text: str


RULES: tuple[Rule, ...] = (
    Rule("not comparable", "one of the two figures is missing or known to be wrong; the reason is given"),
    Rule("matches", f"within {ROUNDING:g} or {MATCH_RATIO:.0%} of the published figure"),
    Rule("close", f"within {CLOSE_RATIO:.0%} of the published figure"),
    Rule("better", f"more than {CLOSE_RATIO:.0%} below the published loss"),
    Rule("worse", f"more than {CLOSE_RATIO:.0%} above the published loss"),
)
"""The verdicts, in the order in which they are tried."""


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
    if abs(loss - theirs) <= ROUNDING or abs(difference) <= MATCH_RATIO:
        return Verdict("matches", difference)
    if abs(difference) <= CLOSE_RATIO:
        return Verdict("close", difference, reason)
    return Verdict("better" if difference < 0 else "worse", difference, reason)
