"""One set of answers is the same problem in whatever table it comes, and it goes back into the tool it came from."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import contone
from contone.exceptions import ArgumentError, ContoneError, DataError, LabelWarning
from contone.runtime.progress import Progress
from contone.tables.exports.back import _suggestion
from contone.tables.fitting import table_of_persons
from contone.tables.reading import read_problem, read_table
from contone.tables.settings import Reading
from contone.tables.suggesting import plan_file, suggest_answers

ANSWERS = [(i, w, "abc"[(i * w + w) % 3]) for i in range(4) for w in range(3)]
"""(item, person, label): every person chose one label of every item."""


def label_studio(answers=ANSWERS):
    """The same as an export."""

    def annotation(person, label):
        region = {"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": f"w{person}", "was_cancelled": False, "ground_truth": False, "result": [region]}

    items = sorted({i for i, _, _ in answers})
    return [
        {"id": f"i{i}", "data": {"x": i / 2}, "annotations": [annotation(w, y) for j, w, y in answers if i == j]}
        for i in items
    ]


@pytest.fixture
def forms(folder):
    """The same answers in every form, and how each is read."""
    long = pl.DataFrame(
        [(f"i{i}", i / 2, f"w{w}", y) for i, w, y in ANSWERS], ["item", "x", "who", "label"], orient="row"
    )
    long.write_csv("long.csv")
    long.rename({"item": "task", "who": "worker"}).write_parquet("crowd_kit.parquet")
    long.with_columns(*((pl.col("label") == y).cast(int).alias(y) for y in "abc")).drop("label").write_csv("wide.csv")
    long.pivot("who", index=["item", "x"], values="label").write_csv("persons.csv")
    Path("export.json").write_text(json.dumps(label_studio()))
    rows = [
        {"x": i / 2, "id": f"i{i}", "annotator": f"w{w}", "annotation_id": 3 * i + w, "lead_time": 1.0, "q": y}
        for i, w, y in ANSWERS
    ]
    pl.DataFrame(rows).write_csv("minimal.csv")
    return {
        "long.csv": {"labels": "label", "item": "item", "worker": "who"},
        "crowd_kit.parquet": {},
        "wide.csv": {"labels": "a,b,c", "item": "item", "worker": "who"},
        "persons.csv": {"item": "item", "worker": "w*"},
        "export.json": {},
        "minimal.csv": {"question": "q"},
    }


def test_every_form_is_the_same_problem(forms):
    for name, options in forms.items():
        problem = read_table(name, **options)
        assert problem.label_names == ["a", "b", "c"], name
        assert problem.row_names == ["i0", "i1", "i2", "i3"], name
        assert problem.rule == "votes", name
        assert problem.beside["n_answers"].to_list() == [3, 3, 3, 3]
        said = {
            (int(i), int(who[1:]), "abc"[int(np.argmax(row))])
            for i, who, row in zip(problem.groups, problem.annotators, problem.Y.to_numpy(), strict=True)
        }
        assert said == set(ANSWERS), name
        np.testing.assert_array_equal(problem.X[:, 0], problem.groups / 2, err_msg=name)


def test_votes_without_names_are_told_by_their_repetition(folder):
    pl.DataFrame({"item": ["i", "i", "j"], "label": ["a", "a", "b"]}).write_csv("t.csv")
    problem = read_table("t.csv", labels="label", item="item")
    assert problem.annotators is None
    np.testing.assert_array_equal(problem.Y.to_numpy(), [[1, 0], [1, 0], [0, 1]])
    pl.DataFrame({"item": ["i", "i", "j"], "label": ["a", "b", "b"]}).write_csv("t.csv")
    assert read_table("t.csv", labels="label", item="item").groups is None
    assert len(read_table("t.csv", labels="label", item="item", rule="votes").groups) == 3


def test_counts_and_levels_are_told_from_marks(folder):
    rng = np.random.default_rng(0)
    for values, rule in ((rng.multinomial(5, [0.5, 0.3, 0.2], 30), "votes"), (rng.integers(0, 2, (30, 3)), None)):
        pl.DataFrame(values, schema=["a", "b", "c"]).with_columns(x=pl.lit(1.0)).write_csv("t.csv")
        assert read_table("t.csv", labels="a,b,c").rule == rule


def test_a_second_answer_counts_where_sets_are_rare(folder):
    rows = [(f"i{i}", f"w{w}", "ab"[(i + w) % 2]) for i in range(20) for w in range(3)]
    pl.DataFrame([*rows, ("i0", "w0", "b")], ["task", "worker", "label"], orient="row").write_csv("t.csv")
    problem = read_table("t.csv")
    assert (problem.rule, len(problem.groups)) == ("votes", 61)
    assert "each counts" in problem.notes[0]
    marks = [(f"i{i}", f"w{w}", y) for i in range(5) for w in range(3) for y in "ab"[: 1 + (i + w) % 2]]
    pl.DataFrame(marks, ["task", "worker", "label"], orient="row").write_csv("t.csv")
    assert read_table("t.csv").rule == "marks"


def test_what_differs_between_answers_is_not_about_the_item(folder):
    pl.DataFrame(
        {"task": ["i", "i"], "worker": ["v", "w"], "label": ["a", "b"], "x": [1, 1], "seconds": [3, 9]}
    ).write_csv("t.csv")
    problem = read_table("t.csv")
    assert problem.feature_names == ["x"]
    assert problem.notes[0] == "left out, since the rows of an item differ in it: seconds"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worker": "who"}, "needs a column of items"),
        ({"item": "item", "worker": "who", "labels": "who"}, "different columns"),
        ({"item": "item", "worker": "whom", "labels": "label"}, "did you mean 'who'"),
        ({"item": "item", "worker": "who"}, "name the column of labels"),
        ({"worker": "wh*,x", "labels": "label"}, "leave it out"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(forms, options, message):
    with pytest.raises(ArgumentError, match=message):
        read_table("long.csv", **options)


def test_an_answer_about_nothing_is_refused(folder):
    Path("t.csv").write_text("task,worker,label\n,w,a\n")
    with pytest.raises(DataError, match="row 0 has no 'task'"):
        read_table("t.csv")


def test_items_that_nobody_answered_are_there(folder):
    Path("export.json").write_text(json.dumps([*label_studio(), {"id": "new", "data": {"x": 9.0}, "annotations": []}]))
    problem = read_table("export.json")
    assert problem.labelled.tolist() == [True] * 4 + [False]
    assert problem.beside["n_answers"].to_list() == [3, 3, 3, 3, 0]


def test_embeddings_come_in_the_order_of_the_items_or_by_name(forms):
    E = np.arange(8.0).reshape(4, 2)
    np.save("e.npy", E)
    np.savez("e.npz", ids=["i3", "i2", "i1", "i0"], E=E[::-1])
    for file in ("e.npy", "e.npz"):
        for name in ("long.csv", "export.json"):
            problem = read_table(name, embeddings=file, **forms[name])
            assert problem.feature_names == ["x", "embedding_0", "embedding_1"]
            np.testing.assert_array_equal(problem.item_features[:, 1:], E)
            assert "embedding_0" not in problem.table.stored.columns
    np.save("short.npy", E[:2])
    with pytest.raises(ArgumentError, match="2 rows, the table has 4 items"):
        read_table("export.json", embeddings="short.npy")
    np.save("nan.npy", E * np.nan)
    with pytest.raises(ArgumentError, match="finite"):
        read_table("export.json", embeddings="nan.npy")
    Path("text.npy").write_text("no array")
    with pytest.raises(ArgumentError, match="arrays of NumPy"):
        read_table("export.json", embeddings="text.npy")


def test_degrees_go_back_into_the_tool(forms):
    problem = read_table("export.json")
    D = np.array([[0.6, 0.3, 0.1]] * 4)
    contone.write_answer(problem, D, "back.json")
    back = json.loads(Path("back.json").read_text())
    assert [task["id"] for task in back] == ["i0", "i1", "i2", "i3"]
    assert back[1]["data"] == {"x": 0.5}
    prediction = back[0]["predictions"][0]
    assert prediction["score"] == 0.6
    assert prediction["result"] == [{"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": ["a"]}}]
    with pytest.raises(ArgumentError, match=r"write \.jsonl"):
        contone.write_answer(read_table("long.csv", **forms["long.csv"]), D, "other.json")


def test_suggestions_for_argilla(folder):
    responses = [{"value": ["a", "b"], "user_id": "u", "status": "submitted"}]
    record = {"id": "r", "fields": {"text": "t"}, "responses": {"q": responses}}
    Path("records.json").write_text(json.dumps([record]))
    contone.write_answer(read_table("records.json"), np.array([[0.45, 0.55]]), "back.json")
    assert json.loads(Path("back.json").read_text())[0]["suggestions"]["q"]["value"] == ["b"]
    contone.write_answer(read_table("records.json"), np.array([[0.5, 0.5]]), "back.json", overwrite=True)
    suggested = json.loads(Path("back.json").read_text())[0]["suggestions"]["q"]
    assert (suggested["value"], suggested["score"]) == (["a", "b"], [0.5, 0.5])


def test_lists_of_lists_are_no_sets(folder):
    Path("t.jsonl").write_text('{"x": 1, "y": [["a"], ["b"]]}\n{"x": 2, "y": [["b"]]}\n')
    with pytest.raises(ContoneError, match="lists of lists"):
        read_table("t.jsonl", labels="y")


def test_other_json_is_a_table(folder):
    Path("t.json").write_text(json.dumps([{"x": i, "a": i % 2, "b": 1 - i % 2} for i in range(6)]))
    assert read_table("t.json", labels="a,b").X.shape == (6, 1)


# ------------------------------------------------------------------------------------- a model, and other items


@pytest.fixture
def exports(tmp_path, monkeypatch):
    """A model of the answers to 40 tasks of Label Studio, and ten new tasks, of which some have answers."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)

    def task(i, x, *said):
        result = [{"from_name": "mood", "to_name": "text", "type": "choices"}]
        given = [
            {"completed_by": f"w{w}", "result": [{**result[0], "value": {"choices": [label]}}]}
            for w, label in enumerate(said)
        ]
        return {"id": i, "data": {"x": x}, "annotations": given}

    old = [task(i, x, *rng.choice(["a", "b"], 3, p=[p, 1 - p]))
           for i, x in enumerate(rng.normal(size=40).round(3)) for p in [1 / (1 + np.exp(-2 * x))]]  # fmt: skip
    new = [task(100 + i, 0.0, *(["a"] * (i % 3) + ["b"] * (i % 2))) for i in range(10)]
    Path("old.json").write_text(json.dumps(old))
    Path("new.json").write_text(json.dumps(new))
    Path("bare.json").write_text(json.dumps([{**record, "annotations": []} for record in new]))
    method = contone.Inversion(n_sweeps=200, n_burn=50)
    return contone.tables.fit_file("old.json", "m.contone", method=method).method


