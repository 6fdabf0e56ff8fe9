"""Model files: the same answers after a round trip, and data only, whatever the file says."""

from __future__ import annotations

import io
import json
import math
import pickle
import sys
import types
import zipfile
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from contone import (
    AAKNN,
    GLLE,
    LDLLRR,
    LDLSCL,
    LEMLL,
    Augmented,
    CumulativeMass,
    FromRegressor,
    Inversion,
    LDLForest,
    Logical,
    MaxEnt,
    PTBayes,
    Temperature,
    enhance,
)
from contone.exceptions import DataError, InputError
from contone.models import MANIFEST, _class_of, _is_value_class, _name_of, load_model, read_model, save_model
from contone.numerics.solution import Solution

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
    with pytest.raises(InputError, match=r"^details\['mixed'\]\[0\] is an array of object,"):
        save_model(fitted(Temperature(), small), tmp_path / "m", details={"mixed": [np.array(["a", 1], dtype=object)]})
    assert list(tmp_path.iterdir()) == []


VALUES = [0, True, 2.5, "text", None, (1, ("a",)), [], {}, {1: "one", "two": [2]}, np.float32(0.1), np.int64(3),
          np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.zeros((0, 3)), np.zeros(0),
          np.array(["a", "bc"]), np.array(["a", "bc"], dtype=object), np.array([], dtype=object)]  # fmt: skip


def test_details_come_back_as_they_were(small, tmp_path):
    """Values, types, shapes and the kind of numbers; infinities and NaN, which JSON does not know, as well."""
    details = {"plain": VALUES, "odd": [math.inf, -math.inf, math.nan], "sparse": sp.csr_array(np.eye(3)[:2])}
    save_model(fitted(Temperature(), small), tmp_path / "m", details=details)
    read = read_model(tmp_path / "m").details
    np.testing.assert_equal(read["odd"], details["odd"])
    np.testing.assert_array_equal(read["sparse"].toarray(), np.eye(3)[:2])
    for value, again in zip(VALUES, read["plain"], strict=True):
        assert type(again) is type(value)
        if isinstance(value, np.ndarray):
            assert (again.dtype, again.shape) == (value.dtype, value.shape)
        np.testing.assert_equal(again, value)


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
        "contone.numerics.solution:dataclass", "contone.tables.columns:re", "sklearn:SVC", "os:Ridge",
    ],
)  # fmt: skip
def test_only_contones_own_value_classes_are_rebuilt(tmp_path, name):
    path = written(tmp_path / "m", {"kind": "object", "class": name, "state": {}})
    with pytest.raises(DataError, match="cannot be used as a model"):
        load_model(path)


@pytest.mark.parametrize("manifest", [{"method": {}, "details": {}}, {"format": "1", "method": {}}, [1], "x"])
def test_a_file_without_a_format_number_is_refused_for_that(tmp_path, manifest):
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr("model.json", json.dumps(manifest))
    with pytest.raises(DataError, match="it has no format number"):
        load_model(tmp_path / "m")


def test_a_class_is_found_by_the_module_that_defines_it_only():
    """A module that merely imports a class is no way to it: what a file names is what was written."""
    assert _class_of("contone.enhance.glle:GLLE", frozenset()) is GLLE
    with pytest.raises(DataError, match="not a class of values"):
        _class_of("contone.enhance:GLLE", frozenset())
    with pytest.raises(DataError, match="--trust fractions:Fraction"):
        _class_of("fractions:Fraction", frozenset())
    with pytest.raises(DataError, match="not a class of values"):
        _class_of("fractions:Fraction", frozenset({"fractions:Fraction"}))
    with pytest.raises(DataError, match="cannot be imported"):
        _class_of("fractions:Nothing", frozenset({"fractions:Fraction"}))


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
    with pytest.raises(DataError, match="damaged: cannot reshape"):
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


