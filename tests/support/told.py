"""A generator that says what it is told to: a draw then is a number that a test can work out."""

from __future__ import annotations

import math

import numpy as np


class Told:
    """Standard normal numbers in turn, one uniform number for ever; what else was asked for is kept in `asked`."""

    def __init__(self, normals=(), uniform=0.5):
        self.normals, self.uniform, self.asked = list(np.ravel(normals)), uniform, {}

    def standard_normal(self, size=None):
        if size is None:
            return self.normals.pop(0)
        return np.array([self.normals.pop(0) for _ in range(math.prod(np.atleast_1d(size)))]).reshape(size)

    def random(self):
        return self.uniform

    def choice(self, values, p=None):
        self.asked["choice"] = np.asarray(values), p
        return values[-1]

    def gamma(self, shape, scale):
        self.asked["gamma"] = shape, scale
        return shape * scale

    def standard_gamma(self, shape):
        self.asked["standard_gamma"] = shape
        return shape
