"""What is added to a table, whole, applied and in pieces: the same numbers in every form."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import contone
from contone.exceptions import ArgumentError, LabelError
from contone.tables import apply_model, enhance_file, evaluate_file, fit_file, load_table_model

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
NAMES = ["calm", "happy", "sad"]
SHORT = contone.Inversion(n_sweeps=4, n_burn=2)


@pytest.fixture
def frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    L = (rng.random((40, 3)) < 0.4).astype(int)
    L[np.arange(40), rng.integers(0, 3, 40)] = 1
    made = pl.DataFrame({"x": X[:, 0], "y": X[:, 1], **{name: L[:, j] for j, name in enumerate(NAMES)}})
    made.write_parquet("t.parquet")
    sets = ["|".join(np.array(NAMES)[row > 0]) for row in L]
    made.select("x", "y").with_columns(mood=pl.Series(sets)).write_csv("sets.csv")
    return made


@pytest.mark.parametrize(("suffix", "stream"), [(".parquet", True), (".arrow", False), (".jsonl", False)])
def test_a_list_and_a_struct_hold_what_the_columns_hold(frame, suffix, stream):
    options = {"labels": NAMES, "method": SHORT, "intervals": 0.8, "stream": stream}
    read = {".parquet": pl.read_parquet, ".arrow": pl.read_ipc, ".jsonl": pl.read_ndjson}[suffix]
    for way in ("columns", "list", "struct"):
        done = enhance_file("t.parquet", f"{way}{suffix}", degrees_as=way, **options)
        assert done.degrees == (tuple(f"{n}_degree" for n in NAMES) if way == "columns" else ("degrees",))
    columns, lists, structs = (read(f"{way}{suffix}") for way in ("columns", "list", "struct"))
    for one, ending in (("degrees", "_degree"), ("lower", "_low"), ("upper", "_high")):
        expected = columns.select(f"{name}{ending}" for name in NAMES).to_numpy()
        np.testing.assert_array_equal(np.array(lists[one].to_list()), expected)
        np.testing.assert_array_equal(structs[one].struct.unnest().select(NAMES).to_numpy(), expected)
    D = np.array(lists["degrees"].to_list())
    np.testing.assert_allclose(lists["entropy"].to_numpy(), stats.entropy(D, axis=1), atol=1e-12)


def test_a_text_file_cannot_hold_a_list_and_says_so_before_the_work(frame):
    for target in ("o.csv", "-"):
        with pytest.raises(ArgumentError, match="cannot hold a list"):
            enhance_file("t.parquet", target, labels=NAMES, degrees_as="list")
    with pytest.raises(ArgumentError, match="must be one of columns, list, struct"):
        enhance_file("t.parquet", "o.csv", labels=NAMES, degrees_as="map")


def test_applied_rows_have_the_intervals_of_the_method(frame):
    fit_file("t.parquet", "m.contone", labels=NAMES, method=SHORT)
    method = load_table_model("m.contone").method
    X, L = frame.select("x", "y").to_numpy(), frame.select(NAMES).to_numpy()
    for table, Y in ((frame, L), (frame.drop(NAMES), None)):
        table.write_parquet("new.parquet")
        apply_model("m.contone", "new.parquet", "o.parquet", intervals=0.7, overwrite=True)
        found = pl.read_parquet("o.parquet")
        for ending, expected in zip(("_low", "_high"), method.intervals(X, Y, 0.7), strict=True):
            np.testing.assert_array_equal(found.select(f"{n}{ending}" for n in NAMES).to_numpy(), expected)
    fit_file("t.parquet", "n.contone", labels=NAMES, method="temperature")
    with pytest.raises(ArgumentError, match="Temperature gives no intervals"):
        apply_model("n.contone", "new.parquet", "p.parquet", intervals=0.7)


def test_rows_without_a_label_have_intervals_as_well(frame):
    frame.with_columns(pl.when(pl.int_range(pl.len()) < 2).then(0).otherwise(pl.col(NAMES)).name.keep()).write_parquet(
        "u.parquet"
    )
    enhance_file("u.parquet", "o.parquet", labels=NAMES, method=SHORT, intervals=0.9, unlabelled="predict")
    found = pl.read_parquet("o.parquet")
    for name in NAMES:
        assert (found[f"{name}_low"] < found[f"{name}_high"]).all()


def test_a_streamed_run_has_top_labels_and_a_model(frame):
    done = enhance_file(
        "t.parquet", "o.parquet", labels=NAMES, method=SHORT, top=2, save_model="m.contone", chunk_rows=15
    )
    found = pl.read_parquet("o.parquet")
    D = found.select(done.degrees).to_numpy()
    assert found["top_1"].to_list() == [NAMES[j] for j in D.argmax(axis=1)]
    apply_model("m.contone", "t.parquet", "again.parquet")
    again = pl.read_parquet("again.parquet").select(done.degrees).to_numpy()
    expected = done.method.enhance(frame.select("x", "y").to_numpy(), frame.select(NAMES).to_numpy())
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("kind", ["text", "list"])
def test_a_column_of_sets_streams_like_the_whole(frame, kind):
    source = "sets.csv"
    if kind == "list":
        source = "sets.parquet"
        pl.read_csv("sets.csv").with_columns(pl.col("mood").str.split("|")).write_parquet(source)
    whole = enhance_file(source, "a.parquet", labels="mood", method="temperature")
    pieces = enhance_file(source, "b.parquet", labels="mood", method="temperature", chunk_rows=7)
    assert whole.labels == pieces.labels == tuple(NAMES)
    assert pl.read_parquet("a.parquet").equals(pl.read_parquet("b.parquet"))
    pl.DataFrame({"x": [1.0, 2.0], "mood": ["", ";"]}).write_csv("e.csv")
    with pytest.raises(LabelError, match="names no label"):
        enhance_file("e.csv", "e.parquet", labels="mood", stream=True, label_separator=";")


@pytest.mark.parametrize(
    "option",
    [{"item": "x"}, {"missing": "drop"}, {"unlabelled": "drop"}, {"embeddings": "e.npy"}, {"annotators": "p.csv"}],
)
def test_what_cannot_stream_says_why(frame, option):
    with pytest.raises(ArgumentError, match="leave out --stream"):
        enhance_file("t.parquet", "o.parquet", labels=NAMES, stream=True, **option)


def test_a_struct_of_degrees_can_be_compared_with_the_truth(frame):
    enhance_file("t.parquet", "a.parquet", labels=NAMES, method="temperature")
    enhance_file("t.parquet", "b.parquet", labels=NAMES, method="temperature", degrees_as="struct")
    found = evaluate_file("a.parquet", "b.parquet")
    assert found.labels == tuple(NAMES)
    assert found.scores["answer"]["kl"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("stream", [False, True])
def test_text_is_carried_along_unless_it_is_asked_for(frame, stream):
    words = np.array(["slow piano", "loud drums", "soft piano", "fast drums"])[np.arange(40) % 4]
    frame.with_columns(review=pl.Series(words)).write_csv("t.csv")
    options = {"labels": NAMES, "method": "lcdr", "stream": stream}
    assert enhance_file("t.csv", "a.csv", **options).carried == ("review",)
    done = enhance_file("t.csv", "b.csv", text="review", save_model="m.contone", **options)
    assert done.features == ("x", "y", "review")
    found = pl.read_csv("b.csv")
    assert found["review"].to_list() == words.tolist()
    assert (
        np.abs(found.select(done.degrees).to_numpy() - pl.read_csv("a.csv").select(done.degrees).to_numpy()).max() > 0
    )
    apply_model("m.contone", "t.csv", "c.csv")
    expected = done.method.enhance(load_table_model("m.contone").encoder.transform(pl.read_csv("t.csv")), frame[NAMES])
    np.testing.assert_array_equal(pl.read_csv("c.csv").select(done.degrees).to_numpy(), expected.to_numpy())
