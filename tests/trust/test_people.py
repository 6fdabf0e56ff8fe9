"""Who and what, of answers by several people: by definitions, and on people whose ways are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from contone.pages.render import render
from contone.trust.agreement import agreement
from contone.trust.page import people_document
from contone.trust.people import count_values, look_at_people, speaks_for

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
    for part in ("Who", "Ambiguous", "Doubtful", "Krippendorff", "Degrees by label"):
        assert part in text
    assert "name the column of the person" in render(people_document(look_at_people(*answered()[:3])), "html")
