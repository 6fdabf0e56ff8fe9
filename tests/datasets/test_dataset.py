"""Reading files: what is accepted, what is repaired with a note, what is refused."""

from __future__ import annotations

import dataclasses
import io
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

from contone import datasets
from contone.datasets import Dataset
from contone.exceptions import DataError


@pytest.fixture
def content():
    """Features and distributions as a file would hold them: X (8, 3), D (8, 4)."""
    rng = np.random.default_rng(0)
    return {"features": rng.normal(size=(8, 3)), "labels": rng.dirichlet(np.ones(4), size=8)}


@pytest.fixture(params=[".mat", ".npz"])
def save(request, tmp_path):
    """A function that writes variables into a file of either format."""

    def write(content, name="own"):
        path = tmp_path / f"{name}{request.param}"
        savemat(path, content) if request.param == ".mat" else np.savez(path, **content)
        return path

    return write


def test_reads_both_formats_to_the_bit(save, content):
    data = datasets.read(save(content))
    np.testing.assert_array_equal(data.X, content["features"])
    np.testing.assert_array_equal(data.D, content["labels"])
    assert data.feature_names == ("x0", "x1", "x2")
    assert data.label_names == ("label_0", "label_1", "label_2", "label_3")
    assert data.name == "own"
    assert data.notes == ()


def test_the_short_names_and_names_of_labels_are_read_too(save, content):
    written = {
        "X": content["features"],
        "D": content["labels"],
        "label_names": np.array(["a", "b", "c", "d"]),
    }
    assert datasets.read(save(written)).label_names == ("a", "b", "c", "d")


@pytest.mark.parametrize("names", [["a", "a", "b", "c"], ["a", "b", "c"], ["a", "a", "b", "c", "d"]])
def test_names_that_do_not_tell_the_labels_apart_are_numbered(save, content, names):
    written = {"X": content["features"], "D": content["labels"], "label_names": np.array(names)}
    assert datasets.read(save(written)).label_names == ("label_0", "label_1", "label_2", "label_3")


def test_names_in_matlab_cells_are_read(tmp_path, content):
    savemat(tmp_path / "cells.mat", content | {"label_names": np.array(["a", "b", "cc", "d"], dtype=object)})
    assert datasets.read(tmp_path / "cells.mat").label_names == ("a", "b", "cc", "d")


def test_sparse_features_and_whole_numbers_are_read(tmp_path, content):
    X = np.eye(8, 3)
    savemat(tmp_path / "sparse.mat", content | {"features": sp.csc_array(X)})
    np.testing.assert_array_equal(datasets.read(tmp_path / "sparse.mat").X, X)
    np.savez(tmp_path / "whole.npz", features=X.astype(np.uint8), labels=np.eye(8))
    assert datasets.read(tmp_path / "whole.npz").X.dtype == np.float64


