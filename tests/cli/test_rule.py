"""`contone enhance --rule`: rules in plain words, and what is said about them."""

from __future__ import annotations

SONGS = ("songs.csv", "--labels", "calm,happy,sad", "-p", "n_sweeps=20", "-p", "n_burn=5", "-o", "soft.csv")


def test_a_line_says_which_rule_was_used(folder, run):
    result = run("enhance", *SONGS, "--rule", "cumulative:0.9")
    assert result.exit_code == 0, result.output
    line = next(text for text in result.stderr.splitlines() if text.startswith("rule: "))
    assert "more than 90 % of the weight (CumulativeMass(t=0.9))" in line
    assert "labels marked yes keep" in line


def test_words_that_are_no_rule_are_refused(folder, run):
    result = run("enhance", *SONGS, "--rule", "whatever")
    assert result.exit_code == 2
    assert "more than half of the weight" in " ".join(result.stderr.replace("│", " ").split())
    assert run("enhance", *SONGS, "--method", "uniform", "--rule", "main").exit_code == 2
