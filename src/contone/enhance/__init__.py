"""(X, L) -> D^: the methods, one file each.

`methods()` lists them; commands, experiments and the tests all read that list, so a new method appears
everywhere once it is imported here and named in `__all__`, or offered by an installed package (`plugins`).
"""

from contone.base import Enhancer
from contone.enhance import plugins
from contone.enhance.baselines import Logical, Temperature, Uniform
from contone.enhance.conle import ConLE
from contone.enhance.dldl import DLDL
from contone.enhance.dram import DRAM
from contone.enhance.fcm import FCM
from contone.enhance.glemr import GLEMR
from contone.enhance.glerb import GLERB
from contone.enhance.glesc import GLESC
from contone.enhance.glle import GLLE
from contone.enhance.inversion import Inversion
from contone.enhance.km import KM
from contone.enhance.lcdr import LCdr
from contone.enhance.leic import LEIC
from contone.enhance.lemll import LEMLL
from contone.enhance.lesc import LESC
from contone.enhance.levi import LEVI
from contone.enhance.lible import LIBLE
from contone.enhance.lp import LP
from contone.enhance.ml2 import ML2

__all__ = [
    "DLDL",
    "DRAM",
    "FCM",
    "GLEMR",
    "GLERB",
    "GLESC",
    "GLLE",
    "KM",
    "LEIC",
    "LEMLL",
    "LESC",
    "LEVI",
    "LIBLE",
    "LP",
    "ML2",
    "ConLE",
    "Inversion",
    "LCdr",
    "Logical",
    "Temperature",
    "Uniform",
]


def methods() -> dict[str, type[Enhancer]]:
    """Every enhancer by its lower-case name, baselines first, then alphabetically; those of other packages included."""
    classes = [*(globals()[name] for name in __all__), *plugins.found()]
    classes.sort(key=lambda cls: (not cls.baseline, cls.__name__.lower()))
    return {cls.__name__.lower(): cls for cls in classes}
