"""Elementary functions for loops that numba compiles: without a branch or a call, so that vector instructions come out.

In double precision, and in single precision, where twice as many numbers go through a processor at a time and shorter
polynomials are enough. Errors of both:

- exp: x = k log 2 + r, a polynomial in r (relative error 4e-16, 1e-7);
- log: m = x / 2^k near 1, a polynomial in s^2, s = (m - 1) / (m + 1) (2e-16, 2e-7);
- Phi(-y) = t P(t) exp(-y^2 / 2), t = 1 / (1 + y / 5), y <= 37.5 or 13 (1e-13 of the value, 1e-5);
- -Phi^-1(p) = s - N(s) / D(s), s = sqrt(-2 log p), p <= 1/2 and from 1e-300 or 1.2e-38 on (3e-14, 2e-6).

The polynomials interpolate at Chebyshev's points; N and D are a least-squares fit, weighted by 1 / D until it settles.
"""

# mypy: disable-error-code="no-untyped-def"

import math
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from contone.runtime.addresses import check_addresses

check_addresses("numba")
import numba  # noqa: E402
from numba.core.caching import IndexDataCacheFile  # noqa: E402
from numba.extending import overload  # noqa: E402

TINY = 2.2250738585072014e-308
LOG2E, LOG2_HIGH, LOG2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
ROUND = 6755399441055744.0
"""1.5 * 2^52: what is added to it is rounded to a whole number, which its last bits hold."""
EXP = (
    1.0, 1.0000000000000067, 0.5000000000000006, 0.16666666666554406, 0.04166666666657314, 0.008333333385667782,
    0.0013888888932488599, 0.00019841170270440067, 2.4801504346997686e-05, 2.764018079620985e-06,
    2.7626357241447223e-07,
)  # fmt: skip
LOG = (
    2.0000000000000004, 0.6666666666655292, 0.40000000061741614, 0.2857141602110767, 0.22223434547517906,
    0.18121934431215214, 0.16837659970680488,
)  # fmt: skip
MIDDLE, HALF_WIDTH = 0.5581395348837209, 0.4418604651162791
EVEN = (
    0.17075693397994357, 0.0967159630543955, 0.025564210830846052, 0.002177291319341406, -0.00010340780672268457,
    9.838120176748054e-07, 3.4234127622282054e-07, -5.113155505391826e-08, 4.108912324152683e-09,
)  # fmt: skip
ODD = (
    0.14040402373909416, 0.0552542325963997, 0.009097367348756361, 0.0001665187197775287, -3.759266115610739e-05,
    3.4580993803491777e-06, -3.0465620540294e-07, 2.8410488384883788e-08, -2.1049886924781177e-09,
)  # fmt: skip
NUMERATOR = (
    14934056.68976889, 168046435.318752, 376913470.09875697, 301185585.0569255, 129637724.98784147, 30107477.908471793,
    3186032.0980464714, 136069.4341236309, 2039.7303259665769, 7.753375058976702, 0.001091434870110974,
)  # fmt: skip
DENOMINATOR = (
    4002788.002317868, 68235145.36348836, 230430749.54362065, 275418978.9169988, 162100294.9081625, 55208092.91757616,
    9977888.445319902, 830869.0540288003, 28460.911261077046, 342.8529370253165, 1.0,
)  # fmt: skip


def _single(*numbers: float) -> tuple[np.float32, ...]:
    return tuple(np.float32(x) for x in numbers)


ONE, HALF, FIFTH, TINY_32, INFINITE = _single(1.0, 0.5, 0.2, 1.1754943508222875e-38, math.inf)
LOG2E_32, LOG2_HIGH_32, LOG2_LOW_32, ROUND_32 = _single(LOG2E, 0.693359375, -2.1219444005469057e-4, 1.5 * 2.0**23)
EXP_32 = _single(1.0, 1.0, 0.5, 0.16666413843631744, 0.04166635125875473, 0.008375209756195545, 0.0013941213255748153)
LOG_32 = _single(1.999999998631318, 0.6666681533814921, 0.3997485051797189, 0.29924390466272843)
LOWEST_EXP_32, HIGHEST_EXP_32, SQRT2_32, NO_EXPONENT_32 = _single(-87.0, 88.0, 2.0**0.5, 2.0**23 + 127)
FARTHEST_32, MIDDLE_32, PER_HALF_WIDTH_32 = _single(13.0, 0.6388888888888888, 1.0 / 0.3611111111111111)
TAIL_32 = _single(
    0.2000132703891628, 0.14871288980600006, 0.08864613415463836, 0.04216482718459347, 0.015611014462447182,
    0.00422169533320798, 0.0006760962037054125, -1.634389992108326e-05, -2.957287307029897e-05,
)  # fmt: skip
NUMERATOR_32 = _single(
    132.52778137685738, 380.44530726637686, 113.99196587095793, 5.518650706977168, 0.009282610222736753
)
DENOMINATOR_32 = _single(41.29091758077891, 229.8808876197664, 192.95856812457532, 32.78372817939095, 1.0)


