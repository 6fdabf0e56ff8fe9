"""(X, L) -> D^: the methods, one file each.

`methods()` lists them; commands, experiments and the tests all read that list, so a new method appears
everywhere once it is imported here, or offered by an installed package (`plugins`).
"""

from contone.base import Enhancer
from contone.enhance import plugins
from contone.enhance.baselines import Logical as Logical
from contone.enhance.baselines import Temperature as Temperature
from contone.enhance.baselines import Uniform as Uniform
from contone.enhance.conle import ConLE as ConLE
from contone.enhance.dldl import DLDL as DLDL
from contone.enhance.dram import DRAM as DRAM
from contone.enhance.fcm import FCM as FCM
from contone.enhance.glemr import GLEMR as GLEMR
from contone.enhance.glerb import GLERB as GLERB
from contone.enhance.glesc import GLESC as GLESC
from contone.enhance.glle import GLLE as GLLE
from contone.enhance.inversion import Inversion as Inversion
from contone.enhance.km import KM as KM
from contone.enhance.lcdr import LCdr as LCdr
from contone.enhance.leic import LEIC as LEIC
from contone.enhance.lemll import LEMLL as LEMLL
from contone.enhance.lesc import LESC as LESC
from contone.enhance.levi import LEVI as LEVI
from contone.enhance.lible import LIBLE as LIBLE
from contone.enhance.lp import LP as LP
from contone.enhance.ml2 import ML2 as ML2
from contone.exceptions import ArgumentError


def own() -> list[type[Enhancer]]:
    """The enhancers that are imported here."""
    classes = (thing for thing in globals().values() if isinstance(thing, type) and issubclass(thing, Enhancer))
    return [cls for cls in classes if cls is not Enhancer]


def methods() -> dict[str, type[Enhancer]]:
    """Every enhancer by its lower-case name, baselines first, then alphabetically; those of other packages included."""
    classes = [*own(), *plugins.found()]
    classes.sort(key=lambda cls: (not cls.baseline, cls.__name__.lower()))
    return {cls.__name__.lower(): cls for cls in classes}


def find(name: str, argument: str = "method") -> type[Enhancer]:
    """The class of that name, or at ``module:Class``; an error about the argument where there is none."""
    known = methods()
    if ":" in name:
        return plugins.load(name)
    if name.lower() not in known:
        raise ArgumentError(f"there is no method {name!r}; there are: {', '.join(known)}.", argument)
    return known[name.lower()]
