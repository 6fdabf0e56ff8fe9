"""Inversion: label enhancement as a Bayesian inverse problem.

Logical labels are a *measurement* of the label distribution: a known rule made them from it. The model is that rule
behind a logistic-normal distribution whose mean depends on the features,

    z_i ~ N(B^T phi(x_i), Sigma),   d_i = softmax(z_i),   l_i = rule(d_i),

and the answer is the posterior mean E[d_i | X, L], which minimises the expected KL(D || D^). All parameters come from
(X, L):

- z given the rest: Gibbs sampling, each log degree from a normal cut to the interval that L leaves (`sweeps`);
- B and the weight of the features given z: conjugate draws; Sigma: its mode given z, averaged over sweeps with falling
  weights (stochastic approximation EM; `chain`, `logistic_normal`). The start is what the frequencies and
  co-occurrences of the labels say, so that directions which the labels leave open stay where all labels vary alike;
- the overall spread s of z: the histogram of |L_i|. The flatter D is, the more labels it takes to pass the threshold.
  With very few labels the histogram says little; a weak log-normal prior then decides. Left to the sampler alone, s
  would creep to zero wherever the histogram leaves it free, so it is set from outside, by simulation.

Rows that the rule cannot have made (all labels marked, say) keep the order only: marked labels above the others.

See docs/inversion.md for the derivation, what it reaches and what was tried.

References
----------
B. Delyon, M. Lavielle, E. Moulines. Convergence of a stochastic approximation version of the EM algorithm. Annals of
Statistics 27, 1999.  D. Bonett, R. Price. Inferential methods for the tetrachoric correlation coefficient. Journal of
Educational and Behavioral Statistics 30, 2005.
"""

from dataclasses import fields
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from contone.backends import get_backend, to_numpy
from contone.base import (
    COUNT,
    POSITIVE,
    WHOLE,
    Enhancer,
    FewWarnings,
    InductiveMixin,
    Interval,
    estimator,
    fit_checked,
    parameter,
    refuse_too_large,
    warn_if_short,
)
from contone.enhance.inversion import blocks
from contone.enhance.inversion.assessment import (
    ErrorSample,
    RuleReport,
    report_rule,
    warn_of_contradictions,
    warn_of_denied_labels,
    warn_of_relaxed_rows,
    warn_of_silent_rows,
)
from contone.enhance.inversion.chain import NOISE_AT_FIRST, Settings
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.expected_error import ExpectedError, expect_error
from contone.enhance.inversion.fit import choose_rows, fit
from contone.enhance.inversion.logistic_normal import Flips
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.people.model import PeopleFit
from contone.enhance.inversion.people.report import AnswersReport, expect_answer_error, tell_persons
from contone.enhance.inversion.posterior import Posterior
from contone.enhance.inversion.rules import choose_rule
from contone.enhance.inversion.suggest import suggest_rows
from contone.exceptions import InputError, LabelWarning
from contone.measurements import Answers, IntervalRule, Marks, Measurement, Order, RuleText, Votes, parse_rule
from contone.numerics.solution import Solution
from contone.runtime.machine import one_blas_thread
from contone.runtime.warnings import warn
from contone.typing import Array
from contone.validation.containers import as_table, open_border
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees, check_degrees, check_degrees_of_items
from contone.validation.groups import check_annotators, check_groups
from contone.validation.training import Training, check_features, check_new_rows, check_training


