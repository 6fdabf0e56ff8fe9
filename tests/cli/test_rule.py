"""`contone enhance --rule`, `--report` and `contone check`: rules in plain words, and what is said about an answer."""

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


def test_check_prints_sentences_and_writes_a_page(folder, run, undrawn):
    result = run("check", *SONGS[:-2], "-o", "check.html", "--unlabelled", "method")
    assert result.exit_code == 0, result.output
    assert "labels marked yes keep" in result.stdout
    assert result.stdout.startswith(("Use: ", "Use with care: ", "Do not use: "))
    assert "--rule main, everything, bar" in result.stdout
    assert (folder / "check.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run("check", *SONGS[:-2], "-o", "check.html").exit_code in (1, 2)  # it exists already
    assert run("check", *SONGS[:-2], "-o", "check.pdf").exit_code == 2


def test_a_report_beside_the_table(folder, run, undrawn):
    result = run("enhance", *SONGS, "--report", "page.html")
    assert result.exit_code == 0, result.output
    assert "expected KL" in result.stderr
    assert (folder / "page.html").stat().st_size < 2_000_000
    assert run("enhance", *SONGS, "--force", "--report", "page.pdf").exit_code == 2


def test_other_methods_and_streamed_files_have_a_page_too(folder, run, undrawn):
    songs = (*SONGS[:3], "-m", "temperature", "-o", "soft.csv", "--report", "page.html")
    result = run("enhance", *songs, "--stream", "--sample-rows", "12")
    assert result.exit_code == 0, result.output
    assert "with Temperature labels marked yes keep" in result.stderr
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "enhanced by Temperature; the method was fitted to a sample of 12 rows, which this page is about" in page
    assert "Temperature has no model of how labels are made" in page
