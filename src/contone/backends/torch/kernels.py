"""Where kernels of our own run: the one place that decides it."""

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
    if triton is None or not A.is_cuda or torch.version.cuda is None:
        return False
    return torch.cuda.get_device_capability(A.device) >= OLDEST


def shared_bytes(A: Tensor) -> int:
    """Shared memory that a program may take on the device of A."""
    return int(getattr(torch.cuda.get_device_properties(A.device), "shared_memory_per_block_optin", SHARED_BYTES))
