"""Where kernels of our own run: the one place that decides it."""

from contextlib import suppress
from functools import cache
from threading import Thread

import torch
from torch import Tensor

try:  # Triton comes with torch's CUDA builds only
    import triton
except ImportError:  # pragma: no cover - depends on the build of torch
    triton = None

OLDEST = (8, 0)
"""Compute capability from which on the kernels were meant to run: Ampere, 2020."""
SHARED_BYTES = 99 * 1024
"""Shared memory of a program on every GPU since; read off the GPU where torch knows it."""


def can_launch(A: Tensor) -> bool:
    """Whether kernels run on the device of A: an NVIDIA GPU, not too old, with Triton installed."""
    may = triton is not None and A.is_cuda and torch.version.cuda is not None
    return may and torch.cuda.get_device_capability(A.device) >= OLDEST


@cache
def prepare() -> None:
    """Have Triton read its own files now, which its first kernel waits for (0.4 s), while other work goes on."""

    def work() -> None:
        with suppress(Exception):  # who launches a kernel is told
            triton.jit(_nothing).warmup(grid=(1,))

    Thread(target=work).start()


def _nothing() -> None: ...


def shared_bytes(A: Tensor) -> int:
    """Shared memory that a program may take on the device of A."""
    return int(getattr(torch.cuda.get_device_properties(A.device), "shared_memory_per_block_optin", SHARED_BYTES))
