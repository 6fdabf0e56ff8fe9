"""Fit, keep, apply: the same answers to the bit, columns by name, with labels or without; and comparing two files."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import contone
from contone.exceptions import ArgumentError, DataError, FeatureError, LabelError, OutputError
from contone.tables import apply_model, enhance_file, evaluate_file, fit_file, load_table_model

ROOT = Path(__file__).parents[2]
DEGREES = ["calm_degree", "happy_degree", "sad_degree"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 60
    X = rng.normal(size=(n, 2)).round(3)
    Z = np.exp(X @ rng.normal(size=(2, 3)) + 0.3 * rng.normal(size=(n, 3)))
    L = contone.CumulativeMass().apply(Z / Z.sum(axis=1, keepdims=True))
    frame = pl.DataFrame({
        "song_id": [f"{i:03d}" for i in range(n)], "x": X[:, 0], "zone": rng.integers(0, 3, n), "y": X[:, 1],
        **{name: L[:, j] for j, name in enumerate(("calm", "happy", "sad"))},
    })  # fmt: skip
    frame.write_csv("t.csv")
    return frame


def fitted(method: str = "inversion", **options) -> None:
    fit_file(
        "t.csv", "m.contone", labels="calm,happy,sad", method=method, categorical="zone", overwrite=True, **options
    )


@pytest.mark.parametrize("method", ["inversion", "lcdr", "glle", "lemll", "temperature"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_kept_model_answers_as_the_fitted_one(here, method):
    done = enhance_file(
        "t.csv", "a.csv", labels="calm,happy,sad", method=method, categorical="zone", save_model="m.contone"
    )
    apply_model("m.contone", "t.csv", "b.csv")
    encoder = load_table_model("m.contone").encoder
    X = encoder.transform(here.select("x", "zone", "y"))
    L = here.select("calm", "happy", "sad").to_numpy().astype(float)
    np.testing.assert_array_equal(pl.read_csv("b.csv").select(DEGREES).to_numpy(), done.method.enhance(X, L))
    if hasattr(done.method, "predict"):
        here.drop("calm", "happy", "sad").write_csv("new.csv")
        apply_model("m.contone", "new.csv", "c.csv")
        np.testing.assert_array_equal(pl.read_csv("c.csv").select(DEGREES).to_numpy(), done.method.predict(X))


def test_columns_are_found_by_name_in_any_order_and_any_format(here):
    fitted()
    apply_model("m.contone", "t.csv", "a.parquet")
    here.select(reversed(here.columns)).with_columns(extra=pl.lit("e")).write_parquet("other.parquet")
    apply_model("m.contone", "other.parquet", "b.parquet")
    a, b = pl.read_parquet("a.parquet"), pl.read_parquet("b.parquet")
    assert a.select(DEGREES).equals(b.select(DEGREES))
    assert b["extra"].to_list() == ["e"] * 60


def test_what_does_not_fit_the_model_is_refused_by_name(here):
    fitted()
    for dropped, said in (("y", "lacks 1 columns that the model was fitted on: 'y'"), ("sad", "the labels 'sad'")):
        here.drop(dropped).write_csv("new.csv")
        with pytest.raises(DataError, match=said):
            apply_model("m.contone", "new.csv", "o.csv")
    here.with_columns(y=pl.lit("much")).write_csv("new.csv")
    with pytest.raises(FeatureError, match="'y' must hold numbers"):
        apply_model("m.contone", "new.csv", "o.csv")
    fitted("temperature")
    here.drop("calm", "happy", "sad").write_csv("new.csv")
    with pytest.raises(ArgumentError, match="Temperature needs the labels calm, happy, sad"):
        apply_model("m.contone", "new.csv", "o.csv")
    fitted("lp")
    with pytest.raises(ArgumentError, match="LP gives degrees of the rows it was fitted on only"):
        apply_model("m.contone", "t.csv", "o.csv")
    assert not Path("o.csv").exists()


def test_classes_that_a_model_has_never_seen_are_named(here):
    fitted("temperature")
    warned: list[str] = []

    class Listen(contone.tables.Progress):
        def warn(self, message):
            warned.append(message)

    here.with_columns(zone=pl.Series([9, *here["zone"][1:]])).write_csv("new.csv")
    apply_model("m.contone", "new.csv", "o.csv", progress=Listen())
    assert warned == ["  'zone' holds classes the model has never seen: 9; read as zeros"]
    apply_model("m.contone", "t.csv", "p.csv", progress=Listen())
    assert len(warned) == 1


def test_a_model_whose_labels_were_shortened_is_refused(here):
    fitted("temperature")
    model = load_table_model("m.contone")
    columns = replace(model.columns, labels=model.columns.labels[:2])
    replace(model, labels=model.labels[:2], columns=columns).save("m.contone")
    with pytest.raises(contone.exceptions.ContoneError):
        apply_model("m.contone", "t.csv", "o.csv")
    assert not Path("o.csv").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_forged_model_of_people_answers_is_checked_like_any_other(here):
    """A model is tried out with a row of zeros, by nobody: what is odd of the persons it knows shows later."""
    rows = [f"{i // 3},{'abc'[i % 3]},{'xy'[i % 7 % 2]},{i // 3}" for i in range(30)]
    Path("v.csv").write_text("item,who,mood,x\n" + "\n".join(rows))
    how = {"item": "item", "worker": "who", "labels": "mood"}
    method = contone.Inversion(n_sweeps=4, n_burn=1, random_state=0)
    fit_file("v.csv", "m.contone", method=method, rule="votes", **how)
    model = load_table_model("m.contone")
    for draw in model.method.fit_.draws:
        draw.traits.offset.setflags(write=True)
        draw.traits.offset[1:] = np.nan
    model.save("m.contone")
    with pytest.raises(contone.exceptions.ContoneError, match="NaN"):
        apply_model("m.contone", "v.csv", "o.csv", **how)
    assert not Path("o.csv").exists()


def test_a_model_of_sets_knows_its_labels(here):
    names = ["calm", "happy", "sad"]
    sets = ["|".join(n for n, v in zip(names, row, strict=True) if v) for row in here.select(names).rows()]
    here.drop(names).with_columns(mood=pl.Series(sets)).write_csv("sets.csv")
    fit_file("sets.csv", "m.contone", labels="mood", method="temperature")
    Path("new.csv").write_text("x,zone,y,mood\n1,0,2,sad|calm\n1,1,0,happy\n")
    apply_model("m.contone", "new.csv", "o.csv")
    expected = contone.Temperature().fit_enhance(np.zeros((2, 1)), [[1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(pl.read_csv("o.csv").select(DEGREES).to_numpy(), expected)
    Path("new.csv").write_text("x,zone,y,mood\n1,0,2,wild\n1,1,0,happy\n")
    with pytest.raises(LabelError, match="'wild' is not one of the model's"):
        apply_model("m.contone", "new.csv", "p.csv")


def test_existing_models_are_left_alone(here):
    Path("m.contone").write_text("precious")
    with pytest.raises((ArgumentError, OutputError), match="exists already"):
        fit_file("t.csv", "m.contone", labels="calm,happy,sad", method="temperature")
    assert Path("m.contone").read_text() == "precious"


def test_intervals_and_first_labels(here):
    done = enhance_file("t.csv", "o.csv", labels="calm,happy,sad", intervals=0.9, top=2)
    out = pl.read_csv("o.csv")
    for name in ("calm", "happy", "sad"):
        assert (out[f"{name}_low"] < out[f"{name}_degree"]).all()
        assert (out[f"{name}_degree"] < out[f"{name}_high"]).all()
    D = done.method.label_distributions_
    names = np.array(["calm", "happy", "sad"])
    assert out["top_1"].to_list() == names[D.argmax(axis=1)].tolist()
    assert (out["top_1"] != out["top_2"]).all()
    with pytest.raises(ArgumentError, match="Temperature gives no intervals"):
        enhance_file("t.csv", "p.csv", labels="calm,happy,sad", method="temperature", intervals=0.9)


# ------------------------------------------------------------------------------------------------- two files


def test_comparing_files_is_comparing_arrays(here):
    enhance_file("t.csv", "a.csv", labels="calm,happy,sad", method="inversion")
    rng = np.random.default_rng(1)
    D = rng.dirichlet(np.ones(3), 60)
    truth = here.select("song_id").with_columns(
        pl.Series(name, D[:, j]) for j, name in enumerate(("calm", "happy", "sad"))
    )
    truth.write_csv("truth.csv")
    found = evaluate_file("truth.csv", "a.csv")
    answer = pl.read_csv("a.csv").select(DEGREES).to_numpy()
    expected = contone.evaluate(D, answer)
    for name, value in found.scores["answer"].items():
        assert value == pytest.approx(expected[name])
    assert found.scores["uniform"]["kl"] == pytest.approx(contone.evaluate(D, np.full((60, 3), 1 / 3)).kl)
    assert set(found.scores) == {"answer", "uniform", "logical", "temperature"}
    shuffled = truth.sample(fraction=1.0, shuffle=True, seed=0)
    shuffled.write_csv("shuffled.csv")
    assert evaluate_file("shuffled.csv", "a.csv", item="song_id").scores["answer"]["kl"] == pytest.approx(expected.kl)


def test_files_that_cannot_be_compared_say_why(here):
    enhance_file("t.csv", "a.csv", labels="calm,happy,sad", method="uniform")
    with pytest.raises(DataError, match="has no column that ends in '_degree'"):
        evaluate_file("a.csv", "t.csv")
    pl.read_csv("a.csv").head(5).write_csv("short.csv")
    with pytest.raises(DataError, match="name a column that both share"):
        evaluate_file("short.csv", "a.csv")
    with pytest.raises(DataError, match="no row with song_id"):
        evaluate_file("a.csv", "short.csv", item="song_id")


# ------------------------------------------------------------------------------------------------- the commands


def test_the_commands_of_a_models_life(here, run, flat):
    result = run("fit", "t.csv", "-l", "calm,happy,sad", "-m", "glle", "--categorical", "zone", "-o", "m.contone")
    assert result.exit_code == 0, result.output
    assert "wrote m.contone: GLLE, 60 rows, 3 labels" in flat(result.stderr)
    shown = json.loads(run("show", "m.contone", "--json").stdout)
    assert shown["method"] == "GLLE"
    assert shown["categories"] == ["zone"]
    assert "calm, happy, sad" in run("show", "m.contone").stdout
    result = run("apply", "m.contone", "t.csv", "-o", "o.csv", "--top", "1")
    assert result.exit_code == 0, result.output
    assert "with labels" in result.stderr
    result = run("evaluate", "o.csv", "o.csv", "--json")
    assert json.loads(result.stdout)["scores"]["answer"]["kl"] == pytest.approx(0.0, abs=1e-12)
    assert "kl ↓" in run("evaluate", "o.csv", "o.csv").stdout
    asked = run("evaluate", "o.csv", "o.csv", "--measure", "total_variation", "--measure", "top1", "--json")
    assert json.loads(asked.stdout)["scores"]["answer"] == {"total_variation": 0.0, "top1": 1.0}
    assert "kendall ↑" in run("evaluate", "o.csv", "o.csv", "--measure", "all").stdout
    assert "no measure 'kld'" in run("evaluate", "o.csv", "o.csv", "--measure", "kld").stderr
    Path("bad.contone").write_text("x")
    result = run("show", "bad.contone")
    assert result.exit_code == 1
    assert "not a model file" in flat(result.stderr)


def test_the_shell_line_of_the_readme_runs_as_it_stands(run, monkeypatch, tmp_path):
    line = re.search(
        r"^contone (enhance .*?)\s*(#.*)?$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert line is not None
    monkeypatch.chdir(ROOT)
    words = [str(tmp_path / w) if w == "soft.csv" else w for w in shlex.split(line[1])]
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert pl.read_csv(tmp_path / "soft.csv").columns[-3:] == DEGREES


@pytest.mark.parametrize("name", ["emotions", "birds", "CAL500", "flags", "Arts1500"])
def test_public_tables_go_from_file_to_degrees(tmp_path, run, name):
    source = Path(os.environ.get("CONTONE_DATA", "nowhere")).parent / "multilabel" / f"{name}.arff.gz"
    if not source.exists():
        pytest.skip(f"{source.name} is not available locally")
    more = ["--unlabelled", "drop"] if name == "birds" else []
    result = run("enhance", source, "-m", "temperature", "-o", tmp_path / "out.csv", *more)
    assert result.exit_code == 0, result.output
    table = pl.read_csv(tmp_path / "out.csv", infer_schema_length=None)
    D = table.select(c for c in table.columns if c.endswith("_degree")).to_numpy()
    np.testing.assert_allclose(D.sum(axis=1), 1.0, atol=1e-9)