def test_a_model_reads_the_answers_to_new_items(exports):
    contone.tables.apply_model("m.contone", "new.json", "o.csv", intervals=0.9)
    found = pl.read_csv("o.csv")
    n_a, n_b = np.arange(10) % 3, np.arange(10) % 2
    assert found["n_answers"].to_list() == (n_a + n_b).tolist()
    share = found["a_degree"].to_numpy()
    assert (found["a_low"] < found["a_degree"]).all()
    assert (found["a_degree"] < found["a_high"]).all()
    alone = exports.predict(np.zeros((1, 1)))[0, 0]
    np.testing.assert_allclose(share[(n_a + n_b) == 0], alone)  # nobody answered: the features alone
    assert share[2] > share[4] > alone > share[3]  # a a; a; nobody; b
    # Persons of the fit are known by name; those who are not are anybody, and their votes are counts.
    records = json.loads(Path("new.json").read_text())
    for i, given in enumerate(a for record in records for a in record["annotations"]):
        given["completed_by"] = f"somebody new {i}"
    Path("strangers.json").write_text(json.dumps(records))
    contone.tables.apply_model("m.contone", "strangers.json", "p.csv")
    expected = exports.enhance(np.zeros((10, 1)), np.stack([n_a, n_b], axis=1))
    np.testing.assert_allclose(pl.read_csv("p.csv").select("a_degree", "b_degree").to_numpy(), expected, atol=1e-9)


