"""Domains of parameters, and the other private parts of scikit-learn that contone uses: imported here and nowhere else.

Should a release of scikit-learn move them, this is the one file to change.
"""

from __future__ import annotations

from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import _check_n_features as check_n_features

__all__ = ["HasMethods", "Interval", "InvalidParameterError", "StrOptions", "check_n_features"]
