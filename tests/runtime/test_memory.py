"""Work that would not fit into memory is refused before it starts, with an estimate and a way out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from contone import (
    FCM,
    GLLE,
    LEMLL,
    LP,
    ML2,
    Augmented,
    HSICReducer,
    LabelConfidence,
    LCdr,
    PTBayes,
    Temperature,
    enhance,
)
from contone.exceptions import ContoneError, MemoryEstimateError
from contone.runtime import machine

X = np.random.default_rng(0).normal(size=(200, 3))
L = np.eye(4)[np.arange(200) % 4]


def test_what_does_not_fit_is_refused_before_any_work(monkeypatch):
    monkeypatch.setenv(machine.LIMIT_VARIABLE, "1KB")
    monkeypatch.setattr(LabelConfidence, "_fit_enhance", lambda *_: pytest.fail("work was started"))
    with pytest.raises(MemoryEstimateError) as caught:
        LabelConfidence().fit(X, L)
    said = str(caught.value)
    assert "LabelConfidence on 200 rows with 3 features and 4 labels needs about" in said
    assert "contone enhance --stream" in said
    assert "CONTONE_MEMORY_LIMIT" in said
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, ContoneError)


@pytest.mark.parametrize("given", ["off", "1GB", "8 GiB", "1e9"])
def test_the_limit_can_be_set_by_hand(monkeypatch, given):
    monkeypatch.setenv(machine.LIMIT_VARIABLE, given)
    assert machine.available_bytes() == machine.parse_size(given)
    Temperature().fit(X, L)


@pytest.mark.parametrize("given", ["lots", "8 GBit", "-1GB", "1.2.3GB", "."])
def test_a_limit_that_is_no_size_is_an_error(monkeypatch, given):
    monkeypatch.setenv(machine.LIMIT_VARIABLE, given)
    with pytest.raises(ValueError, match="not a size: write for example 8GB, or off"):
        machine.available_bytes()


@pytest.mark.parametrize("unit", ["kB", "MB", "GB", "TB"])
def test_a_size_is_shown_in_the_unit_that_it_reaches(unit):
    """999 of one unit are shown in it, 1000 are 1 of the next; read back, a size is what it was but for rounding."""
    size = machine.UNITS[unit[0].upper()]
    for number in (1, 5, 999):
        assert machine.shown(number * size).split() == [f"{number:.{1 if unit in ('GB', 'TB') else 0}f}", unit]
        assert machine.parse_size(machine.shown(number * size)) == pytest.approx(number * size)


def test_a_sparse_table_is_refused_where_its_zeros_do_not_fit(monkeypatch):
    needed = int(machine.table_bytes(1000, 50, is_text=False))
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", str(needed))
    machine.refuse_dense("a.svm", 1000, 50)
    columns = machine.table_bytes(0, 50, is_text=False)  # these cost something without any row
    assert columns == machine.table_bytes(0, 50, is_text=True) > 0
    assert machine.table_bytes(1000, 50, is_text=True) - columns == 2 * (needed - columns)
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", str(needed - 1))
    with pytest.raises(MemoryEstimateError, match=r"a.svm is sparse: its 1,000 rows and 50 columns .* about 2 MB"):
        machine.refuse_dense("a.svm", 1000, 50)


def test_this_machine_has_some_memory(monkeypatch):
    monkeypatch.delenv(machine.LIMIT_VARIABLE, raising=False)
    assert 1e7 < machine.available_bytes() <= math.inf


def test_a_container_may_have_less_than_the_machine(monkeypatch, tmp_path):
    monkeypatch.delenv(machine.LIMIT_VARIABLE, raising=False)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:    4000000 kB\n")
    assert machine.available_bytes() == 4_000_000 * 1024
    for name, text in {"max": "1000000", "current": "600000", "stat": "active_file 7\ninactive_file 100000\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert machine.available_bytes() == 1_000_000 - 600_000 + 100_000
    (tmp_path / "memory.stat").write_text("active_file 7\n")  # nothing is cached
    assert machine.available_bytes() == 1_000_000 - 600_000
    (tmp_path / "memory.current").write_text("unknown")
    assert machine.available_bytes() == 4_000_000 * 1024
    (tmp_path / "memory.current").write_text("600000")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.available_bytes() == 4_000_000 * 1024
    (tmp_path / "meminfo").unlink()  # not Linux: all of its memory
    assert machine.available_bytes() == machine.os.sysconf("SC_PHYS_PAGES") * machine.os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", enhance.methods())
def test_every_method_has_an_estimate_that_grows_with_the_rows(name):
    method = enhance.methods()[name]()
    small, large = (method._fit_bytes(n, 24, 8) for n in (100_000, 1_000_000))
    assert 0 < small < large


def test_an_estimate_knows_what_grows_with_the_square():
    a_million = 1_000_000
    assert GLLE()._fit_bytes(a_million, 24, 8) < 8e9
    assert GLLE.preset("paper")._fit_bytes(a_million, 24, 8) > 1e13
    assert LP(graph="dense")._fit_bytes(10_000, 24, 8) - LP(graph="knn")._fit_bytes(10_000, 24, 8) == 4e8
    assert ML2()._fit_bytes(10_000, 24, 100) > 2e9 > 3 * ML2()._fit_bytes(10_000, 24, 8)


@pytest.mark.parametrize(
    "estimator",
    [LCdr(), HSICReducer(), Augmented(LP()), PTBayes(), FCM(n_clusters=10**6), LEMLL(kernel="rbf", n_components=10**6)],
    ids=lambda e: type(e).__name__,
)
def test_wide_features_and_many_clusters_count(estimator, monkeypatch):
    wide = isinstance(estimator, (LCdr, HSICReducer, Augmented, PTBayes))
    n, d = (20, 15_000) if wide else (20_000, 3)
    assert estimator._fit_bytes(n, d, 3) > 5e9
    monkeypatch.setenv(machine.LIMIT_VARIABLE, "2GB")
    X = np.zeros((n, d))
    X[:, 0] = np.arange(n)
    L = np.eye(3)[np.arange(n) % 3]
    with pytest.raises(MemoryEstimateError, match=f"{type(estimator).__name__} on {n:,} rows with"):
        estimator.fit(X, L)


def test_more_neighbours_than_rows_are_not_counted(monkeypatch):
    monkeypatch.setenv(machine.LIMIT_VARIABLE, "100MB")
    X, L = np.random.default_rng(0).normal(size=(30, 2)), np.eye(3)[np.arange(30) % 3]
    assert LabelConfidence(n_neighbors=10**6).fit_enhance(X, L).shape == (30, 3)
