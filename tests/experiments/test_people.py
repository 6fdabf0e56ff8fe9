"""Answers of people: how they are split and read, what counting makes of them, and the comparison as a whole."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from contone import Inversion, Temperature, Uniform
from contone.exceptions import DataError, InputError
from contone.experiments.answers import Answers, read_answers
from contone.experiments.compute import compute
from contone.experiments.judging import COUNTERS, best_temperature, judge, log_loss, marks
from contone.experiments.people import make_report, plan_people, table
from contone.experiments.run import run as run_cells
from contone.experiments.store import Store, load_results
from contone.measurements import Votes


@pytest.fixture
def votes():
    """40 items, 3 labels, 6 votes each by 5 people or unknown ones, simulated from degrees that X explains."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Z = X @ rng.normal(size=(2, 3)) * 1.5
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    item = np.repeat(np.arange(40), 6)
    label = np.array([rng.choice(3, p=D[i]) for i in item])
    return Answers(X, item, np.full(240, -1), label, ("a", "b", "c"))


def save(folder, name, answers):
    np.savez(
        folder / f"{name}.npz",
        X=answers.X.astype(np.float32),
        item=answers.item.astype(np.int32),
        worker=answers.worker.astype(np.int32),
        label=answers.label.astype(np.int32),
        labels=np.array(answers.labels),
    )


@pytest.mark.parametrize("k", [1, 3, 6, 9])
def test_given_and_left_out_answers_are_all_of_them(votes, k):
    given, left = votes.split(k, seed=1)
    np.testing.assert_array_equal(given.counts() + left.counts(), votes.counts())
    np.testing.assert_array_equal(given.n_answers(), min(k, 6))
    again, _ = votes.split(k, seed=1)
    np.testing.assert_array_equal(again.label, given.label)
    if k == 3:
        assert not np.array_equal(votes.split(k, seed=2)[0].counts(), given.counts())


def test_every_answer_is_drawn_alike(votes):
    drawn = np.mean([votes.split(2, seed)[0].counts() for seed in range(300)], axis=0)
    np.testing.assert_allclose(drawn, votes.counts() / 3, atol=0.35)


