"""Tables of scores: means, the best of each column, and their order."""

from __future__ import annotations

import math

import pytest

from contone.experiments.report.scores import as_grid, best_first
from contone.pages import words
from contone.pages.blocks import Cell

SCORES = {
    "a": {"x": 0.3, "y": 0.1},
    "b": {"x": 0.1, "y": 0.4},
    "limit": {"x": 0.0, "y": 9.0},
    "gone": {},
    "wild": {"x": math.inf, "y": 0.1},
}
KINDS = {"a": "method", "b": "baseline", "limit": "oracle", "gone": "method", "wild": "method"}


def grid(greater_is_better, shares=None):
    def cell(row, dataset):
        value = SCORES[row].get(dataset)
        return Cell(words.number(value), value)

    return as_grid("t", ["x", "y"], KINDS, cell, words.number, greater_is_better, shares)


@pytest.mark.parametrize(
    ("greater", "best"), [(False, {("b", 0), ("a", 1), ("wild", 1)}), (True, {("a", 0), ("b", 1)})]
)
def test_the_best_of_a_column_is_finite_and_has_not_seen_the_truth(greater, best):
    found = grid(greater)
    assert [row.name for row in found.rows] == ["a", "b", "limit", "wild"]  # who has no score has no row
    assert {(row.name, k) for row in found.rows for k, cell in enumerate(row.cells[1:]) if cell.best} == best
    assert [column.first for column in found.columns] == ["descending" if greater else "ascending"] * 3
    assert [row.cells[0].value for row in found.rows][:3] == pytest.approx([0.2, 0.25, 4.5])


def test_rows_are_sorted_by_their_means():
    assert [row.name for row in best_first(grid(False)).rows] == ["a", "b", "limit", "wild"]
    assert [row.name for row in best_first(grid(True)).rows][-3:] == ["limit", "b", "a"]


def test_shares_stand_before_the_means():
    found = grid(False, dict.fromkeys(KINDS, 0.5))
    assert [column.title for column in found.columns][:2] == ["Recovered", "Mean"]
    assert found.columns[0].first == "descending"
    assert [cell.text for cell in found.rows[0].cells] == ["50 %", "0.2000", "0.3000", "0.1000"]
