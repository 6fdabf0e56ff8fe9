"""A `Check`, or what is known of the `People` who answered, as a page of its own: one file, everything inside it.

What a page says is in the templates check.html.j2 and people.html.j2; here is what has to be worked out for them.
"""

import datetime
import math
import platform

from contone.pages import svg, words
from contone.pages.blocks import Page, Section
from contone.pages.svg import Chart
from contone.trust.check_result import MODEL, Check, Finding
from contone.trust.people import People


def document(check: Check, source: str = "The data", *, commands: bool = False) -> Page:
    """The page about a check; for `commands`, what to do is said in options of the command line."""
    sized = f"{words.count(check.n_rows, 'row')}, {words.count(len(check.labels), 'label')}"
    titles = {
        "labels": "Degrees by label",
        "ambiguous": "The most ambiguous rows",
        "doubtful": "Labels that look wrong",
    }
    advice = check.decision.commands if commands else check.decision.actions
    return Page(
        f"Can these degrees be believed? {words.clip(source, 60)}",
        f"{source}: {sized}, enhanced by {check.method}{_sampled(check)}.",
        _sections(summary="In short", checks="Checks", **titles),
        f"{_made_by()} Expected error: KL(D || D^) over models that the labels allow; no truth was used.",
        "check",
        {"check": check, "is_model": check.method == MODEL, "advice": advice, "charts": _charts},
    )


def people_document(people: People, source: str = "The answers") -> Page:
    """The page about people."""
    by = f" by {len(people.persons):,} people" if people.persons else ""
    return Page(
        f"Who, what: {words.clip(source, 60)}",
        f"{source}: {words.count(people.n_answers, 'answer')} about {words.count(people.n_items, 'item')}{by}.",
        _sections(summary="In short", who="Who", what="What", labels="Degrees by label"),
        f"{_made_by()} Intervals hold 90 % of what is possible given the answers; no truth was used.",
        "people",
        {"people": people, "headline": headline(people), "charts": _charts},
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


def _sampled(check: Check) -> str:
    """Which rows the page is about, where it is not all of them."""
    looked = f"{check.n_checked:,} rows drawn at random"
    if check.n_fitted is not None:
        among = f"; this page looks at {looked} among these" if check.n_checked < check.n_fitted else ""
        return f"; the method was fitted to a sample of {check.n_fitted:,} rows{among or ', which this page is about'}"
    return f"; this page looks at {looked}" if check.n_checked < check.n_rows else ""


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
    bands = zip(finding.lower, finding.upper, strict=True) if finding.lower else [None] * len(finding.shown)
    return [
        f"{name}: {value:.3g}" + (f" (expected {band[0]:.3g} to {band[1]:.3g})" if band else "")
        for (name, value), band in zip(finding.shown.items(), bands, strict=True)
    ]
