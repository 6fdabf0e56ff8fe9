"""The baselines: closed forms, limits into each other, and the published scores on the Yeast sets."""

from __future__ import annotations

import numpy as np
import pytest

from contone import CumulativeMass, Logical, Temperature, Uniform, datasets, measures

# Chebyshev, Clark, Canberra, KL(R||D) without infinite rows, cosine: as known for the ten Yeast sets.
UNIFORM = {
    "alpha": (0.0136, 0.2148, 0.6985, 0.0058, 0.9944),
    "cdc": (0.0166, 0.2191, 0.6546, 0.0076, 0.9930),
    "elu": (0.0165, 0.2043, 0.6014, 0.0067, 0.9938),
    "heat": (0.0433, 0.1871, 0.3733, 0.0138, 0.9873),
    "spo": (0.0603, 0.2559, 0.5284, 0.0278, 0.9747),
    "diau": (0.0416, 0.2224, 0.4778, 0.0169, 0.9853),
    "cold": (0.0540, 0.1465, 0.2528, 0.0138, 0.9873),
    "dtt": (0.0373, 0.1014, 0.1741, 0.0068, 0.9937),
    "spo5": (0.0921, 0.1855, 0.2849, 0.0320, 0.9736),
    "spoem": (0.0891, 0.1318, 0.1837, 0.0293, 0.9768),
}
TEMPERATURE = {
    "spoem": (0.0570, 0.0876, 0.1206, 0.0157, 0.9888),
    "alpha": (0.0094, 0.1647, 0.5690, 0.0032, 0.9970),
    "spo5": (0.0676, 0.1383, 0.2114, 0.0190, 0.9849),
    "cdc": (0.0117, 0.1656, 0.5069, 0.0041, 0.9964),
    "cold": (0.0367, 0.0997, 0.1696, 0.0067, 0.9940),
    "diau": (0.0297, 0.1590, 0.3296, 0.0089, 0.9927),
    "dtt": (0.0267, 0.0746, 0.1290, 0.0034, 0.9969),
    "elu": (0.0111, 0.1457, 0.4369, 0.0032, 0.9970),
    "heat": (0.0301, 0.1294, 0.2543, 0.0067, 0.9939),
    "spo": (0.0455, 0.1858, 0.3698, 0.0158, 0.9859),
}
COLUMNS = ("chebyshev", "clark", "canberra", "kl_reversed_drop", "cosine")


def scores(method, name):
    data = datasets.load(f"yeast-{name}")
    R = method.fit_enhance(data.X, CumulativeMass(0.5).apply(data.D))
    return tuple(round(measures.get(column)(data.D, R), 4) for column in COLUMNS)


@pytest.mark.parametrize("name", UNIFORM)
def test_published_scores_of_uniform(real, name):
    real(f"Yeast_{name}")
    assert scores(Uniform(), name) == UNIFORM[name]


@pytest.mark.parametrize("name", TEMPERATURE)
def test_published_scores_of_temperature(real, name):
    real(f"Yeast_{name}")
    assert scores(Temperature(c=0.2), name) == TEMPERATURE[name]


def test_temperature_in_sjaffe_at_its_better_c(real):
    real("SJAFFE")
    data = datasets.load("sjaffe")
    R = Temperature(c=0.5).fit_enhance(data.X, CumulativeMass(0.5).apply(data.D))
    found = tuple(round(measures.get(column)(data.D, R), 4) for column in COLUMNS)
    assert found == (0.0802, 0.2879, 0.5889, 0.0318, 0.9683)


def test_temperature_is_a_softmax(small):
    X, L, _ = small
    weights = np.where(L == 1, np.exp(0.7), 1.0)
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Temperature(c=0.7).fit_enhance(X, L), expected)


def test_temperature_runs_from_uniform_to_logical(small):
    X, L, _ = small
    np.testing.assert_allclose(Temperature(c=0).fit_enhance(X, L), Uniform().fit_enhance(X, L))
    np.testing.assert_allclose(Temperature(c=50).fit_enhance(X, L), Logical().fit_enhance(X, L), atol=1e-20)


def test_temperature_with_a_huge_c_does_not_overflow(small):
    X, L, _ = small
    np.testing.assert_allclose(Temperature(c=1e6).fit_enhance(X, L), Logical().fit_enhance(X, L))


def test_logical_shares_equally_and_leaves_confidences_alone(small):
    X, L, D = small
    np.testing.assert_allclose(Logical().fit_enhance(X, L), L / L.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(Logical().fit_enhance(X, D), D)


def test_baselines_look_at_no_feature(small):
    X, L, _ = small
    for method in (Uniform(), Temperature(), Logical()):
        assert type(method).baseline
        np.testing.assert_array_equal(method.fit_enhance(X, L), method.fit_enhance(np.zeros_like(X), L))


@pytest.mark.parametrize("c", [-1, "warm", None])
def test_a_temperature_outside_its_domain_is_refused(small, c):
    X, L, _ = small
    with pytest.raises(ValueError, match="'c' parameter of Temperature must be a float in the range"):
        Temperature(c=c).fit(X, L)
