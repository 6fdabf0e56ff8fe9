"""What the paper's own tables say against its text: every point recomputed, as `Evidence`.

Each check takes nothing but the tables in `contone.reproduction.paper`; those in `results` also our scores. ``holds``
says whether the computation bears the erratum out; the tests ask that it does.
"""

from __future__ import annotations

from contone.reproduction.errata.evidence import Evidence
from contone.reproduction.errata.results import RESULT_CHECKS, Results
from contone.reproduction.errata.tables import CHECKS

__all__ = ["CHECKS", "RESULT_CHECKS", "Evidence", "Results", "errata"]


def errata(results: Results | None = None) -> tuple[Evidence, ...]:
    """Every erratum, those that need our results last (left out where the results are missing)."""
    found = [check() for check in CHECKS]
    found += [evidence for check in RESULT_CHECKS if (evidence := check(results or {})) is not None]
    return tuple(found)