def test_a_model_predicts_items_that_nobody_has_answered_and_gives_them_back_to_the_tool(exports):
    contone.tables.apply_model("m.contone", "bare.json", "o.csv")
    expected = exports.predict(np.zeros((10, 1)))
    np.testing.assert_allclose(pl.read_csv("o.csv").select("a_degree", "b_degree").to_numpy(), expected)
    contone.tables.apply_model("m.contone", "bare.json", "back.json")
    tasks = json.loads(Path("back.json").read_text())
    assert [record["id"] for record in tasks] == list(range(100, 110))
    region = tasks[0]["predictions"][0]["result"][0]
    assert (region["from_name"], region["to_name"], region["type"]) == ("mood", "text", "choices")
    with pytest.raises(contone.exceptions.DataError, match="holds no answers"):
        contone.enhance_file("bare.json", "p.csv")


def test_what_a_model_cannot_use_is_said(exports):
    records = json.loads(Path("new.json").read_text())
    records[1]["annotations"][0]["result"][0]["value"]["choices"] = ["c"]
    Path("other.json").write_text(json.dumps(records))
    with pytest.raises(contone.exceptions.LabelError, match="'c' is not one of the model's: a, b"):
        contone.tables.apply_model("m.contone", "other.json", "o.csv")
    pl.DataFrame({"x": [0.0, 1.0, 2.0], "a": [1, 0, 1], "b": [0, 1, 1]}).write_csv("plain.csv")
    contone.tables.fit_file("plain.csv", "plain.contone", labels="a,b", method="lcdr")
    warned: list[str] = []

    class Listen(contone.tables.Progress):
        def warn(self, message):
            warned.append(message)

    contone.tables.apply_model("plain.contone", "new.json", "o.csv", progress=Listen())
    assert "theirs are not used" in warned[0]


