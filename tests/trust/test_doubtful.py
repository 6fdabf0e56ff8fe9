"""`doubtful_labels`: closed forms of the probability that an entry is wrong, and what the answer is labelled with."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from contone import CumulativeMass, Inversion, Temperature, TopK, doubtful_labels
from contone.enhance.inversion import simulate
from contone.enhance.inversion.chances import chances
from contone.enhance.inversion.logistic_normal import Flips
from contone.exceptions import ArgumentError, InputError, LabelWarning
from contone.trust.chances import _ranked, probability_wrong, read_noise

SHORT = {"n_sweeps": 40, "n_burn": 15}
NOISE = 0.2


@pytest.fixture(scope="module")
def pair():
    """Two labels, one of them marked in every row: which one, the sign of x says with errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1))
    first = rng.random(150) < norm.cdf(1.5 * X[:, 0])
    Y = np.column_stack([first, ~first]).astype(float)
    return Inversion(degradation=TopK(1), noise=NOISE, **SHORT).fit(X, Y), X, Y


def test_two_labels_have_a_closed_form(pair):
    # With one label per row, l* is (1, 0) with the probability p = Phi(difference of the means / its deviation), and
    # two wrong entries have the likelihood r^2, r = noise / (1 - noise).
    method, X, Y = pair
    X, Y = X[:10], Y[:10]
    mean, covariance = method.fit_.mean(X), method.fit_.parameters.covariance
    contrast = np.array([1.0, -1.0])
    p = norm.cdf((mean[0] - mean[1]) / np.sqrt(contrast @ covariance @ contrast))
    r2 = (NOISE / (1 - NOISE)) ** 2
    right, wrong = (np.where(Y[:, 0] > 0, a, b) for a, b in ((p, 1 - p), (1 - p, p)))
    chains = probability_wrong(
        method.fit_, *(np.tile(A, (200, 1)) for A in (X, Y)), NOISE, 40, np.random.default_rng(0)
    )
    P = chains.reshape(200, 10, 2).mean(axis=0)
    np.testing.assert_allclose(P[:, 0], P[:, 1])
    np.testing.assert_allclose(P[:, 0], r2 * wrong / (right + r2 * wrong), atol=0.03)


def test_a_pattern_that_the_rule_cannot_make_holds_one_wrong_entry(pair):
    method, X, Y = pair
    P = probability_wrong(method.fit_, X[:5], np.ones_like(Y[:5]), NOISE, 100, np.random.default_rng(0))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_probabilities_are_calibrated_on_labels_from_the_model():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(250, 3))
    Z = 1.5 * X @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(250, 4))
    clean = CumulativeMass().apply(np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True))
    method = Inversion(**SHORT).fit(X, clean)
    drawn = simulate.draw_rows(method.fit_, method.fit_.parameters, X, rng)
    flipped = rng.random(drawn.labels.shape) < NOISE
    L = np.where(flipped, 1 - drawn.labels, drawn.labels).astype(float)
    assert not L.any(axis=1).all()  # rows that lost all their marks are evidence, too
    P, wrong = probability_wrong(method.fit_, X, L, NOISE, 40, rng), flipped
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 1.01)):
        inside = (low <= P) & (high > P)
        deviation = np.sqrt((P[inside] * (1 - P[inside])).sum()) + 1
        assert abs(wrong[inside].sum() - P[inside].sum()) < 5 * deviation
    assert P[wrong].mean() > 2 * P[~wrong].mean()


def test_the_answer_is_ranked_named_and_without_unasked_entries(pair):
    pd = pytest.importorskip("pandas")
    method, X, Y = pair
    Y = Y.copy()
    Y[3] = np.nan, 1.0
    everything = doubtful_labels(method, X, Y, min_probability=0.0, n_sweeps=20)
    assert len(everything.row) == Y.size - 1
    assert (np.diff(everything.probability) <= 0).all()
    np.testing.assert_array_equal(everything.given, Y[everything.row, everything.label] > 0)
    assert (3, 0) not in set(zip(everything.row.tolist(), everything.label.tolist(), strict=True))
    index = [f"song {i}" for i in range(len(X))]
    frame = pd.DataFrame(Y, columns=["calm", "sad"], index=index)
    named = doubtful_labels(
        method, pd.DataFrame(X, index=index).to_numpy(), frame, min_probability=0.0, k=7, n_sweeps=20
    )
    assert named.row.tolist() == [index[i] for i in everything.row[:7]]
    assert named.label.tolist() == [frame.columns[j] for j in everything.label[:7]]
    np.testing.assert_array_equal(named.probability, everything.probability[:7])


