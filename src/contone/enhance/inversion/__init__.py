"""Enhancement as a Bayesian inverse problem (`Inversion`)."""

from contone.enhance.inversion.estimator import Inversion

__all__ = ["Inversion"]