@estimator
class Inversion(InductiveMixin, Enhancer):
    """Bayesian inversion of the rule that made the labels: the mean of all distributions that give L, under a model.

    A confidence matrix in place of L counts by its support: a label is marked where its confidence is positive.

    Under the rule "order", Y holds whole numbers: a larger one means a degree at least as large, and ties leave the
    order within them open. Rankings (the best label has the largest number), levels such as 0 to 3, and plain 0 and 1
    are cases of it; confidences count by their order. The order does not say how uneven degrees are: that scale comes
    from graded rows (`degrees`), or else from a weak prior, and `summary` says from which.

    NaN in Y is an entry that nobody asked about: it constrains nothing, and the row is compatible with every completion
    that the rule can make (`unasked`). A row without any label is left out of the fit and gets its prior, as `predict`
    does; but under a `Threshold` a row of zeros says that no degree reaches the threshold.

    Parameters
    ----------
    degradation : Measurement or str, default="cumulative"
        The rule that made L, as an object or in words: "main" (main labels, more than half of the weight:
        `CumulativeMass(0.5)`, also "cumulative"), "everything" (`CumulativeMass(0.9)`), "bar" (`Threshold`, its height
        estimated, and with `groups` each person has an own one, as in "marks"; "threshold" has 1 / q), "best"
        (`TopK`, k the most frequent number of labels), "order" (marked above unmarked, with each row's own number of
        labels; or ranks and levels, as above), "votes" (`Votes`: Y counts how many people chose each label, or is one
        class per row), "marks" (`Marks`: each person marks what holds), "levels" (`Levels`: each person gives every
        label a level), or with a parameter: "cumulative:0.9", "threshold:0.2", "topk:3". "auto" chooses among these by
        the likelihood of the number of labels per row, with a model fitted under each; it takes several seconds and
        warns where the labels leave the choice open. `degradation_` says which rule it was, `rule_report_` how well it
        explains the labels.
    features : bool, default=True
        Let the mean of z depend on X. False uses L alone.
    n_components : int, default=60
        Principal components of the standardised features that the mean may use; how much they count is estimated.
    n_sweeps, n_burn : int, default=200, 80
        Gibbs sweeps in all, and how many of them are left out of the averages.
    noise : float, (float, float) or "auto", default=0.0
        Share of the entries of L that are wrong. 0 takes every label as exact. Above 0, the labels that a row would
        have without error are sampled along, at several times the cost. Two numbers are the shares of positives that
        were not marked and of negatives that were: (0.3, 0) is "positive and unlabelled". A row without any mark then
        says that its marks were missed. "auto" estimates both along with the model (`noise_`).
    resolution : int or None, default=None
        How many votes degrees are shares of, where that is what is to be told: the truth is then V / m with V ~
        Multinomial(m, d), a lattice with exact zeros. The answer stays the mean; intervals and the expected error are
        those of such shares.
    strength : float or None, default=None
        How many rows the prior of Sigma (equal, unrelated labels) is worth; None means q, one row per label.
    max_rows : int, default=20000
        Parameters are estimated on at most this many rows, drawn at random; the others then follow block by block.
    n_samples : int, default=0
        How many posterior samples to keep, evenly spaced, as `samples_` (n_samples, n, q).
    random_state : int or None, default=0
        Seed. The default gives the same answer every time; None gives a new one.
    verbose : bool or None, default=None
        Show a progress bar on stderr (needs `rich`); None shows one on long runs on a terminal.

    Attributes
    ----------
    degradation_ : IntervalRule
    noise_ : (float, float)
        Shares of positives that were missed and of negatives that were marked.
    rule_report_ : RuleReport
        The rule in words, the share of the numbers of labels per row that it explains, the weight of marked labels.
    spread_, spread_deviation_ : float
        Root mean square of the centred log degrees: posterior mean and standard deviation.
    coefficients_, covariance_ : (1 + k, q), (q, q)
        Posterior means of B (intercept first) and Sigma.
    expected_error_ : ExpectedError
        Expected KL(D || D^): `mean`, `lower` and `upper` (90 %), and `rows` (n,); see `expected_error`.
    annotator_deviation_ : float
        Standard deviation of what one annotator adds to the log degrees of an item; 0 without `groups`.
    groups_ : list
        Only with `groups`: the items in the order of the answer.
    n_relaxed_ : int
        Rows that the rule cannot have made; only their order is used.
    samples_ : (n_samples, n, q)
        Only with `n_samples` > 0 and n <= `max_rows`. Each of them gives exactly L (but for relaxed rows and
        noise > 0).

    Examples
    --------
    >>> from contone import CumulativeMass
    >>> from contone.numerics.simplex import softmax
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> truth = softmax(X @ [[0.5, 0.0, -0.5], [0.0, 0.5, 0.0]] + 0.3 * rng.normal(size=(100, 3)))
    >>> L = CumulativeMass(0.5).apply(truth)
    >>> method = Inversion(n_samples=1).fit(X, L)
    >>> bool((CumulativeMass(0.5).apply(method.samples_[0]) == L).all())
    True
    >>> lower, upper = method.intervals(level=0.9)
    >>> bool(0.8 < np.mean((lower < truth) & (truth < upper)) < 1.0)
    True
    """

    reference = "this library; docs/inversion.md"
    kinds = frozenset({"torch", "dask", "sparse", "unasked", "unlabelled"})
    unlabelled_get = ""
    _shares_rows = True  # and the same answer with any number of threads
    when_short = "its answer still depends on chance: raise n_sweeps"
    degradation: Measurement | str = parameter(Measurement, RuleText(), default="cumulative")
    features: bool = parameter("boolean", default=True)
    n_components: int = parameter(COUNT, default=60)
    n_sweeps: int = parameter(Interval(Integral, 2, None, closed="left"), default=200)
    n_burn: int = parameter(WHOLE, default=80)
    noise: float | tuple[float, float] | str = parameter(
        Interval(Real, 0, 0.5, closed="left"), tuple, list, {"auto"}, default=0.0
    )
    resolution: int | None = parameter(None, COUNT, default=None)
    strength: float | None = parameter(None, POSITIVE, default=None)
    max_rows: int = parameter(Interval(Integral, 2, None, closed="left"), default=20000)
    n_samples: int = parameter(WHOLE, default=0)
    random_state: int | None = parameter("random_state", default=0)
    verbose: bool | None = parameter(None, "boolean", default=None)

    def takes_levels(self) -> bool:
        """Whether Y may hold ranks or levels: under the rule "order"."""
        rule = self._measurement()
        return isinstance(rule, Measurement) and rule.takes_numbers

    def reads_answers(self) -> bool:
        """Whether Y holds answers of people: votes, marks or levels."""
        return isinstance(getattr(self, "fit_", None), PeopleFit) or isinstance(self._measurement(), Answers)

    def _measurement(self) -> Measurement | str:
        """What made the labels; a name where they have to say it themselves."""
        return parse_rule(self.degradation) if isinstance(self.degradation, str) else self.degradation

    def fit(self, X: Any, Y: Any, degrees: Any = None, groups: Any = None, annotators: Any = None) -> Self:
        """Recover the distributions of these rows and keep what `predict` and `enhance` need; see `fit_enhance`."""
        self.fit_enhance(X, Y, degrees=degrees, groups=groups, annotators=annotators)
        return self

    def fit_enhance(self, X: Any, Y: Any, degrees: Any = None, groups: Any = None, annotators: Any = None) -> Any:
        """Recover the distributions of these rows and return them in the kind of container that Y came in.

        Parameters
        ----------
        X : (n, d)
            Features.
        Y : (n, q)
            Labels, as for every enhancer.
        degrees : (n, q) or None
            Distributions that are known, of some of the rows: on the simplex where they are, NaN in the others. A
            pandas frame may hold some rows only; its index then says which of those of Y. Graded rows come back as
            they are and inform the model. A zero means less than half the smallest positive degree of all.
        groups : (n,) or None
            The item of every row, for answers of people ("votes", "marks", "levels"), several about one item: any
            names. 0/1 labels under another rule are read as "marks", or as "votes" where each row has one. How far
            people differ about an item is estimated (`annotator_deviation_`). The answer has one row
            per item, (m, q), in the order of their first appearance (`groups_`, the index of a pandas answer).
            `degrees` are then those of items: (m, q) in that order, or a pandas frame whose index names items.
        annotators : (n,) or None
            Beside `groups`: the person of every row, any names.
            What persons choose too often and how sharp they are is then learnt (`annotators_`), and the answer is that
            of all people.
        """
        if groups is not None:
            with FewWarnings():
                return self._fit_groups(X, Y, degrees, groups, annotators)
        if annotators is not None:
            raise InputError("annotators needs groups beside it: the item of every row, one row per answer.")
        if degrees is None:
            return super().fit_enhance(X, Y)

        def read(training: Training) -> dict[str, Any]:
            return {"known": check_degrees(degrees, training.border.label_names, training.labels.shape[0], X, Y)}

        return self._check_and_fit(X, Y, read)

    def _fit_groups(self, X: Any, Y: Any, degrees: Any, groups: Any, annotators: Any) -> Any:
        """The template of `fit_enhance` for answers of several people."""
        self._validate_params()
        rule = self._measurement()
        if isinstance(rule, Order):
            raise InputError(
                "groups says which answers are about one item, and orders of several people are not read together: use "
                'degradation="levels" (a level for every label), or leave groups out.'
            )
        if self._settings().noise.any():
            raise InputError(f"Inversion: noise={self.noise} beside groups counts errors twice; use noise=0.")
        training = check_training(self, X, Y)
        grouped = check_groups(groups, training.X, training.border)
        refuse_too_large(self, grouped.X, training.labels.shape[1])
        names, L = training.border.label_names, to_numpy(training.labels)
        rule = rule if isinstance(rule, Answers) else _read_answers(rule, L)
        known = NOTHING_KNOWN if degrees is None else check_degrees_of_items(degrees, names, grouped.names)
        who = None if annotators is None else check_annotators(annotators, grouped.item)
        if who is not None and isinstance(rule, Votes):
            _warn_of_several(L)
        order = np.argsort(grouped.item, kind="stable")
        item, person = grouped.item[order], None if who is None else who.number[order]
        solution = fit_checked(self, grouped.X, L[order], names, known=known, answers=(rule, item, person))
        warn_if_short(solution, self)
        self.groups_ = grouped.names
        self.annotator_names_ = None if who is None else who.names
        self._frames = training.border.library
        return self.wrapped(grouped.border, None, self.label_distributions_)

    def _fit_enhance(
        self,
        X: Array,
        L: Array,
        known: KnownDegrees = NOTHING_KNOWN,
        answers: tuple[Answers, np.ndarray, np.ndarray | None] | None = None,
    ) -> Solution:
        """X has one row per row of L; or one per item: `answers` say what they are, of which item and by whom."""
        settings, rng = self._settings(), make_generator(self.random_state)
        settings.check(takes_numbers=self.takes_levels(), rule_is_open=isinstance(self._measurement(), str))
        in_memory, sample, among = get_backend(X).in_memory, None, known
        X_some, L_some = X, L
        if not in_memory:  # a sample in memory; the posterior is lazy where that is not all
            seed = make_seed(self.random_state)
            sample = choose_rows(L.shape[0], self.max_rows, np.random.default_rng(seed), known.rows)
            (X_some, L_some), among = blocks.take_rows(X, L, sample), known.among(sample)
        labels = to_numpy(L_some)
        rule, item, person = answers or (choose_rule(self._measurement(), labels, among, settings.noise), None, None)
        rule = rule.suited_to(labels)
        if item is None:
            warn_of_silent_rows(L_some, rule, among.rows, settings.noise)
        grades = place_grades(*among, L_some[: X_some.shape[0]]) if len(among.rows) else None
        self.fit_: Fit | PeopleFit
        self.rule_report_: RuleReport | AnswersReport
        self._expected_error: ExpectedError | None = None
        if isinstance(rule, Answers):
            _warn_of_little(labels, X_some.shape[0])
            from contone.enhance.inversion.people.fit import fit_people  # compiled loops, which take a second to load

            self.fit_, self.posterior_ = fit_people(X_some, labels, rule, settings, rng, grades, item, person)
            self.rule_report_ = AnswersReport.of(self.fit_, labels, self.posterior_, item)
        else:
            assert isinstance(rule, IntervalRule)
            self.fit_, self.posterior_ = fit(X_some, L_some, rule, settings, rng, grades)
            self._report(X_some, L_some, among, sample)
        if not in_memory and L.shape[0] > self.max_rows:
            self.posterior_ = blocks.posterior(self.fit_, X, L, seed, known)
        self.annotator_deviation_ = getattr(self.fit_, "annotator_deviation", 0.0)
        self.degradation_, self.noise_ = self.fit_.rule, tuple(self.fit_.settings.noise)
        self.coefficients_, self.covariance_ = self.fit_.parameters.coefficients, self.fit_.parameters.covariance
        self.spread_, self.spread_deviation_ = self.fit_.spread
        self.n_relaxed_ = max(self.fit_.n_relaxed, self.posterior_.n_relaxed)
        return self.fit_.solution(self.posterior_, self.n_relaxed_, len(known.rows))

    def _report(self, X: Array, L: Array, known: KnownDegrees, sample: np.ndarray | None) -> None:
        """What the rule explains, and rows to estimate the error on; `sample` (n,) are the rows' own numbers."""
        fit, posterior = self.rule_fit_, self.posterior_
        graded = known.rows if sample is None else sample[known.rows]
        warn_of_relaxed_rows(posterior.n_relaxed, f"{len(L)} {'rows' if sample is None else 'sampled rows'}", fit.rule)
        warn_of_contradictions(KnownDegrees(graded, known.degrees), to_numpy(L)[known.rows], fit.rule)
        self.rule_report_ = report_rule(fit, X, L, posterior.mean, is_graded=len(known.rows) > 0)
        self._error_sample = ErrorSample.of(fit, X, L, posterior.mean, graded, sample)
        # A person who named the rule, and did not make it, is warned; marks that are missing explain it otherwise.
        if isinstance(self.degradation, str) and not fit.settings.noise.any():
            warn_of_denied_labels(self.rule_report_)

    def _settings(self) -> Settings:
        same = {field.name: getattr(self, field.name) for field in fields(Settings) if "noise" not in field.name}
        noise = NOISE_AT_FIRST if isinstance(self.noise, str) else Flips.of(self.noise)
        return Settings(**same, noise=noise, noise_known=not isinstance(self.noise, str))

    @property
    def samples_(self) -> Array:
        """Posterior samples (n_samples, n, q) of the training rows."""
        check_is_fitted(self)
        if self.posterior_.samples is None:
            raise AttributeError(
                "Inversion keeps samples_ with n_samples > 0 and at most max_rows rows only; set these parameters."
            )
        return self.posterior_.samples

    def _summary_lines(self) -> list[str]:
        size, split = self.fit_.effective_sample_size, self.fit_.split_r_hat
        noise = self.annotator_deviation_
        annotators = f"; an annotator adds {noise:.2g}" if noise > 0 else ""
        return [
            *super()._summary_lines(),
            str(self.rule_report_),
            f"spread of the log degrees: {self.spread_:.2g} ± {self.spread_deviation_:.1g}{annotators}",
            str(self.expected_error_),
            f"sampler: R-hat {split:.2f}, {size:.0f} independent draws of a typical degree",
        ]

    @property
    def expected_error_(self) -> ExpectedError:
        """Expected KL(D || D^) of the training rows with a 90 % interval, and of each of them; no truth is used.

        Worked out when it is first asked for, which takes about as long as a fit to a few hundred rows.
        """
        check_is_fitted(self)
        if self._expected_error is None:
            with one_blas_thread():
                if isinstance(self.fit_, PeopleFit):
                    self._expected_error = expect_answer_error(self.fit_, self.posterior_)
                else:
                    self._expected_error = expect_error(self.fit_, self._error_sample, self.posterior_)
        return self._expected_error

    def suggest(self, k: int = 30) -> np.ndarray:
        """Numbers (k,) of rows to grade: a random batch without near duplicates, in random order.

        They are chosen among at most 500 rows that are not graded yet (fewer where fewer are left). Grade them and fit
        again with `degrees`.
        """
        check_is_fitted(self)
        return suggest_rows(self.rule_fit_, self._error_sample, k)

    @property
    def rule_fit_(self) -> Fit:
        """The model of a rule; refused where there is none, since people answered."""
        check_is_fitted(self)
        if isinstance(self.fit_, PeopleFit):
            raise NoRuleError(
                f"This needs labels that a rule made from degrees, and these are answers of people ({self.degradation_}"
                "): what they leave open is in `intervals()` and `expected_error_`."
            )
        return self.fit_

    @property
    def annotators_(self) -> Any:
        """What is known of every person, the most informative first: a frame, or columns where Y was an array.

        `answers` given; what they choose `too_often`, empty where nothing is; `sharpness`, 1 for a typical person, near
        0 for one who does not look; how many `bits` one answer tells of an item; each with a 90 % interval.
        """
        check_is_fitted(self)
        names = getattr(self, "annotator_names_", None)
        if names is None or not isinstance(self.fit_, PeopleFit):
            raise AttributeError("Inversion knows annotators_ only after a fit with groups= and annotators=.")
        return as_table(tell_persons(self.fit_, names, self.label_names_), self._frames)

    def intervals(self, X: Any = None, Y: Any = None, level: float = 0.9) -> tuple[Any, Any]:
        """Credible intervals for every degree: lower and upper ends, each (m, q).

        Parameters
        ----------
        X : (m, d) or None, default=None
            Features of any rows, whose ends come in the kind of container of Y, or of X where there is no Y. Without
            any, the rows are those of the fit.
        Y : (m, q) or None, default=None
            Their labels. Without them, the intervals are those of the prior given the features.
        level : float in (0, 1), default=0.9
            Probability that a degree is between its ends.
        """
        check_is_fitted(self)
        if not isinstance(level, Real) or not 0 < level < 1:
            raise InputError(f"intervals: level must be between 0 and 1; got {level!r}.")
        if X is None:
            if Y is not None:
                raise InputError("intervals: Y came without X; give both, or neither for the rows of the fit.")
            return self._ends(self.posterior_, level)
        if Y is None:
            checked = check_features(self, X, reset=False)
            border = open_border(X, self.label_names_)
            found = self.fit_.prior(checked) if get_backend(checked).in_memory else blocks.prior(self.fit_, checked)
        else:
            checked, L, border = check_new_rows(self, X, Y, self.label_names_)
            with one_blas_thread():
                found = self._posterior_of(checked, L)
        lower, upper = self._ends(found, level)
        return self.wrapped(border, X, lower), self.wrapped(border, X, upper)

    def _ends(self, found: Posterior, level: float) -> tuple[Array, Array]:
        fit, rule = self.fit_, self.fit_.rule if isinstance(self.fit_.rule, IntervalRule) else None
        return found.intervals(level, fit.spread_deviation, fit.shape_shares, rule, fit.settings.resolution)

    def _enhance(self, X: Array, L: Array) -> Array:
        """The posterior mean E[d | x, l]."""
        return self._posterior_of(X, L).mean

    def _predict(self, X: Array) -> Array:
        """The prior mean E[d | x]."""
        return get_backend(X).map_rows(self.fit_.prior_mean, X, columns=self.fit_.n_labels)

    def _posterior_of(self, X: Array, L: Array) -> Posterior:
        if get_backend(X).in_memory:
            return self.fit_.posterior(X, L, make_generator(self.random_state))
        return blocks.posterior(self.fit_, X, L, make_seed(self.random_state))


