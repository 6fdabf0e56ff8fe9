"""A spec: what an experiment is, as its TOML file says it.

A spec names its data sets and its rows; a row names methods, and expands over `contone.enhance.methods()`, their
presets and, where a method is random, seeds. So a new method appears in the tables by itself.

`question` and `note` stand above its tables. `seeds` is the number of seeds of a random method, `seeds_of` that of
single rows that are slow. `max_rows` names large data sets, and how many of their rows, drawn at random, stand for
them. `learner` makes the experiment a predictive one:
a learner is trained on what was recovered. A row has one of these forms:

    methods = "all" | ["GLLE", ...]     every such method with its defaults and with each of its presets, as rows
        presets = "all" | ["paper"]     "GLLE", "GLLE (paper)"; leave out the defaults with `defaults = false`; a method
                                        without any of the presets asked for stands with its defaults
        except = ["GLLE (paper)"]       rows to leave out
        name = "LCdr-{method}"          how the rows are called
        wrap = "Augmented"              put each method inside this one, as its `enhancer`
        rehearse = {n_iter = 8, n_replicates = 2, max_rows = 500}
                                        each with parameters and a temperature that are chosen on rehearsed data
        grade = {rows = 10}             each given the truth of this many rows, another draw per seed; scored on the
                                        others (inside Calibrated, where the method takes no degrees itself)
    class = "LCdr", preset = "paper"    one estimator: parameters from `params`, and None for the names in `without`
        sweep = {alpha = [...], ...}    one cell per value, all else unchanged: one sensitivity curve per parameter
        grid = {...}, measure = "clark" the best point of the grid against the truth: always marked oracle
    task = "limit" | "mean_of_truth"    a reference
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from contone.exceptions import InputError
from contone.typing import Record

DEGRADATION: Record = {"class": "CumulativeMass", "params": {"t": 0.5}}
"""The rule that makes L from D where a spec names none."""


@dataclass(frozen=True)
class Spec:
    """One experiment."""

    name: str
    title: str
    question: str = ""
    note: str = ""
    datasets: tuple[str, ...] = ()
    degradation: Record = field(default_factory=lambda: dict(DEGRADATION))
    seeds: int = 5
    seeds_of: dict[str, int] = field(default_factory=dict)
    max_rows: dict[str, int] = field(default_factory=dict)
    rows: tuple[Record, ...] = ()
    learner: Record | None = None
    derived_from: str | None = None

    def n_seeds(self, row: str, asked: int | None = None) -> int:
        """Seeds of a random row: as asked for, or as the spec says."""
        return asked or self.seeds_of.get(row, self.seeds)


def read_spec(text: str, source: str = "the spec") -> Spec:
    """A spec from its TOML text; InputError, naming `source` and the key, where it is not one."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source} is not valid TOML: {error}.") from error
    known = {f.name for f in fields(Spec)}
    unknown = sorted(set(content) - known)
    if unknown:
        raise InputError(f"{source} has the unknown key {unknown[0]!r}; a spec can have: {', '.join(sorted(known))}.")
    missing = [key for key in ("name", "title") if not isinstance(content.get(key), str)]
    if missing:
        raise InputError(f"{source} needs {' and '.join(map(repr, missing))}, as text.")
    rows = content.get("rows", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{source}: 'rows' must be a list of tables: write [[rows]].")
    seeds = content.get("seeds", Spec.seeds)
    if not isinstance(seeds, int) or seeds < 1:
        raise InputError(f"{source}: 'seeds' must be a whole number above 0, not {seeds!r}.")
    for key in ("seeds_of", "max_rows"):
        numbers = content.get(key, {})
        if not isinstance(numbers, dict) or not all(type(v) is int and v > 0 for v in numbers.values()):
            raise InputError(f"{source}: {key!r} must be a table of names and whole numbers above 0.")
    degradation = content.get("degradation", DEGRADATION)
    if not isinstance(degradation, Mapping) or "class" not in degradation:
        raise InputError(f"{source}: 'degradation' must name its 'class', e.g. CumulativeMass.")
    return Spec(
        **{
            **content,
            "datasets": tuple(content.get("datasets", ())),
            "degradation": {"class": degradation["class"], "params": dict(degradation.get("params", {}))},
            "rows": tuple(rows),
        }
    )
