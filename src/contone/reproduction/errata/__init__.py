"""What the paper's own tables say against its text: every point recomputed, as `Evidence`.

Each check takes nothing but the tables in `contone.reproduction.paper`; those in `results` also our scores. Its words
are in errata.toml. ``holds`` says whether the computation bears the erratum out; the tests ask that it does.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

from contone.reproduction.errata import results, tables
from contone.reproduction.errata.evidence import Check, Evidence, Results

__all__ = ["CHECKS", "Evidence", "Results", "errata"]

CHECKS: dict[str, Check] = {**tables.CHECKS, **results.CHECKS}
"""By id; those that need our results last."""


def errata(ours: Results | None = None) -> tuple[Evidence, ...]:
    """Every erratum, in the order of errata.toml; those that need our results are left out where these are missing."""
    words = tomllib.loads(files("contone.reproduction.errata").joinpath("errata.toml").read_text("utf-8"))
    found = {identity: CHECKS[identity](ours or {}) for identity in words}
    return tuple(
        Evidence(identity, text["title"], text["claim"], text["finding"].format(**one.said), text["source"], *one[:2])
        for (identity, text), one in zip(words.items(), found.values(), strict=True)
        if one is not None
    )
