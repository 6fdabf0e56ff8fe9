"""One choice on an ordered scale: what the order tells where votes are few."""

import numpy as np

from contone import Inversion, Votes
from contone.measurements import Levels
from contone.numerics.simplex import softmax


def test_the_order_of_the_labels_helps_with_one_vote_and_does_no_harm_with_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    place = X @ [1.0, 0.5, 0.0] + rng.normal(size=300)
    D = softmax(-0.5 * (place[:, None] - np.linspace(-2.0, 2.0, 5)) ** 2 / 0.8)

    def error(n_votes, ordered):
        Y = np.stack([rng.multinomial(n_votes, d) for d in D]).astype(float)
        found = Inversion(degradation=Votes(ordered=ordered), n_sweeps=100, n_burn=40).fit_enhance(X, Y)
        return (D * np.log(D / found)).sum(axis=1).mean()

    assert error(1, ordered=True) < 0.97 * error(1, ordered=False)
    assert error(20, ordered=True) < 1.1 * error(20, ordered=False)


def test_equal_measurements_are_equal_values():
    assert Votes(ordered=True) != Votes()
    assert Levels((0, 3)) == Levels((0, 3))
