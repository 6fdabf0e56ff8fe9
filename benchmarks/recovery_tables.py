"""The tables of docs/recovery.md, from stores: methods as they come, rehearsed, with ten graded rows, and on people.

    contone reproduce --only recovery --store results
    contone benchmark --spec benchmarks/networks.toml --store results
    contone benchmark --spec benchmarks/graded.toml --store results
    contone benchmark --people FOLDER --answers 1,3 --store people
    python benchmarks/recovery_tables.py --store results --people people --commit NAME   # results/recovery.json
    python benchmarks/recovery_tables.py --fill                                          # docs/recovery.md from it

What the stores hold is condensed to means over seeds, marked with the commit, and added to what results/recovery.json
has. A row of the first table that is complete there takes the place of the one on the page; others stay as they are,
with the version that the page names. A set on which a row was not run says so.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results" / "recovery.json", HERE.parent / "docs" / "recovery.md"
SETS = ["artificial", "yeast-spoem", "yeast-alpha", "yeast-spo5", "yeast-cdc", "yeast-cold", "yeast-diau", "yeast-dtt",
        "yeast-elu", "yeast-heat", "yeast-spo", "sjaffe", "movie (300 rows)"]  # fmt: skip
SHORT = [name.removeprefix("yeast-") for name in SETS]
ORACLES = ("Limit", "Limit (two regressors)", "Mean of truth", "LESC (oracle grid)")
BASELINES = ("Uniform", "Logical", "Temperature")
COUNTERS = (
    "Counting",
    "Dirichlet-multinomial",
    "Dirichlet-multinomial (features)",
    "Dawid-Skene",
    "Logistic regression",
)
GRADED = " (ten graded rows)"
EXPERIMENTS = ("recovery", "networks", "graded", "people")
"""A store may hold others, with rows of the same names."""
Scores = dict[str, dict[str, Any]]
"""By row and data set: the means over seeds, how many there are, and the commit."""


# ------------------------------------------------------------------------------------------------------------- stores


def condensed(store: Path, commit: str) -> dict[str, Scores]:
    """Tables by name: "rows" and "graded", or "people 1" and so on, of all finished cells of a store."""
    records = [json.loads(path.read_text()) for path in sorted((store / "results").glob("[!.]*.json"))]
    runs = [json.loads(path.read_text()) for path in sorted((store / "runs").glob("[!.]*.json"))]
    # A cell that experiments share is stored under the name that it has in the first one.
    cells = [r["cell"] for r in records] + [cell for run in runs for cell in run["cells"]]
    scored = {r["key"]: r["scores"] for r in records}
    seeds: dict[tuple[str, str, str], dict[str, dict[str, float]]] = {}
    for cell in cells:
        if cell["experiment"] not in EXPERIMENTS or cell["key"] not in scored:
            continue
        name = f"people {cell['setting']['k']}" if cell["experiment"] == "people" else "rows"
        row = cell["row"]
        if row.endswith(GRADED):
            name, row = "graded", row.removesuffix(GRADED)
        seeds.setdefault((name, row, cell["dataset"]), {})[cell["key"]] = scored[cell["key"]]
    found: dict[str, Scores] = {}
    for (name, row, dataset), cells_of in seeds.items():
        scores = list(cells_of.values())
        kept = ("log_loss", "log_loss_tempered") if name.startswith("people") else ("kl", "total_variation")
        means = {measure: fmean(s[measure] for s in scores) for measure in kept}
        entry = {m: v if math.isfinite(v) else None for m, v in means.items()} | {"seeds": len(scores)}
        found.setdefault(name, {}).setdefault(row, {})[dataset] = entry | {"commit": commit}
    return found


# ------------------------------------------------------------------------------------------------------------- tables


def share(scores: Scores, ends: Scores, row: str, dataset: str) -> float | None:
    """The recovered share in KL; minus infinity where an answer calls impossible what happens, None where not run."""
    if dataset not in scores.get(row, {}) or dataset not in ends.get("Limit", {}):
        return None
    kl, lower, upper = scores[row][dataset]["kl"], ends["Uniform"][dataset]["kl"], ends["Limit"][dataset]["kl"]
    return -math.inf if kl is None else (lower - kl) / (lower - upper)


def percent(value: float | None) -> str:
    if value is None:
        return "not run"
    return "−∞" if math.isinf(value) else f"{round(100 * value)} %".replace("-", "−")


def three(value: float | None) -> str:
    return "not run" if value is None else f"{value:.3f}"


def mean(values: list[float | None]) -> float | None:
    return None if any(v is None for v in values) else sum(v for v in values if v is not None) / len(values)


def number(text: str) -> float | None:
    """What a cell of the page says, as a share."""
    plain = text.replace("*", "").replace("−", "-").replace(" %", "").strip()
    if plain == "not run":
        return None
    return -math.inf if plain == "-∞" else float(plain) / 100


def bold(lines: dict[str, list[str]], values: dict[str, list[float | None]], judged: list[str], best: Callable) -> None:
    """Mark the best of each column among the judged rows."""
    for k in range(len(next(iter(values.values())))):
        known = [v for row in judged if (v := values[row][k]) is not None and math.isfinite(v)]
        for row in judged:
            if known and values[row][k] == best(known):
                lines[row][k] = f"**{lines[row][k]}**"


def markdown(head: list[str], lines: Iterator[list[str]]) -> str:
    rule = "|:--|" + "--:|" * (len(head) - 1)
    return "\n".join(["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(line) + " |" for line in lines)])


def title(row: str) -> str:
    """A row's name on the page: what has seen the truth and what uses no features in italics."""
    if row in ORACLES:
        return f"*{row}* (oracle)"
    return f"*{row}* (baseline)" if row in BASELINES else row.replace("_", "\\_")


