"""What findings say, on cases worked out by hand: the number, where one verdict becomes another, what is shown."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logit

from contone import GLLE, CumulativeMass, Inversion, Temperature, TopK
from contone.enhance.inversion.expected_error import ExpectedError, second_order
from contone.numerics.simplex import kl_divergence, softmax
from contone.trust import hidden_labels, method_checks, model_checks, open_rule, subject
from contone.trust.chances import DoubtfulLabels
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded
from contone.trust.comparison import Comparison, Standing
from contone.trust.left_out import LeftOut, left_out_findings
from contone.trust.open_rule import OverRules, average_over_rules, gain_finding, rule_finding
from contone.trust.verdict import decide

SHORT = {"n_sweeps": 60, "n_burn": 20}


def test_a_bound_belongs_to_the_better_side():
    assert [graded(v, 0.25, 0.5) for v in (0.0, 0.25, 0.26, 0.5, 0.51)] == [FINE, FINE, DOUBTFUL, DOUBTFUL, OFF]


# ------------------------------------------------------------------------------------------------ of any method


def some(L: np.ndarray, D: np.ndarray, method: object = None) -> SimpleNamespace:
    """What a check of a method looks at."""
    q = L.shape[1]
    names, few = tuple(f"l{j}" for j in range(q)), slice(50)
    return SimpleNamespace(L=L, D=D, X=L, names=names, method=method, few=few, short=None, seed=0)


def test_pairs_of_a_marked_and_an_unmarked_label_are_counted():
    L, D = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]])
    found = method_checks.order_finding(some(L, D))
    assert (found.value, found.verdict) == (0.875, DOUBTFUL)  # equal degrees count one half
    assert found.shown == {"l0": 1.0, "l1": 0.75}  # no row has the third one
    assert "in 88% of the pairs" in found.sentence
    whole = method_checks.order_finding(some(np.ones((2, 3)), D))
    assert (whole.value, whole.verdict, whole.shown) == (1.0, FINE, {})
    assert "no row has both" in whole.sentence


@pytest.mark.parametrize(("wrong", "verdict"), [(4, FINE), (6, DOUBTFUL), (24, DOUBTFUL), (26, OFF)])
def test_a_twentieth_and_a_quarter_of_the_pairs_may_be_out_of_order(wrong, verdict):
    D = np.where(np.arange(100)[:, None] < wrong, [[0.4, 0.6]], [[0.6, 0.4]])
    found = method_checks.order_finding(some(np.tile([1.0, 0.0], (100, 1)), D))
    assert found.verdict == verdict
    assert found.value == pytest.approx(1 - wrong / 100)


def test_the_labels_least_in_order_are_shown():
    """Label j of 25 is marked alone, in the row j, where j others have larger degrees."""
    D = np.array([[j + 0.5 if k == j else k for k in range(25)] for j in range(25)]) / 300
    found = method_checks.order_finding(some(np.eye(25), D[:, ::-1]))
    ordered = sorted(found.shown.values(), reverse=True) in (
        list(found.shown.values()),
        list(found.shown.values())[::-1],
    )
    assert len(found.shown) == subject.SHOWN
    assert ordered


def test_the_solver_says_how_it_ended():
    X, L = np.arange(12.0).reshape(6, 2), np.eye(3)[[0, 1, 2, 0, 1, 2]]
    with pytest.warns(UserWarning, match="GLLE"):
        short = GLLE(max_iter=1).fit(X, L)
    found = method_checks.solver_finding(short)
    assert (found.verdict, found.value) == (DOUBTFUL, 1.0)
    assert found.sentence == "The solver: GLLE stopped after 1 iterations, not converged; raise max_iter or tol."
    found = method_checks.solver_finding(Temperature().fit(X, L))
    assert (found.verdict, found.value) == (FINE, 0.0)
    assert found.sentence == "The solver: Temperature stopped after 0 iterations, converged."


def standing(name: str, kind: str, recovered: float, kl: float = 0.1, error: str = "") -> Standing:
    scores = {} if error else {"kl": kl}
    return Standing(name, kind, scores, {}, recovered, (kl,), 1, 0.0, (error,) if error else ())


@pytest.mark.parametrize(
    ("recovered", "verdict", "value"),
    [(0.4, FINE, 0.4), (0.39, DOUBTFUL, 0.39), (0.0, OFF, 0.0), (-50.0, OFF, -10.0), (math.nan, OFF, -10.0)],
)
def test_a_rehearsed_method_stands_beside_the_best_baseline(monkeypatch, recovered, verdict, value):
    own = standing(method_checks.METHOD, "method", recovered, kl=0.25)
    others = [standing("limit", "limit", 1.0), standing("Uniform", "baseline", 0.0, kl=math.inf)]
    others += [standing("Temperature", "baseline", 0.4, kl=0.2), standing("Logical", "baseline", math.nan)]
    compared = Comparison((*others, own), 3, 5, 2, ())
    monkeypatch.setattr(method_checks, "compare", lambda *_, **__: compared)
    monkeypatch.setattr(method_checks, "Rehearsal", lambda *_, **__: None)
    found = method_checks.rehearsal_finding(some(np.eye(2), np.eye(2), Temperature()), Temperature())
    assert (found.verdict, found.value) == (verdict, value)
    assert "Temperature has a mean KL of 0.25" in found.sentence
    assert found.sentence.endswith("Temperature, without features, goes 40%.")
    assert found.shown == {"the limit": 0.1, "Temperature": 0.2, "Logical": 0.1, method_checks.METHOD: 0.25}
    failed = standing(method_checks.METHOD, "method", math.nan, error="RuntimeError: no")
    monkeypatch.setattr(method_checks, "compare", lambda *_, **__: Comparison((failed,), 3, 5, 2, ()))
    found = method_checks.rehearsal_finding(some(np.eye(2), np.eye(2), Temperature()), Temperature())
    assert (found.verdict, found.value) == (OFF, -10.0)
    assert "RuntimeError: no" in found.sentence


# ------------------------------------------------------------------------------------------------ over the rules


def over(error: float = 0.1, share: float = 0.0, weights: dict | None = None, **baselines: float) -> OverRules:
    ends = np.zeros((1, 2)), np.ones((1, 2))
    weights = weights or {"a": 1.0}
    yes = {name: 0.5 + 0.1 * i for i, name in enumerate(weights)}
    return OverRules(ExpectedError(error, 0.0, 1.0), share, baselines, weights, *ends, yes)


def test_the_gain_is_the_error_beside_that_of_the_best_simple_answer():
    def gain(error: float) -> Finding:
        return gain_finding(over(error, equal=0.4, alone=0.2))

    verdicts = [gain(error).verdict for error in (0.15, 0.151, 0.2, 0.201)]
    assert verdicts == [FINE, DOUBTFUL, DOUBTFUL, OFF]
    found = gain(0.1)
    assert found.value == pytest.approx(0.5)
    assert found.sentence == "Expected error: KL 0.1 (equal 0.4, alone 0.2), 50% of that of alone."
    assert found.shown == {"the answer": 0.1, "equal": 0.4, "alone": 0.2}


def test_the_rule_is_open_where_it_makes_half_of_the_error():
    found = rule_finding(over(share=0.5, weights={"a": 0.7, "b": 0.3}), "a")
    assert (found.verdict, found.value, found.shown) == (FINE, 0.5, {"a": 0.5, "b": 0.6})
    assert (
        "it is “a” with 70%, or “b” with 30%; marked labels keep 50% to 60% of the weight, and 50% of" in found.sentence
    )
    assert rule_finding(over(share=0.51, weights={"a": 0.7, "b": 0.3}), "a").verdict == DOUBTFUL
    assert rule_finding(over(share=0.4, weights={"a": 0.04, "b": 0.96}), "a").verdict == DOUBTFUL
    assert rule_finding(over(share=0.4, weights={"a": 0.05, "b": 0.95}), "a").verdict == FINE
    assert "no other rule than “a” is likely" in rule_finding(over(), "a").sentence


@pytest.fixture(scope="module")
def fitted():
    """One label in every row: main labels, or the best one. X, L and a model."""
    rng = np.random.default_rng(0)
    L, X = TopK(1).apply(rng.dirichlet([3.0] * 4, size=80)).astype(float), rng.normal(size=(80, 2))
    return X, L, Inversion(**SHORT).fit(X, L)


@pytest.mark.parametrize("second", [CumulativeMass(0.55), TopK(1)], ids=str)
def test_an_error_over_two_rules_is_their_weighted_mean_with_how_far_answers_are_apart(fitted, monkeypatch, second):
    """E_r KL(D || A) = e_r + KL(D_r || A); the error of each rule is brought to one level by its second order.

    The mean over rules is never less than how far the answers under the two are apart, which it is for the best label.
    """
    X, L, method = fitted
    rules = [(method.rule_fit_.rule, 0.7), (second, 0.3)]
    monkeypatch.setattr(open_rule, "allowed_rules", lambda *_, **__: rules)
    own, error = method.posterior_, method.expected_error_
    answer = own.mean
    found = average_over_rules(method, X, L, own, answer, error)
    other = Inversion(degradation=second, n_samples=0, **SHORT).fit(X, L).posterior_
    level = error.mean / second_order(own).mean()
    alone = [error.mean, level * second_order(other).mean()]
    apart = kl_divergence(other.mean, answer).mean()
    mean = 0.7 * alone[0] + 0.3 * (alone[1] + apart)
    assert (apart > mean) == isinstance(second, TopK)
    mean = max(mean, apart)
    assert found.error.mean == pytest.approx(mean)
    assert found.share == pytest.approx(1 - (0.7 * alone[0] + 0.3 * alone[1]) / mean)
    assert found.error.lower == pytest.approx(min(error.lower / error.mean * min(alone[0], alone[1] + apart), mean))
    assert found.error.upper == pytest.approx(max(error.upper / error.mean * max(alone[0], alone[1] + apart), mean))
    np.testing.assert_allclose(found.error.rows, error.rows * mean / error.mean)
    simple = {"equal degrees": np.full(L.shape, 0.25), "the labels alone": 0.9 * L + 0.1 / 4}
    for name, A in simple.items():
        each = [e + kl_divergence(p.mean, A).mean() for e, p in zip(alone, (own, other), strict=True)]
        assert found.baselines[name] == pytest.approx(0.7 * each[0] + 0.3 * each[1])
    assert list(found.weights.values()) == [0.7, 0.3]
    yes = [(p.mean * L).sum(axis=1).mean() for p in (own, other)]
    assert list(found.yes_weights.values()) == pytest.approx(yes)
    # An interval is that of a mixture: as wide as both, and wider by how far their centres are apart.
    centre = 0.7 * own.logit_centre + 0.3 * other.logit_centre
    np.testing.assert_allclose((logit(found.lower) + logit(found.upper)) / 2, centre, atol=1e-6)
    fit = method.rule_fit_
    widths = [p.total_width(fit.spread_deviation, fit.shape_shares) for p in (own, other)]
    second = 0.7 * (widths[0] ** 2 + own.logit_centre**2) + 0.3 * (widths[1] ** 2 + other.logit_centre**2)
    half = 1.6448536 * np.sqrt(second - centre**2)
    np.testing.assert_allclose((logit(found.upper) - logit(found.lower)) / 2, half, rtol=1e-4)


def test_another_spread_moves_the_answer_to_second_order(fitted):
    X, L, method = fitted
    seen = subject.Subject(method, method, X, L, method.label_distributions_, np.arange(80), 80, tuple("abcd"), 0)
    found = model_checks.spread_finding(seen)
    less, now, more = found.shown.values()
    assert less < now < more  # more uneven degrees give more to marked labels
    assert now == method.rule_report_.yes_weight
    fit, r = method.rule_fit_, min(method.rule_fit_.spread_deviation, 0.9)
    base, up = (
        replace(fit, parameters=fit.parameters.scaled(factor)).posterior_of_block(X, L, np.random.default_rng(0)).mean
        for factor in (1.0, 1 + r)
    )
    moved = kl_divergence(up, base).mean()
    assert 0.3 * moved < found.value * method.expected_error_.mean < 3 * moved


# ------------------------------------------------------------------------------------------------ answers left out


def votes(p: float, n: int = 100) -> np.ndarray:
    """n votes between two labels, a share p of them for the first."""
    return np.eye(2)[(np.arange(n) >= p * n).astype(int)]


def left_out(own: float, counted: float, p: float = 0.8, beside: bool = True) -> list[Finding]:
    """Degrees (own, 1 - own), counting with (counted, 1 - counted), and a share p of votes for the first label."""
    given = {"equal degrees": 0.5, "counting": counted}
    others = {name: np.tile([v, 1 - v], (100, 1)) for name, v in given.items()}
    return left_out_findings(LeftOut(votes(p), np.tile([own, 1 - own], (100, 1)), others, True, beside))


def entropy(p: float, q: float) -> float:
    return -p * math.log(q) - (1 - p) * math.log(1 - q)


def test_answers_left_out_are_scored_by_their_log_loss():
    found, shares = left_out(0.8, 0.6)
    assert found.value == pytest.approx(entropy(0.8, 0.8))
    assert found.shown == pytest.approx(
        {"the model": entropy(0.8, 0.8), "equal degrees": math.log(2), "counting": entropy(0.8, 0.6)}
    )
    gaps = np.repeat([math.log(0.6 / 0.8), math.log(0.4 / 0.2)], [80, 20])
    error = np.std(gaps) / 10
    assert f"difference to the best of these {gaps.mean():+.3f} ± {error:.3f}" in found.sentence
    assert found.sentence.startswith("Answers left out: 100 of them")
    assert shares.value == 1.0  # two groups of degrees, .2 and .8, and both came true
    assert list(shares.shown) == ["0.200", "0.800"]
    half = 1.645 * math.sqrt(0.16 / 100)
    assert shares.lower == pytest.approx([0.2 - half, 0.8 - half])
    assert shares.upper == pytest.approx([0.2 + half, 0.8 + half])


@pytest.mark.parametrize(
    ("own", "counted", "p", "beside", "verdict"),
    [
        (0.8, 0.6, 0.8, True, FINE),
        (0.6, 0.8, 0.8, True, DOUBTFUL),  # behind counting by .081 +- .017, ahead of equal degrees
        (0.4, 0.8, 0.8, True, OFF),  # behind equal degrees
        (0.5, 0.5, 0.5, True, UNTOLD),  # nobody could do better
        (0.8, 0.8, 0.8, True, FINE),  # as good as counting, which knows something
        (0.8, 0.79, 0.8, True, FINE),
        (0.8, 0.79, 0.8, False, UNTOLD),  # hardly better than what knows nothing of these items
        (0.8, 0.6, 0.8, False, FINE),
    ],
)
def test_a_model_of_answers_is_behind_counting_ahead_or_neither(own, counted, p, beside, verdict):
    assert left_out(own, counted, p, beside)[0].verdict == verdict


@pytest.mark.parametrize(
    ("degrees", "inside", "verdict"),
    [((0.995,) * 4, 2 / 2, FINE), ((0.1, 0.3, 0.5, 0.95), 3 / 7, DOUBTFUL), ((0.1, 0.2, 0.3, 0.95), 2 / 8, OFF)],
)
def test_shares_that_do_not_come_true_are_counted(degrees, inside, verdict):
    """All votes are for the first label: degrees of .95 came true, and .05 of the second; one half of all of .5."""
    p = np.repeat(degrees, 50)
    given = LeftOut(votes(1.0, 200), np.c_[p, 1 - p], {"equal degrees": np.full((200, 2), 0.5)}, True)
    found = left_out_findings(given)[1]
    assert (found.value, found.verdict) == (pytest.approx(inside), verdict)


# ------------------------------------------------------------------------------------------------ of the model


def by_hand(gap: float, noise: float = 1e-4, others: float = 0.0) -> Finding:
    """A summary of two shares that differs by `gap` in each from replicates that hardly differ among themselves."""
    made = [np.array([0.5, 0.5]) + noise * (1 if k % 2 else -1) * np.array([1, -1]) for k in range(20)]
    observed = np.array([0.5 + gap, 0.5 - gap])
    return model_checks.contrast(observed, np.stack(made), "ab", "n", "t", "By {:.2f}", "share", 0.05, lambda A: A)


@pytest.mark.parametrize(("gap", "verdict"), [(0.04, FINE), (0.06, DOUBTFUL), (0.14, DOUBTFUL), (0.16, OFF)])
def test_total_variation_is_graded_at_its_bound_and_three_times_that(gap, verdict):
    found = by_hand(gap)
    assert found.value == pytest.approx(gap)
    assert found.verdict == verdict
    assert found.sentence == f"By {gap:.2f}, more than chance explains."
    assert found.shown == pytest.approx({"a": 0.5 + gap, "b": 0.5 - gap})
    assert found.lower == pytest.approx([0.4999] * 2)
    assert found.upper == pytest.approx([0.5001] * 2)


def test_a_difference_within_what_replicates_differ_by_is_chance():
    inside = by_hand(0.02, noise=0.03)
    assert (inside.verdict, inside.value) == (FINE, pytest.approx(0.02))
    assert inside.sentence.endswith("no more than chance explains.")
    assert by_hand(0.02, noise=0.2).verdict == UNTOLD  # chance makes four times .05 and more


def test_p_is_the_share_of_replicates_at_least_as_far_as_the_labels():
    """By loops: every replicate against the mean of the others, categories in units of what chance does to them."""
    rng = np.random.default_rng(0)
    made, observed = rng.normal(0.5, 0.05, size=(40, 3)), np.array([0.5, 0.58, 0.5])
    seen = model_checks.contrast(observed, made, "abc", "n", "t", "{:.2f}", "s", 0.01, lambda A: A, scale=0.5)
    unit = made.std(axis=0) ** 2 + (1 / 3) ** 2
    far = (np.square(observed - made.mean(axis=0)) / unit).sum()
    p = np.mean([(np.square(a - np.delete(made, k, 0).mean(0)) / unit).sum() >= far for k, a in enumerate(made)])
    assert 0.05 < p < 1
    assert "no more than chance" in seen.sentence
    assert seen.value == pytest.approx(0.25 * np.abs(observed - made.mean(axis=0)).sum())
    further = observed + np.array([0.1, 0, 0])
    assert (
        "more than chance explains."
        in model_checks.contrast(further, made, "abc", "n", "t", "{:.2f}", "s", 0.01, lambda A: A).sentence
    )
    np.testing.assert_allclose(seen.lower, np.percentile(made, 5, axis=0))


def test_rows_beyond_all_numbers_of_labels_that_occur_are_counted():
    """All rows have two labels of four; in the model a sixth of the rows has one, another sixth three."""
    L = np.tile([1.0, 1.0, 0.0, 0.0], (60, 1))
    made = L.copy()
    made[:10, 1] = 0.0
    made[10:20, 2] = 1.0
    replicates = np.stack([made] * 5)
    numbers = model_checks.predictive_findings(L, replicates, tuple("abcd"), counts_matter=True)[0]
    assert numbers.sentence.endswith("; 20 rows should have fewer or more labels than any has.")
    made[4:10, 1], made[10:20, 2] = 1.0, 0.0
    few = model_checks.predictive_findings(L, np.stack([made] * 5), tuple("abcd"), counts_matter=True)[0]
    assert "should have" not in few.sentence  # four rows could be chance


def test_a_histogram_of_ranks_has_the_errors_of_rows_as_clusters():
    ranks = np.random.default_rng(0).random((3, 200, 4)) ** 1.2
    shares, half = model_checks.histogram(ranks)
    expected = np.histogram(ranks, bins=10, range=(0, 1))[0] / ranks.size
    np.testing.assert_allclose(shares, expected)
    inside = [(ranks >= k / 10) & (ranks < (k + 1) / 10) for k in range(10)]
    rows = [m.mean(axis=2).ravel().std() / math.sqrt(600) for m in inside]
    refits = [m.mean(axis=(1, 2)).std(ddof=1) / math.sqrt(3) for m in inside]
    np.testing.assert_allclose(half, np.maximum(3 * np.maximum(rows, refits), 0.02))
    one, half = model_checks.histogram(ranks[:1])  # a single refit: rows alone
    np.testing.assert_allclose(half, np.maximum([3 * m[0].mean(axis=1).std() / math.sqrt(200) for m in inside], 0.02))
    assert one.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("inside", "verdict"), [(0.81, DOUBTFUL), (0.71, DOUBTFUL), (0.69, OFF), (0.98, DOUBTFUL)])
def test_coverage_is_graded(inside, verdict):
    middle = np.linspace(0.051, 0.949, round(1000 * inside))
    ends = np.tile([0.01, 0.99], 1000)[: 1000 - len(middle)]
    found = model_checks.interval_finding(np.concatenate([middle, ends]).reshape(4, 250, 1))
    assert (found.verdict, found.value) == (verdict, inside)
    assert f"hold {inside:.0%} of the degrees" in found.sentence
    assert ("too wide" if inside > 0.9 else "too narrow") in found.sentence
    assert len(found.shown) == len(found.lower) == 10


@pytest.mark.parametrize(
    ("size", "split", "verdict"),
    [(20, 1.05, FINE), (19, 1.05, DOUBTFUL), (50, 1.1, DOUBTFUL), (50, 1.29, DOUBTFUL), (50, 1.3, OFF), (5, 1.4, OFF)],
)
def test_a_sampler_has_settled_by_its_draws_and_r_hat(size, split, verdict):
    fit = SimpleNamespace(effective_sample_size=size, split_r_hat=split)
    found = model_checks.chain_finding(SimpleNamespace(rule_fit_=fit))
    assert (found.verdict, found.value) == (verdict, split)
    assert ("raise n_sweeps" in found.sentence) == (verdict != FINE)
    assert found.shown == {"of a typical degree": size, "enough": 20}


# ------------------------------------------------------------------------------------------------ hidden labels


def test_frequencies_are_scored_as_by_hand_and_the_error_is_of_the_difference():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    L = CumulativeMass().apply(softmax(X @ rng.normal(size=(2, 4)))).astype(float)
    found = hidden_labels.score_hidden_entries(Temperature(), X, L, n_splits=2)
    parts = hidden_labels.hidden_parts(L, 0.1, 2, np.random.default_rng(0))
    losses = []
    for hidden in parts:
        seen = np.where(hidden, np.nan, L)
        often = (np.nansum(seen, axis=0) + 0.5) / ((~hidden).sum(axis=0) + 1)
        chance = np.where(L == 1, often, 1 - often)
        losses.append(-np.log(chance[hidden]))
    assert found.baselines["label frequencies"] == pytest.approx(np.concatenate(losses).mean())
    assert found.explained == pytest.approx(1 - found.loss / np.concatenate(losses).mean())
    assert found.n_entries == sum(hidden.sum() for hidden in parts)
    assert hidden_labels.log_losses(np.array([True, False]), np.array([0.8, 0.9])) == pytest.approx(
        [-math.log(0.8), -math.log(0.1)]
    )


def test_features_are_scored_beside_frequencies_and_features_of_other_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    L = np.eye(3)[np.argmax(np.c_[X, np.zeros(80)] + 0.3 * rng.normal(size=(80, 3)), axis=1)]
    found = hidden_labels.score_features(Inversion(degradation=TopK(1), n_sweeps=30, n_burn=10), X, L)
    hidden = hidden_labels.hidden_parts(L, 0.25, 1, np.random.default_rng(0), by_rows=True)[0]
    assert hidden.sum() == 60
    seen = np.where(hidden, np.nan, L)
    often = (np.nansum(seen, axis=0) + 0.5) / (np.isfinite(seen).sum(axis=0) + 1)
    chance = np.where(L == 1, often, 1 - often)
    assert found.without == pytest.approx(-np.log(chance[hidden]).mean())
    assert found.loss < found.without < found.shuffled  # wrong features are worse than none
    assert found.p == 1 / 1000  # none of 999 shuffles comes near


def test_features_that_cannot_be_tried_are_said():
    X, L = np.ones((30, 1)), np.eye(2)[np.arange(30) % 2]
    told = {
        "they are not used": (Inversion(features=False), X),
        "there are none": (Inversion(), X),
        "too few rows to hide some": (Inversion(), np.arange(20.0)[:, None]),
    }
    for said, (model, features) in told.items():
        found = hidden_labels.feature_finding(model, features, L[: len(features)], 0)
        assert (found.verdict, found.value) == (UNTOLD, 1.0)
        assert said in found.sentence


@pytest.mark.parametrize(("p", "loss", "verdict"), [(0.01, 0.5, FINE), (0.011, 0.5, DOUBTFUL), (0.001, 0.6, DOUBTFUL)])
def test_features_help_where_chance_does_not_and_nothing_else_is_as_good(monkeypatch, p, loss, verdict):
    score = hidden_labels.FeatureScore(loss, 0.6, 0.9, p)
    monkeypatch.setattr(hidden_labels, "score_features", lambda *_: score)
    found = hidden_labels.feature_finding(Inversion(), np.arange(4.0)[:, None], np.eye(4), 0)
    assert (found.verdict, found.value) == (verdict, p)
    assert found.shown == {"with features": loss, "without": 0.6, "features of other rows": 0.9}
    assert ("they help" in found.sentence) == (verdict == FINE)
    assert ("they tell nothing" in found.sentence) == (p > 0.01)


# ------------------------------------------------------------------------------------------------ what is looked at


def looked_at(n: int, q: int) -> subject.Subject:
    rng = np.random.default_rng(0)
    D, L = rng.dirichlet(np.ones(q), size=n), (rng.random((n, q)) < 0.5).astype(float)
    return subject.Subject(Temperature(), Inversion(), L, L, D, np.arange(n) * 10, 10 * n, tuple(map(str, range(q))), 0)


@pytest.mark.parametrize(("q", "rows"), [(10, 300), (100, 200), (1000, 50)])
def test_methods_are_fitted_again_to_fewer_rows_the_more_labels_there_are(q, rows):
    assert looked_at(2, q).few == slice(rows)


def test_labels_are_summed_up_where_they_were_asked():
    L, D = np.array([[1.0, np.nan], [0.0, np.nan], [2.0, np.nan]]), np.array([[0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    one, other = subject.summarize_labels(["a", "b"], L, D, D - 0.1, D + 0.1)
    assert (one.name, one.frequency, one.degree) == ("a", pytest.approx(2 / 3), pytest.approx(0.3))
    assert (one.lower, one.upper) == (pytest.approx(0.1), pytest.approx(0.3))
    assert (other.frequency, other.degree) == (0.0, pytest.approx(0.7))


def test_rows_are_named_as_in_the_data_with_their_labels_and_three_largest_degrees():
    seen = looked_at(30, 4)
    score = np.roll(np.arange(30.0), 5)
    rows = subject.summarize_rows(seen, score)
    assert [row.row for row in rows] == [int(10 * i) for i in np.argsort(-score)[:20]]
    first = rows[0]
    assert first.score == 29.0
    assert first.marked == tuple(str(j) for j in np.flatnonzero(seen.L[4]))
    order = np.argsort(-seen.D[4])[:3]
    assert first.degrees == tuple((str(j), seen.D[4, j]) for j in order)


def test_doubts_are_looked_for_as_far_as_the_work_allows(monkeypatch):
    asked = {}

    def doubtful(model, X, L, **how):
        asked.update(how, n=len(X))
        return DoubtfulLabels(np.array([2]), np.array([1]), np.array([True]), np.array([0.7]))

    monkeypatch.setattr(subject, "doubtful_labels", doubtful)
    seen = looked_at(200, 60)
    (entry,), said = subject.find_doubtful(seen)
    assert asked == {"min_probability": 0.2, "k": 20, "n_sweeps": 60, "n": 500_000 // 3600}
    assert said == "Labels that look wrong: looked for in 138 rows."
    assert (entry.row, entry.label, entry.given, entry.probability) == (20, "1", True, 0.7)
    assert subject.find_doubtful(looked_at(138, 60))[1] == ""
    none, said = subject.find_doubtful(looked_at(5, 61))
    assert none == ()
    assert "not looked for among 61 labels" in said


def test_the_worst_reasons_come_first_and_those_of_one_kind_in_the_order_of_the_table():
    doubts = [Finding(name, "", verdict, 0.0, "") for name, verdict in
              (("spread", DOUBTFUL), ("rule", DOUBTFUL), ("chain", OFF), ("features", FINE))]  # fmt: skip
    decision = decide(doubts)
    assert decision.names == ("chain", "rule", "spread")
    assert decision.sentence().startswith("Do not use: the sampler has not settled; the labels may well have been")
    assert decide([]).sentence() == "Use: no check speaks against it."
