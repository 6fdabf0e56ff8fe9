"""A fitted method as a file: arrays and JSON in a zip, never a pickle.

``model.json`` holds a tree of plain values; arrays lie beside it as ``.npy`` members and are read without pickle. An
object is stored as the name of its class and its attributes, and is rebuilt without calling its constructor. Which
classes may be rebuilt is decided here: estimators, rules and value classes (dataclasses, named tuples) defined in
`ROOMS` of contone, and the few classes of scikit-learn in `FOREIGN`. A file can therefore hold data only; reading one
never runs code that came with it. A method from outside contone is stored by its import path, and read only where its
package is installed as one of contone's methods, or the reader names it (`trusted`): a file never makes Python import
what its user has not asked for. Members are not compressed and each array is named once, so that a file claims no more
memory than its own size. A method that was read must answer a row, in every way that it can, before it is handed out:
its parts fit together then.
"""

import dataclasses
import importlib
import io
import json
import math
import os
import re
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from contone.base import DistributionLearner, Enhancer
from contone.enhance import plugins
from contone.exceptions import DataError, InputError
from contone.measurements import Measurement
from contone.runtime.files import check_regular, replacing
from contone.typing import EstimatorLike, Record

FORMAT = 1
"""Version of the file's layout; a reader refuses what is newer than itself."""
ROOMS = ("numerics", "augment", "enhance", "predict", "measurements", "tables", "pipeline", "trust")
"""Parts of contone whose classes may be in a file."""
FOREIGN = {
    "LinearRegression": "sklearn.linear_model",
    "Nystroem": "sklearn.kernel_approximation",
    "Pipeline": "sklearn.pipeline",
    "Ridge": "sklearn.linear_model",
    "StandardScaler": "sklearn.preprocessing",
}
"""Classes of scikit-learn whose fitted state is plain values, and the module of each."""
MANIFEST = "model.json"


@dataclass(frozen=True)
class StoredModel:
    """What a model file holds: the fitted method, and what was noted about it (columns, say)."""

    method: EstimatorLike
    details: Record = field(default_factory=dict)
    contone_version: str = ""


def save_model(
    method: EstimatorLike, path: str | os.PathLike[str], *, details: Mapping[str, object] | None = None
) -> None:
    """Write a fitted method to a file, whole or not at all; `load_model` gives it back with the same answers.

    Parameters
    ----------
    method : fitted enhancer, learner or pipeline
        What is kept.
    path : path
        The file, which is replaced if it is there.
    details : mapping, optional
        Plain values to keep with it (texts, numbers, lists, arrays).
    """
    from contone import __version__

    check_is_fitted(method)
    arrays: list[np.ndarray] = []
    content: Record = {"format": FORMAT, "contone": __version__}
    content["method"] = _encode(method, arrays, type(method).__name__)
    content["details"] = _encode(dict(details or {}), arrays, "details")
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        # One date for all, so that the same model is the same bytes.
        archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(content, indent=1))
        for number, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(_member(number)), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> EstimatorLike:
    """The fitted method of a file that `save_model` wrote. Reading a file never runs code that came with it.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, default=()
        Methods from outside contone that may be in it, as ``"module:Class"``; installed ones need no mention.
    """
    return read_model(path, trusted=trusted).method


def read_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> StoredModel:
    """The fitted method of a file and what was noted about it; `trusted` as in `load_model`."""
    with suppress(OSError):
        check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            reader = _Reader(archive, frozenset(trusted))
            content = json.loads(reader.read(MANIFEST))
            if not isinstance(content, dict) or not isinstance(content.get("format"), int):
                raise DataError("it has no format number")
            if content["format"] > FORMAT:
                raise DataError(f"it was written by contone {content.get('contone')}, which is newer")
            method, details = reader.decode(content["method"]), reader.decode(content["details"])
        if not isinstance(method, BaseEstimator) or not isinstance(details, dict):
            raise DataError("it holds no method")
        _try_out(method)
    except DataError as error:
        raise DataError(f"{Path(path)} cannot be used as a model: {error}.") from error
    except Exception as error:  # whatever a damaged or forged file makes of the modules that read it
        said = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{Path(path)} is not a model file of contone, or it is damaged: {said}.") from error
    return StoredModel(method, details, str(content.get("contone", "")))


