"""Columns as they are to numbers: closed forms, order of columns, what was not seen, and a place in a pipeline."""

from __future__ import annotations

import datetime
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

import contone
from contone.exceptions import FeatureError, InputTypeError
from contone.models import read_model, save_model
from contone.tables.encoder import ColumnEncoder

FRAME = {
    "x": [1.0, None, 3.0, 8.0],
    "n": [1, 2, 3, 4],
    "c": ["u", "v", None, "u"],
    "z": [3, 1, 3, 2],
    "b": [True, False, True, True],
    "k": [5, 5, 5, 5],
    "d": [datetime.date(1970, 1, day) for day in (1, 2, 3, 11)],
}


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_every_kind_of_column(kind):
    frame = kind(FRAME)
    if kind is pd.DataFrame:
        frame["d"] = pd.to_datetime(frame["d"])
    encoder = ColumnEncoder(categorical=["z"]).fit(frame)
    assert encoder.get_feature_names_out().tolist() == [
        "x", "x is missing", "n", "c=v", "c is missing", "z=1", "z=2", "z=3", "b", "d",
    ]  # fmt: skip
    np.testing.assert_array_equal(
        encoder.transform(frame),
        [
            [1, 0, 1, 0, 0, 0, 0, 1, 1, 0],
            [3, 1, 2, 1, 0, 1, 0, 0, 0, 1],
            [3, 0, 3, 0, 1, 0, 0, 1, 1, 2],
            [8, 0, 4, 0, 0, 0, 1, 0, 1, 10],
        ],
    )


def test_columns_are_found_by_name_and_new_classes_are_none_of_the_old():
    encoder = ColumnEncoder().fit(pl.DataFrame({"x": [1.0, 2.0], "c": ["u", "v"], "w": ["p", "q"]}))
    new = pl.DataFrame({"extra": [0], "w": ["p"], "c": ["never seen"], "x": [5.0]})
    np.testing.assert_array_equal(encoder.transform(new), [[5.0, 0.0, 0.0]])
    with pytest.raises(FeatureError, match="lacks 2 columns: 'c', 'w'"):
        encoder.transform(new.select("x"))


def test_numbers_without_gaps_pass_as_they_are():
    X = np.random.default_rng(0).normal(size=(20, 3))
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    np.testing.assert_array_equal(ColumnEncoder().fit_transform(frame), X)


def test_a_table_of_constants_is_kept():
    frame = pl.DataFrame({"a": [1.0, 1.0], "b": [2.0, 2.0]})
    np.testing.assert_array_equal(ColumnEncoder().fit_transform(frame), frame.to_numpy())


def test_missing_entries_can_be_refused_at_fit_and_later():
    whole, gaps = pl.DataFrame({"x": [1.0, 2.0]}), pl.DataFrame({"x": [1.0, None]})
    with pytest.raises(FeatureError, match="'x' has 1 missing entries"):
        ColumnEncoder(missing="error").fit(gaps)
    with pytest.raises(FeatureError, match="'x' has 1 missing entries"):
        ColumnEncoder(missing="error").fit(whole).transform(gaps)
    with pytest.raises(InputTypeError, match="data frame"):
        ColumnEncoder().fit(np.ones((2, 2)))


def test_it_takes_its_place_in_a_pipeline(small):
    X, L, _ = small
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=["u", "v"] * 30)
    pipeline = make_pipeline(ColumnEncoder(), contone.LCdr.preset("tuned"))
    pipeline.fit(frame, L)
    assert pipeline.predict(frame).shape == L.shape


def test_a_name_is_a_name_and_must_be_there():
    frame = pd.DataFrame({"title": ["slow piano", "fast drums", "slow drums"] * 4, "x": range(12)})
    one, several = (ColumnEncoder(text=names).fit(frame) for names in ("title", ["title"]))
    np.testing.assert_array_equal(one.transform(frame), several.transform(frame))
    assert one.steps_[0].kind == "text"
    assert ColumnEncoder(categorical="x").fit(frame).steps_[1].kind == "category"
    for wrong in ({"text": ["titel"]}, {"categorical": "z"}):
        with pytest.raises(FeatureError, match="there is no column"):
            ColumnEncoder(**wrong).fit(frame)
    for wrong in ({"missing": "drop"}, {"n_text": 0}, {"categorical": 3}):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of ColumnEncoder must be"):
            ColumnEncoder(**wrong).fit(frame)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_pipeline_with_a_frame_in_front_goes_into_a_model_file(small, tmp_path):
    X, L, _ = small
    frame = pl.DataFrame(X, schema=list("abcde")).with_columns(kind=pl.Series(["u", "v"] * 30))
    pipeline = contone.make_pipeline(ColumnEncoder(categorical="kind"), contone.Inversion(n_sweeps=6, n_burn=2))
    save_model(pipeline.fit(frame, L), tmp_path / "m")
    again = read_model(tmp_path / "m").method
    np.testing.assert_array_equal(again.enhance(frame, L), pipeline.enhance(frame, L))


