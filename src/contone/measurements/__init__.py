"""How labels are made from degrees: one file per measurement, `base` says what a measurement is.

Benchmarks of label enhancement start from known distributions and measure them; `CumulativeMass(0.5)` is the rule
behind the published logical labels of the field. Annotators follow rules too: `TopK`, `Threshold` and `Order` are the
usual ones. `Votes`, `Marks` and `Levels` are answers
of single people.
"""

from contone.measurements.bar import Threshold
from contone.measurements.base import Answers, Measurement, asked_frequencies, fill_unasked, has_unasked
from contone.measurements.intervals import IntervalRule, Others, Region
from contone.measurements.levels import Levels, Marks
from contone.measurements.mass import CumulativeMass
from contone.measurements.names import RuleText, known_rules, parse_rule
from contone.measurements.order import Order
from contone.measurements.topk import TopK
from contone.measurements.votes import Votes

__all__ = [
    "Answers",
    "CumulativeMass",
    "IntervalRule",
    "Levels",
    "Marks",
    "Measurement",
    "Order",
    "Others",
    "Region",
    "RuleText",
    "Threshold",
    "TopK",
    "Votes",
    "asked_frequencies",
    "fill_unasked",
    "has_unasked",
    "known_rules",
    "parse_rule",
]
