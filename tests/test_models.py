"""Model files: the same answers after a round trip, and data only, whatever the file says."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from contone import (
    AAKNN,
    LDLLRR,
    LDLSCL,
    LEMLL,
    Augmented,
    FromRegressor,
    Inversion,
    LDLForest,
    MaxEnt,
    PTBayes,
    Temperature,
    enhance,
)
from contone.exceptions import DataError, InputError
from contone.models import load_model, read_model, save_model

METHODS = [cls for cls in enhance.methods().values() if hasattr(cls(), "enhance") or hasattr(cls, "predict")]


def fitted(method, small):
    import warnings

    X, L, _ = small
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(X, L)


@pytest.mark.parametrize(
    "method",
    [*(cls() for cls in METHODS), LEMLL(kernel="rbf"), Augmented(Temperature()), Inversion(degradation="topk")],
    ids=repr,
)
def test_an_enhancer_answers_the_same_to_the_bit(small, brief, tmp_path, method):
    X, L, _ = small
    fitted(method.set_params(**brief(method)), small)
    save_model(method, tmp_path / "m.contone")
    again = load_model(tmp_path / "m.contone")
    assert type(again) is type(method)
    assert repr(again) == repr(method)
    assert sorted(vars(again)) == sorted(vars(method))
    np.testing.assert_array_equal(again.label_distributions_, method.label_distributions_)
    if hasattr(method, "enhance"):
        np.testing.assert_array_equal(again.enhance(X, L), method.enhance(X, L))
    if hasattr(method, "predict"):
        np.testing.assert_array_equal(again.predict(X), method.predict(X))


@pytest.mark.parametrize(
    "learner",
    [
        *(MaxEnt(), AAKNN(), PTBayes(), FromRegressor(LinearRegression())),
        *(LDLLRR(), LDLForest(depth=2, max_iter=5), LDLSCL()),
    ],
    ids=repr,
)
def test_a_learner_predicts_the_same_to_the_bit(small, tmp_path, learner):
    X, _, D = small
    learner.fit(X, D)
    save_model(learner, tmp_path / "m.contone", details={"labels": ["a", "b"], "level": np.float32(0.1)})
    stored = read_model(tmp_path / "m.contone")
    np.testing.assert_array_equal(stored.method.predict(X), learner.predict(X))
    assert stored.details == {"labels": ["a", "b"], "level": np.float32(0.1)}


def test_one_model_is_one_sequence_of_bytes(small, tmp_path):
    method = fitted(Inversion(n_sweeps=20, n_burn=5), small)
    for name in ("a", "b"):
        save_model(method, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_cannot_be_kept_is_refused_by_name(small, tmp_path):
    X, _, D = small
    with pytest.raises(InputError, match="DecisionTreeRegressor"):
        save_model(FromRegressor(DecisionTreeRegressor()).fit(X, D), tmp_path / "m")
    method = fitted(Inversion(n_sweeps=20, n_burn=5, random_state=np.random.RandomState(0)), small)
    with pytest.raises(InputError, match="Inversion.random_state is a numpy.random.mtrand.RandomState"):
        save_model(method, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------- files from elsewhere


def written(path, tree, **members):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", json.dumps({"format": 1, "contone": "0", "method": tree, "details": {}}))
        for name, content in members.items():
            archive.writestr(f"arrays/{name}.npy", content)
    return path


def npy(header: str) -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "name",
    [
        "os:system", "builtins:eval", "contone.cli.app:app", "contone.__main__:main", "contone.runtime.files:replacing",
        "contone.enhance.baselines:np", "contone.enhance:..baselines", "sklearn:Pipeline", "contone.enhance.lcdr:warn",
        "contone.numerics.solution:dataclass", "contone.tables.columns:re",
    ],
)  # fmt: skip
def test_only_contones_own_value_classes_are_rebuilt(tmp_path, name):
    path = written(tmp_path / "m", {"kind": "object", "class": name, "state": {}})
    with pytest.raises(DataError, match="cannot be used as a model"):
        load_model(path)


def test_no_pickle_is_ever_loaded(tmp_path):
    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    objects = io.BytesIO()
    np.save(objects, np.array([Evil()], dtype=object), allow_pickle=True)
    tree = {"kind": "array", "array": 0}
    with pytest.raises(DataError):
        load_model(written(tmp_path / "m", tree, **{"0000": objects.getvalue()}))
    (tmp_path / "p").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(DataError, match="is not a model file"):
        load_model(tmp_path / "p")


def test_an_array_that_claims_more_than_there_is_is_refused_before_memory_is_taken(tmp_path):
    huge = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (274877906944,), }")
    with pytest.raises(DataError, match="size is not what its header says"):
        load_model(written(tmp_path / "m", {"kind": "array", "array": 0}, **{"0000": huge}))
    with zipfile.ZipFile(tmp_path / "z", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", " " * 10_000_000)
    with pytest.raises(DataError, match="compressed"):
        load_model(tmp_path / "z")


def test_damage_is_an_error_wherever_it_is(small, tmp_path):
    save_model(fitted(Temperature(), small), tmp_path / "m")
    whole = (tmp_path / "m").read_bytes()
    rng = np.random.default_rng(0)
    for cut in [0, 10, len(whole) // 2, len(whole) - 5]:
        (tmp_path / "cut").write_bytes(whole[:cut])
        with pytest.raises(DataError):
            load_model(tmp_path / "cut")
    for _ in range(60):
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        (tmp_path / "changed").write_bytes(changed)
        with suppress(DataError):  # no other error; dates and the like may change without harm
            load_model(tmp_path / "changed")
    with zipfile.ZipFile(tmp_path / "new", "w") as archive:
        archive.writestr("model.json", json.dumps({"format": 99, "contone": "9.0", "method": None, "details": None}))
    with pytest.raises(DataError, match="newer"):
        load_model(tmp_path / "new")
