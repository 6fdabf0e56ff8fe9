"""A fitted method as a file: arrays and JSON in a zip, never a pickle.

``model.json`` holds a tree of plain values; arrays lie beside it as ``.npy`` members and are read without pickle. An
object is stored as the name of its class and its attributes, and is rebuilt without calling its constructor. Which
classes may be rebuilt is decided here: estimators, rules and value classes (dataclasses, named tuples) defined in
`ROOMS` of contone, and the few classes of scikit-learn in `FOREIGN`. A file can therefore hold data only; reading one
never runs code that came with it. A method from outside contone is stored by its import path, and read only where its
package is installed as one of contone's methods, or the reader names it (`trusted`): a file never makes Python import
what its user has not asked for. Members are not compressed, so that a small file cannot claim a large memory.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from contone.base import DistributionLearner, Enhancer
from contone.enhance import plugins
from contone.exceptions import DataError, InputError
from contone.measurements import Measurement
from contone.runtime.files import check_regular, replacing

FORMAT = 1
"""Version of the file's layout; a reader refuses what is newer than itself."""
ROOMS = ("numerics", "augment", "enhance", "predict", "measurements", "tables", "pipeline", "trust")
"""Parts of contone whose classes may be in a file."""
FOREIGN = {
    "Nystroem": "sklearn.kernel_approximation",
    "LinearRegression": "sklearn.linear_model",
    "Ridge": "sklearn.linear_model",
    "StandardScaler": "sklearn.preprocessing",
}
"""Classes of scikit-learn whose fitted state is plain arrays, and the module of each."""
TAG = "kind"
MANIFEST = "model.json"


@dataclass(frozen=True)
class StoredModel:
    """What a model file holds: the fitted method, and what was noted about it (columns, say)."""

    method: Any
    details: dict[str, Any] = field(default_factory=dict)
    contone_version: str = ""


def save_model(method: Any, path: str | os.PathLike[str], *, details: Mapping[str, Any] | None = None) -> None:
    """Write a fitted method to a file, whole or not at all; `load_model` gives it back with the same answers.

    Parameters
    ----------
    method : fitted enhancer or learner
        What is kept.
    path : path
        The file, which is replaced if it is there.
    details : mapping, optional
        Plain values to keep with it (texts, numbers, lists, arrays).
    """
    from contone import __version__

    check_is_fitted(method)
    arrays: list[np.ndarray] = []
    content = {
        "format": FORMAT,
        "contone": __version__,
        "method": _encode(method, arrays, type(method).__name__),
        "details": _encode(dict(details or {}), arrays, "details"),
    }
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        # One date for all, so that the same model is the same bytes.
        archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(content, indent=1))
        for number, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(_member(number)), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
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
        with _Archive(path) as archive:
            archive.trusted = frozenset(trusted)
            content = json.loads(_member_bytes(archive, MANIFEST))
            if not isinstance(content, dict) or not isinstance(content.get("format"), int):
                raise DataError("it has no format number")
            if content["format"] > FORMAT:
                raise DataError(f"it was written by contone {content.get('contone')}, which is newer")
            method = _decode(content["method"], archive)
            details = _decode(content["details"], archive)
    except DataError as error:
        raise DataError(f"{Path(path)} cannot be used as a model: {error}.") from error
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, NotImplementedError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0] if str(error) else "it is damaged"
        raise DataError(f"{Path(path)} is not a model file of contone, or it is damaged: {reason}.") from error
    if not isinstance(method, BaseEstimator) or not isinstance(details, dict):
        raise DataError(f"{Path(path)} is not a model file of contone: it holds no method.")
    return StoredModel(method, details, str(content.get("contone", "")))


# ------------------------------------------------------------------------------------------------------- out


class _Archive(zipfile.ZipFile):
    """A file that is read, and the methods from outside that may be in it."""

    trusted: frozenset[str] = frozenset()


