"""Torch tensors in, torch tensors out, on their device, with NumPy's answers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

torch = pytest.importorskip("torch")

import contone.backends.torch as torch_backend  # noqa: E402
from contone import (  # noqa: E402
    AAKNN,
    GLLE,
    KM,
    LEIC,
    LEVI,
    LIBLE,
    LP,
    Augmented,
    ConLE,
    CumulativeMass,
    HSICReducer,
    Inversion,
    LabelConfidence,
    LCdr,
    Threshold,
    TopK,
)
from contone.backends import get_backend, like, to_numpy  # noqa: E402
from contone.backends.numpy.duplicates import hash_rows  # noqa: E402
from contone.backends.torch import neighbours as neighbours_torch  # noqa: E402
from contone.backends.torch.draws import FEW, TensorDraws  # noqa: E402
from contone.backends.torch.graph import TorchGraph, weighted_bags  # noqa: E402
from contone.enhance.glle import average_equal_rows  # noqa: E402
from contone.enhance.inversion.sweeps import Bound, Move  # noqa: E402
from contone.enhance.inversion.sweeps.reference import ReferenceSweeps  # noqa: E402
from contone.enhance.rectified import objective_and_gradient  # noqa: E402
from contone.exceptions import (  # noqa: E402
    FeatureError,
    InputTypeError,
    LabelError,
    LabelWarning,
    MemoryEstimateError,
    NearUniformWarning,
    RankWarning,
    ShapeError,
)
from contone.numerics.graphs import nearest_neighbours, query_neighbours  # noqa: E402
from contone.numerics.truncated import truncated_normal  # noqa: E402

METHODS = {
    "LabelConfidence": LabelConfidence,
    "LCdr": LCdr,
    "LCdr rescaled": lambda: LCdr(rescale="unit_variance", n_components=0.9, sigma="median_knn"),
    "Augmented": lambda: Augmented(GLLE(lambda_="balanced"), reducer=None),
    "GLLE": GLLE,
    "GLLE sum": lambda: GLLE(lambda_="balanced", output="sum", n_neighbors="labels"),
    "GLLE lbfgs": lambda: GLLE(lambda_=0.01, solver="lbfgs", max_iter=5),
    "LP dense": lambda: LP(graph="dense"),
    "LP knn": lambda: LP(graph="knn", output="sum"),
    "LEVI": lambda: LEVI(epochs=3, n_hidden=16),
    "LEIC": lambda: LEIC(epochs=3, n_code=8),
    "LIBLE": lambda: LIBLE(pretrain_epochs=2, epochs=3, n_hidden=16, n_code=8),
    "ConLE": lambda: ConLE(epochs=3, n_hidden=16, n_code=8),
    "Inversion": lambda: Inversion(n_sweeps=20, n_burn=5),
    "Inversion noisy": lambda: Inversion(n_sweeps=20, n_burn=5, noise=0.05, degradation="threshold"),
    "Inversion by blocks": lambda: Inversion(n_sweeps=20, n_burn=5, max_rows=150, degradation=TopK()),
}
AGREEMENT = {"LCdr": 2e-3, "LCdr rescaled": 2e-3}
"""How near two answers are to be: 1e-6, but for LCdr by L-BFGS. It ends at a kink of its objective: changing X
by 1e-14 of itself moves NumPy's own answer by 1e-6 to 1e-4. `test_all_that_determines_lcdr` has what is exact there."""
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]


@pytest.fixture(autouse=True)
def quiet():
    """Nearly uniform answers, short runs and labels that no rule made are expected here."""
    with warnings.catch_warnings():
        for category in (NearUniformWarning, RankWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "[0-9]+ of [0-9]+ rows have labels", LabelWarning)
        yield