def test_a_dataset_is_frozen_and_its_arrays_are_read_only(content):
    X = content["features"]
    data = Dataset(X, content["labels"], ("a", "b", "c"), ("p", "q", "r", "s"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    for array in (data.X, data.D):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0
    assert repr(data) == "Dataset('', n=8, d=3, q=4)"
    X[0, 0] = 99.0  # the caller's array stays the caller's
    assert data.X[0, 0] != 99.0


def test_a_dataset_must_fit_its_names_and_rows(content):
    X, D = content["features"], content["labels"]
    with pytest.raises(DataError, match="X has shape .* but 2 names"):
        Dataset(X, D, ("a", "b"), ("p", "q", "r", "s"))
    with pytest.raises(DataError, match="X has 7 rows but D has 8"):
        Dataset(X[1:], D, ("a", "b", "c"), ("p", "q", "r", "s"))


def test_rows_off_by_rounding_are_renormalised_with_a_note(save, content):
    # As SCUT-FBP was published: zeros replaced by 1e-6, so that a row sums to a little more than 1.
    D = np.zeros((8, 5))
    D[:, 0] = 1.0
    D[D == 0] = 1e-6
    D[0] = 0.2
    data = datasets.read(save(content | {"labels": D}))
    np.testing.assert_allclose(data.D.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(data.D, D, atol=5e-6)
    assert data.notes == ("7 of 8 rows renormalised: their sums were off 1 by 4.0e-06 at most",)


def test_degrees_printed_with_four_decimals_are_rounding(save, content):
    data = datasets.read(save(content | {"labels": np.round(content["labels"], 4)}))
    np.testing.assert_allclose(data.D.sum(axis=1), 1, atol=1e-15)
    assert "renormalised" in data.notes[0]


def test_a_degree_below_zero_by_rounding_is_set_to_zero_with_a_note(save, content):
    D = np.tile([0.5, 0.5 + 1e-9, -1e-9, 0.0], (8, 1))
    data = datasets.read(save(content | {"labels": D}))
    assert data.D.min() == 0
    assert "8 degrees below 0" in data.notes[0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.full((8, 4), 25.0), "row 0 sums to 100"),
        (np.tile([1, 1, 0, 0], (8, 1)), "logical labels, not distributions"),
        (np.tile([0.7, 0.5, -0.2, 0.0], (8, 1)), "smallest entry of -0.2"),
        (np.full((8, 4), 1 / 8), "Their columns do: the file looks transposed"),
        (np.full((8, 4), np.nan), "NaN or infinite entry in row 0"),
        (np.zeros((8, 4)), "row 0 sums to 0"),
    ],
)
def test_what_is_not_a_distribution_is_refused(save, content, labels, message):
    with pytest.raises(DataError, match=message):
        datasets.read(save(content | {"labels": labels}))


@pytest.mark.parametrize(("row", "by"), [(2, [0.2, 0.0, 0.0, 0.0]), (5, [0.6, 0.6, -0.2, 0.0])])
def test_the_row_that_is_no_distribution_is_named(save, content, row, by):
    """One that does not sum to 1, or that sums to 1 and has a negative entry."""
    labels = content["labels"].copy()
    labels[row] = by
    with pytest.raises(DataError, match=rf"; row {row} sums to {sum(by):g} with a smallest entry of {min(by):g}"):
        datasets.read(save(content | {"labels": labels}))


def test_other_variables_are_named(save, content):
    with pytest.raises(
        DataError, match=r"no variable 'labels' or 'D'; the file holds: features \(8, 3\), target \(8, 4\)"
    ):
        datasets.read(save({"features": content["features"], "target": content["labels"]}))


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        (("features", "labels"), r"\(3, 8\) and labels \(4, 8\).*Both look transposed"),
        (("features",), r"\(3, 8\) and labels \(8, 4\).*features look transposed"),
        (("labels",), r"\(8, 3\) and labels \(4, 8\).*labels look transposed"),
    ],
)
def test_transposed_matrices_are_told(save, content, turn, message):
    with pytest.raises(DataError, match=message):
        datasets.read(save(content | {key: content[key].T for key in turn}))


def test_features_that_are_not_finite_numbers_are_refused(save, content):
    X = content["features"].copy()
    X[5, 1] = np.inf
    with pytest.raises(DataError, match="features have a NaN or infinite entry in row 5"):
        datasets.read(save(content | {"features": X}))
    with pytest.raises(DataError, match="'features' must be a non-empty matrix of numbers"):
        datasets.read(save(content | {"features": np.array([["a", "b"]] * 8)}))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_told(save, content, share):
    path = save(content)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DataError) as caught:
        datasets.read(path)
    assert str(path) in str(caught.value)


def test_pickles_are_never_opened(tmp_path, content):
    np.savez(tmp_path / "evil.npz", features=np.array([{"a": 1}], dtype=object), labels=content["labels"])
    with pytest.raises(DataError, match="cannot be read as .npz"):
        datasets.read(tmp_path / "evil.npz")


def test_matlab_73_files_are_told_apart(tmp_path):
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124, b" ") + b"\x00\x02IM" + b"\0" * 64
    (tmp_path / "new.mat").write_bytes(header)
    with pytest.raises(DataError, match="MATLAB 7.3 file; save it with '-v7'"):
        datasets.read(tmp_path / "new.mat")


def test_missing_files_and_other_formats_are_told(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        datasets.read(tmp_path / "nothing.mat")
    with pytest.raises(DataError, match=r"reads .mat and .npz files, not '.csv'"):
        datasets.read(tmp_path / "table.csv")


def claiming(path, name, shape, content):
    """A .npz whose array `name` claims a shape that is not there, beside honest ones."""
    np.savez(path, **content)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{name}.npy", header.getvalue() + bytes(64))
    return path


def test_an_array_that_claims_terabytes_is_refused_before_memory_is_taken(tmp_path, content):
    path = claiming(tmp_path / "huge.npz", "features", (2**19, 2**19), {"labels": content["labels"]})
    with pytest.raises(DataError, match="'features' claims 2.2 TB"):
        datasets.read(path)


def test_members_that_nobody_asked_for_are_not_read(tmp_path, content):
    path = claiming(tmp_path / "more.npz", "other", (2**19, 2**19), content)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "not an array")
    assert datasets.read(path).X.shape == content["features"].shape


def test_an_honest_array_must_fit_into_memory(tmp_path, content, monkeypatch):
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "100")
    np.savez(tmp_path / "a.npz", **content)
    savemat(tmp_path / "a.mat", content)
    for name in ("a.npz", "a.mat"):
        with pytest.raises(DataError, match="does not fit into memory"):
            datasets.read(tmp_path / name)