def share_table(found: Scores, ends: Scores, page: str, called: Callable[[str], str], more: tuple[str, ...]) -> str:
    """Rows with their shares: from the results where they are complete, else as the page has them.

    `called` is a row's name on the page, `more` what stands in the last columns, such as "version".
    """
    values: dict[str, list[float | None]] = {}
    means: dict[str, float | None] = {}
    last: dict[str, list[str]] = {}
    for line in page.strip().splitlines()[2:]:
        name, shown, *cells = [part.strip() for part in line.strip("|").split("|")]
        means[name] = number(shown) if shown else None
        values[name], last[name] = [number(text) for text in cells[: len(SETS)]], cells[len(SETS) :]
    for row, entries in found.items():
        new, name = [share(found, ends, row, dataset) for dataset in SETS], called(row)
        is_whole = None not in values.get(name, [None])  # as the page has it
        if None not in new or (not is_whole and any(v is not None for v in new)):
            values[name], means[name] = new, mean(new)
            about = {"version": lambda e: e["commit"], "draws": lambda e: str(e["seeds"])}
            seen = {what: sorted({about[what](e) for e in entries.values()}) for what in more}
            last[name] = [" to ".join(dict.fromkeys((v[0], v[-1]))) for v in seen.values()]
    lines = {row: [percent(v) for v in shares] for row, shares in values.items()}
    # Compared as printed: the page has no more digits of older rows.
    printed = {row: [number(text) for text in texts] for row, texts in lines.items()}
    bold(lines, printed, [row for row in values if "(oracle)" not in row], max)
    order = sorted(values, key=lambda r: (means[r] is None, -(means[r] or 0.0)))
    shown = ([r, percent(means[r]) if means[r] is not None else "", *lines[r], *last[r]] for r in order)
    return markdown(["Method", "mean", *SHORT, *more], shown)


def graded_title(row: str) -> str:
    return f"*{row}* (no features)" if row == "Temperature" else row


