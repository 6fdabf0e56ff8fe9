"""`weighted_rows`: a weighted loss over copies is the loss of soft targets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from contone import weighted_rows
from contone.exceptions import ArgumentError, InputError, InputTypeError, ShapeError

rng = np.random.default_rng(0)
X, D = rng.normal(size=(12, 2)), rng.dirichlet([1.0] * 3, size=12)


def test_the_weighted_loss_of_the_copies_is_that_of_soft_targets():
    copies = weighted_rows(X, D)
    model = LogisticRegression().fit(copies.X, copies.y, sample_weight=copies.sample_weight)
    of_copies = copies.sample_weight @ -model.predict_log_proba(copies.X)[np.arange(len(copies.y)), copies.y]
    np.testing.assert_allclose(of_copies, -(D * model.predict_log_proba(X)).sum())
    np.testing.assert_allclose(np.bincount(copies.row, copies.sample_weight), 1.0)
    assert copies.copies_per_row == 3
    assert weighted_rows([[0.0], [1.0]], [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2]], min_degree=0.2).copies_per_row == 2.5


def test_a_degree_of_zero_makes_no_copy():
    copies = weighted_rows([[0.0], [1.0]], [[0.75, 0.25, 0.0], [0.0, 0.0, 1.0]])
    assert list(zip(copies.row.tolist(), copies.y.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 2)]
    np.testing.assert_allclose(copies.sample_weight, [0.75, 0.25, 1.0])


def test_containers_and_names_are_kept():
    pd = pytest.importorskip("pandas")
    plain = weighted_rows(X, D, min_degree=0.2)
    framed = weighted_rows(
        pd.DataFrame(X, columns=["u", "v"]), pd.DataFrame(D, columns=["a", "b", "c"]), min_degree=0.2
    )
    assert list(framed.X.columns) == ["u", "v"]
    assert framed.y.tolist() == ["abc"[j] for j in plain.y]
    np.testing.assert_array_equal(weighted_rows(sparse.csr_array(X), D, min_degree=0.2).X.toarray(), plain.X)


def test_sparse_matrices_without_rows_to_pick():
    plain = weighted_rows(X, D)
    np.testing.assert_array_equal(weighted_rows(sparse.coo_array(X), D).X.toarray(), plain.X)


def test_containers_whose_rows_cannot_be_picked_are_refused():
    pd, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    with pytest.raises(InputError, match="weighted_rows: X has duplicate column names: u"):
        weighted_rows(pd.DataFrame(X, columns=["u", "u"]), D)
    with pytest.raises(InputTypeError, match="sparse tensor"):
        weighted_rows(torch.tensor(X).to_sparse(), D)


def test_other_rows_and_degrees_are_refused():
    with pytest.raises(ShapeError, match="11 rows"):
        weighted_rows(X[1:], D)
    with pytest.raises(ArgumentError, match="min_degree"):
        weighted_rows(X, D, min_degree=1.0)


@pytest.mark.parametrize("X", [None, 3, "ab", np.float64(2.0)])
def test_what_has_no_rows_is_refused(X):
    with pytest.raises(InputTypeError, match="must have rows"):
        weighted_rows(X, [[0.5, 0.5], [0.2, 0.8]])