def _try_out(method: EstimatorLike) -> None:
    """Refuse a method whose parts do not fit together: it must answer a row of zeros, as it answers any other row."""
    last = method.steps[-1][1] if isinstance(method, Pipeline) else method
    if not isinstance(last, (Enhancer, DistributionLearner)):
        return
    names, d = last.label_names_, last.n_features_in_
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("its labels are not a list of names")
    if len(getattr(last, "feature_names_in_", range(d))) != d:
        raise DataError(f"it names {len(last.feature_names_in_)} features and was fitted with {d}")
    kept = getattr(last, "label_distributions_", None)
    if kept is not None and kept.shape[1] != len(names):
        raise DataError(f"it has degrees of {kept.shape[1]} labels and names {len(names)}")
    row = np.zeros((1, d))
    try:
        with warnings.catch_warnings(action="ignore"):
            if hasattr(last, "predict"):
                last._predict_checked(row)
            if isinstance(last, Enhancer):
                Enhancer._summary_lines(last)
            for way in ("enhance", "intervals"):
                if hasattr(last, way):
                    getattr(last, way)(row, np.eye(1, len(names)))
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise DataError(f"its {type(last).__name__} cannot answer ({type(error).__name__}: {said})") from error


# ------------------------------------------------------------------------------------------------------- out


def _encode(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    """A value as JSON; arrays are put into the list and named by their number."""
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"kind": "float", "value": repr(value)}
    if isinstance(value, np.generic):
        return {"kind": "scalar", "array": _put(np.asarray(value), arrays, where)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O" and all(isinstance(entry, str) for entry in value.flat):
            return {"kind": "names", "items": value.tolist()}
        return {"kind": "array", "array": _put(value, arrays, where)}
    if isinstance(value, sp.sparray | sp.spmatrix):
        matrix = sp.csr_array(value)
        parts = {name: _put(getattr(matrix, name), arrays, where) for name in ("data", "indices", "indptr")}
        return {"kind": "sparse", "shape": list(matrix.shape), **parts}
    if type(value) is list:
        return [_encode(entry, arrays, f"{where}[{i}]") for i, entry in enumerate(value)]
    if type(value) is tuple:
        return {"kind": "tuple", "items": _encode(list(value), arrays, where)}
    if type(value) is dict:
        pairs = [[_encode(k, arrays, where), _encode(v, arrays, f"{where}[{k!r}]")] for k, v in value.items()]
        return {"kind": "dict", "items": pairs}
    name = _name_of(type(value))
    if name is None:
        raise _unknown(where, f"a {type(value).__module__}.{type(value).__qualname__}")
    state = {key: _encode(entry, arrays, f"{where}.{key}") for key, entry in _state(value).items()}
    return {"kind": "object", "class": name, "state": state}


def _state(value: Any) -> Record:
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined, no-any-return]
    if dataclasses.is_dataclass(value) and not isinstance(value, BaseEstimator):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return {**vars(value), "memory": None} if isinstance(value, Pipeline) else dict(vars(value))


def _put(array: np.ndarray, arrays: list[np.ndarray], where: str) -> int:
    if array.dtype.kind not in "biufcSUMm":
        raise _unknown(where, f"an array of {array.dtype}")
    arrays.append(array)
    return len(arrays) - 1


def _unknown(where: str, what: str) -> InputError:
    return InputError(
        f"{where} is {what}, which a model file cannot hold: it keeps numbers, texts, arrays and contone's own values. "
        "Use a whole number as random_state, fit with NumPy arrays, and estimators that contone knows "
        f"({', '.join(FOREIGN)}). A class of your own must be in a module that can be imported, not in a script."
    )


# -------------------------------------------------------------------------------------------------------- in


