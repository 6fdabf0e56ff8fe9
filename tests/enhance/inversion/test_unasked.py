"""Entries that nobody asked about, and rows without any label: exact posteriors, and what stays as it was."""

import itertools

import numpy as np
import pytest

from contone import CumulativeMass, Inversion, Temperature, Threshold, TopK
from contone.enhance.inversion import chain, logistic_normal, unasked
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import LabelError, LabelWarning
from contone.measurements import Order
from contone.numerics.simplex import softmax

NAN = np.nan
QUICK = {"n_sweeps": 40, "n_burn": 15}
RULES = [CumulativeMass(), CumulativeMass(0.8), TopK(2), Threshold(0.3), Threshold(0.4, at_least_one=False), Order()]


def model_rows(n=60, q=4, spread=0.5, seed=0, rule=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    D = softmax(spread * (0.6 * X @ rng.normal(size=(3, q)) + 0.7 * rng.normal(size=(n, q))))
    return X, D, (rule or CumulativeMass()).apply(D).astype(float)


def hide(L, share, seed=0):
    return np.where(np.random.default_rng(seed).random(L.shape) < share, np.nan, L)


def agrees(rule, D, l):
    """Whether distributions D (m, q) have the labels l (q,) where these were asked."""
    asked = ~np.isnan(l)
    if isinstance(rule, Order):
        yes, no = D[:, asked & (l > 0)], D[:, asked & (l == 0)]
        return yes.min(axis=1, initial=np.inf) >= no.max(axis=1, initial=-np.inf)
    return (np.asarray(rule._apply(D))[:, asked] == (l[asked] > 0)).all(axis=1)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_posterior_is_that_of_all_completions(rule):
    """For q = 3, every pattern of 0, 1, NaN: means over a chain, and over draws of the prior that agree with it."""
    patterns = np.array(list(itertools.product([0.0, 1.0, NAN], repeat=3)))
    patterns = patterns[np.isnan(patterns).any(axis=1) & ~np.isnan(patterns).all(axis=1)]
    centre, A = np.array([0.3, -0.2, 0.1]), np.array([[1.0, 0.0, 0.0], [-0.4, 0.8, 0.0], [-0.6, -0.8, 0.3]])
    C = logistic_normal.centring(3)
    covariance = C @ (A @ A.T) @ C
    rng = np.random.default_rng(1)
    prior = softmax(centre + rng.standard_normal((40_000, 3)) @ logistic_normal.square_root(covariance).T)
    among = [agrees(rule, prior, l) for l in patterns]
    patterns, among = patterns[[m.sum() > 500 for m in among]], [m for m in among if m.sum() > 500]
    assert len(patterns) >= 12
    expected = np.array([prior[m].mean(axis=0) for m in among])
    copies, n_sweeps, burn = 100, 50, 10
    rows = Rows(rule, np.repeat(patterns, copies, axis=0))
    assert rows.n_relaxed == 0
    mean = np.repeat(centre[:, None], rows.Z.shape[1], axis=1)
    total = 0.0
    for k in range(n_sweeps):
        rows.sweep(mean, logistic_normal.precision(covariance), rng, reflect=k % 2 == 1)
        total = total + (softmax(rows.Z.T) if k >= burn else 0.0)
    D = softmax(rows.Z.T)
    for k, l in enumerate(patterns):
        assert agrees(rule, D[k * copies : (k + 1) * copies], l).all()
    found = (total / (n_sweeps - burn)).reshape(len(patterns), copies, 3).mean(axis=1)
    np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize("tail", [np.inf, 4.0])
def test_completions_far_apart_have_their_shares(tail):
    """Labels that nearly move as one: nothing is likely that one label at a time could pass through on the way."""
    C, centre, apart = logistic_normal.centring(3), np.array([0.26, -0.1, -0.16]), np.array([0.31, -0.07, -0.24])
    l = np.array([NAN, 1.0, 0.0])
    covariance, rule, rng = (
        C @ (np.outer(apart, apart) + 1e-3 * np.eye(3)) @ C,
        CumulativeMass(0.8),
        np.random.default_rng(1),
    )
    draws = rng.standard_normal((400_000, 3)) @ logistic_normal.square_root(covariance).T
    if tail < np.inf:
        draws /= np.sqrt(rng.chisquare(tail, (len(draws), 1)) / tail)
    prior = softmax(centre + draws)
    rows = Rows(rule, np.repeat(l[None], 200, axis=0), tail=tail)
    mean, total = np.repeat(centre[:, None], 200, axis=1), 0.0
    for k in range(84):
        rows.sweep(mean, logistic_normal.precision(covariance), rng, reflect=k % 2 == 1)
        total = total + (softmax(rows.Z.T) if k >= 9 else 0.0)
    expected = prior[agrees(rule, prior, l)].mean(axis=0)
    np.testing.assert_allclose((total / 75).mean(axis=0), expected, atol=0.02)


@pytest.fixture(scope="module")
def partly():
    """Model rows with a third of the entries unasked, two rows without any label, and a fit to them."""
    X, _, L = model_rows()
    L = hide(L, 0.3)
    L[5], L[9] = 0.0, NAN
    with pytest.warns(LabelWarning, match="without any label .* of 60, first row"):
        method = Inversion(n_samples=2, **QUICK).fit(X, L)
    return X, L, method


def test_rows_without_a_label_get_what_predict_says(partly):
    X, L, method = partly
    prior = method.predict(X[[5, 9]])
    np.testing.assert_allclose(method.label_distributions_[[5, 9]], prior, rtol=1e-12)
    np.testing.assert_allclose(method.enhance(X, L)[[5, 9]], prior, rtol=1e-12)
    for of_fit, of_new, of_prior in zip(
        method.intervals(level=0.9), method.intervals(X, L), method.intervals(X[[5, 9]]), strict=True
    ):
        np.testing.assert_allclose(of_fit[[5, 9]], of_prior, rtol=1e-12)
        np.testing.assert_allclose(of_new[[5, 9]], of_prior, rtol=1e-12)


def test_rows_without_a_label_have_no_part_in_the_fit(partly):
    X, L, method = partly
    told = ~CumulativeMass().silent(L)
    alone = Inversion(n_samples=2, **QUICK).fit(X[told], L[told])
    np.testing.assert_array_equal(alone.label_distributions_, method.label_distributions_[told])
    np.testing.assert_array_equal(alone.covariance_, method.covariance_)


def test_samples_have_the_asked_labels(partly):
    _, L, method = partly
    for D in method.samples_:
        wrong = (CumulativeMass().apply(D) != L) & ~np.isnan(L)
        assert not wrong[~CumulativeMass().silent(L)].any()


def test_a_row_is_expected_to_be_worse_the_less_was_asked(partly):
    _, L, method = partly
    rows = method.expected_error_.rows
    asked = (~np.isnan(L)).sum(axis=1)
    assert rows[asked == 4].mean() < rows[(asked > 0) & (asked < 4)].mean() < rows[[5, 9]].mean()


def test_a_row_of_zeros_under_a_threshold_is_evidence():
    X, D, _ = model_rows(q=3, spread=1.0)
    rule = Threshold(0.6, at_least_one=False)
    L = rule.apply(D).astype(float)
    empty = (L == 0).all(axis=1)
    assert 5 < empty.sum() < 55
    method = Inversion(degradation="threshold:0.6", n_samples=3, **QUICK).fit(X, L)
    assert method.degradation_ == rule
    assert (method.samples_[:, empty] <= 0.6).all()


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_every_container_has_its_missing_entries(partly):
    pd, pl, torch = (pytest.importorskip(name) for name in ("pandas", "polars", "torch"))
    X, L, method = partly
    expected = Temperature(c=1.0).fit_enhance(X, L)
    objects = np.where(np.isnan(L), None, L)
    nullable = pd.DataFrame(objects).astype("Float64").astype("Int64")
    mixed = pd.DataFrame({j: [pd.NA if v is None else bool(v) for v in objects[:, j]] for j in range(4)}, dtype=object)
    polars = pl.DataFrame({str(j): pl.Series(list(objects[:, j]), dtype=pl.Float64).cast(pl.Int8) for j in range(4)})
    for Y in (objects, objects.tolist(), nullable, mixed, polars, pd.DataFrame(L)):
        answer = Temperature(c=1.0).fit_enhance(X, Y)
        assert type(answer) is (type(Y) if isinstance(Y, pd.DataFrame | pl.DataFrame) else np.ndarray)
        np.testing.assert_array_equal(np.asarray(answer), expected)
    on_torch = Inversion(n_samples=2, **QUICK).fit_enhance(torch.tensor(X), torch.tensor(L))
    np.testing.assert_allclose(on_torch.numpy(), method.label_distributions_, atol=1e-9)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_dask_blocks_make_no_difference(partly):
    da = pytest.importorskip("dask.array")
    X, L, _ = partly
    answers = []
    for size in (60, 17):
        lazy = da.from_array(X, chunks=(size, 3)), da.from_array(L, chunks=(size, 4))
        method = Inversion(max_rows=40, **QUICK)
        answers += [np.asarray(method.fit_enhance(*lazy)), np.asarray(method.enhance(*lazy))]
    np.testing.assert_allclose(answers[0], answers[2], atol=1e-12)
    np.testing.assert_allclose(answers[1], answers[3], atol=1e-12)
    np.testing.assert_allclose(answers[0][[5, 9]], method.predict(X[[5, 9]]), rtol=1e-10)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_too_few_labels_say_so():
    with pytest.raises(LabelError, match="1 rows with a label"):
        Inversion().fit([[0.0], [1.0], [2.0]], [[1, 0, 0], [0, 0, 0], [NAN, NAN, NAN]])


@pytest.mark.parametrize("rule", [CumulativeMass(), Threshold(0.2, at_least_one=False)], ids=str)
def test_partial_counts_of_whole_rows_are_the_counts(rule):
    """With nothing unasked, the likelihood of the spread is that of the numbers of labels, up to the smoothing."""
    _, D, _ = model_rows(n=400)
    L = rule.apply(D).astype(float)
    counts = chain.count_labels(L, rule)
    whole = np.zeros((5, 5))
    whole[4, int(rule.at_least_one) :] = counts
    partial = unasked.PartialCounts(whole, np.ones((1, 4), dtype=bool), rule.at_least_one)
    Z = np.random.default_rng(0).standard_normal((2000, 4))
    spreads, how = np.array([0.2, 0.7, 2.0]), (rule.cardinality, logistic_normal.NO_FLIPS)
    expected = logistic_normal._likelihood(Z, counts, *how)(spreads)
    np.testing.assert_allclose(partial.likelihood(Z, *how)(spreads), expected, rtol=1e-9)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
@pytest.mark.parametrize("spread", [0.15, 0.5, 2.0])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_coverage_with_unasked_entries(spread, share):
    covered = [_coverage(spread, share, 1000, seed, {}) for seed in range(4)]
    assert 0.87 <= np.mean(covered) <= 0.93


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_coverage_with_unasked_entries_in_short():
    assert 0.85 <= _coverage(0.5, 0.3, 600, 0, {"n_sweeps": 80, "n_burn": 30}) <= 0.95


def _coverage(spread, share, n, seed, settings):
    X, D, L = model_rows(n, 5, spread, seed)
    lower, upper = Inversion(**settings).fit(X, hide(L, share, seed)).intervals(level=0.9)
    return np.mean((lower <= D) & (upper >= D))
