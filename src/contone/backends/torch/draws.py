"""Random numbers as torch tensors, for the rows of a sampler.

Few numbers are drawn by NumPy's generator on the host and sent over: the same seed then gives the same answer with
NumPy and with torch, on every device. Many are drawn on the device by torch's own generator: the same seed gives the
same answer there, but another one than on the host, from the same distribution.
"""

import numpy as np
import torch

FEW = 2**17
"""Up to this many numbers per draw the host is as good as a GPU: about half a millisecond, and 1 MB to send."""


class TensorDraws:
    """Draws like those of `generator`, as tensors of the kind of `model`; on a GPU large ones come from the device."""

    def __init__(self, generator: np.random.Generator, model: torch.Tensor) -> None:
        self._host, self._model = generator, model
        self._own: torch.Generator | None = None

    def random(self, size: int | tuple[int, ...]) -> torch.Tensor:
        """Uniform draws in [0, 1)."""
        if self._on_device(size):
            return torch.rand(size, generator=self._generator(), device=self._model.device, dtype=self._model.dtype)
        drawn = self._sent(self._host.random(size))
        # Rounded to single precision a draw can become 1, which is outside.
        return drawn if drawn.element_size() == 8 else drawn.clamp(max=1.0 - 2.0**-24)

    def standard_normal(self, size: int | tuple[int, ...]) -> torch.Tensor:
        """Standard normal draws."""
        if self._on_device(size):
            return torch.randn(size, generator=self._generator(), device=self._model.device, dtype=self._model.dtype)
        return self._sent(self._host.standard_normal(size))

    def chain_seed(self, size: tuple[int, ...]) -> int | None:
        """A seed for a kernel that makes its own numbers, where draws of this size come from the device."""
        return int(self._host.integers(0, 2**31)) if self._on_device(size) else None

    def _on_device(self, size: int | tuple[int, ...]) -> bool:
        return self._model.device.type != "cpu" and int(np.prod(size)) > FEW

    def _generator(self) -> torch.Generator:
        """The device's generator, seeded by the host's when it is first needed."""
        if self._own is None:
            self._own = torch.Generator(self._model.device).manual_seed(int(self._host.integers(0, 2**31)))
        return self._own

    def _sent(self, drawn: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(drawn, device=self._model.device, dtype=self._model.dtype)