@pytest.fixture(scope="module")
def data():
    """Rows around a curve, labels that vary along it; no ties, which every engine may break as it likes."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, size=(400, 2))
    X = np.hstack([t, np.sin(3 * t), t**2]) + 0.05 * rng.normal(size=(400, 6))
    L = (t @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(400, 5)) > 0).astype(float)
    L[np.arange(400), rng.integers(0, 5, 400)] = 1.0
    return X, L


def tensors(X, L, *, device="cpu", dtype=torch.float64):
    return torch.tensor(X, dtype=dtype, device=device), torch.tensor(L, dtype=dtype, device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", METHODS)
def test_same_answer_as_numpy_on_the_same_device(name, device, data):
    X, L = data
    expected = METHODS[name]().fit_enhance(X, L)
    method = METHODS[name]()
    D = method.fit_enhance(*tensors(X, L, device=device))
    assert isinstance(D, torch.Tensor)
    assert D.device.type == device
    assert D.dtype == torch.float64
    np.testing.assert_allclose(to_numpy(D), expected, atol=AGREEMENT.get(name, 1e-6))
    assert method.label_distributions_.device.type == device


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", AGREEMENT)
def test_all_that_determines_lcdr(name, device, data):
    """Confidence, projection, the objective and its gradient anywhere, and the value of the minimum."""
    X, L = data
    on_host, on_device = METHODS[name]().fit(X, L), METHODS[name]().fit(*tensors(X, L, device=device))
    np.testing.assert_allclose(to_numpy(on_device.label_confidence_), on_host.label_confidence_, atol=1e-6)
    expected, found = (method.augmented_.reducer_ for method in (on_host, on_device))
    np.testing.assert_allclose(to_numpy(found.projection_), expected.projection_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(to_numpy(found.scale_), expected.scale_, rtol=1e-6)
    W = np.random.default_rng(5).normal(size=on_host.augmented_.enhancer_.weights_.shape)
    given = (W, expected.transform(X), on_host.label_confidence_)
    value, gradient = objective_and_gradient(*given, weight=0.5, penalty=0.1)
    value_t, gradient_t = objective_and_gradient(W, *(torch.tensor(A, device=device) for A in given[1:]), 0.5, 0.1)
    assert value_t == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradient_t, gradient, atol=1e-9)
    assert on_device.solution_.objective == pytest.approx(on_host.solution_.objective, rel=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", METHODS)
def test_single_precision_stays_single_and_near(name, device, data):
    X, L = data
    D = METHODS[name]().fit_enhance(*tensors(X, L, device=device, dtype=torch.float32))
    assert D.dtype == torch.float32
    difference = np.abs(to_numpy(D) - METHODS[name]().fit_enhance(X, L))
    if name.startswith("Inversion"):  # a sampler's path shows every rounding; its mean does not
        assert difference.mean() < 0.02
    else:
        assert difference.max() < 2e-3


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [name for name in METHODS if hasattr(METHODS[name](), "predict")])
def test_predictions_in_the_container_of_the_rows(name, device, data):
    """Fitted with one library, asked with the other: the answers are the same, each in the kind of its question."""
    X, L = data
    on_host, on_device = METHODS[name]().fit(X, L), METHODS[name]().fit(*tensors(X, L, device=device))
    new = X[:30] + 0.01
    expected = on_host.predict(new)
    for method in (on_host, on_device):
        answer = method.predict(torch.tensor(new, device=device))
        assert answer.device.type == device
        np.testing.assert_allclose(to_numpy(answer), expected, atol=AGREEMENT.get(name, 1e-6))
        assert isinstance(method.predict(new), np.ndarray)
        np.testing.assert_allclose(method.predict(new), to_numpy(answer), atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("settings", [{}, {"rescale": "unit_variance"}, {"n_components": 0.9}])
def test_reducer(settings, device, data):
    X, L = data
    expected = HSICReducer(**settings).fit(X, L).transform(X)
    X_t, L_t = tensors(X, L, device=device)
    reducer = HSICReducer(**settings).fit(X_t, L_t)
    answer = reducer.transform(X_t)
    assert answer.device.type == device
    np.testing.assert_allclose(to_numpy(answer), expected, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(reducer.transform(X), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("device", DEVICES)
def test_two_runs_give_the_same_bits(device, data):
    for make in METHODS.values():
        first, second = (make().fit_enhance(*tensors(*data, device=device)) for _ in range(2))
        assert torch.equal(first, second)


@pytest.mark.parametrize("device", DEVICES)
def test_inversion_with_labels_of_new_rows_and_its_intervals(device, data):
    """Few draws come from the host's generator, so that one seed gives one answer everywhere."""
    X, L = data
    make = lambda: Inversion(n_sweeps=30, n_burn=10, n_samples=2)  # noqa: E731
    on_host, on_device = make().fit(X, L), make().fit(*tensors(X, L, device=device))
    answer = on_device.enhance(*tensors(X[:40] + 0.1, L[:40], device=device))
    assert answer.device.type == device
    np.testing.assert_allclose(to_numpy(answer), on_host.enhance(X[:40] + 0.1, L[:40]), atol=1e-6)
    assert on_device.samples_.shape == (2, *L.shape)
    for end, expected in zip(on_device.intervals(), on_host.intervals(), strict=True):
        assert end.device.type == device
        np.testing.assert_allclose(to_numpy(end), expected, atol=1e-6)


