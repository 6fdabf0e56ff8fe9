"""What an enhancer and a learner are; `template` reads from top to bottom as a call runs."""

from contone.base.learner import DistributionLearner as DistributionLearner
from contone.base.template import CheckedEstimator as CheckedEstimator
from contone.base.template import Enhancer as Enhancer
from contone.base.template import Estimator as Estimator
from contone.base.template import FewWarnings as FewWarnings
from contone.base.template import InductiveMixin as InductiveMixin
from contone.base.template import can_enhance_new_rows as can_enhance_new_rows
from contone.base.template import fit_checked as fit_checked
from contone.base.template import in_its_kind as in_its_kind
from contone.base.template import refuse_too_large as refuse_too_large
from contone.base.template import warn_if_short as warn_if_short
from contone.validation.domains import COUNT as COUNT
from contone.validation.domains import NOT_NEGATIVE as NOT_NEGATIVE
from contone.validation.domains import POSITIVE as POSITIVE
from contone.validation.domains import ROUNDS as ROUNDS
from contone.validation.domains import WHOLE as WHOLE
from contone.validation.domains import WIDTH as WIDTH
from contone.validation.domains import HasMethods as HasMethods
from contone.validation.domains import Interval as Interval
from contone.validation.domains import InvalidParameterError as InvalidParameterError
from contone.validation.domains import StrOptions as StrOptions
from contone.validation.domains import check_whole_numbers as check_whole_numbers
from contone.validation.domains import estimator as estimator
from contone.validation.domains import parameter as parameter
