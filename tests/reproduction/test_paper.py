"""The paper's tables as data, and each erratum recomputed from them."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache

import pytest

from contone import LP, CumulativeMass, Uniform, datasets
from contone.experiments.compute import score
from contone.experiments.store import Result, Results
from contone.reproduction import paper
from contone.reproduction.errata import CHECKS, Evidence, errata


def test_tables_are_complete():
    for table, measures, methods in (
        (paper.recovery(), 5, 6),
        (paper.prediction(), 4, 6),
        (paper.augmentation(), 2, 10),
        (paper.ablation(), 1, 4),
    ):
        assert len(table) == measures
        for rows in table.values():
            assert len(rows) == methods
            assert all(set(row) == set(paper.DATASETS) for row in rows.values())
    assert sum(len(row) for row in paper.average_ranks().values()) == 30
    assert sum(len(row) for row in paper.wilcoxon().values()) == 25


def test_names_are_those_of_the_registry():
    assert set(paper.DATASETS.values()) <= set(datasets.names())
    assert sorted(paper.PRINTED_ROWS) == sorted(paper.PRINTED_ROWS.values()) == sorted(paper.DATASETS)


def test_printed_and_corrected_differ_by_the_mapping_only():
    printed, corrected = paper.augmentation(as_printed=True), paper.augmentation()
    assert corrected["clark"]["GLLE"]["flickr"] == printed["chebyshev"]["GLLE"]["cdc"]
    assert corrected["kl"]["LP"]["alpha"] == printed["kl"]["LP"]["alpha"]
    assert set(paper.ablation()["chebyshev"]) == {"LF+LC", "X+LC", "LF+L", "X+L"}  # "X+LF" in print


@cache
def shown() -> tuple[Evidence, ...]:
    """The errata that need no results of ours."""
    return errata(Results([]))


SAID = {
    "augmentation-measure": "The columns without augmentation equal the main table's Clark in 55 of 60 cells, its "
    "Chebyshev in 0.",
    "augmentation-rows": "9 of 12 rows hold another set's figures, in both halves: of their ten cells without "
    "augmentation, at least 10 equal the main table's row of that set, and at most 0 equal the row of the printed "
    "name.",
    "augmentation-base": "9 of 120 cells differ from the main table even after the rows are put right, on spo5, spoem.",
    "not-the-best": "LCdr-LP is ahead of LCdr in Clark on 11 of 12 sets; on spoem LCdr-LP has 0.0828, LCdr 0.1276.",
    "glle-share": "It improves 22 of 24 cells (91.67 %); ties: 1 (0.1380 in the row printed as heat), worse: 1.",
    "ablation": "cdc: full model differs from the main table (0.0163 against 0.0166); cold: LF+L is better than the "
    "full model (0.0517 against 0.0535); flickr: X+L is far from all others (0.3270 against 0.0691). "
    'The row "X+LF" must be X+LC, as the text calls it.',
    "not-all-wins": "3 of 300 comparisons are not wins: cosine on spo5, LP 0.974 against 0.9738; cosine on spo, GLLE "
    "0.9753 against 0.9753; cosine on twitter, LEMLL 0.9723 against 0.9711. LCdr stands in bold in all of them.",
    "tie": "All other ranks and p-values come out as printed. With the tie on spo (0.9753 both) shared, rank of LCdr "
    "is 1.21, printed 1.17; rank of GLLE is 2.29, printed 2.33; p of GLLE is 0.000977, printed 0.000488.",
    "prediction-shares": "First in 35 of 48 cells (72.92 %); 96.18 % is no multiple of 1/48. better than LP: 79.17 %, "
    "printed 85.42 %; better than GLLE: 91.67 %, printed 93.75 %; better than ML2: 95.83 %, printed 97.92 %.",
    "copied-cells": "ML2 on alpha: 1.0412 in both; ML2 on cdc: 0.8009 in both. The two measures are equal only when "
    "at most one label differs in every row, which no distribution that sums to one allows.",
    "labels-of-heat": "Canberra is at most sqrt(q) times Clark on every row, so also on average: LP on heat has the "
    "ratio 2.285 > sqrt 5, so q is at least 6.",
}


def test_each_erratum_that_the_tables_show_is_borne_out_and_said_to_the_letter():
    """As the pages repeat it."""
    found = shown()
    assert [evidence.id for evidence in found] == list(CHECKS)[:11]
    assert {evidence.id: evidence.finding for evidence in found} == SAID
    for evidence in found:
        assert evidence.holds, evidence.finding
        assert evidence.numbers
        json.dumps(asdict(evidence), allow_nan=False)


def numbers(identity: str) -> list[dict]:
    return next(e for e in shown() if e.id == identity).numbers


def test_the_figures_behind_the_errata():
    moved = {r["printed"]: r["really"] for r in numbers("augmentation-rows")}
    assert moved == paper.PRINTED_ROWS
    assert {(r["dataset"], r["method"]) for r in numbers("augmentation-base")} == {
        ("spoem", "GLLE"), ("spoem", "LESC"), ("spoem", "LEMLL"), ("spo5", "GLLE"), ("spo5", "LP"),
    }  # fmt: skip
    # Printed with four decimals: the figures are whole numbers of ten-thousandths, compared as such.
    units = {c[:3]: round(1e4 * c.value) for c in paper.cells(paper.augmentation())}
    own = {c[:3]: round(1e4 * c.value) for c in paper.cells(paper.recovery())}
    for r in numbers("not-the-best"):
        for q, named in (("clark", "Clark"), ("kl", "KL")):
            ahead = sum(units[q, r["method"], d] < own[q, "LCdr", d] for d in paper.DATASETS)
            assert r[f"sets ahead in {named}"] == ahead
    least = {r["dataset"]: (r["q at least"], r["printed q"]) for r in numbers("labels-of-heat")}
    assert {name for name, (q, printed) in least.items() if q > printed} == {"heat"}
    assert least["spoem"] == (2, 2)


@pytest.mark.parametrize(("n_equal", "holds"), [(48, False), (49, True)])
def test_a_half_holds_clark_where_more_than_four_fifths_of_its_cells_do(monkeypatch, n_equal, holds):
    main = paper.recovery()
    cells = [(m, d) for m in paper.COMPARED for d in paper.DATASETS]
    half = {m: {d: main["clark"][m][d] + (cells.index((m, d)) >= n_equal) for d in paper.DATASETS} for m in main["kl"]
            if m in paper.COMPARED}  # fmt: skip
    augmented = {
        q: {f"LCdr-{m}": paper.augmentation()[q][f"LCdr-{m}"] for m in paper.COMPARED} for q in ("clark", "kl")
    }
    table = {"clark": {**half, **augmented["clark"]}, "kl": {**paper.augmentation()["kl"], **augmented["kl"]}}
    monkeypatch.setattr(paper, "augmentation", lambda: table)
    assert CHECKS["augmentation-measure"](Results([])).holds == holds


@pytest.mark.parametrize(("off", "holds"), [(0.0, True), (0.009, True), (0.02, False), (-0.5, False)])
def test_a_tie_is_counted_where_that_gives_the_printed_share(monkeypatch, off, holds):
    monkeypatch.setitem(paper.CLAIMS, "augmentation_glle", paper.CLAIMS["augmentation_glle"] + off)
    assert CHECKS["glle-share"](Results([])).holds == holds


def test_tables_without_a_fault_have_no_errata(monkeypatch):
    """Where LCdr was the best everywhere and no cell repeated another, the points about them would not be made."""
    main, ablated, predicted = paper.recovery(), paper.ablation(), paper.prediction()
    for measure, greater in paper.GREATER_IS_BETTER.items():
        for d in paper.DATASETS:
            main_row = [main[measure][m][d] for m in paper.COMPARED]
            main[measure]["LCdr"][d] = max(main_row) + 0.01 if greater else min(main_row) - 0.01
    ablated["chebyshev"]["LF+LC"] = dict(main["chebyshev"]["LCdr"])
    for variant in ("X+LC", "LF+L", "X+L"):
        ablated["chebyshev"][variant] = {d: v + 0.1 for d, v in main["chebyshev"]["LCdr"].items()}
    for d in ("alpha", "cdc"):
        predicted["canberra"]["ML2"][d] += 1
    for name, table in (("recovery", main), ("ablation", ablated), ("prediction", predicted)):
        monkeypatch.setattr(paper, name, lambda table=table, **_: table)
    for identity in ("not-all-wins", "ablation", "copied-cells"):
        found = CHECKS[identity](Results([]))
        assert not found.holds, identity
    assert CHECKS["not-all-wins"](Results([])).numbers == []
    assert len(CHECKS["ablation"](Results([])).numbers) == 1  # the largest of a column is always named


def beside(method: str, row: str, scores: dict[str, float]) -> list[Result]:
    """Results on three sets whose scores are the printed ones of a method times a factor by measure."""
    table = paper.recovery()
    readings = {"kl_reversed_drop": "kl", "kl_reversed_clip": "kl", "kl_forward": "kl"}
    return [
        Result(
            *("recovery", paper.DATASETS[d], row, row, "method"),
            status="done",
            scores={q: factor * table[readings.get(q, q)][method][d] for q, factor in scores.items()},
        )
        for d in paper.YEAST[:3]
    ]


OFF = {"chebyshev": 1.01, "clark": 1.02, "canberra": 1.03, "cosine": 1.5, "kl_reversed_drop": 1.5}


@pytest.mark.parametrize(("worst", "holds"), [(1.03, True), (1.05, False)])
def test_the_uniform_distribution_is_found_behind_a_printed_row(worst, holds):
    """Ours is the printed figure times f: the difference is |1 / f - 1|, and only three measures count."""
    found = CHECKS["uniform"](Results(beside("LCdr", "Uniform", {**OFF, "canberra": worst})))
    assert found.holds == holds
    assert found.said["sets"] == 3
    assert found.said["worst"] == pytest.approx(100 * (1 - 1 / worst))
    assert found.said["median"] == pytest.approx(100 * (1 - 1 / 1.02))
    assert {r["measure"] for r in found.numbers} == {*paper.GREATER_IS_BETTER}


@pytest.mark.parametrize(("ours", "stated", "holds"), [(14, 2, True), (13, 2, False), (14, 3, False)])
def test_the_alpha_of_lp_is_found_by_the_cells_that_come_out(ours, stated, holds):
    """More than nine tenths to the last digit with one alpha, less than a fifth with the other: of 15 cells."""
    measures = ("chebyshev", "clark", "canberra", "cosine", "kl_reversed_clip")

    def results(row: str, equal: int) -> list[Result]:
        found = beside("LP", row, dict.fromkeys(measures, 1.0))
        for i, (result, q) in enumerate((r, q) for q in measures for r in found):
            result.scores[q] += 1e-4 if i < equal else -0.01 - 0.001 * i
        return found

    found = CHECKS["lp-alpha"](Results([*results("LP (paper)", ours), *results("LP (alpha as printed)", stated)]))
    assert found.holds == holds
    assert (found.said["equal"], found.said["of"], found.said["stated"]) == (ours, 15, stated)
    assert found.numbers[0]["largest difference"] == pytest.approx(0.01 + 0.001 * 14)
    assert CHECKS["lp-alpha"](Results(results("LP (paper)", ours))) is None


def test_the_reading_of_kl_that_fits_a_row_is_the_one_with_the_least_median_error():
    readings = {"kl_forward": 1.25, "kl_reversed_drop": 1.0, "kl_reversed_clip": 2.0}
    uniform = beside("LCdr", "Uniform", readings)
    found = CHECKS["mixed-kl"](
        Results([*uniform, *beside("LP", "LP (paper)", {**readings, "kl_reversed_clip": 0.999})])
    )
    assert not found.holds
    assert found.numbers[0]["kl_forward off by %"] == pytest.approx(20)
    assert found.numbers[0]["kl_reversed_clip off by %"] == pytest.approx(50)
    others = {"kl_forward": 0.8, "kl_reversed_drop": 0.5, "kl_reversed_clip": 1.0}
    found = CHECKS["mixed-kl"](Results([*uniform, *beside("LP", "LP (paper)", others)]))
    assert found.holds
    assert found.said["listed"] == "LCdr's figures fit kl_reversed_drop; LP's figures fit kl_reversed_clip"
    assert CHECKS["mixed-kl"](Results(uniform)) is None


def floor(**errors: float) -> Result:
    record = {"extra": {"standard_error": errors}}
    scores = {"chebyshev": 0.0869, "kl_reversed_drop": 0.026}
    return Result(
        *("prediction", "yeast-spoem", "Floor", "floor", "oracle"), status="done", scores=scores, records=(record,)
    )


def test_predictions_below_the_floor_are_named_and_the_furthest_is_said():
    table = paper.prediction()
    found = CHECKS["below-the-floor"](Results([floor(chebyshev=0.002, kl_reversed_drop=0.001)]))
    bounds = {"chebyshev": 0.0869 - 0.006, "kl": 0.026 - 0.003}
    expected = {(q, m) for q, least in bounds.items() for m, row in table[q].items() if row["spoem"] < least}
    assert {(r["measure"], r["method"]) for r in found.numbers} == expected
    assert found.said["n"] == len(expected) > 2
    furthest = min(expected, key=lambda place: table[place[0]][place[1]]["spoem"] / bounds[place[0]])
    assert (found.said["measure"], found.said["method"]) == furthest
    assert CHECKS["below-the-floor"](Results([floor(chebyshev=0.1, kl_reversed_drop=0.1)])) is None


def test_errata_that_need_results_appear_with_them(real):
    assert {"uniform", "lp-alpha", "mixed-kl", "below-the-floor"}.isdisjoint(e.id for e in shown())
    rows = {
        "Uniform": Uniform(),
        "LP (paper)": LP.preset("paper"),
        "LP (alpha as printed)": LP.preset("paper", alpha=0.01),
    }
    ours = []
    for name in paper.YEAST[:3]:
        X, D = real(f"Yeast_{name}")
        L = CumulativeMass().apply(D)
        ours += [
            Result("recovery", paper.DATASETS[name], *(row,) * 2, "method", status="done", scores=score(D, R))
            for row, R in ((row, method.fit_enhance(X, L)) for row, method in rows.items())
        ]
    # Learners trained on the truth reach .0869 in Chebyshev on spoem; LCdr's printed .0188 is far below.
    record = {"extra": {"standard_error": {"chebyshev": 0.002}}}
    ours.append(
        Result(
            *("prediction", "yeast-spoem", "Floor", "floor", "oracle"),
            status="done",
            scores={"chebyshev": 0.0869},
            records=(record,),
        )
    )
    found = {e.id: e for e in errata(Results(ours))}
    assert found["below-the-floor"].numbers[0]["floor"] == pytest.approx(0.0869 - 3 * 0.002)
    for identity in ("uniform", "lp-alpha", "mixed-kl", "below-the-floor"):
        assert found[identity].holds, found[identity].finding
        json.dumps(asdict(found[identity]), allow_nan=False)
