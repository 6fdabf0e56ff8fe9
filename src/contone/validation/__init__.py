"""The only place where data is checked, and the way out of answers: `training` is what a call goes through."""

from contone.validation.containers import Border as Border
from contone.validation.containers import as_table as as_table
from contone.validation.containers import open_border as open_border
from contone.validation.containers import refuse_beyond_squares as refuse_beyond_squares
from contone.validation.degrees import NOTHING_KNOWN as NOTHING_KNOWN
from contone.validation.degrees import KnownDegrees as KnownDegrees
from contone.validation.degrees import check_degrees as check_degrees
from contone.validation.degrees import check_degrees_of_items as check_degrees_of_items
from contone.validation.distributions import check_distributions as check_distributions
from contone.validation.groups import check_annotators as check_annotators
from contone.validation.groups import check_groups as check_groups
from contone.validation.training import Training as Training
from contone.validation.training import check_features as check_features
from contone.validation.training import check_new_labels as check_new_labels
from contone.validation.training import check_new_rows as check_new_rows
from contone.validation.training import check_supervision as check_supervision
from contone.validation.training import check_training as check_training
from contone.validation.training import examine as examine
from contone.validation.training import judge_labels as judge_labels
from contone.validation.training import silent_rows as silent_rows
