"""A limit on the addresses of a process (``ulimit -v``), under which libraries fail in their own ways, abort or hang.

They ask for far more addresses than they use memory: for threads, for compiled code, for what they may allocate later.
The figures are what was measured on two cores, rounded up. Nothing else is imported here, as this is asked before.
"""

from contone.exceptions import MemoryEstimateError

NEEDED = {"scikit-learn": 0.5e9, "numba": 0.8e9, "the command line": 2.0e9}
"""Bytes of addresses that must be allowed."""


def check_addresses(what: str) -> None:
    """Refuse, before any of it is imported, what cannot run under the limit of this process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < NEEDED[what]:
        raise MemoryEstimateError(
            f"This process may use {limit / 1e9:.1f} GB of addresses (ulimit -v), and {what} needs about "
            f"{NEEDED[what] / 1e9:.1f} GB of them. Raise that limit; to bound memory, set CONTONE_MEMORY_LIMIT."
        )
