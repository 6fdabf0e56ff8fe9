"""contone: label enhancement. From features and yes/no labels to how much each label describes an instance.

The public names are listed in `contone.public`. The command line imports them when it knows that it has work to do.
"""

from contone.runtime.interrupts import end_quietly_while_importing, is_command
from contone.runtime.lazy import arguments_are_its_own, import_when_asked

__version__ = "0.2.0"

end_quietly_while_importing()
if is_command() and arguments_are_its_own():
    import_when_asked(__name__)
else:
    from contone.public import *  # noqa: F403
    from contone.public import __all__ as __all__

del arguments_are_its_own, end_quietly_while_importing, import_when_asked, is_command
