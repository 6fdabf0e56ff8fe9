"""How labels are made from degrees: one file per measurement, `base` says what a measurement is.

Benchmarks of label enhancement start from known distributions and measure them; `CumulativeMass(0.5)` is the rule
behind the published logical labels of the field. Annotators follow rules too: `TopK`, `Threshold` and `Order` are the
usual ones. `Votes`, `Marks` and `Levels` are answers
of single people.
"""

from contone.measurements.bar import Threshold as Threshold
from contone.measurements.base import Answers as Answers
from contone.measurements.base import Measurement as Measurement
from contone.measurements.base import asked_frequencies as asked_frequencies
from contone.measurements.base import fill_unasked as fill_unasked
from contone.measurements.base import has_unasked as has_unasked
from contone.measurements.intervals import IntervalRule as IntervalRule
from contone.measurements.intervals import Others as Others
from contone.measurements.intervals import Region as Region
from contone.measurements.levels import Levels as Levels
from contone.measurements.levels import Marks as Marks
from contone.measurements.mass import CumulativeMass as CumulativeMass
from contone.measurements.names import RuleText as RuleText
from contone.measurements.names import known_rules as known_rules
from contone.measurements.names import parse_rule as parse_rule
from contone.measurements.order import Order as Order
from contone.measurements.topk import TopK as TopK
from contone.measurements.votes import Votes as Votes