def test_several_marks_of_one_person_are_one_answer():
    answers = Answers(
        np.zeros((2, 1)),
        np.array([0, 0, 0, 0, 1, 1]),
        np.array([7, 7, 8, 9, 7, 7]),
        np.array([0, 1, 1, 2, 0, 2]),
        ("a", "b", "c"),
    )
    np.testing.assert_array_equal(answers.n_answers(), [3, 1])
    for seed in range(10):
        given, left = answers.split(1, seed)
        np.testing.assert_array_equal(given.n_answers(), 1)
        first = given.counts()[0]
        assert tuple(first) in {(1, 1, 0), (0, 1, 0), (0, 0, 1)}
        assert left.counts()[1].sum() == 0
    np.testing.assert_array_equal(marks(answers, "majority"), [[0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(marks(answers, "any"), [[1, 1, 1], [1, 0, 1]])


def test_a_sample_of_items_keeps_all_their_answers(votes, tmp_path):
    some = votes.sample(10)
    assert some.X.shape == (10, 2)
    rows = [int(np.flatnonzero((x == votes.X).all(axis=1))[0]) for x in some.X]
    assert rows == sorted(rows)
    np.testing.assert_array_equal(some.counts(), votes.counts()[rows])
    assert votes.sample(40) is votes.sample(0) is votes
    save(tmp_path, "one", votes)
    cells = plan_people(tmp_path, {}, answers=(1,), seeds=1, max_rows=10).cells
    assert {c.dataset for c in cells} == {"one (10 items)"}
    assert compute(cells[0])["data"]["n"] == 10
    with pytest.raises(InputError, match="max_rows=1"):
        plan_people(tmp_path, {}, max_rows=1)


def test_without_a_majority_those_named_most_often_are_marked():
    answers = Answers(np.zeros((1, 1)), np.zeros(4, int), np.full(4, -1), np.array([0, 0, 1, 1]), ("a", "b", "c"))
    np.testing.assert_array_equal(marks(answers, "majority"), [[1, 1, 0]])


def test_dawid_and_skene_find_one_truth_and_who_knows_it():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    item, worker = (A.ravel() for A in np.meshgrid(np.arange(200), np.arange(6), indexing="ij"))
    skill = np.array([0.95, 0.9, 0.9, 0.5, 0.34, 0.34])
    right = rng.random(1200) < skill[worker]
    label = np.where(right, truth[item], rng.integers(0, 3, 1200))
    answers = Answers(np.zeros((200, 1)), item, worker, label, ("a", "b", "c"))
    found = COUNTERS["Dawid-Skene"](answers)
    majority = answers.counts().argmax(axis=1)
    assert np.mean(found.argmax(axis=1) == truth) > np.mean(majority == truth)
    assert np.mean(found.argmax(axis=1) == truth) > 0.97
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_dawid_and_skene_by_loops():
    """Expectation and maximisation written out, for three people and two labels."""
    answers = Answers(np.zeros((4, 1)), np.array([0, 0, 0, 1, 1, 2, 2, 3]), np.array([5, 6, 7, 5, 6, 6, 7, 7]),
                      np.array([0, 0, 1, 1, 1, 0, 1, 1]), ("a", "b"))  # fmt: skip
    lines = list(zip(answers.item, answers.worker - 5, answers.label, strict=True))
    T = answers.counts() + 0.5
    T /= T.sum(axis=1, keepdims=True)
    for _ in range(500):
        share, confusion = T.mean(axis=0), np.full((3, 2, 2), 0.01)
        for i, w, l in lines:
            confusion[w, l] += T[i]
        confusion /= confusion.sum(axis=1, keepdims=True)
        new = np.tile(share, (4, 1))
        for i, w, l in lines:
            new[i] *= confusion[w, l]
        T = new / new.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(COUNTERS["Dawid-Skene"](answers), T, atol=1e-4)


def test_the_best_temperature_has_a_closed_form_for_two_labels():
    """R = (.8, .2) everywhere and a share .6 for the first: R^t is (.6, .4) at t = log(.6 / .4) / log(.8 / .2)."""
    counts, R = np.tile([6.0, 4.0], (5, 1)), np.tile([0.8, 0.2], (5, 1))
    least, t = best_temperature(counts, R)
    assert least == pytest.approx(-0.6 * math.log(0.6) - 0.4 * math.log(0.4))
    assert t == pytest.approx(math.log(1.5) / math.log(4.0), rel=1e-3)


def test_what_is_judged_is_counted(votes):
    given, left = votes.split(5, 2)
    scores, extra = judge({"k": 5, "counts": "Counting"}, votes, 2)
    assert extra["judged"] == 40
    assert scores["log_loss"] == pytest.approx(log_loss(left.counts(), COUNTERS["Counting"](given)))
    assert scores["log_loss_tempered"] == pytest.approx(best_temperature(left.counts(), COUNTERS["Counting"](given))[0])
    with pytest.raises(DataError, match="more than 6 answers"):
        judge({"k": 6, "counts": "Counting"}, votes, 0)


def test_the_verdict_counts_the_sets_on_which_a_method_beats_both_ways_of_counting(tmp_path):
    store, planned = Store(tmp_path), []
    losses = {"Counting": (0.5, 0.7, 0.5), "Dirichlet-multinomial": (0.6, 0.6, 0.5), "A": (0.4, 0.55, 0.4),
              "B": (0.55, 0.59, 0.5), "C": (0.5, 0.6, 0.5)}  # fmt: skip
    for row, values in losses.items():
        for name, value in zip("xyz", values, strict=True):
            cell = {"key": row + name, "experiment": "people", "dataset": name, "row": row, "method": row, "seed": 0}
            cell |= {"setting": {"k": 3}, "baseline": row in list(losses)[:2], "oracle": False, "task": {}}
            record = {"key": cell["key"], "status": "done", "cell": cell, "warnings": [], "solution": {}, "extra": {}}
            record |= {"scores": {"log_loss": value, "log_loss_tempered": value}, "time": {"cpu": 1.0, "wall": 1.0}}
            store.add({**record, "data": {"n": 1, "d": 1, "q": 2, "labels_per_row": 1.0}})
            planned.append(cell)
    store.open_run({"versions": {}, "machine": {}}, planned)
    report = make_report(store)
    (said,) = report.sentences
    assert said == "Given 3 answers per item, counting is beaten by A on 3, B on 1 of 3 sets."
    grid = report.section("answers-3").grids()[0]
    assert [(row.name, row.cells[0].text, row.kind) for row in grid.rows] == [
        ("A", "0.450", "method"), ("C", "0.533", "method"), ("B", "0.547", "method"),
        ("Counting", "0.567", "baseline"), ("Dirichlet-multinomial", "0.567", "baseline"),
    ]  # fmt: skip
    assert report.section("summary").blocks[0].items == (said,)
    none = make_report(Store(tmp_path / "none"))
    assert none.sentences == ()
    assert none.section("summary").blocks[0].items == ("No results are here yet.",)


def test_log_loss_is_the_mean_over_items_and_is_clipped():
    counts, R = np.array([[3.0, 1.0], [0.0, 1.0], [0.0, 0.0]]), np.array([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    assert log_loss(counts, R) == pytest.approx((math.log(2) - math.log(1e-9)) / 2, rel=1e-6)
    tempered, exponent = best_temperature(counts, np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]))
    assert tempered <= log_loss(counts, np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]))
    assert exponent > 0


def test_the_comparison_goes_on_where_it_stopped(votes, tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    save(folder, "one", votes)
    methods = {"Uniform": Uniform(), "Temperature": Temperature()}
    cells = plan_people(folder, methods, answers=(1, 3), seeds=2).cells
    store = Store(tmp_path / "store")
    first = run_cells(cells[:10], store, jobs=1)
    again = run_cells(cells, store, jobs=1)
    assert first.failed == again.failed == 0
    assert again.reused == first.done
    results = load_results(store)
    one, three = ({row.name: row.cells[1].value for row in table(results, k, "log_loss").rows} for k in (1, 3))
    assert {*COUNTERS, "Uniform", "Temperature"} <= set(one)
    assert set(three) - set(one) == {"Uniform (any)", "Temperature (any)"}
    assert one["Uniform"] == pytest.approx(math.log(3))
    assert list(three.values()) == sorted(three.values())
    tempered = {row.name: row.cells[1].value for row in table(results, 3, "log_loss_tempered").rows}
    assert all(tempered[name] <= value + 1e-9 for name, value in three.items())
    cell = next(c for c in cells if c.row == "Temperature" and c.setting == {"k": 3} and c.seed == 1)
    given, left = read_answers(folder / "one.npz").split(3, 1)
    by_hand = log_loss(left.counts(), Temperature().fit_enhance(given.X, marks(given, "majority")))
    assert compute(cell)["scores"]["log_loss"] == pytest.approx(by_hand)
    counted = min(three["Counting"], three["Dirichlet-multinomial"])
    said = make_report(store).sentences[1]
    assert all((f"{name} on 1" in said) == (three[name] < counted) for name in ("Uniform", "Temperature"))


def test_a_report_on_sets_without_an_answer_left_says_so(votes, tmp_path):
    save(tmp_path, "one", votes)
    store = Store(tmp_path / "store")
    assert run_cells(plan_people(tmp_path, {}, answers=(6,), seeds=1).cells[:2], store, jobs=1).failed == 2
    assert make_report(store).sentences == ("Given 6 answers per item, no set has answers left to judge by.",)


def test_votes_of_known_people_are_read_with_their_names(votes, tmp_path):
    known = Answers(votes.X, votes.item, np.arange(240) % 6, votes.label, votes.labels)
    save(tmp_path, "one", known)
    (cell,) = [c for c in plan_people(tmp_path, {}, answers=(3,), seeds=1).cells if c.row == "Inversion (votes)"]
    given, left = known.split(3, 0)
    order = np.argsort(given.item, kind="stable")
    method = Inversion(degradation="votes", random_state=0)
    R = method.fit_enhance(
        given.X[given.item[order]],
        np.eye(3)[given.label[order]],
        groups=given.item[order],
        annotators=given.worker[order],
    )
    np.testing.assert_array_equal(np.asarray(method.groups_), np.arange(40))
    assert compute(cell)["scores"]["log_loss"] == pytest.approx(log_loss(left.counts(), np.asarray(R)), abs=1e-6)


@pytest.mark.parametrize(("labels", "ordered"), [(("a", "b", "c"), False), (("1", "2", "3"), True)])
def test_labels_that_are_numbers_are_levels_of_one_scale(votes, tmp_path, labels, ordered):
    save(tmp_path, "one", Answers(votes.X, votes.item, votes.worker, votes.label, labels))
    (cell,) = [c for c in plan_people(tmp_path, {}, answers=(3,), seeds=1).cells if c.row == "Inversion (votes)"]
    given, left = votes.split(3, 0)
    R = Inversion(degradation=Votes(ordered=ordered), random_state=0).fit_enhance(votes.X, given.counts())
    assert compute(cell)["scores"]["log_loss"] == pytest.approx(log_loss(left.counts(), np.asarray(R)), abs=1e-6)


def test_bad_sets_get_a_sentence(votes, tmp_path):
    with pytest.raises(InputError, match="has no set of answers"):
        plan_people(tmp_path, {})
    save(tmp_path, "one", votes)
    with pytest.raises(InputError, match="whole numbers of at least 1"):
        plan_people(tmp_path, {}, answers=(0,))
    np.savez(tmp_path / "two.npz", X=votes.X, item=votes.item)
    with pytest.raises(DataError, match="has no array 'worker'"):
        read_answers(tmp_path / "two.npz")
    np.savez(
        tmp_path / "two.npz",
        X=votes.X,
        item=votes.item + 1,
        worker=votes.worker,
        label=votes.label,
        labels=["a", "b", "c"],
    )
    with pytest.raises(DataError, match="item must be between 0 and 39"):
        read_answers(tmp_path / "two.npz")
    (tmp_path / "two.npz").write_text("no archive")
    with pytest.raises(DataError, match=r"two\.npz cannot be read: it is damaged"):
        read_answers(tmp_path / "two.npz")


def test_without_a_left_out_answer_there_is_no_score(votes, tmp_path):
    save(tmp_path, "one", votes)
    for cell in plan_people(tmp_path, {}, answers=(6,), seeds=1).cells:
        record = compute(cell)
        assert record["status"] == "failed"
        assert "No item has more than 6 answers" in record["error"]


def test_the_command_prints_and_writes_the_table(votes, tmp_path, run):
    folder = tmp_path / "sets"
    folder.mkdir()
    save(folder, "one", votes)
    asked = ("benchmark", "--people", str(folder), "--methods", "temperature", "--seeds", "1", "--jobs", "1")
    store = ("--store", str(tmp_path / "store"))
    result = run(*asked, *store, "--out", str(tmp_path / "table.md"))
    assert result.exit_code == 0, result.output
    assert "Dirichlet-multinomial" in result.stdout
    assert "Given 3 answers per item" in (tmp_path / "table.md").read_text()
    page = json.loads(run(*asked, *store, "--json").stdout)
    assert {"answers-1", "answers-3", "provenance"} <= {section["name"] for section in page["sections"]}
    assert run(*asked, *store, "--out", str(tmp_path / "table.tex")).exit_code == 0
    assert "Counting" in run("report", *store, "--format", "latex", "-o", "-").stdout
    assert run(*asked, *store, "--out", str(tmp_path / "table.doc")).exit_code == 2
    assert run(*asked, *store, "--answers", "x").exit_code != 0
