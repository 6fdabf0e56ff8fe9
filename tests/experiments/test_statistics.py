"""Ranks and tests: closed forms, and the paper's own table as a check of the machinery."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from contone.exceptions import InputError
from contone.experiments.statistics import average_ranks, critical_difference, rank, wilcoxon
from contone.reproduction import paper

MEASURES = list(paper.GREATER_IS_BETTER.items())


def scores(values) -> dict[str, dict[str, float]]:
    return {f"m{i}": {f"d{j}": float(v) for j, v in enumerate(row)} for i, row in enumerate(values)}


@pytest.mark.parametrize(("measure", "greater"), MEASURES)
def test_the_papers_ranks_come_back_except_for_its_tie(measure, greater):
    computed = average_ranks(paper.recovery()[measure], greater_is_better=greater)
    for method, printed in paper.average_ranks()[measure].items():
        if measure == "cosine" and method in ("LCdr", "GLLE"):
            # spo is a tie (.9753 both): shared ranks move both by half a place over twelve sets.
            assert computed[method] == pytest.approx({"LCdr": 1.2083, "GLLE": 2.2917}[method], abs=1e-4)
        else:
            assert computed[method] == pytest.approx(printed, abs=0.0051)


@pytest.mark.parametrize(("measure", "greater"), MEASURES)
def test_the_papers_p_values_come_back_except_for_its_tie(measure, greater):
    table = paper.recovery()[measure]
    for method, printed in paper.wilcoxon()[measure].items():
        test = wilcoxon(table["LCdr"], table[method], greater_is_better=greater)
        expected = 2 / 2048 if (measure, method) == ("cosine", "GLLE") else printed
        assert test.p_value == pytest.approx(expected, rel=2e-3)
        assert test.wins > test.losses


def test_wilcoxon_closed_forms():
    sets = [f"d{i}" for i in range(12)]
    ours = {name: float(i) for i, name in enumerate(sets)}
    all_won = {name: value + 1 + i for i, (name, value) in enumerate(ours.items())}
    assert wilcoxon(ours, all_won, greater_is_better=False).p_value == pytest.approx(2 / 4096)
    assert wilcoxon(ours, all_won, greater_is_better=True).losses == 12
    one_lost = {**all_won, "d0": ours["d0"] - 0.5}
    assert wilcoxon(ours, one_lost, greater_is_better=False).p_value == pytest.approx(4 / 4096)
    one_tied = {**all_won, "d0": ours["d0"]}
    test = wilcoxon(ours, one_tied, greater_is_better=False)
    assert test.p_value == pytest.approx(2 / 2048)
    assert (test.wins, test.ties, test.losses) == (11, 1, 0)
    assert wilcoxon(ours, ours, greater_is_better=False).p_value == 1.0


def test_wilcoxon_agrees_with_scipys_exact_form_without_ties():
    rng = np.random.default_rng(0)
    for _ in range(5):
        a, b = rng.normal(size=(2, 10))
        ours, other = ({f"d{i}": v for i, v in enumerate(x)} for x in (a, b))
        expected = stats.wilcoxon(a, b, method="exact").pvalue
        assert wilcoxon(ours, other, greater_is_better=False).p_value == pytest.approx(expected)


def test_ranks_are_shared_and_sum_to_a_constant():
    rng = np.random.default_rng(1)
    table = scores(rng.integers(0, 3, size=(5, 7)))
    for name in table["m0"]:
        alone = average_ranks({m: {name: row[name]} for m, row in table.items()}, greater_is_better=False)
        assert sum(alone.values()) == pytest.approx(15)
    lower, higher = (average_ranks(table, greater_is_better=g) for g in (False, True))
    for method, value in lower.items():
        assert value + higher[method] == pytest.approx(6)


def test_friedman_and_nemenyi():
    rng = np.random.default_rng(2)
    different = rank(scores(rng.random((4, 12)) + np.arange(4)[:, None]), greater_is_better=False)
    assert different.average_ranks == {"m0": 1.0, "m1": 2.0, "m2": 3.0, "m3": 4.0} or different.friedman_p < 1e-4
    assert different.nemenyi["m0"]["m3"] < 0.01
    assert different.nemenyi["m0"]["m0"] == 1.0
    # The critical difference and the p-values are one test: they must agree at the level.
    for a, row in different.nemenyi.items():
        for b, p in row.items():
            apart = abs(different.average_ranks[a] - different.average_ranks[b])
            assert (apart > different.critical_difference) == (p < 0.05)


def test_critical_difference_as_tabulated():
    # Demsar (2006), table 5: q_0.05 for 2, 5 and 10 methods.
    for k, q in ((2, 1.960), (5, 2.728), (10, 3.164)):
        assert critical_difference(k, 20) == pytest.approx(q * np.sqrt(k * (k + 1) / 120), abs=1e-3)


def test_too_little_to_rank():
    two = rank(scores([[1, 2], [2, 1]]), greater_is_better=False)
    assert two.friedman_p is None
    assert two.average_ranks == {"m0": 1.5, "m1": 1.5}
    with pytest.raises(InputError, match="share no data set"):
        average_ranks({"a": {"x": 1.0}, "b": {"y": 1.0}}, greater_is_better=False)
    with pytest.raises(InputError, match="no method"):
        average_ranks({}, greater_is_better=False)


@pytest.mark.parametrize(("n_methods", "n_datasets"), [(2, 5), (3, 1), (3, 2), (4, 5)])
def test_all_methods_are_compared_at_once_from_three_methods_and_two_data_sets_on(n_methods, n_datasets):
    rng = np.random.default_rng(0)
    scores = {f"m{i}": {f"d{j}": float(rng.random()) for j in range(n_datasets)} for i in range(n_methods)}
    found = rank(scores, greater_is_better=False)
    compared = n_methods >= 3 and n_datasets >= 2
    assert [value is not None for value in (found.friedman_p, found.critical_difference)] == [compared] * 2
    assert len(found.average_ranks) == n_methods
    assert sum(found.average_ranks.values()) == pytest.approx(n_methods * (n_methods + 1) / 2)
