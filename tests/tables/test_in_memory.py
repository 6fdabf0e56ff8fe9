"""Tables in memory: frames of any kind and datasets of Hugging Face, in and out as they came."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import contone
from contone.exceptions import ArgumentError, InputTypeError
from contone.tables.settings import ReadingOptions, WritingOptions

NAMES = ["calm", "happy", "sad"]
SETS = [[0, 2], [1], [0, 1], [2]]
L = np.array([[float(j in row) for j in range(3)] for row in SETS])
PLAIN = {"x": [1.0, 2.0, 3.0, 5.0], "zone": ["u", "v", "u", "w"], **{n: L[:, j] for j, n in enumerate(NAMES)}}
EXPECTED = contone.Temperature().fit_enhance(np.zeros((4, 1)), L)
DEGREES = [f"{name}_degree" for name in NAMES]


@pytest.fixture
def dataset():
    datasets = pytest.importorskip("datasets")
    label = datasets.ClassLabel(names=NAMES)
    features = datasets.Features({"x": datasets.Value("float64"), "mood": datasets.List(label), "main": label})
    rows = {"x": PLAIN["x"], "mood": SETS, "main": [row[0] for row in SETS]}
    return datasets.Dataset.from_dict(rows, features=features)


@pytest.mark.parametrize(
    "kind", [pl.DataFrame, lambda d: pd.DataFrame(d, index=[9, 8, 7, 6]), lambda d: pa.table(pd.DataFrame(d))]
)
def test_frames_come_out_as_they_went_in(kind):
    table = kind(PLAIN)
    found = contone.enhance_table(table, labels=NAMES, method="temperature", top=1)
    assert type(found) is type(table)
    back = found.to_pandas() if isinstance(found, pa.Table) else found
    np.testing.assert_array_equal(np.asarray(back[DEGREES]), EXPECTED)
    assert list(back["top_1"]) == [NAMES[j] for j in EXPECTED.argmax(axis=1)]
    if isinstance(table, pd.DataFrame):
        pd.testing.assert_index_equal(found.index, table.index)
        pd.testing.assert_frame_equal(found[list(table.columns)], table)


def test_a_dataset_of_hugging_face(dataset):
    found = contone.enhance_table(dataset, labels="mood", method="temperature")
    assert type(found) is type(dataset)
    assert list(found.column_names)[:3] == ["x", "mood", "main"]
    np.testing.assert_array_equal(found.to_polars().select(DEGREES).to_numpy(), EXPECTED)
    assert found.to_polars()["mood"].to_list() == SETS  # as it was
    one = contone.enhance_table(dataset, labels="mood", method="temperature", degrees_as="struct")
    np.testing.assert_array_equal(one.to_polars()["degrees"].struct.unnest().to_numpy(), EXPECTED)
    main = contone.enhance_table(dataset, labels="main", features="x", method="logical").to_polars()
    np.testing.assert_array_equal(main.select(DEGREES).to_numpy(), np.eye(3)[[row[0] for row in SETS]])
    replaced = contone.enhance_table(found, labels=DEGREES, method="logical", suffix="").to_polars()
    np.testing.assert_allclose(replaced.select(DEGREES).to_numpy(), EXPECTED)
    with pytest.raises(InputTypeError, match="pass one of 'train'"):
        contone.enhance_table({"train": dataset}, labels="mood")
    soft = contone.enhance_table(dataset, labels="mood", method="temperature", degrees_as="list").with_format("numpy")
    np.testing.assert_allclose(soft["degrees"][:], EXPECTED, rtol=1e-6)  # what a Trainer takes, in single precision
    assert soft.features["mood"] == dataset.features["mood"]


def test_records_of_argilla_in_a_dataset():
    datasets = pytest.importorskip("datasets")
    records = [
        {
            "id": f"r{i}",
            "text": f"text {i}",
            "topic.responses": ["ab"[i % 2], "a"],
            "topic.responses.users": ["u", "v"],
            "topic.responses.status": ["submitted", "submitted" if i else "draft"],
        }
        for i in range(6)
    ]
    method = contone.Inversion(n_sweeps=40, n_burn=10)
    found = contone.enhance_table(datasets.Dataset.from_list(records), method=method, degrees_as="list")
    assert isinstance(found, datasets.Dataset)
    assert found["n_answers"][:] == [1, 2, 2, 2, 2, 2]
    np.testing.assert_allclose(np.sum(found["degrees"][:], axis=1), 1.0)
    assert found["item"][:] == [f"r{i}" for i in range(6)]


def test_what_is_no_table_is_refused():
    with pytest.raises(InputTypeError, match="a list is not a table"):
        contone.enhance_table([[1, 2]], labels="a")
    with pytest.raises(ArgumentError, match="drop these rows before"):
        contone.enhance_table(pl.DataFrame(PLAIN), labels=NAMES, missing="drop")
    with pytest.raises(ArgumentError, match="no rows"):
        contone.enhance_table(pl.DataFrame(PLAIN).clear(), labels=NAMES)
    for odd in ([object(), {1}, [1]], [1, "x", b"y"]):
        with pytest.raises(InputTypeError, match="cannot be read"):
            contone.enhance_table(pd.DataFrame({"a": [1, 0, 1], "o": pd.Series(odd, dtype=object)}), labels="a")
    with pytest.raises(InputTypeError, match="cannot be read"):
        contone.enhance_table(pd.DataFrame(np.eye(3), columns=["a", "a", "b"]), labels="a")


@pytest.mark.parametrize("name", [*ReadingOptions.__annotations__, *WritingOptions.__annotations__, "intervals"])
def test_an_option_of_another_kind_is_refused_by_its_name(name):
    if name != "overwrite":
        with pytest.raises(ArgumentError, match="must be"):
            contone.enhance_table(pl.DataFrame(PLAIN), **{"labels": NAMES, "method": "uniform", name: object()})


@pytest.mark.parametrize("kind", ["pandas", "polars", "datasets"])
def test_answers_of_people_give_one_row_per_item(kind):
    rows = [(f"i{i}", float(i), f"w{w}", "ab"[(i + w) % 2]) for i in range(6) for w in range(3)]
    frame = pl.DataFrame(rows, ["task", "x", "worker", "label"], orient="row")
    given = {"pandas": frame.to_pandas, "polars": lambda: frame}.get(kind)
    table = pytest.importorskip("datasets").Dataset.from_polars(frame) if given is None else given()
    method = contone.Inversion(n_sweeps=80, n_burn=20)
    found = contone.enhance_table(table, method=method, degrees_as="list", intervals=0.9)
    assert type(found) is type(table)
    assert list(found["task"]) == [f"i{i}" for i in range(6)]
    assert list(found["n_answers"]) == [3] * 6
    np.testing.assert_allclose(np.array([list(d) for d in found["degrees"]]).sum(axis=1), 1.0)
    assert {"lower", "upper", "entropy"} <= set(found.column_names if kind == "datasets" else found.columns)