class _Reader:
    """A file that is read, and the methods from outside that may be in it."""

    def __init__(self, archive: zipfile.ZipFile, trusted: frozenset[str]) -> None:
        self.archive, self.trusted, self.left = archive, trusted, set(archive.namelist())
        claimed = sum(info.file_size for info in archive.infolist())
        if archive.fp is None or claimed > archive.fp.seek(0, os.SEEK_END):
            raise DataError("its members are compressed, or claim more than the file holds")

    def decode(self, value: Any) -> Any:
        match value:
            case list():
                return [self.decode(entry) for entry in value]
            case {"kind": "float", "value": str(text)}:
                return float(text)
            case {"kind": "scalar", "array": int(number)}:
                return self.array(number)[()]
            case {"kind": "array", "array": int(number)}:
                return self.array(number)
            case {"kind": "names", "items": list(items)}:
                return np.array([str(entry) for entry in items], dtype=object)
            case {"kind": "sparse", "shape": [int(n), int(d)], "data": int(a), "indices": int(b), "indptr": int(c)}:
                matrix = sp.csr_array((self.array(a), self.array(b), self.array(c)), shape=(n, d))
                matrix.check_format(full_check=True)
                return matrix
            case {"kind": "tuple", "items": list(items)}:
                return tuple(self.decode(items))
            case {"kind": "dict", "items": list(pairs)}:
                return {self.decode(key): self.decode(entry) for key, entry in pairs}
            case {"kind": "object", "class": str(name), "state": dict(state)}:
                return self.object(name, {key: self.decode(entry) for key, entry in state.items()})
            case dict():
                raise DataError(f"it holds a value of the kind {value.get('kind')!r} that cannot be read")
        return value

    def object(self, name: str, state: Record) -> Any:
        """An object with this state; no constructor is called, but that of a named tuple, which keeps its fields."""
        cls: Any = _class_of(name, self.trusted)
        called = name.partition(":")[2]
        if odd := [key for key in state if not key.isidentifier() or key.startswith("__")]:
            raise DataError(f"its {called} has an attribute {odd[0]!r}")
        if issubclass(cls, tuple):
            return cls(**state)
        made = object.__new__(cls)
        if issubclass(cls, BaseEstimator):
            if absent := set(cls._get_param_names()) - set(state):
                raise DataError(f"its {called} has no {min(absent)}")
        elif dataclasses.is_dataclass(cls) and set(state) != {f.name for f in dataclasses.fields(cls)}:
            raise DataError(f"its {called} has other fields than that of this version of contone")
        if issubclass(cls, Pipeline) and state["memory"] is not None:
            raise DataError("its Pipeline names a folder of pickles")
        for key, entry in state.items():
            object.__setattr__(made, key, entry)
        if hasattr(made, "_validate_params"):
            made._validate_params()
        return made

    def array(self, number: int) -> np.ndarray:
        """An array of the archive, once; its header must agree with the bytes that are there."""
        content = io.BytesIO(self.read(_member(number)))
        if np.lib.format.read_magic(content) != (1, 0):
            raise DataError("it holds an array of an unknown version")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(content)
        numbers = np.frombuffer(content.getbuffer(), dtype, offset=content.tell()).copy()
        return numbers.reshape(shape, order="F" if by_column else "C")

    def read(self, name: str) -> bytes:
        """The bytes of a member, once: what is named twice would take its memory twice."""
        info = self.archive.getinfo(name)
        if name not in self.left:
            raise DataError(f"it names {name} twice")
        self.left.remove(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise DataError("its members are compressed, which contone's are not")
        if info.flag_bits & 1:
            raise DataError("its members are encrypted, which contone's are not")
        return self.archive.read(info)  # checks the member's CRC


def _member(number: int) -> str:
    return f"arrays/{number:04d}.npy"


# ----------------------------------------------------------------------------------------- the classes allowed


def _name_of(cls: type) -> str | None:
    """The name under which a class is stored; None where it is not allowed."""
    if cls.__name__ in FOREIGN and cls.__module__.startswith("sklearn."):
        return f"sklearn:{cls.__name__}"
    name = f"{cls.__module__}:{cls.__qualname__}"
    # A method of the user's own, or a value of one: what counts is whether the path leads back to the class.
    is_method = issubclass(cls, (Enhancer, DistributionLearner)) or not issubclass(cls, BaseEstimator)
    trusted = frozenset({name}) if is_method and cls.__module__ != "__main__" else frozenset()
    try:
        return name if _class_of(name, trusted) is cls else None
    except DataError:
        return None


def _class_of(name: str, trusted: frozenset[str]) -> type:
    """The class of that name, if it is one of those allowed; nothing else is imported."""
    module, _, attribute = name.partition(":")
    if module == "sklearn" and attribute in FOREIGN:
        return getattr(importlib.import_module(FOREIGN[attribute]), attribute)  # type: ignore[no-any-return]
    if module.partition(".")[0] in ("contone", "sklearn"):
        if not re.fullmatch(rf"contone\.({'|'.join(ROOMS)})(\.[a-z][a-z0-9_]*)*", module):
            raise DataError(f"it names the class {name!r}, which is not one of contone's")
    else:
        known = {*trusted, *(f"{cls.__module__}:{cls.__qualname__}" for cls in plugins.found())}
        if module not in {path.partition(":")[0] for path in known}:
            raise DataError(
                f"it names the class {name!r}, which is not one of contone's, nor of an installed package of methods. "
                f"If you trust it, say so: trusted=[{name!r}] in Python, --trust {name} on the command line"
            )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise DataError(f"it needs the class {name!r}, which cannot be imported here ({error})") from error
    if not isinstance(found, type) or found.__module__ != module or not _is_value_class(found):
        raise DataError(f"it names {name!r}, which is not a class of values")
    return found


def _is_value_class(cls: type) -> bool:
    is_named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return is_named_tuple or dataclasses.is_dataclass(cls) or issubclass(cls, (BaseEstimator, Measurement))