def compiled(function: Callable[..., Any]) -> Any:
    """Compiled at the first call, once per machine where the result can be kept."""
    # No thread holds the interpreter; x / 0 is infinite; a * b + c is rounded once. Nothing else is relaxed.
    how: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    try:
        made = numba.njit(cache=True, **how)(function)
    except RuntimeError:  # nowhere to write
        return numba.njit(**how)(function)
    if (kept := getattr(made, "_cache", None)) is not None:  # none where numba was told not to compile
        sources = _sources(Path(function.__code__.co_filename).parent)
        kept._cache_file = _HashedFiles(kept.cache_path, kept._impl.filename_base, sources)
        kept.load_overload, kept.save_overload = (_forgiving(f) for f in (kept.load_overload, kept.save_overload))
    return made


class _HashedFiles(IndexDataCacheFile):
    """The files of a compiled function, each behind the hash of its content, with its name and what it was made of:
    what is damaged, or left from another function or another version of this one, counts as not there."""

    def _load_index(self) -> dict[Any, str]:
        with suppress(OSError):
            return dict(self._read(self._index_path))
        return {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _stamp(self, path: str) -> Any:
        return self._version, self._source_stamp, Path(path).name

    def _write(self, path: str, entry: Any) -> None:
        content = self._dump((self._stamp(path), entry))
        with self._open_for_write(path) as file:
            file.write(sha256(content).digest() + content)

    def _read(self, path: str) -> Any:
        found, content = (whole := Path(path).read_bytes())[:32], whole[32:]
        stamp, entry = pickle.loads(content) if sha256(content).digest() == found else (None, None)
        if stamp != self._stamp(path):
            raise OSError(f"{path} is damaged, or of another function or version")
        return entry


@cache
def _sources(folder: Path) -> str:
    """The hash of a function's sources: functions of its folder and of this one are compiled into it."""
    files = [file for room in (folder, Path(__file__).parent) for file in sorted(room.glob("*.py"))]
    return sha256(b"".join(text for file in files if b"@compiled" in (text := file.read_bytes()))).hexdigest()


def _forgiving(reads_or_writes: Callable[..., Any]) -> Callable[..., Any]:
    """The same; a disk that is full or read-only, or a file of another numba, costs another compilation, no more."""

    def attempt(*given: Any) -> Any:
        with suppress(Exception):
            return reads_or_writes(*given)
        return None

    return attempt


HOW: Any = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True}
inlined = numba.njit(**HOW)


def in_both_precisions(double: Callable[..., Any], single: Callable[..., Any]) -> Any:
    """A function of a number for loops: `single` of numbers in single precision, `double` of others."""

    def function(x):
        return double(x)

    overload(function, jit_options=HOW)(lambda x: single if x == numba.float32 else double)
    return function


@inlined
def _every_fourth(c, first, y):
    last = first + (len(c) - 1 - first) // 4 * 4
    value = c[last]
    for k in range(last - 4, first - 1, -4):
        value = value * y + c[k]
    return value


@inlined
def polynomial(c, x):
    """Sum of c_k x^k, as four chains side by side: a processor waits for every step of a chain."""
    x2 = x * x
    return (_every_fourth(c, 0, x2 * x2) + x * _every_fourth(c, 1, x2 * x2)) + x2 * (
        _every_fourth(c, 2, x2 * x2) + x * _every_fourth(c, 3, x2 * x2)
    )


@inlined
def larger(a, b):
    return a if a > b else b


@inlined
def smaller(a, b):
    return a if a < b else b