def _encode(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    """A value as JSON; arrays are put into the list and named by their number."""
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {TAG: "float", "value": repr(value)}
    if isinstance(value, np.generic):
        return {TAG: "scalar", "array": _put(np.asarray(value), arrays, where)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            if not all(isinstance(entry, str) for entry in value.flat):
                raise _unknown(where, "an array of objects")
            return {TAG: "names", "items": value.tolist()}
        return {TAG: "array", "array": _put(value, arrays, where)}
    if isinstance(value, sp.sparray | sp.spmatrix):
        matrix = sp.csr_array(value)
        return {
            TAG: "sparse",
            "shape": list(matrix.shape),
            **{name: _put(getattr(matrix, name), arrays, where) for name in ("data", "indices", "indptr")},
        }
    if type(value) is list:
        return [_encode(entry, arrays, f"{where}[{i}]") for i, entry in enumerate(value)]
    if type(value) is tuple:
        return {TAG: "tuple", "items": _encode(list(value), arrays, where)}
    if type(value) is dict:
        pairs = [[_encode(k, arrays, where), _encode(v, arrays, f"{where}[{k!r}]")] for k, v in value.items()]
        return {TAG: "dict", "items": pairs}
    return _encode_object(value, arrays, where)


def _encode_object(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    cls = type(value)
    if cls.__name__ == "KNeighborsRegressor" and cls.__module__.startswith("sklearn."):
        state = {**value.get_params(deep=False), "_fit_X": value._fit_X, "_y": value._y}  # its tree is built again
        return {TAG: "neighbours", "state": _encode(state, arrays, where)}
    name = _name_of(cls)
    if name is None:
        raise _unknown(where, f"a {cls.__module__}.{cls.__qualname__}")
    state = {key: _encode(entry, arrays, f"{where}.{key}") for key, entry in _state(value).items()}
    return {TAG: "object", "class": name, "state": state}


def _state(value: Any) -> dict[str, Any]:
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined, no-any-return]
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return dict(vars(value))


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


def _decode(value: Any, archive: _Archive) -> Any:
    if isinstance(value, list):
        return [_decode(entry, archive) for entry in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(TAG)
    if kind not in DECODERS:
        raise DataError(f"it holds a value of the unknown kind {kind!r}")
    return DECODERS[kind](value, archive)


def _decode_float(value: dict[str, Any], archive: _Archive) -> float:
    return float(value["value"])


def _decode_scalar(value: dict[str, Any], archive: _Archive) -> Any:
    return _array(archive, value["array"])[()]


def _decode_array(value: dict[str, Any], archive: _Archive) -> np.ndarray:
    return _array(archive, value["array"])


def _decode_names(value: dict[str, Any], archive: _Archive) -> np.ndarray:
    return np.array([str(entry) for entry in value["items"]], dtype=object)


def _decode_sparse(value: dict[str, Any], archive: _Archive) -> Any:
    parts = tuple(_array(archive, value[name]) for name in ("data", "indices", "indptr"))
    matrix = sp.csr_array(parts, shape=tuple(value["shape"]))
    matrix.check_format(full_check=True)
    return matrix


def _decode_tuple(value: dict[str, Any], archive: _Archive) -> tuple[Any, ...]:
    return tuple(_decode(value["items"], archive))


def _decode_dict(value: dict[str, Any], archive: _Archive) -> dict[Any, Any]:
    return {_decode(k, archive): _decode(v, archive) for k, v in value["items"]}


def _decode_neighbours(value: dict[str, Any], archive: _Archive) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    state = _decode(value["state"], archive)
    X, y = state.pop("_fit_X"), state.pop("_y")
    if any(callable(entry) for entry in state.values()):
        raise DataError("its neighbour search holds a function")
    return KNeighborsRegressor(**state).fit(X, y)


def _decode_object(value: dict[str, Any], archive: _Archive) -> Any:
    cls: Any = _class_of(str(value["class"]), archive.trusted)
    state = {str(key): _decode(entry, archive) for key, entry in value["state"].items()}
    if issubclass(cls, tuple):
        return cls(**state)  # a named tuple does nothing but keep its fields
    made = object.__new__(cls)
    if dataclasses.is_dataclass(cls):
        names = {f.name for f in dataclasses.fields(cls)}
        if set(state) != names:
            raise DataError(f"its {type(made).__name__} has other fields than that of this version of contone")
    elif issubclass(cls, BaseEstimator):
        absent = sorted(set(cls._get_param_names()) - set(state))
        if absent:
            raise DataError(f"its {cls.__name__} has no {absent[0]}")
    for key, entry in state.items():
        object.__setattr__(made, key, entry)
    if isinstance(made, BaseEstimator) and hasattr(made, "_validate_params"):
        made._validate_params()
    return made


DECODERS: dict[Any, Callable[[dict[str, Any], _Archive], Any]] = {
    "float": _decode_float,
    "scalar": _decode_scalar,
    "array": _decode_array,
    "names": _decode_names,
    "sparse": _decode_sparse,
    "tuple": _decode_tuple,
    "dict": _decode_dict,
    "neighbours": _decode_neighbours,
    "object": _decode_object,
}


def _array(archive: _Archive, number: Any) -> np.ndarray:
    """An array of the archive; its header must agree with the bytes that are there."""
    content = io.BytesIO(_member_bytes(archive, _member(int(number))))
    version = np.lib.format.read_magic(content)
    if version not in ((1, 0), (2, 0)):
        raise DataError(f"it holds an array of the unknown version {version}")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(content)
    rest = len(content.getbuffer()) - content.tell()
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != rest:
        raise DataError("it holds an array whose size is not what its header says")
    content.seek(0)
    return np.asarray(np.lib.format.read_array(content, allow_pickle=False))


def _member_bytes(archive: _Archive, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise DataError("its members are compressed, which contone's are not")
    return archive.read(info)  # checks the member's CRC


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
    """The class of that name, if it is one of those allowed."""
    if name.partition(":")[0].partition(".")[0] not in ("contone", "sklearn"):
        return _class_from_outside(name, trusted)
    module, _, attribute = name.partition(":")
    if module == "sklearn" and attribute in FOREIGN:
        return getattr(importlib.import_module(FOREIGN[attribute]), attribute)  # type: ignore[no-any-return]
    if not re.fullmatch(rf"contone\.({'|'.join(ROOMS)})(\.[a-z][a-z0-9_]*)*", module):
        raise DataError(f"it names the class {name!r}, which is not one of contone's")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise DataError(f"it names the class {name!r}, which this version of contone does not have") from error
    if not isinstance(found, type) or found.__module__ != module or not _is_value_class(found):
        raise DataError(f"it names {name!r}, which is not a class of values")
    return found


def _class_from_outside(name: str, trusted: frozenset[str]) -> type:
    """A method that is installed or trusted, or a class of values of its module; nothing else is imported."""
    known = {*trusted, *(f"{cls.__module__}:{cls.__qualname__}" for cls in plugins.found())}
    module, _, attribute = name.partition(":")
    if module not in {path.partition(":")[0] for path in known}:
        raise DataError(
            f"it names the class {name!r}, which is not one of contone's, nor of an installed package of methods. If "
            f"you trust it, say so: trusted=[{name!r}] in Python, --trust {name} on the command line"
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
