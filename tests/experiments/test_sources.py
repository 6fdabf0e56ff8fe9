"""Data of an experiment: names, files with arrays, tables with degree columns, and data in memory."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from contone import datasets
from contone.datasets import Dataset
from contone.exceptions import ContoneError, DataError, InputError
from contone.experiments.sources import Source, as_source, content_hash, load, read, read_table


@pytest.fixture
def frame():
    """A table as `contone enhance` writes it: an id, text, features, labels, degrees."""
    rng = np.random.default_rng(0)
    D = rng.dirichlet([2.0, 1.0, 1.0], size=12)
    L = (D > 0.3).astype(int)
    return pl.DataFrame(
        {
            "id": range(12),
            "note": ["text"] * 12,
            "x": rng.normal(size=12),
            "y": rng.normal(size=12),
            **{name: L[:, j] for j, name in enumerate("abc")},
            **{f"{name}_degree": D[:, j] for j, name in enumerate("abc")},
        }
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_is_features_and_degrees_and_labels_do_not_leak(frame, tmp_path, suffix):
    path = tmp_path / f"mine.{suffix}"
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    data = read_table(path)
    assert data.feature_names == ("x", "y")
    assert data.label_names == ("a", "b", "c")
    np.testing.assert_allclose(data.D, frame.select("a_degree", "b_degree", "c_degree").to_numpy())
    np.testing.assert_allclose(data.X, frame.select("x", "y").to_numpy())


def test_columns_can_be_named(frame, tmp_path):
    path = tmp_path / "mine.csv"
    frame.rename({f"{name}_degree": f"d{name}" for name in "abc"}).write_csv(path)
    with pytest.raises(DataError, match="--degrees"):
        read_table(path)
    data = read_table(path, ["d?"], ["x"])
    assert (data.feature_names, data.label_names) == (("x",), ("da", "db", "dc"))


def test_what_is_not_a_distribution_is_refused(frame, tmp_path):
    path = tmp_path / "mine.csv"
    frame.with_columns(pl.col("a_degree") * 2).write_csv(path)
    with pytest.raises(DataError, match="must sum to 1"):
        read_table(path)
    frame.with_columns(pl.lit("much").alias("a_degree")).write_csv(path)
    with pytest.raises(ContoneError, match="a_degree"):
        read_table(path)


def test_one_content_is_one_data_set_however_it_is_stored(frame, tmp_path):
    frame.write_parquet(tmp_path / "mine.parquet")
    data = read_table(tmp_path / "mine.parquet")
    np.savez(tmp_path / "mine.npz", X=data.X, D=data.D)
    sources = [as_source(tmp_path / name) for name in ("mine.parquet", "mine.npz")]
    sources.append(as_source(data, folder=tmp_path / "kept"))
    hashes = {load(source.name, source.plain())[3] for source in sources}
    assert hashes == {content_hash(data.X, data.D)}


def test_sources_survive_as_plain_values(frame, tmp_path):
    frame.write_csv(tmp_path / "mine.csv")
    source = Source("mine", str(tmp_path / "mine.csv"), ("?_degree",), ("x", "y"), max_rows=5)
    found, expected = load(source.name, json.loads(json.dumps(source.plain()))), read(source)
    np.testing.assert_array_equal(found.X, expected.X)
    assert found.title == expected.name == "mine (5 rows)"
    assert as_source("Yeast_Alpha") == Source("yeast-alpha")
    assert read(Source("artificial")).X.shape == datasets.artificial().X.shape


def test_wrong_names_are_errors_with_a_sentence(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        as_source(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="in memory only"):
        as_source(Dataset(np.ones((2, 1)), np.full((2, 2), 0.5), ("x",), ("a", "b"), name="mine"))


def test_a_file_is_called_as_it_is_without_its_suffix(frame, tmp_path, monkeypatch):
    for name in ("mine.csv.gz", "other.CSV", "third.npz"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    found = [as_source(name, degrees=["d"], features=["f"]) for name in ("mine.csv.gz", "./other.CSV", "third.npz")]
    assert [source.name for source in found] == ["mine", "other", "third"]
    assert [(source.degrees, source.features) for source in found] == [(("d",), ("f",))] * 2 + [((), ())]
    assert [source.file for source in found] == [
        str(tmp_path / name) for name in ("mine.csv.gz", "other.CSV", "third.npz")
    ]
    source = Source("x")
    assert as_source(source) is source
    # Data in memory are called by their name, else by their content, under which they are kept.
    unnamed = Dataset(np.ones((2, 1)), np.full((2, 2), 0.5), ("x",), ("a", "b"))
    content = content_hash(unnamed.X, unnamed.D)
    for name, called in (("", content), ("mine", "mine")):
        kept = as_source(replace(unnamed, name=name), folder=tmp_path / "kept")
        assert (kept.name, kept.file) == (called, str(tmp_path / "kept" / f"{content}.npz"))


def test_a_sample_keeps_the_order_of_the_rows_and_all_rows_are_no_sample(frame, tmp_path):
    path = tmp_path / "mine.parquet"
    frame.write_parquet(path)
    whole = read(Source("mine", str(path)))
    for rows in (11, 12, 13):
        found = read(Source("mine", str(path), max_rows=rows))
        assert found.name == ("mine (11 rows)" if rows == 11 else "mine")
        kept = [int(np.flatnonzero((x == whole.X).all(axis=1))[0]) for x in found.X]
        assert kept == sorted(kept)
        assert len(set(kept)) == min(rows, 12)
        np.testing.assert_array_equal(found.D, whole.D[kept])


def test_a_table_needs_degrees_that_are_numbers_and_a_feature(frame, tmp_path):
    path = tmp_path / "mine.parquet"
    frame.with_columns(pl.lit("much").alias("a_degree")).write_parquet(path)
    with pytest.raises(DataError, match="the degrees a_degree are not numbers"):
        read_table(path)
    frame.drop("x", "y", "id").write_parquet(path)
    with pytest.raises(DataError, match="no numeric column is left as a feature"):
        read_table(path)
    frame.write_parquet(path)
    with pytest.raises(ContoneError) as refused:
        read_table(path, ["nothing*"])
    assert refused.value.argument == "degrees"
    assert read_table(path, features=["x", "a"]).feature_names == ("x", "a")  # named, so that it is meant
    assert read_table(path).name == "mine"
    assert read_table(path, name="n").name == "n"