def test_ranks_of_several_people_are_levels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)

    def ranked(person, order):
        region = {"from_name": "q", "to_name": "t", "type": "ranker", "value": {"ranker": {"_": list(order)}}}
        return {"completed_by": person, "result": [region]}

    tasks = [
        {"id": i, "data": {}, "annotations": [ranked(w, "abc" if rng.random() < 0.8 else "bca") for w in range(3)]}
        for i in range(20)
    ]
    Path("e.json").write_text(json.dumps(tasks))
    problem = read_table("e.json")
    assert problem.rule == "levels"
    assert set(problem.Y.rows()) == {(3.0, 2.0, 1.0), (1.0, 3.0, 2.0)}
    done = contone.enhance_file("e.json", "o.csv", method=contone.Inversion(n_sweeps=40, n_burn=10))
    mean = pl.read_csv("o.csv").select(done.degrees).to_numpy().mean(axis=0)
    assert mean[0] > mean[1] > mean[2]


@pytest.mark.parametrize("stream", [False, True])
def test_one_class_per_row_is_one_vote_per_row(folder, stream):
    rng = np.random.default_rng(0)
    classes = [None, *rng.choice(["a", "b", "c"], 39)]  # the first row has none
    pl.DataFrame({"x": rng.normal(size=40), "y": classes}).write_csv("classes.csv")
    how = {"labels": ["y"], "stream": stream, "overwrite": True}
    with pytest.warns(LabelWarning, match="without any label"):
        done = contone.tables.enhance_file("classes.csv", "soft.csv", **how)
    assert done.method.degradation_ == contone.Votes()
    with pytest.warns(LabelWarning, match="without any label"):
        done = contone.tables.enhance_file("classes.csv", "soft.csv", rule="main", **how)
    assert done.method.degradation_ == contone.CumulativeMass(0.5)