def changed(source, target, change):
    """A model file whose manifest was changed by somebody."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "model.json":
                tree = json.loads(content)
                change(tree["method"]["state"])
                content = json.dumps(tree)
            new.writestr(name, content)
    return target


@pytest.mark.parametrize(
    "method", [GLLE(), Logical(), Inversion(n_sweeps=20, n_burn=5)], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda state: state["label_names_"].pop(), "labels and names"),
        (lambda state: state.update(label_names_="abc"), "not a list of names"),
        (lambda state: state.update(n_features_in_=2), "cannot answer"),
        (lambda state: state.update(feature_names_in_=["a"]), "names 1 features"),
        (lambda state: state.update(__dict__={"kind": "dict", "items": []}), "has an attribute '__dict__'"),
        (lambda state: state.pop("n_features_in_"), "n_features_in_"),
        (lambda state: state.update(solution_="text"), "no attribute 'converged'"),
    ],
    ids=["labels", "text", "features", "names", "dict", "gone", "solution"],
)
def test_parts_that_do_not_fit_together_are_refused_in_one_sentence(small, tmp_path, method, change, said):
    if "cannot answer" in said and isinstance(method, Logical):
        pytest.skip("any number of features will do for a method that uses none")
    save_model(fitted(method, small), tmp_path / "m")
    with pytest.raises(DataError, match=f"^[^\n]*{said}[^\n]*$"):
        load_model(changed(tmp_path / "m", tmp_path / "forged", change))


def test_a_model_that_answers_nan_is_refused(small, tmp_path):
    """NaN in the features that GLLE keeps ended in a RecursionError."""
    method = fitted(GLLE(), small)
    for name, value in vars(method).items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and name != "label_distributions_":
            setattr(method, name, np.full_like(value, np.nan))
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            parts = (np.full_like(v, np.nan) if isinstance(v, np.ndarray) else v for v in value)
            setattr(method, name, type(value)(*parts))
    save_model(method, tmp_path / "m")
    with pytest.raises(DataError, match=r"^[^\n]*GLLE cannot answer[^\n]*$"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    "tree",
    [
        {"kind": "array", "array": float("inf")},
        {"kind": "array", "array": 10**400},
        {"kind": "object", "class": "contone.enhance.baselines:Uniform", "state": "text"},
        {"kind": "sparse", "shape": [2, float("inf")], "data": 0, "indices": 0, "indptr": 0},
        {"kind": "dict", "items": [[1]]},
        {"kind": "neighbours", "state": {}},
        [[[[]]]],
        {"kind": "array", "array": 0},
    ],
    ids=str,
)
def test_a_broken_value_is_one_sentence(tmp_path, tree):
    broken = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1 + , }")
    with pytest.raises(DataError, match=r"^[^\n]*$"):
        load_model(written(tmp_path / "m", tree, **{"0000": broken}))


def test_an_encrypted_file_is_one_sentence(small, tmp_path):
    save_model(fitted(Temperature(), small), tmp_path / "m")
    content = bytearray((tmp_path / "m").read_bytes())
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        while at >= 0:
            content[at + place] |= 1
            at = content.find(signature, at + 4)
    (tmp_path / "e").write_bytes(content)
    with pytest.raises(DataError, match="its members are encrypted, which contone's are not"):
        load_model(tmp_path / "e")


@pytest.mark.parametrize("lie", ["compressed", "longer"])
def test_a_member_that_is_not_its_own_bytes_is_refused(tmp_path, lie):
    """Compressed though no shorter, or stored with another length than it is said to have."""
    written(tmp_path / "m", {"kind": "array", "array": 0})
    with zipfile.ZipFile(tmp_path / "m", "a") as archive:
        filler = np.random.default_rng(0).bytes(500)  # room for what is claimed, and nothing that can be compressed
        archive.writestr("filler", filler)
        how = zipfile.ZIP_DEFLATED if lie == "compressed" else zipfile.ZIP_STORED
        archive.writestr("arrays/0000.npy", filler, how)
        archive.getinfo("arrays/0000.npy").file_size += lie == "longer"
    with pytest.raises(DataError, match="its members are compressed, which contone's are not"):
        load_model(tmp_path / "m")


def test_an_array_is_named_once_so_that_a_file_claims_no_more_than_it_holds(tmp_path):
    stored = io.BytesIO()
    np.save(stored, np.zeros(10))
    tree = [{"kind": "array", "array": 0}] * 400
    with pytest.raises(DataError, match="twice"):
        load_model(written(tmp_path / "m", tree, **{"0000": stored.getvalue()}))
    # Members that share their bytes: each is honest about its size, all of them together are not.
    with zipfile.ZipFile(tmp_path / "o", "w") as archive:
        archive.writestr("model.json", "{}" + " " * 1000)
        first = archive.getinfo("model.json")
        for number in range(50):
            copy = zipfile.ZipInfo(f"arrays/{number:04d}.npy")
            copy.file_size, copy.compress_size = first.file_size, first.compress_size
            copy.CRC, copy.header_offset = first.CRC, first.header_offset
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
    with pytest.raises(DataError, match="claim more than the file holds"):
        load_model(tmp_path / "o")


def test_a_pipeline_with_an_encoder_of_columns_is_kept(small, tmp_path):
    import pandas as pd

    from contone import make_pipeline, tables

    X, L, _ = small
    frame = pd.DataFrame(X).rename(columns=str).assign(colour=np.resize(["red", "green", "blue"], len(X)))
    pipeline = make_pipeline(tables.ColumnEncoder(), Inversion(n_sweeps=20, n_burn=5)).fit(frame, L)
    save_model(pipeline, tmp_path / "m")
    again = load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(frame), pipeline.predict(frame))
    np.testing.assert_array_equal(again.enhance(frame, L), pipeline.enhance(frame, L))
    # What answers is its last step: this one is tried out when the file is read. A folder of pickles is never named.
    pipeline.memory = str(tmp_path)
    pipeline[-1].label_names_.pop()
    save_model(pipeline, tmp_path / "m")
    with pytest.raises(DataError, match="degrees of 4 labels and names 3"):
        load_model(tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert json.loads(archive.read(MANIFEST))["method"]["state"]["memory"] is None
    with pytest.raises(DataError, match="names a folder of pickles"):
        load_model(changed(tmp_path / "m", tmp_path / "forged", lambda state: state.update(memory="pickles")))


@pytest.mark.parametrize("part", ["method", "details"])
def test_a_file_whose_parts_are_something_else_holds_no_method(small, tmp_path, part):
    X, L, _ = small
    path, forged = tmp_path / "m.contone", tmp_path / "forged.contone"
    save_model(Temperature().fit(X, L), path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(forged, "w") as other:
        for name in archive.namelist():
            content = archive.read(name)
            if name == MANIFEST:
                content = json.dumps(json.loads(content) | {part: 5}).encode()
            other.writestr(name, content)
    with pytest.raises(DataError, match="forged.contone cannot be used as a model: it holds no method"):
        load_model(forged)


def test_a_class_of_the_running_script_has_no_name_that_another_could_find(monkeypatch):
    own = type("Own", (Temperature,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Own", own, raising=False)
    assert _name_of(own) is None
    assert _name_of(Temperature) == f"{Temperature.__module__}:Temperature"
    module = types.ModuleType("a_module_of_mine")
    module.Own = type("Own", (Temperature,), {"__module__": module.__name__})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert _name_of(module.Own) == "a_module_of_mine:Own"
    # A name that one of scikit-learn's classes has, too, is not that class.
    assert _name_of(Ridge) == "sklearn:Ridge"
    module.Ridge = type("Ridge", (Temperature,), {"__module__": module.__name__})
    assert _name_of(module.Ridge) == "a_module_of_mine:Ridge"


def test_values_are_estimators_measurements_dataclasses_and_named_tuples():
    class Pair(NamedTuple):
        a: int
        b: int

    for cls, value in ((Pair, True), (Solution, True), (GLLE, True), (CumulativeMass, True), (tuple, False),
                       (type("Syntax", (), {"_fields": ()}), False), (dict, False), (io.BytesIO, False)):  # fmt: skip
        assert _is_value_class(cls) == value, cls
