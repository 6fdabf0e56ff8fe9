"""Who and what, of answers by several people: by definitions, and on people whose ways are known."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rendered import paragraphs, tables

from contone.pages.render import render
from contone.trust.agreement import Agreement, agreement
from contone.trust.page import headline, people_document
from contone.trust.people import count_values, look_at_people, persons_finding, speaks_for

HOSTILE = "<img src=x onerror=alert(1)>"


def answered(m=80, q=4, k=5, seed=0):
    """People answer m items; person 1 answers at random from the middle on. What a method would have found."""
    rng = np.random.default_rng(seed)
    D = rng.dirichlet([0.5] * q, size=m)
    D[0] = [0.5, 0.5, 0.0, 0.0]
    item, who = np.repeat(np.arange(m), k), np.tile(np.arange(k), m)
    Y = np.zeros((m * k, q))
    for r, (i, w) in enumerate(zip(item, who, strict=True)):
        Y[r, rng.integers(q) if w == 1 and i > m // 2 else rng.choice(q, p=D[i])] = 1.0
    columns = {
        c: [1.0] * k for c in ("sharpness", "sharpness_lower", "sharpness_upper", "bits", "bits_lower", "bits_upper")
    }
    persons = {"annotator": [f"p{w}" for w in range(k)], "answers": [m] * k, "too_often": [HOSTILE, *[""] * (k - 1)]}
    found = SimpleNamespace(
        groups_=[f"i{i}" for i in range(m)],
        label_names_=["a", "b", "c", HOSTILE],
        label_distributions_=D,
        intervals=lambda level: (D * 0.9, D * 1.1),
        annotators_={**persons, **columns},
    )
    return found, Y, [f"i{i}" for i in item], [f"p{w}" for w in who]


def test_what_speaks_for_an_answer_is_the_mean_over_its_pairs():
    D = np.array([[0.6, 0.3, 0.1]] * 3)
    L = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [1.0, 1.0, np.nan]])
    pairs = [(2 / 3 + 6 / 7) / 2, (1 / 3 + 3 / 4 + 1 / 7) / 3]
    np.testing.assert_allclose(speaks_for(L, D), [*pairs, np.nan])


def test_a_person_who_turns_careless_drifts_and_gives_the_doubtful_answers():
    people = look_at_people(*answered())
    assert [person.name for person in people.persons if person.is_drifting] == ["p1"]
    assert people.ambiguous[0].item == "i0"
    assert people.ambiguous[0].score == pytest.approx(0.45)
    wrong = [answer.person for answer in people.doubtful]
    assert wrong.count("p1") > len(wrong) / 2
    assert (people.n_answers, people.n_items) == (400, 80)


def test_drift_is_how_far_the_second_half_agrees_better_with_its_standard_error():
    found, Y, item, who = answered()
    people = look_at_people(found, Y, item, who)
    D = np.repeat(found.label_distributions_, 5, axis=0)
    share = speaks_for(Y, D)
    for w, person in enumerate(people.persons):
        own = share[w::5]
        early, late = own[:40], own[40:]
        error = np.sqrt(early.var(ddof=1) / 40 + late.var(ddof=1) / 40)
        assert (person.drift, person.drift_error) == (pytest.approx(late.mean() - early.mean()), pytest.approx(error))
        assert person.is_drifting == (abs(person.drift) > 3 * error)
        assert (person.name, person.answers, person.too_often) == (f"p{w}", 80, HOSTILE if w == 0 else "")
    found.annotators_ = {name: column[:2] for name, column in found.annotators_.items()}
    few = look_at_people(found, Y[:45], item[:45], who[:45])  # nine answers of each
    assert [(p.drift, p.drift_error, p.is_drifting) for p in few.persons] == [(None, 0.0, False)] * 2
    assert look_at_people(found, Y[:50], item[:50], who[:50]).persons[0].drift is not None  # ten


def test_items_are_ambiguous_by_the_lower_end_of_their_second_label_and_answers_doubtful_below_one_half():
    """Three items with three answers each and one with one, which can be neither."""
    D = np.array([[0.5, 0.4, 0.1], [0.9, 0.06, 0.04], [0.4, 0.3, 0.3], [0.2, 0.5, 0.3]])
    found = SimpleNamespace(
        groups_=["a", "b", "c", "d"],
        label_names_=["x", "y", "z"],
        label_distributions_=D,
        intervals=lambda level: (D - 0.1 * level, D + 0.1 * level),
    )
    item = ["a"] * 3 + ["b"] * 3 + ["c"] * 3 + ["d"]
    Y = np.eye(3)[[0, 1, 1, 0, 0, 1, 0, 1, 2, 0]]
    people = look_at_people(found, Y, item)
    assert (people.n_answers, people.n_items, people.persons, people.findings) == (10, 4, (), ())
    assert [(row.item, row.said, row.person) for row in people.ambiguous] == [("a", "y 2, x 1", None),
                                                                              ("c", "x 1, y 1, z 1", None)]  # fmt: skip
    assert [row.score for row in people.ambiguous] == pytest.approx([0.31, 0.21])  # of more than half of 1/3
    assert people.ambiguous[0].degrees[0] == ("x", 0.5, pytest.approx(0.41), pytest.approx(0.59))
    said = [(row.item, row.said, row.score) for row in people.doubtful]
    means = {"b": (0.06 / 0.96 + 0.06 / 0.1) / 2, "a": (0.4 / 0.9 + 0.8) / 2, "c": (0.3 / 0.7 + 0.5) / 2}
    assert means["a"] > 0.5
    assert said == [("b", "y", pytest.approx(means["b"]))] + [("c", n, pytest.approx(means["c"])) for n in "yz"]
    assert people.labels[0].frequency == pytest.approx(0.5)


def test_answers_of_people_who_hardly_follow_the_items_are_counted():
    person = look_at_people(*answered()).persons[0]
    idle, careful = person._replace(sharpness=(0.2, 0.1, 0.49), answers=30), person._replace(sharpness=(0.6, 0.2, 0.51))
    for others, verdict in ((31, "fine"), (30, "fine"), (29, "doubtful")):
        found = persons_finding([idle, careful._replace(answers=others)])
        assert (found.name, found.verdict, found.value) == ("persons", verdict, 30 / (30 + others))
        assert f"1 of 2 say next to nothing (sharpness below 0.5 with 95 %); {30 / (30 + others):.0%}" in found.sentence


def page_of(**changes):
    return people_document(replace(look_at_people(*answered()), **changes), "answers.csv")


@pytest.mark.parametrize(
    ("alpha", "lower", "word"),
    [(0.9, 0.8, "well"), (0.9, 0.79, "tolerably"), (0.667, 0.5, "tolerably"), (0.66, 0.5, "little")],
)
def test_the_headline_says_how_far_people_agree(alpha, lower, word):
    said = headline(replace(look_at_people(*answered()), agreement=Agreement(alpha, lower, 0.95, 80)))
    assert said.startswith(f"People agree {word}: Krippendorff's alpha is {alpha:.2f} ({lower:.2f} to 0.95;")
    assert "An answer by p0 says 1.00 bits, one by p4 1.00." in said
    assert said.endswith("Answers of p1 changed in the course of the work.")
    unknown = replace(look_at_people(*answered()[:3]), agreement=None)
    assert headline(unknown) == "No item has two different answers to compare: agreement cannot be measured."


def test_the_tables_of_people_say_what_was_found():
    pytest.importorskip("jinja2")
    people = look_at_people(*answered())
    document = page_of()
    assert document.about == "answers.csv: 400 answers about 80 items by 5 people."
    text = render(document, "html")
    ((_, who),) = tables(text, "who")
    assert [name for name, _ in who] == [f"p{w}" for w in range(5)]
    person, cells = people.persons[1], who[1][1]
    assert [cell.text for cell in cells[:3]] == ["80", "1.00", "1.00"]
    assert cells[1].note == "1.00 to 1.00"
    assert cells[4].text == f"{person.drift:+.2f} ± {person.drift_error:.2f}".replace("-", "−")
    assert cells[4].value == person.drift
    assert [row[4].state for _, row in who] == ["", "doubtful", "", "", ""]
    (_, ambiguous), (_, doubtful) = tables(text, "what")
    assert [(name, row[0].text, row[1].value) for name, row in ambiguous] == [
        (found.item, found.said, found.score) for found in people.ambiguous
    ]
    assert [(name, row[1].text) for name, row in doubtful] == [(a.item, a.person) for a in people.doubtful]
    name, degree, low, high = people.ambiguous[0].degrees[0]
    assert ambiguous[0][1][2].text.startswith(f"{name} {100 * degree:.0f} % ({100 * low:.0f} to {100 * high:.0f}), ")
    persons = tuple(person._replace(name=f"p{k}") for k, person in enumerate(people.persons * 101))
    many = render(page_of(persons=persons), "html")
    assert "5 more people, who say less, are not shown" in paragraphs(many, "who")[-1]
    assert len(tables(many, "who")[0][1]) == 500
    assert "more people, who" not in paragraphs(text, "who")[-1]
    none = paragraphs(render(page_of(ambiguous=(), doubtful=()), "html"), "what")
    assert none[2::2] == ["No item is clearly ambiguous.", "No answer is doubtful."]


def test_marks_and_levels_agree_label_by_label():
    rng = np.random.default_rng(0)
    item, L = np.repeat(np.arange(60), 3), rng.integers(0, 3, (180, 2)).astype(float)
    counts = count_values(L, item)
    assert counts.shape == (2, 60, 3)
    assert (counts.sum(axis=2) == 3).all()
    assert agreement(counts[:1]).alpha == agreement(counts[0]).alpha
    one, other = agreement(counts[0]).alpha, agreement(counts[1]).alpha
    assert min(one, other) <= agreement(counts).alpha <= max(one, other)


def test_the_page_is_whole_and_names_are_text():
    pytest.importorskip("jinja2")
    text = render(people_document(look_at_people(*answered()), HOSTILE), "html")
    assert HOSTILE not in text
    for part in ("People", "Ambiguous", "Doubtful", "Krippendorff", "Degrees by label"):
        assert part in text
    assert "name the column of the person" in render(people_document(look_at_people(*answered()[:3])), "html")
