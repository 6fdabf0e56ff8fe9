"""A limit on addresses (ulimit -v) is one sentence, before a library fails under it in words of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import pytest

from contone.exceptions import MemoryEstimateError
from contone.runtime import addresses

resource = pytest.importorskip("resource")


def limited(*arguments: str, limit: float) -> subprocess.CompletedProcess[str]:
    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))

    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=set_limit)


def test_a_name_of_the_library_under_a_small_limit():
    done = limited("-c", "import contone; contone.KM", limit=3e8)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("contone.exceptions.MemoryEstimateError: This process may use 0.3 GB of addresses (ulimit")


def test_exactly_what_is_needed_is_enough(monkeypatch):
    for what, needed in addresses.NEEDED.items():
        for limit in (resource.RLIM_INFINITY, int(needed), int(needed) - 1):
            monkeypatch.setattr(resource, "getrlimit", lambda kind, limit=limit: (limit, limit))
            with pytest.raises(MemoryEstimateError, match=what) if limit == int(needed) - 1 else nullcontext():
                addresses.check_addresses(what)


def test_the_command_under_a_limit_that_libraries_would_hang_or_abort_at():
    done = limited("-m", "contone", "methods", limit=1e9)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: This process may use 1.0 GB of addresses")
    assert len(done.stderr.splitlines()) == 1
