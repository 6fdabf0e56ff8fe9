"""Memory beside a tensor: that of its GPU, if it is on one."""

from __future__ import annotations

import torch

from contone.runtime import machine


def available_bytes(X: torch.Tensor) -> float:
    """Memory that work beside X can take; the user's own limit comes first."""
    if X.device.type != "cuda" or machine.user_limit() is not None:
        return machine.available_bytes()
    free, _ = torch.cuda.mem_get_info(X.device)
    unused = torch.cuda.memory_reserved(X.device) - torch.cuda.memory_allocated(X.device)
    return float(free + unused)  # what torch holds without using it is there to take
