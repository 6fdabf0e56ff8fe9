"""Every error and warning that contone raises on purpose.

An error names the argument, what was wrong with it, and what to do. All of them derive from `ContoneError`; those about
input are also the `ValueError` or `TypeError` that scikit-learn's conventions ask for.
"""


class ContoneError(Exception):
    """Base class of contone's own errors."""


class InputError(ContoneError, ValueError):
    """The data handed in cannot be used; the message says what to change."""


class InputTypeError(InputError, TypeError):
    """The data handed in is of a kind that cannot be used (text, objects, an unsupported container)."""


class ArgumentError(InputError):
    """An argument cannot be used, whatever the data; `argument` is its name."""

    def __init__(self, message: str, argument: str) -> None:
        super().__init__(message)
        self.argument = argument


class FeatureError(InputError):
    """Something is wrong with the features X."""


class LabelError(InputError):
    """Something is wrong with the labels Y (or with a label distribution D)."""


class ShapeError(InputError):
    """Row or column counts that must agree do not."""


class PluginError(InputError):
    """A method from outside contone cannot be loaded or lacks what a method needs; the message says what."""


class DataError(ContoneError):
    """A data set cannot be found, read or trusted."""


class MissingExtraError(ContoneError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""


class OutputError(ContoneError, OSError):
    """A result cannot be written where it was asked for; what was there before is untouched."""


class MemoryEstimateError(ContoneError, MemoryError):
    """The work would not fit into memory, by an estimate made before it starts; the message says what to do."""


class AnswerError(ContoneError, RuntimeError):
    """A method produced rows that are not distributions: a defect in the method, never stored as an answer."""


class LabelWarning(UserWarning):
    """The labels can be used, but say less than the user may think."""


class PluginWarning(UserWarning):
    """An installed package offers a method that cannot be used; it is left out."""


class ApproximationWarning(UserWarning):
    """A step was computed approximately, and less well than it should be; the message says what to do."""


class NearUniformWarning(UserWarning):
    """A fitted answer is (nearly) the uniform distribution, so it says nothing about the labels."""


class RankWarning(UserWarning):
    """More directions were asked for than the labels determine; the message says how the rest was chosen."""


def missing_extra(what: str, package: str, extra: str, instead: str = "") -> MissingExtraError:
    """The error for something that needs an optional dependency which is not there."""
    advice = f"pip install 'contone[{extra}]'.{instead}"
    return MissingExtraError(f"{what} needs {package}, which is not installed: {advice}")