def _exp(x):
    """e^x; for x < -708 as for -708, for x > 709 as for 709."""
    x = smaller(larger(x, -708.0), 709.0)
    k = x * LOG2E + ROUND
    whole = k - ROUND
    r = (x - whole * LOG2_HIGH) - whole * LOG2_LOW
    power = np.int64((np.float64(k).view(np.int64) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return polynomial(EXP, r) * power


def _exp_single(x):
    """The same; for x < -87 as for -87, for x > 88 as for 88."""
    x = smaller(larger(x, LOWEST_EXP_32), HIGHEST_EXP_32)
    k = x * LOG2E_32 + ROUND_32
    whole = k - ROUND_32
    r = (x - whole * LOG2_HIGH_32) - whole * LOG2_LOW_32
    power = np.int32((np.float32(k).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    return polynomial(EXP_32, r) * power


exp = in_both_precisions(_exp, _exp_single)


def _log(x):
    """log(x) of positive numbers; those below the smallest normal number count as that."""
    bits = np.float64(larger(x, TINY)).view(np.int64)
    mantissa = np.int64((bits & np.int64(0x000FFFFFFFFFFFFF)) | np.int64(0x3FF0000000000000)).view(np.float64)
    # The exponent as the last bits of 2^52: a number without a conversion.
    raised = np.int64((bits >> np.int64(52)) | np.int64(0x4330000000000000)).view(np.float64)
    high = mantissa > 1.4142135623730951
    m = 0.5 * mantissa if high else mantissa
    k = raised - (4503599627371518.0 if high else 4503599627371519.0)
    s = (m - 1.0) / (m + 1.0)
    value = k * LOG2_HIGH + (k * LOG2_LOW + s * polynomial(LOG, s * s))
    return math.inf if x == math.inf else value


def _log_single(x):
    """The same."""
    bits = np.float32(larger(x, TINY_32)).view(np.int32)
    mantissa = np.int32((bits & np.int32(0x007FFFFF)) | np.int32(0x3F800000)).view(np.float32)
    # The exponent as the last bits of 2^23.
    raised = np.int32((bits >> np.int32(23)) | np.int32(0x4B000000)).view(np.float32)
    high = mantissa > SQRT2_32
    m = HALF * mantissa if high else mantissa
    k = raised - (NO_EXPONENT_32 - ONE if high else NO_EXPONENT_32)
    s = (m - ONE) / (m + ONE)
    value = k * LOG2_HIGH_32 + (k * LOG2_LOW_32 + s * polynomial(LOG_32, s * s))
    return INFINITE if x == INFINITE else value


log = in_both_precisions(_log, _log_single)


def _tail(x):
    """Phi(-x) for x >= 0."""
    y = smaller(x, 37.5)
    t = 1.0 / (1.0 + 0.2 * y)
    u = (t - MIDDLE) * (1.0 / HALF_WIDTH)
    u2 = u * u
    return exp(-0.5 * y * y) * t * (polynomial(EVEN, u2) + u * polynomial(ODD, u2))


def _tail_single(x):
    """The same."""
    y = smaller(x, FARTHEST_32)
    t = ONE / (ONE + FIFTH * y)
    return exp(-HALF * y * y) * t * polynomial(TAIL_32, (t - MIDDLE_32) * PER_HALF_WIDTH_32)


tail = in_both_precisions(_tail, _tail_single)


@inlined
def normal(x):
    """Phi(x)."""
    p = tail(abs(x))
    return ONE - p if x > 0 else p


def _quantile(x):
    """Phi^-1(x); as for 1e-300 and its mirror image beyond these."""
    s = math.sqrt(-2.0 * log(larger(smaller(x, 1.0 - x), 1e-300)))
    z = s - polynomial(NUMERATOR, s) / polynomial(DENOMINATOR, s)
    return z if x > 0.5 else -z


def _quantile_single(x):
    """The same; as for 1.2e-38 and its mirror image beyond these."""
    half = -log(larger(smaller(x, ONE - x), TINY_32))
    s = math.sqrt(half + half)
    z = s - polynomial(NUMERATOR_32, s) / polynomial(DENOMINATOR_32, s)
    return z if x > HALF else -z


quantile = in_both_precisions(_quantile, _quantile_single)


# Of arrays (n,), written over.


@compiled
def exponentials(x):
    """e^x."""
    for i in range(len(x)):
        x[i] = exp(x[i])


@compiled
def logarithms(x):
    """log(x)."""
    for i in range(len(x)):
        x[i] = log(x[i])


@compiled
def probabilities(x):
    """Phi(x)."""
    for i in range(len(x)):
        x[i] = normal(x[i])


@compiled
def quantiles(p):
    """Phi^-1(p)."""
    for i in range(len(p)):
        p[i] = quantile(p[i])
