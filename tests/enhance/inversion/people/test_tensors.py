"""Rows of tensors are answered as the compiled loops answer them."""

import numpy as np
import pytest

from contone import Inversion
from contone.backends import to_numpy
from contone.enhance.inversion.people.blend import Blend
from contone.enhance.inversion.people.matching import MatchedShares
from contone.enhance.inversion.people.model import sort_responses

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Z = X @ rng.normal(size=(3, 4)) + rng.normal(size=(80, 4))
    shares = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    Y = rng.multinomial(rng.integers(1, 12, 80), shares).astype(float)
    return X, Y


@pytest.fixture(scope="module", params=[False, True], ids=["counts", "persons"])
def model(votes, request):
    X, Y = votes
    method = Inversion(degradation="votes", n_sweeps=40, n_burn=20)
    if not request.param:
        return method.fit(X, Y).fit_
    item, label = (np.repeat(A, Y[Y > 0].astype(int)) for A in np.nonzero(Y))
    return method.fit(X[item], np.eye(4)[label], groups=item, annotators=np.arange(len(item)) % 13).fit_


def test_tensors_are_weighed_as_rows_are(votes, model):
    from contone.enhance.inversion.people.tensors import weigh_votes

    _, Y = votes
    Y = Y.copy()
    Y[:20, 1] = np.nan  # not on offer
    Y[20:22] = np.nan  # nobody was asked
    Y[22] = [1e6, 0, 3, 0]  # where Newton's method steps too far
    shares = np.random.default_rng(1).dirichlet(np.ones(4), len(Y))
    responses, features = sort_responses(0, Y, len(Y)), [MatchedShares(shares)]
    trusting = [draw._replace(coefficients=np.ones(1), intercept=np.zeros(4)) for draw in model.draws[:3]]
    for draws in (model.draws, trusting):  # by features that tell all that is known of the mean, as well
        told = model.weigh(responses, features, draws)
        found = weigh_votes(torch.as_tensor(Y), [MatchedShares(torch.as_tensor(shares))], draws)
        (D, centre, width), evidence = found
        np.testing.assert_allclose(D, told.mean, atol=2e-6)
        np.testing.assert_allclose(centre, told.logit_centre, atol=1e-4)
        np.testing.assert_allclose(width, told.logit_width, atol=1e-4)
        np.testing.assert_allclose(evidence, model.chain_alone(responses, features, draws, 0)[1], atol=1e-4)


def test_blocks_of_tensors_make_no_difference(votes, model, monkeypatch):
    from contone.enhance.inversion.people import tensors

    counts, features = torch.as_tensor(votes[1]), [MatchedShares(torch.full((80, 4), 0.25, dtype=torch.float64))]
    whole = tensors.weigh_votes(counts, features, model.draws)
    monkeypatch.setattr(tensors, "NUMBERS_AT_ONCE", 4 * 16 * 7)
    for A, B in zip(whole, tensors.weigh_votes(counts, features, model.draws), strict=True):
        np.testing.assert_allclose(A, B, rtol=1e-10)


@pytest.mark.parametrize("blend", [None, Blend(np.array([0.5, 0.3, 0.2]), np.array([1.0, 8.0]))])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_answer_of_the_processor(votes, monkeypatch, blend):
    """Also where some items are of other kinds; features are matched there, too."""
    X, Y = votes
    monkeypatch.setattr(Blend, "of", lambda *_: blend)
    method = Inversion(degradation="votes", max_rows=40, n_sweeps=40, n_burn=20)
    here, ends = method.fit_enhance(X, Y), method.intervals()
    there = method.fit_enhance(torch.as_tensor(X, device="cuda"), torch.as_tensor(Y, device="cuda"))
    assert there.is_cuda
    np.testing.assert_allclose(there.cpu(), here, atol=2e-6)
    for a, b in zip(method.intervals(), ends, strict=True):
        np.testing.assert_allclose(to_numpy(a), b, atol=1e-4)