def zeros_table(stored: dict[str, Scores], names: list[str]) -> str:
    """Total variation of the rows with degrees of zero, and of what they are compared with."""
    rows = stored["rows"]
    found = {r: [rows[r].get(d, {}).get("total_variation") for d in SETS] for r in names if r in rows}
    order = sorted(found, key=lambda r: (mean(found[r]) is None, mean(found[r]) or 0.0))
    lines = ([title(r), *(three(v).replace("0.", ".", 1) for v in [mean(found[r]), *found[r]])] for r in order)
    return markdown(["Total variation", "mean", *SHORT], lines)


def people_table(scores: Scores, k: int) -> str:
    sets = sorted({dataset for found in scores.values() for dataset in found})
    values = {row: [scores[row].get(s, {}).get("log_loss") for s in sets] for row in scores}
    lines = {row: [three(v) for v in found] for row, found in values.items()}
    bold(lines, {r: list(v) for r, v in values.items()}, list(values), min)
    order = sorted(values, key=lambda r: (mean(values[r]) is None, mean(values[r]) or 0.0))
    shown = (
        [f"*{r}*" if r in COUNTERS else r, three(m) if (m := mean(values[r])) is not None else "", *lines[r]]
        for r in order
    )
    return markdown([f"Method, k = {k}", "mean", *(s.replace("_", "\\_") for s in sets)], shown)


def verdict(scores: Scores, measure: str = "log_loss") -> dict[str, list[str]]:
    """Sets on which a row that does not read counts is ahead of the better row of counting without features."""
    sets = sorted({dataset for found in scores.values() for dataset in found})
    ahead: dict[str, list[str]] = {}
    for row in scores:
        if row in COUNTERS:
            continue
        for s in sets:
            best = min(scores[name][s][measure] for name in COUNTERS[:2])
            value = scores[row].get(s, {}).get(measure)
            if value is not None and value < best:
                ahead.setdefault(row, []).append(s)
    return ahead


# ---------------------------------------------------------------------------------------------------------------- page


def fill(text: str, name: str, make: Callable[[str], str]) -> str:
    """The page with what stands between the marks of that name made anew from it."""
    before, rest = text.split(f"<!-- {name} -->\n", 1)
    old, after = rest.split("<!-- end -->", 1)
    return f"{before}<!-- {name} -->\n{make(old)}\n<!-- end -->{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, help="cells of recovery.toml, networks.toml and graded.toml")
    parser.add_argument("--people", type=Path, help="cells of contone benchmark --people")
    parser.add_argument("--commit", default="", help="of the code that computed them")
    parser.add_argument("--fill", action="store_true")
    arguments = parser.parse_args()
    stored: dict[str, Scores] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for folder in filter(None, (arguments.store, arguments.people)):
        for name, scores in condensed(folder, arguments.commit).items():
            for row, found in scores.items():
                stored.setdefault(name, {}).setdefault(row, {}).update(found)
    RESULTS.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    if arguments.fill:
        rows, graded = stored.get("rows", {}), stored.get("graded", {})
        text = fill(PAGE.read_text(), "rows", lambda old: share_table(rows, rows, old, title, ("version",)))
        zeros = [
            "Inversion",
            "Temperature",
            "Uniform",
            "Logical",
            "DLDL (paper)",
            "ML2 (paper)",
            "DLDL",
            "DLDL (rehearsed)",
        ]
        if all(len(stored.get("rows", {}).get(row, {})) == len(SETS) for row in zeros):
            text = fill(text, "zeros", lambda old: zeros_table(stored, zeros))
        text = fill(text, "graded", lambda old: share_table(graded, rows, old, graded_title, ("draws", "version")))
        for k in (1, 3):
            text = fill(text, f"people {k}", lambda old, k=k: people_table(stored[f"people {k}"], k))
        PAGE.write_text(text)
    for k in (1, 3):
        if f"people {k}" in stored:
            print(k, "ahead of counting:", verdict(stored[f"people {k}"]))
            tempered = verdict(stored[f"people {k}"], "log_loss_tempered")
            print(k, "at the best temperature:", {row: len(sets) for row, sets in tempered.items()})


if __name__ == "__main__":
    main()
