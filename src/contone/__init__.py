"""contone: label enhancement. From features and yes/no labels to how much each label describes an instance.

The public names are listed in `contone.public` and imported when the first of them is used.
"""

import typing as _typing

from contone.runtime.interrupts import end_quietly_while_importing
from contone.runtime.lazy import import_when_asked

end_quietly_while_importing()
import_when_asked(__name__)
del end_quietly_while_importing, import_when_asked

__version__ = "0.2.0"

if _typing.TYPE_CHECKING:
    from contone.public import *  # noqa: F403
    from contone.public import __all__ as __all__
