"""`contone compare`: a table in, an order of methods out."""

from __future__ import annotations

import json


def test_the_best_method_is_first_and_the_limit_above_it(run, folder):
    done = run("compare", "songs.csv", "--labels", "calm,happy,sad", "-m", "lp", "--replicates", "2", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["n_replicates"] == 2
    assert found["standings"][0]["name"] == "limit"
    assert {s["name"] for s in found["standings"]} == {"limit", "lp", "Uniform", "Temperature", "Logical"}


def test_a_table_for_people_and_a_figure(run, folder):
    done = run("compare", "songs.parquet", "--labels", "mood_*", "-m", "km", "--replicates", "1", "--figure", "f.svg")
    assert done.exit_code == 0, done.output
    assert "Ahead of next" in done.stdout
    assert (folder / "f.svg").read_text().startswith("<?xml")


def test_an_unknown_method_is_a_usage_error(run, folder):
    done = run("compare", "songs.csv", "--labels", "calm,happy,sad", "-m", "nonsense")
    assert done.exit_code == 2
    assert "nonsense" in done.output


def test_enhance_with_chosen_parameters_says_which(run, folder, flat):
    done = run("enhance", "songs.csv", "--labels", "calm,happy,sad", "-m", "temperature", "--tune", "--rule", "order",
               "-o", "soft.csv")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "temperature=" in flat(done.output)
    assert (folder / "soft.csv").exists()


def test_enhance_with_the_best_method(run, folder, flat):
    done = run(
        "enhance", "songs.csv", "--labels", "calm,happy,sad", "-m", "best",
        "-p", "methods=['temperature', 'lp']", "-p", "n_replicates=1", "-p", "n_iter=2", "-o", "soft.csv",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "chosen on rehearsed data" in flat(done.output)