def test_inversion_of_one_label(data):
    X, _ = data
    with pytest.warns(LabelWarning, match="label_0"):
        answer = Inversion().fit_enhance(torch.tensor(X), torch.ones(len(X), 1))
    assert torch.equal(answer, torch.ones(len(X), 1))


@pytest.mark.parametrize("device", DEVICES)
def test_equal_rows_share_their_scores_and_ties_change_no_distance(device, data):
    X, L = data[0].copy(), data[1]
    X[300:] = X[:100]
    method = GLLE()
    method.fit(*tensors(X, L, device=device))
    assert method.solution_.info["n_distinct"] == 300
    assert torch.equal(method.scores_[300:], method.scores_[:100])
    found = nearest_neighbours(torch.tensor(X, device=device), 10).distances
    np.testing.assert_allclose(to_numpy(found), nearest_neighbours(X, 10).distances, atol=1e-7)


def test_a_tensor_beside_an_array(data):
    """The answer leaves in the container of the labels."""
    X, L = data
    expected = LP().fit_enhance(X, L)
    X_t, L_t = tensors(X, L)
    assert isinstance(LP().fit_enhance(X_t, L), np.ndarray)
    answer = LP().fit_enhance(X, L_t)
    assert isinstance(answer, torch.Tensor)
    np.testing.assert_allclose(answer.numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(LP().fit_enhance(X_t, L), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_labels_of_other_types(dtype, data):
    X, L = data
    answer = GLLE().fit_enhance(torch.tensor(X), torch.tensor(L).to(dtype))
    np.testing.assert_allclose(answer.numpy(), GLLE().fit_enhance(X, L), atol=1e-6)


def test_one_class_a_row_in_a_tensor(data):
    X, _ = data
    y = np.arange(len(X)) % 3
    expected = LP().fit_enhance(X, y)
    np.testing.assert_allclose(LP().fit_enhance(torch.tensor(X), torch.tensor(y)).numpy(), expected, atol=1e-9)


def test_methods_without_a_torch_side_answer_in_tensors_too(data):
    X, L = data
    answer = KM().fit_enhance(*tensors(X, L))
    np.testing.assert_allclose(answer.numpy(), KM().fit_enhance(X, L), atol=1e-12)


def test_gradients_do_not_leak_and_inputs_stay_as_they_are(data):
    X, L = tensors(*data)
    X.requires_grad_()
    before = X.detach().clone(), L.clone()
    assert not LCdr().fit_enhance(X, L).requires_grad
    assert torch.equal(X, before[0])
    assert torch.equal(L, before[1])


def test_bad_tensors_get_an_answer_in_words(data):
    X, L = tensors(*data)
    broken = X.clone()
    broken[3, 2] = torch.nan
    with pytest.raises(FeatureError, match="NaN"):
        LCdr().fit(broken, L)
    with pytest.raises(InputTypeError, match="complex"):
        LCdr().fit(X.to(torch.complex128), L)
    with pytest.raises(InputTypeError, match="complex"):
        LCdr().fit(X, L.to(torch.complex128))
    with pytest.raises(ShapeError, match="same number of rows"):
        LP().fit(X, L[:-1])
    with pytest.raises(ShapeError, match="matrix"):
        LP().fit(X[0], L)
    with pytest.raises(FeatureError, match="one row"):
        LP().fit(X[:1], L[:1])
    with pytest.raises(FeatureError, match="features"):
        GLLE().fit(X, L).predict(X[:, :-1])
    missing = L.clone()
    missing[7, 1] = torch.nan
    with pytest.raises(LabelError, match="row 7"):
        LP().fit(X, missing)
    unlabelled = L.clone()
    unlabelled[5] = 0.0
    with pytest.warns(LabelWarning, match="first row 5"):
        LP().fit(X, unlabelled)
    odd = L.clone()
    odd[2, 0] = 0.4
    with pytest.raises(LabelError, match="0 and 1 only"):
        LP().fit(X, odd)
    constant = L.clone()
    constant[:, 1] = 1.0
    with pytest.warns(LabelWarning, match="label_1"):
        LP().fit(X, constant)


def test_confidences_in_single_precision_are_confidences(data):
    X, L = tensors(*data, dtype=torch.float32)
    F = LabelConfidence().fit_enhance(X, L)
    assert LP().fit_enhance(X, F).dtype == torch.float32


# ------------------------------------------------------------------------------------------------- the parts of it


@pytest.fixture
def graph():
    """A directed graph as indices and weights, and as both kinds of sparse matrix."""
    rng = np.random.default_rng(1)
    n, k = 60, 4
    indices = np.stack([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    weights = rng.uniform(0.1, 1.0, size=(n, k))
    weights[:5] = 0.0
    return edge_graph(indices, weights), edge_graph(torch.tensor(indices), torch.tensor(weights))


def edge_graph(indices, weights):
    return get_backend(weights).edge_graph(indices, weights)


def dense(S):
    return (S.host if isinstance(S, TorchGraph) else S.matrix).toarray()


@pytest.mark.parametrize(
    "operation",
    [
        lambda A, v: A.symmetrize(by="sum"),
        lambda A, v: A.symmetrize(by="max"),
        lambda A, v: A.scale(v, 2.0 * v),
        lambda A, v: A.submatrix(np.arange(3, 40, 2) if isinstance(v, np.ndarray) else torch.arange(3, 40, 2)),
    ],
)
def test_sparse_operations_agree(operation, graph):
    A, T = graph
    v = np.random.default_rng(2).uniform(size=60)
    v[7] = 0.0
    expected, found = operation(A, v), operation(T, torch.tensor(v))
    np.testing.assert_allclose(dense(found), dense(expected), atol=1e-15)
    assert np.all(np.diff(found.start.numpy()) >= 0)


def test_sparse_products_agree(graph):
    A, T = graph
    V = np.random.default_rng(3).normal(size=(60, 3))
    d = np.arange(60.0)
    for product in (TorchGraph.matmul, weighted_bags):
        np.testing.assert_allclose(product(T, torch.tensor(V)).numpy(), A.matmul(V), atol=1e-15)
    np.testing.assert_allclose(
        T.diagonal_plus(torch.tensor(d), -0.3)(torch.tensor(V)).numpy(), A.diagonal_plus(d, -0.3)(V)
    )
    np.testing.assert_allclose(T.row_sums().numpy(), A.row_sums())
    # A step of a solver changes rows in place, with the product beside them, and adds up what it returns.
    found = []
    for S, F in ((A, V.copy()), (T, torch.tensor(V))):
        changed = F * 1.0
        numbers = S.over_rows(F, _add_product, changed, F, share=0.5)
        found.append((np.asarray(changed), float(numbers)))
    np.testing.assert_allclose(found[1][0], V + 0.5 * A.matmul(V), atol=1e-14)
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-14)
    assert found[0][1] == pytest.approx(found[1][1]) == pytest.approx(np.sum(V * A.matmul(V)))


def _add_product(AF, changed, F, share):
    changed += share * AF
    return float((AF * F).sum())


def test_means_over_equal_rows_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))[rng.integers(0, 12, size=40)]
    V = rng.normal(size=(40, 3))
    expected = np.stack([V[(x == X).all(axis=1)].mean(axis=0) for x in X])
    for rows, values in ((X, V), (torch.tensor(X), torch.tensor(V))):
        distinct, average = average_equal_rows(rows)
        assert distinct == len(np.unique(X, axis=0))
        np.testing.assert_allclose(np.asarray(average(values)), expected, atol=1e-14)
        assert average_equal_rows(rows[:1]) == (1, None)


@pytest.mark.parametrize("shape", ["chain", "chain backwards", "scattered", "none"])
def test_connected_components_agree(shape):
    rng = np.random.default_rng(0)
    n = 3000
    order = {"chain": np.arange(n), "chain backwards": np.arange(n)[::-1]}.get(shape, rng.permutation(n))
    joined = np.flatnonzero(rng.uniform(size=n - 1) < {"scattered": 0.6, "none": 0.0}.get(shape, 0.999))
    weights = np.zeros((n, 1))
    weights[order[joined], 0] = 1.0
    indices = np.zeros((n, 1), dtype=int)
    indices[order[joined], 0] = order[joined + 1]
    graphs = (
        edge_graph(i, w).symmetrize(by="sum").scale(one, one)
        for i, w, one in (
            (indices, weights, np.ones(n)),
            (torch.tensor(indices), torch.tensor(weights), torch.ones(n, dtype=torch.float64)),
        )
    )
    (m, expected), (m_t, found) = (S.connected_components() for S in graphs)
    assert m == m_t
    assert len(set(zip(expected.tolist(), found.tolist(), strict=True))) == m  # the same groups, whatever their names


def test_duplicates_agree(data):
    X, _ = data
    X = np.vstack([X, -0.0 * X[:3], 0.0 * X[:2]])
    for dtype in (np.float64, np.float32):
        expected, found = (
            get_backend(rows).group_duplicates(rows)
            for rows in (X.astype(dtype).astype(float), torch.tensor(X.astype(dtype)))
        )
        assert np.array_equal(found.member.numpy(), expected.member)
        assert np.array_equal(found.first.numpy(), expected.first)


def test_sums_of_groups_agree():
    A, group = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 7
    found = get_backend(torch.tensor(A)).sum_members(torch.tensor(A), torch.tensor(group), 8)
    expected = get_backend(A).sum_members(A, group, 8)
    np.testing.assert_allclose(found.numpy(), expected)
    np.testing.assert_allclose(expected[2], A[2::7].sum(axis=0))


@pytest.mark.parametrize("device", DEVICES)
def test_the_search_on_the_device_behind_a_method(device, data, monkeypatch):
    """Tensors on the host use the host's engines; those on a GPU the search written for them, tried here on any."""
    monkeypatch.setattr(torch_backend, "_on_host", lambda X: False)
    rng = np.random.default_rng(3)
    X, L = rng.normal(size=(300, 5)), data[1][:300]
    for make in (LabelConfidence, GLLE):
        method = make()
        answer = method.fit_enhance(*tensors(X, L, device=device))
        assert method.solution_.info["neighbours"] == {"engine": "torch-exact", "recall": 1.0}
        np.testing.assert_allclose(to_numpy(answer), make().fit_enhance(X, L), atol=1e-6)
    new = X[:20] + 0.1
    np.testing.assert_allclose(
        to_numpy(method.predict(torch.tensor(new, device=device))), GLLE().fit(X, L).predict(new), atol=1e-6
    )


def test_queries_find_what_the_definition_finds():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(500, 4)), rng.normal(size=(70, 4))
    indices, distances = neighbours_torch.query_neighbours(torch.tensor(X), torch.tensor(queries), 6)
    expected = query_neighbours(X, queries, 6)
    assert np.array_equal(indices.numpy(), expected.indices)
    np.testing.assert_allclose(distances.numpy(), expected.distances, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rule", [CumulativeMass(0.5), CumulativeMass(0.8), TopK(2), Threshold(0.2)], ids=str)
def test_a_gibbs_sweep_with_the_same_draws_gives_the_same_weights(rule, device):
    rng = np.random.default_rng(0)
    q, n = 6, 300
    D = rng.dirichlet(np.ones(q), n)
    L = rule.apply(D).astype(float)
    assert np.array_equal(to_numpy(rule._apply(torch.tensor(D, device=device))), L > 0)
    precision, mean, positive = (
        np.linalg.inv(0.3 * np.eye(q) + 0.1),
        rng.normal(size=(q, n)),
        np.ascontiguousarray((L > 0).T),
    )
    Z, relaxed = rule.start(L)
    Z_t, relaxed_t = rule.start(torch.tensor(L, device=device))
    assert np.array_equal(to_numpy(relaxed_t), relaxed)
    np.testing.assert_allclose(to_numpy(Z_t), Z, atol=1e-12)
    Z = np.ascontiguousarray(Z.T)
    for _ in range(5):
        parts = (Z, positive, mean, precision, rng.random((q, n)), rng.standard_normal(n))
        Z, Z_t = (
            ReferenceSweeps(rule).sweep(A[0], Bound(A[1]), *A[2:4], Move(*A[4:]))
            for A in (parts, [torch.tensor(A, device=device) for A in parts])
        )
        np.testing.assert_allclose(to_numpy(Z_t), Z, atol=1e-6)


def test_normal_tails():
    """Intervals from the middle to far out, in both libraries."""
    centre = np.linspace(-30.0, 30.0, 601)
    for width in (1e-3, 1.0, np.inf):
        lower, upper, u = centre, centre + width, np.full(601, 0.3)
        found = truncated_normal(*(torch.tensor(A) for A in (lower, upper, u))).numpy()
        np.testing.assert_allclose(found, truncated_normal(lower, upper, u), rtol=1e-9, atol=1e-9)


def test_draws_come_from_the_host_while_they_are_few():
    model = torch.zeros(1, dtype=torch.float64)
    draws = TensorDraws(np.random.default_rng(3), model)
    expected = np.random.default_rng(3)
    assert np.array_equal(draws.random((2, 5)).numpy(), expected.random((2, 5)))
    assert np.array_equal(draws.standard_normal(4).numpy(), expected.standard_normal(4))
    assert float(TensorDraws(np.random.default_rng(0), model.float()).random(100_000).max()) < 1.0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_many_draws_come_from_the_device_and_follow_the_seed():
    model = torch.zeros(1, dtype=torch.float32, device="cuda")
    first, second, other = (TensorDraws(np.random.default_rng(s), model).random(FEW + 1) for s in (0, 0, 1))
    assert first.device.type == "cuda"
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_like_and_back():
    A = np.arange(6.0).reshape(2, 3)
    T = like(A, torch.zeros(1, dtype=torch.float32))
    assert T.dtype == torch.float32
    assert like(T, A).dtype == np.float64
    assert np.array_equal(like(T, A), A)


def test_importing_contone_does_not_import_torch(bare_forks):
    code = "import sys\nfrom contone import *\nsys.exit('torch' in sys.modules)"
    assert bare_forks.run("-c", code).returncode == 0


def test_a_gpu_that_is_too_small_is_refused_with_an_estimate(data, monkeypatch):
    """The memory of the device counts, not that of the host; a limit set by the user holds for both."""
    monkeypatch.setenv("CONTONE_MEMORY_LIMIT", "100KB")
    with pytest.raises(MemoryEstimateError, match=r"LP on 400 rows .* needs about .* are available"):
        LP().fit(*tensors(*data))


def test_a_small_device_gets_smaller_blocks(monkeypatch):
    X = torch.randn(700, 3, dtype=torch.float64)
    expected = neighbours_torch.nearest_neighbours(X, 5)
    monkeypatch.setattr(neighbours_torch, "_tile_bytes", lambda X: 20_000)
    found = neighbours_torch.nearest_neighbours(X, 5)
    assert torch.equal(found.indices, expected.indices)
    assert torch.equal(neighbours_torch.query_neighbours(X, X, 1)[0][:, 0], torch.arange(700))


@pytest.mark.parametrize("kind", ["sparse", "bfloat16", "half", "backwards"])
def test_labels_and_features_in_unusual_tensors_are_read(kind):
    """The answer is that of the same numbers in an ordinary tensor."""
    rng = np.random.default_rng(0)
    X, L = np.round(4 * rng.normal(size=(12, 3))) / 4, np.eye(3)[np.arange(12) % 3]
    convert = {
        "sparse": lambda A: torch.tensor(A).to_sparse(),
        "bfloat16": lambda A: torch.tensor(A).to(torch.bfloat16),
        "half": lambda A: torch.tensor(A).to(torch.float16),
        "backwards": lambda A: torch.flip(torch.tensor(np.ascontiguousarray(A[::-1])), dims=(0,)),
    }[kind]
    for method in (KM(), GLLE()):
        expected = method.fit_enhance(X, L)
        answer = method.fit_enhance(convert(X), convert(L))
        np.testing.assert_allclose(answer.to(torch.float64).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("method", [KM(), GLLE(), AAKNN()], ids=str)
def test_a_tensor_without_numbers_is_refused(method):
    X, L = torch.zeros(8, 3), torch.eye(2).repeat(4, 1)
    for features, labels in ((X.to("meta"), L), (X, L.to("meta"))):
        with pytest.raises(InputTypeError, match="meta tensor"):
            method.fit(features, labels)


def test_an_array_that_is_read_backwards_becomes_a_tensor():
    model = torch.zeros(1, dtype=torch.float64)
    backwards = np.arange(3.0)[::-1]
    assert get_backend(model).like(backwards, model).tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("settings", [{}, {"standardize": False}, {"solver": "lbfgs", "max_iter": 2}])
def test_new_rows_in_a_precision_that_does_not_hold_the_fit_are_refused(settings):
    X = torch.tensor(np.random.default_rng(0).normal(size=(12, 2))) * 1e300
    L = np.arange(24).reshape(12, 2) % 3 > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = GLLE(**settings).fit(X, L)
    assert torch.isfinite(fitted.predict(X)).all()
    with pytest.raises(InputTypeError, match="X is float32, which does not hold the .* of the rows that were fitted"):
        fitted.predict(torch.ones((1, 2), dtype=torch.float32))


def test_tensors_on_the_host_use_its_engines():
    rng = np.random.default_rng(0)
    X, queries = (torch.tensor(rng.normal(size=(n, 4)), dtype=torch.float32) for n in (200, 30))
    backend = get_backend(X)
    for found, expected in ((backend.nearest_neighbours(X, 5), nearest_neighbours(X.numpy().astype(float), 5)),
                            (backend.query_neighbours(X, queries, 5),
                             query_neighbours(X.numpy().astype(float), queries.numpy().astype(float), 5))):  # fmt: skip
        assert (found.engine, found.recall, found.order) == ("exact", 1.0, None)
        assert (found.indices.dtype, found.distances.dtype) == (torch.int64, torch.float32)
        np.testing.assert_array_equal(found.indices.numpy(), expected.indices)
        np.testing.assert_allclose(found.distances.numpy(), expected.distances, rtol=1e-5)
    assert backend.query_neighbours(X, queries, 500).indices.shape == (30, 200)
    # There is nowhere quicker to go, and blocks are as large as is asked for.
    assert not backend.host_is_quicker(X)
    assert backend.rows_per_block(torch.zeros(2 * FEW, 1), 3, 7) == 7
    assert backend.available_bytes(X) == get_backend(X.numpy()).available_bytes(X.numpy())


@pytest.mark.parametrize(("dtype", "rows"), [(torch.float64, 5), (torch.float32, 10)])
def test_tiles_are_as_large_as_their_memory_allows(monkeypatch, dtype, rows):
    """Of every query the distances to 100 rows, and three copies of them: 3,200 bytes, or half as many."""
    monkeypatch.setattr(neighbours_torch, "_tile_bytes", lambda X: 16_500)
    X, queries = torch.zeros(100, 2, dtype=dtype), torch.arange(23.0)[:, None]
    parts = neighbours_torch._tiles(queries, X)
    assert [len(part) for part in parts] == [*[rows] * (23 // rows), 23 % rows]
    assert torch.equal(torch.cat(parts), queries)
    monkeypatch.setattr(neighbours_torch, "_tile_bytes", lambda X: 0)
    assert len(neighbours_torch._tiles(queries, X)) == 23


def test_what_a_precision_just_holds_is_taken():
    largest = float(torch.finfo(torch.float32).max)
    model = torch.zeros(1, dtype=torch.float32)
    for value in (largest, -largest, np.inf, np.nan):
        for values in (np.array([value, 1.0]), torch.tensor([value, 1.0], dtype=torch.float64)):
            np.testing.assert_array_equal(like(values, model).numpy(), np.array([value, 1.0], dtype=np.float32))
    for values in (np.array([1.01 * largest]), torch.tensor([-1.01 * largest], dtype=torch.float64)):
        with pytest.raises(InputTypeError, match="float32, which does not hold the 3.44e\\+38"):
            like(values, model)
    assert like(np.array([1.01 * largest]), model.double()).dtype == torch.float64
    assert to_numpy(torch.tensor([1.5], dtype=torch.bfloat16)).tolist() == [1.5]
    assert like(np.array([1, 2]), torch.zeros(1, dtype=torch.int64)).tolist() == [1, 2]


def test_draws_of_a_tensor_are_in_its_precision_and_below_one():
    class One:
        def random(self, size):
            return np.full(size, 1.0 - 2.0**-53)  # the largest number below 1

        standard_normal = random

    double = TensorDraws(One(), torch.zeros(1, dtype=torch.float64))
    single = TensorDraws(One(), torch.zeros(1, dtype=torch.float32))
    assert double.random(3).tolist() == [1.0 - 2.0**-53] * 3
    assert single.random(3).tolist() == [1.0 - 2.0**-24] * 3  # the largest of single precision
    assert single.standard_normal(3).tolist() == [1.0] * 3
    assert double.chain_seed((FEW + 1,)) is None


def test_an_entry_of_a_graph_takes_half_the_room_while_that_suffices(graph):
    numpy_graph, T = graph
    assert T.shape == numpy_graph.shape == (60, 60)
    assert T.columns.dtype == T.start.dtype == torch.int32
    assert numpy_graph.matrix.indices.dtype == np.int32


def collision() -> np.ndarray:
    """Four finite rows of two numbers, of which the first and the third have one hash, and so have the others."""
    factor, rng = 0x9E3779B97F4A7C15, np.random.default_rng(0)

    def mixed(bits: int) -> int:
        code = bits * factor % 2**64
        return code ^ code >> 29

    def bits_of(x: float) -> int:
        return int(np.float64(x).view(np.uint64))

    found = []
    while len(found) < 2:
        a, b, other = rng.normal(size=3)
        partner = float(np.uint64(mixed(bits_of(a)) ^ bits_of(b) ^ mixed(bits_of(other))).view(np.float64))
        if np.isfinite(partner) and partner != 0:
            found.append(((a, b), (other, partner)))
    (one, same), (two, alike) = found
    return np.array([one, two, same, alike])


def test_unequal_rows_of_one_hash_are_told_apart():
    X = collision()
    codes = hash_rows(X)
    assert codes[0] == codes[2] != codes[1] == codes[3]
    rows = X[[0, 1, 2, 3, 2, 0, 1]]
    for given in (rows, torch.tensor(rows)):
        found = get_backend(given).group_duplicates(given)
        assert np.asarray(found.member).tolist() == [0, 1, 2, 3, 2, 0, 1]
        assert np.asarray(found.first).tolist() == [0, 1, 2, 3]