def _read_answers(rule: Measurement | str, L: np.ndarray) -> Answers:
    """What 0/1 labels L (n, q) of several people are read as: each of them has an own bar, so that no rule fits all."""
    reading: Answers = Votes() if bool((np.nansum(L, axis=1) == 1).all()) else Marks()
    if rule != "bar":
        warn(
            f"groups: labels of several people are read as answers, {reading.in_words()}, whatever the rule ({rule}): "
            f'people differ in how much they mark. degradation="{next(iter(reading.spoken))}" says the same.',
            LabelWarning,
        )
    return reading


def _warn_of_several(L: np.ndarray) -> None:
    """Say where a row of votes L (n, q) by one person chooses several labels."""
    several = np.nansum(L, axis=1) > 1
    if several.any():
        warn(
            f"{int(several.sum())} of {len(L)} rows hold several votes of one person (first: row number "
            f'{int(several.argmax())}, from 0): each counts. If people marked all labels that hold, use "marks".',
            LabelWarning,
        )


def _warn_of_little(L: np.ndarray, n_items: int) -> None:
    """Say where answers L (n, q) about some items leave something to beliefs alone."""
    unchosen = np.flatnonzero(np.nansum(L, axis=0) == 0)
    if len(unchosen) and np.nansum(L) > 0:
        warn(
            f"Nobody ever chose {len(unchosen)} of {L.shape[1]} labels (first: label number {unchosen[0]}, from 0): "
            "their degrees are small and come from what is believed of any label. Leave out labels that were not on "
            "offer.",
            LabelWarning,
        )
    if n_items == 1:
        warn(
            "There is one item only: how items differ is not learnt, and its degrees lean on what is believed of any.",
            LabelWarning,
        )


class NoRuleError(InputError, AttributeError):
    """Answers of people have no model of a rule: `hasattr` and `dir` see none."""


def make_generator(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn calls random_state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def make_seed(random_state: Any) -> int:
    """A seed from what scikit-learn calls random_state."""
    return int(check_random_state(random_state).randint(2**31))