def test_arguments_are_refused_by_name(pair):
    method, X, Y = pair
    for wrong in ({"noise": 0.5}, {"min_probability": 2}, {"k": 0}, {"n_sweeps": 3}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            doubtful_labels(method, X, Y, **wrong)
    with pytest.raises(ArgumentError, match="Temperature"):
        doubtful_labels(Temperature(), X, Y)
    with pytest.raises(InputError, match="expecting 1 features"):
        doubtful_labels(method, np.hstack([X, X]), Y)
    for reading in ("order", "votes", "marks", "levels"):
        with pytest.raises(InputError, match=f"doubtful_labels.*{reading}"):
            doubtful_labels(Inversion(degradation=reading, **SHORT), X, Y)


def test_entries_are_ranked_to_a_bound_and_a_number():
    """Equal ones in the order of the rows; what nobody asked is no entry; classes have the names of the labels."""
    P = np.array([[0.5, 0.2], [np.nan, 0.9], [0.5, 0.0]])
    L = np.array([[1.0, 0.0], [np.nan, 1.0], [0.0, 1.0]])

    def ranked(least=0.0, k=None, Y=None):
        border = SimpleNamespace(label_names=["a", "b"])
        found = _ranked(P, L, border, L if Y is None else Y, least, k)
        return list(zip(found.row.tolist(), found.label.tolist(), found.given.tolist(), found.probability.tolist(),
                        strict=True))  # fmt: skip

    everything = [(1, 1, True, 0.9), (0, 0, True, 0.5), (2, 0, False, 0.5), (0, 1, False, 0.2), (2, 1, True, 0.0)]
    assert ranked() == everything
    assert ranked(0.5) == everything[:3]  # what reaches the bound is among them
    assert ranked(0.51) == ranked(k=1) == everything[:1]
    assert [label for _, label, *_ in ranked(Y=np.array(["a", "b", "b"]))] == ["b", "a", "a", "b", "b"]


def test_one_label_is_never_wrong_and_the_other_probability_is_what_is_left(pair):
    method, X, Y = pair
    fit, one = method.fit_, np.ones((150, 1))
    with pytest.warns(LabelWarning, match="the same in every row"):
        single = Inversion(**SHORT).fit(X, one).fit_
    assert not probability_wrong(single, X, one, NOISE, 8, np.random.default_rng(0)).any()
    L = np.where(np.arange(20)[:, None] == 3, np.nan, Y[:20])
    wrong = probability_wrong(fit, X[:20], L, NOISE, 20, np.random.default_rng(0))
    marked = chances(fit, X[:20], L, Flips.of(NOISE), 20, np.random.default_rng(0))
    np.testing.assert_allclose(wrong, np.where(np.isnan(L), np.nan, np.abs(L - marked)))


@pytest.mark.parametrize(
    ("own", "given", "usual", "expected"),
    [
        (0.1, None, 0.05, 0.1), (0.0, None, 0.05, 0.05), ("auto", None, 0.05, 0.05), (0.1, 0.2, 0.05, 0.2),
        (0.1, 0.0, 0.05, 0.0), (0.1, 0.499, 0.0, 0.499), ((0.1, 0.2), None, 0.0, Flips(0.1, 0.2)),
        (0.0, (0.3, 0.0), 0.0, Flips(0.3, 0.0)), (0.1, 0, 0.0, 0.0),
    ],
)  # fmt: skip
def test_noise_is_that_given_or_that_of_the_method_or_the_usual_one(own, given, usual, expected):
    for attribute in ("noise", "noise_"):
        assert read_noise("f", SimpleNamespace(**{attribute: own}), given, usual) == expected
    assert read_noise("f", SimpleNamespace(noise=0.3, noise_=0.2), None) == 0.2  # what was found in the fit
    assert read_noise("f", SimpleNamespace(), None) == 0.0
    for wrong in (-0.1, 0.5, "much"):
        with pytest.raises(ArgumentError, match="noise must be from 0 to below 0.5"):
            read_noise("f", SimpleNamespace(noise=own), wrong)