def test_who_was_right_about_references_is_counted():
    said = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 1, 0], [1, 0, 0]], dtype=float)
    answers = SimpleNamespace(
        labels=["a", "b", "c"], reference={0: ("a",), 2: ("b", "c")}, Y=said,
        item=np.array([0, 0, 2, 2, 1]), annotators=["p", "q", "p", "q", "p"],
    )  # fmt: skip

    class Known(contone.Inversion):
        annotators_ = {"annotator": ["q", "p", "r"], "bits": [0.3, 0.2, 0.1]}  # noqa: RUF012

    fitted = SimpleNamespace(method=Known(degradation="votes"), problem=SimpleNamespace(answers=answers))
    found = table_of_persons(fitted)
    assert found.select("annotator", "judged", "right").rows() == [("q", 2, 0), ("p", 2, 2), ("r", 0, 0)]
    for nothing in (None, SimpleNamespace(reference={})):
        fitted.problem.answers = nothing
        assert table_of_persons(fitted).columns == ["annotator", "bits"]
    fitted.method = contone.LP()
    with pytest.raises(ArgumentError, match="persons are told apart by the rules votes, marks and levels"):
        table_of_persons(fitted)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_next_answers_go_first_to_items_that_nobody_answered(folder):
    """Then to those that tell most; of the others, nobody is asked twice about one item."""
    rows = [(f"i{i}", float(i), f"w{w}", "abc"[(i * w + w) % 3]) for i in range(6) for w in range(3)]
    rows += [("new", 9.0, None, None), ("newer", 8.0, None, None)]
    pl.DataFrame(rows, ["item", "x", "who", "label"], orient="row").write_csv("long.csv")
    options = {"labels": "label", "item": "item", "worker": "who", "rule": "votes"}
    problem = read_problem(Path("long.csv"), Reading(**options), Progress())
    usual = contone.Inversion(n_sweeps=200, n_burn=80, random_state=0)  # gains from a short chain are noise
    found = suggest_answers(problem, usual, 8, Progress())
    assert found["item"][0] in {"new", "newer"}
    assert found["gain"].min() > 0
    assert len(found) == 8
    stored = {item: x for item, x, *_ in rows}
    assert [float(x) for x in found["x"]] == [stored[item] for item in found["item"]]
    # three persons have answered everything else, so that nobody is left to be asked about it
    asked = [(item, by) for item, by in found.select("item", "by").rows() if by]
    assert {item for item, _ in asked} <= {"new", "newer"}
    assert len(set(asked)) == len(asked)
    with pytest.raises(ArgumentError, match="looked ahead by inversion; got LP"):
        suggest_answers(problem, contone.LP(), 1, Progress())
    small = contone.Inversion(max_rows=3)
    with pytest.raises(ArgumentError, match="at most 3 items can be looked ahead at"):
        suggest_answers(problem, small, 1, Progress())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_more_answers_are_expected_to_lose_less(folder):
    rows = [(f"i{i}", float(i), *np.random.default_rng(i).multinomial(4, [0.5, 0.3, 0.2])) for i in range(30)]
    pl.DataFrame(rows, ["item", "x", "a", "b", "c"], orient="row").write_csv("counts.csv")
    plan = plan_file("counts.csv", more=(0, 2, 8), labels="a,b,c", rule="votes", ids=["item"])
    assert (plan.n_items, plan.n_answers, plan.answers) == (30, 120, (4.0, 6.0, 12.0))
    assert plan.expected[0] > plan.expected[1] > plan.expected[2] > plan.floor
    assert list(plan.counting) == sorted(plan.counting)


@pytest.mark.parametrize(
    ("asked", "value", "score"), [("rating", 4, 0.6), ("votes", "4", 0.6), ("marks", ["4", "2"], [0.6, 0.3])]
)
def test_what_argilla_is_told_depends_on_what_it_asked(asked, value, score):
    """A number for a rating, one label for a choice, a list with a score each for several."""
    found = _suggestion(SimpleNamespace(asked=asked, name="q"), {"x": 1}, ["4", "2"], [0.6, 0.3])
    assert found["fields"] == {"x": 1}
    assert found["suggestions"]["q"] | {"agent": ""} == {"value": value, "score": score, "agent": ""}