def test_a_wide_table_does_not_cost_a_millisecond_per_column(tmp_path):
    d = 10_000
    numbers = np.random.default_rng(0).normal(size=(6, d)).round(4)
    lines = [",".join([*map(str, row), str(i % 2), str(1 - i % 2)]) for i, row in enumerate(numbers)]
    (tmp_path / "wide.csv").write_text(",".join([*(f"f{j}" for j in range(d)), "a", "b"]) + "\n" + "\n".join(lines))
    started = time.process_time()
    problem = contone.read_table(tmp_path / "wide.csv", labels="a,b")
    assert time.process_time() - started < 5.0  # 30 s where columns are looked at one by one
    np.testing.assert_array_equal(problem.X, numbers)


def test_a_wide_sparse_table_does_not_either(tmp_path):
    d = 30_000
    named = "".join(f"@attribute f{j} numeric\n" for j in range(d)) + "@attribute a {0,1}\n@attribute b {0,1}\n"
    rows = "".join(f"{{{i} 1.5, {d + i % 2} 1}}\n" for i in range(6))
    (tmp_path / "wide.arff").write_text(f"@relation r\n{named}@data\n{rows}")
    started = time.process_time()
    problem = contone.read_table(tmp_path / "wide.arff", labels="a,b")
    assert time.process_time() - started < 8.0  # 20 s where the names of all columns are listed for each
    assert problem.X.shape[0] == 6


def test_its_state_fits_into_a_model_file(small, tmp_path):
    X, L, _ = small
    encoder = ColumnEncoder(categorical=("z",)).fit(pl.DataFrame(FRAME))
    save_model(contone.Temperature().fit(X, L), tmp_path / "m", details={"encoder": encoder})
    again = read_model(tmp_path / "m").details["encoder"]
    assert again.steps_ == encoder.steps_
    np.testing.assert_array_equal(again.transform(pl.DataFrame(FRAME)), encoder.transform(pl.DataFrame(FRAME)))


TEXTS = [
    *("slow piano in the evening", "piano, slow and soft", "fast guitars and loud drums", "loud drums, fast guitars"),
    *("quiet evening with piano", "drums and guitars", "", "soft and quiet piano"),
]


def test_texts_become_the_columns_of_skrub_up_to_their_signs():
    skrub = pytest.importorskip("skrub")
    frame = pl.DataFrame({"t": TEXTS})
    encoder = ColumnEncoder(text=["t"], n_text=3).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["t_0", "t_1", "t_2"]
    found = encoder.transform(frame)
    expected = skrub.StringEncoder(n_components=3, random_state=0).fit_transform(frame["t"]).to_numpy()
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, signs * expected, atol=2e-4)


def test_texts_by_the_letters_they_share(tmp_path):
    frame = pl.DataFrame({"t": TEXTS, "x": range(8)})
    encoder = ColumnEncoder(text=["t"], n_text=2).fit(frame)
    found = encoder.transform(frame)[:, :2]
    np.testing.assert_allclose(found.var(axis=0).sum(), 1.0)
    np.testing.assert_array_equal(found[6], 0.0)  # nothing is written there
    distance = np.linalg.norm(found[:, None] - found[None], axis=2)
    assert distance[0, 1] < distance[0, 2]  # piano beside piano
    assert distance[2, 3] < distance[0, 3]
    misspelt = encoder.transform(pl.DataFrame({"t": ["slow paino in the evening", "xyz", None], "x": [0, 0, 0]}))
    assert np.linalg.norm(misspelt[0, :2] - found[0]) < 0.5 * distance[0, 2]
    np.testing.assert_array_equal(misspelt[1:, :2], 0.0)
    # A text that says nothing is left out; a model file holds the map to the bit.
    assert ColumnEncoder(text=["t"]).fit(pl.DataFrame({"t": ["a b"] * 3, "x": [1, 2, 3]})).steps_[0].kind == "constant"
    method = contone.Temperature().fit(np.zeros((2, 1)), [[1, 0], [0, 1]])
    save_model(method, tmp_path / "m", details={"encoder": encoder})
    again = read_model(tmp_path / "m").details["encoder"]
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))
