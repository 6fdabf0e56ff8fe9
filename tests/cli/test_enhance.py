"""`contone enhance`: what comes out, what is refused, and that nothing half-written is ever left behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time

import numpy as np
import polars as pl
import pytest

from contone import Temperature, enhance
from contone.cli.method import parse_param
from contone.runtime.files import replacing
from contone.tables.columns import Columns, choose

SONGS = ("songs.csv", "--labels", "calm,happy,sad", "--method", "temperature")
DEGREES = ["calm_degree", "happy_degree", "sad_degree"]


def leftovers(folder):
    return sorted(p.name for p in folder.iterdir() if p.name not in {"songs.csv", "songs.parquet"})


# ------------------------------------------------------------------------------------------------- what comes out


def test_csv_gets_degrees_and_keeps_every_other_column_to_the_letter(folder, run):
    result = run("enhance", *SONGS, "-o", "soft.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    before, after = (pl.read_csv(folder / f, infer_schema=False) for f in ("songs.csv", "soft.csv"))
    assert after.columns == before.columns + DEGREES
    assert after.select(before.columns).equals(before)
    D = after.select(pl.col(DEGREES).cast(pl.Float64)).to_numpy()
    L = before.select(pl.col("calm", "happy", "sad").cast(pl.Float64)).to_numpy()
    np.testing.assert_array_equal(D, Temperature().fit_enhance(np.zeros((len(L), 1)), L))
    np.testing.assert_allclose(D.sum(axis=1), 1.0, atol=1e-12)


def test_parquet_keeps_the_types(folder, run):
    result = run("enhance", "songs.parquet", "-l", "mood_*", "-m", "temperature", "-o", "soft.parquet")
    assert result.exit_code == 0, result.output
    before, after = pl.read_parquet("songs.parquet"), pl.read_parquet("soft.parquet")
    assert after.select(before.columns).equals(before)
    assert after.columns[-3:] == ["mood_calm_degree", "mood_happy_degree", "mood_sad_degree"]


def test_csv_to_parquet_has_numbers_and_ids_as_text(folder, run):
    assert run("enhance", *SONGS, "-o", "soft.parquet").exit_code == 0
    schema = pl.read_parquet("soft.parquet").schema
    assert (schema["tempo"], schema["song_id"], schema["calm"]) == (pl.Float64, pl.String, pl.Int64)


def test_csv_and_parquet_agree(folder, run):
    run("enhance", *SONGS, "-o", "a.parquet")
    run("enhance", "songs.parquet", "-l", "mood_*", "-m", "temperature", "-o", "b.parquet")
    a, b = (pl.read_parquet(f).to_numpy()[:, -3:] for f in ("a.parquet", "b.parquet"))
    np.testing.assert_array_equal(a, b)


def test_dash_is_csv_on_stdout_with_the_talk_elsewhere(folder, run):
    result = run("enhance", *SONGS, "-o", "-")
    assert pl.read_csv(result.stdout.encode()).columns[-3:] == DEGREES
    assert "40 rows" in result.stderr
    assert leftovers(folder) == []


def test_empty_suffix_puts_the_degrees_in_place_of_the_labels(folder, run):
    assert run("enhance", *SONGS, "--suffix", "", "-o", "soft.csv").exit_code == 0
    after = pl.read_csv("soft.csv")
    assert after.columns == pl.read_csv("songs.csv").columns
    assert after["calm"].dtype == pl.Float64


def test_compressed_tsv_and_quoted_booleans_are_read(folder, run):
    import gzip

    rows = "x\ta\tb\n" + "".join(f"{i}.5\tTrue\t{i % 2 == 0}\n" for i in range(6))
    (folder / "t.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    result = run("enhance", "t.tsv.gz", "-l", "a,b", "-m", "logical", "-o", "t.csv")
    assert result.exit_code == 0, result.output
    assert pl.read_csv("t.csv")["b_degree"].to_list() == [0.5, 0.0] * 3
    assert "warning: 1 of 2 labels are the same in every row" in result.stderr


def test_settings_reach_the_method(folder, run):
    run("enhance", *SONGS, "--param", "c=0", "-o", "soft.csv")
    assert set(pl.read_csv("soft.csv")["calm_degree"]) == {1 / 3}


def test_a_seed_is_the_random_state_of_the_method(folder, run, flat):
    short = ("enhance", "songs.csv", "--labels", "calm,happy,sad", "-p", "n_sweeps=8", "-p", "n_burn=2")
    for name, more in (("a", ("--seed", "3")), ("b", ("-p", "random_state=3")), ("c", ("--seed", "4"))):
        assert run(*short, *more, "-o", f"{name}.csv").exit_code == 0
    a, b, c = ((folder / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c
    result = run("enhance", *SONGS, "--seed", "3", "-o", "soft.csv")
    assert result.exit_code == 2
    assert "Temperature draws no random numbers" in flat(result.stderr)


def test_digits_shorten_the_answer(folder, run):
    assert run("enhance", *SONGS, "--digits", "2", "-o", "soft.csv").exit_code == 0
    D = pl.read_csv("soft.csv").select(DEGREES).to_numpy()
    np.testing.assert_array_equal(D, D.round(2))
    np.testing.assert_allclose(D.sum(axis=1), 1.0, atol=1e-14)


def test_the_default_is_the_best_method_there_is(folder, run):
    result = run("enhance", *SONGS[:3], "-o", "soft.csv")
    assert result.exit_code == 0, result.output
    assert "enhancing with Inversion" in result.stderr


@pytest.mark.parametrize("name", enhance.methods())
def test_every_method_runs(folder, run, brief, name):
    few = [part for key, value in brief(enhance.methods()[name]).items() for part in ("-p", f"{key}={value}")]
    result = run("enhance", "songs.csv", "--labels", "calm,happy,sad", "-m", name, *few, "-o", "soft.csv")
    assert result.exit_code == 0, result.output
    total = pl.read_csv("soft.csv").select(DEGREES).to_numpy().sum(axis=1)
    np.testing.assert_allclose(total, 1.0, atol=1e-9)


# ------------------------------------------------------------------------------------------ which columns are what


def test_ids_and_text_are_carried_along_and_never_learnt_from():
    names = ["id", "song_id", "INDEX", "", "Unnamed: 0", "title", "idea", "x", "a", "b"]
    numeric = [c for c in names if c != "title"]
    chosen = choose(names, numeric, labels=["a", "b"])
    assert chosen == Columns(["a", "b"], ["idea", "x"], ["id", "song_id", "INDEX", "", "Unnamed: 0", "title"])


def test_ids_may_be_named_and_features_may_name_an_id():
    names = ["id", "year", "x", "a", "b"]
    assert choose(names, names, labels=["a,b"], ids=["year"]).features == ["x"]
    assert choose(names, names, labels=["a,b"], features=["id, x"]).features == ["id", "x"]
    assert choose(names, names, labels=["a,b"], features=["*"]).features == ["id", "year", "x"]


def test_a_name_with_a_comma_or_a_star_is_taken_at_its_word():
    names = ["x", "a,b", "c*", "cd"]
    assert choose(names, names, labels=["a,b", "c*"]).labels == ["a,b", "c*"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--labels", "calm,hapy"),
            "there is no column 'hapy' (did you mean 'happy'?); the table has 'song_id', 't",
        ),
        (("--labels", "x_*"), "there is no column 'x_*'"),
        (("--labels", ","), "name at least one label column"),
        (("--labels", "calm,sad", "--features", "calm,tempo"), "'calm' cannot be used in two ways"),
        (("--labels", "calm,sad", "--features", "title"), "features must hold numbers; 'title' do not"),
        (("--labels", "calm,sad", "--id", "sad"), "'sad' cannot be used in two ways"),
        (("--labels", "calm,sad,happy,tempo,loudness", "-m", "glle"), "no numeric column is left"),
        (("--labels", "calm,sad", "--method", "magic"), "no method 'magic'; there are: logical, temperature"),
        (("--labels", "calm,sad", "-m", "temperature", "--param", "d=1"), "no parameter 'd'; it has: c"),
        (("--labels", "calm,sad", "-m", "temperature", "--param", "c"), "not of the form KEY=VALUE"),
        (("--labels", "calm,sad", "-m", "temperature", "--param", "c=1+"), "not a Python literal"),
        (("--labels", "calm,sad", "-m", "temperature", "--param", "c=-1"), "must be a float in the range [0.0, inf)"),
        (("--labels", "calm,sad", "-m", "temperature", "--param", "c=warm"), "'c' parameter of Temperature"),
        (("--labels", "calm,sad", "-m", "temperature", "--preset", "hot"), "no preset 'hot'; it has: none"),
    ],
)
def test_a_wrong_command_line_ends_with_two_and_says_what_there_is(folder, run, flat, arguments, said):
    result = run("enhance", "songs.csv", *arguments, "-o", "soft.csv")
    assert result.exit_code == 2
    assert said in flat(result.stderr)
    assert leftovers(folder) == []


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("nowhere.csv", "soft.csv", "does not exist"),
        ("songs.csv", "soft.docx", "must end in one of .csv, .tsv, .parquet, .pq, .arrow"),
        ("songs.csv", "nowhere/soft.csv", "does not exist: create it first"),
        ("songs.csv", "songs.csv", "exists already and is left alone. Use --force"),
    ],
)
def test_places_are_checked_before_the_work(folder, run, flat, source, target, said):
    before = (folder / "songs.csv").read_bytes()
    result = run("enhance", source, "--labels", "calm,happy,sad", "-o", target)
    assert result.exit_code == 2
    assert said in flat(result.stderr)
    assert (folder / "songs.csv").read_bytes() == before


def test_force_overwrites_even_the_source(folder, run):
    assert run("enhance", *SONGS, "-o", "songs.csv", "--force").exit_code == 0
    assert pl.read_csv("songs.csv").columns[-3:] == DEGREES


def test_new_names_must_be_free(folder, run, flat):
    run("enhance", *SONGS, "-o", "once.csv")
    result = run("enhance", "once.csv", *SONGS[1:], "-o", "twice.csv")
    assert result.exit_code == 2
    assert "already has 'calm_degree', 'happy_degree', 'sad_degree': choose another suffix" in flat(result.stderr)


def test_params_are_python_literals_and_bare_words():
    typed = ("a=1", "a=0.5", "a=None", "a=true", "a=[1, 2]", "a='x y'", "a=cosine", "a = 3")
    values = [1, 0.5, None, True, [1, 2], "x y", "cosine", 3]
    assert [parse_param(t) for t in typed] == [("a", v) for v in values]


# ----------------------------------------------------------------------------------------- data that cannot be used


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x,a,b\n1,1,0\n2,2,1\n", "Y must hold 0 and 1 only"),
        ("x,a,b\n1,1,0\n2,often,1\n", "these columns do not: 'a' ('often')"),
        ("x,a,b\n1,1,0\n,0,1\n", "the column 'x' has 1 missing entries"),
        ("x,a,b\n1,1,0\nnan,1,1\n", "the column 'x' has 1 missing entries"),
        ("x,a,b\n1,1,0\ninf,1,1\n", "X must be finite"),
        ("x,y,a,b\n1,1,1,0\n2,2,1,1\n3,3,0,1\n4,four,0,1\n4,5,0,1\n", "'y' holds 4 numbers and 1 entries that are not"),
        ("x,a,b\n1,1,0\n", "nothing can be learnt from one row"),
        ("x,a,b\n", "has no rows"),
        ("", "Cannot read bad.csv"),
        ("x,a,b\n1,1,0\n1,1,0,7\n", "Cannot read bad.csv"),
        ("x,a,a,b\n1,1,0,1\n", "columns of the same name: 'a'"),
    ],
)
def test_bad_tables_end_with_one_and_one_clean_message(folder, run, flat, content, said):
    (folder / "bad.csv").write_text(content)
    result = run("enhance", "bad.csv", "--labels", "a,b", "-m", "temperature", "--missing", "error", "-o", "soft.csv")
    assert result.exit_code == 1, result.output
    assert said in flat(result.stderr)
    assert "Traceback" not in result.stderr
    assert leftovers(folder) == ["bad.csv"]


@pytest.mark.parametrize("name", ["bad.parquet", "bad.csv"])
def test_a_damaged_file_is_an_error_not_a_traceback(folder, run, name):
    (folder / name).write_bytes((folder / "songs.parquet").read_bytes()[:200] + b"\xff\xfe\xe9")
    result = run("enhance", name, "--labels", "a,b", "-o", "soft.csv")
    assert result.exit_code in (1, 2)
    assert isinstance(result.exception, SystemExit)
    assert leftovers(folder) == [name]


def test_debug_shows_where_the_error_came_from(folder, run, process):
    (folder / "bad.csv").write_text("x,a,b\n1,1,0\n2,maybe,1\n")
    assert isinstance(run("enhance", "bad.csv", "--labels", "a,b", "-o", "soft.csv").exception, SystemExit)
    loud = process("--debug", "enhance", "bad.csv", "--labels", "a,b", "-o", "soft.csv", cwd=folder)
    assert loud.returncode == 1
    assert "Traceback" in loud.stderr
    assert "LabelError" in loud.stderr


# ---------------------------------------------------------------------------------------------- whole or not at all


@pytest.mark.parametrize("target", ["soft.csv", "soft.parquet"])
@pytest.mark.parametrize("existing", [False, True])
def test_a_full_disk_leaves_what_was_there(folder, run, flat, monkeypatch, target, existing):
    if existing:
        (folder / target).write_text("precious")

    def full(frame, path, **_):
        path.write_text("half of the ans")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    result = run("enhance", *SONGS, "-o", target, "--force")
    assert result.exit_code == 1
    assert "No space left on device" in flat(result.stderr)
    assert leftovers(folder) == ([target] if existing else [])
    if existing:
        assert (folder / target).read_text() == "precious"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_devices_are_never_replaced(folder, run):
    result = run("enhance", *SONGS, "-o", "/dev/full", "--force")
    assert result.exit_code == 2
    assert os.path.exists("/dev/full")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_whatever_stops_the_writing_leaves_nothing(tmp_path, failure):
    def write():
        with replacing(tmp_path / "out.txt") as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(failure):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    target = tmp_path / "out.txt"

    def write():
        with replacing(target, overwrite=False) as temporary:
            temporary.write_text("ours")
            target.write_text("theirs")

    with pytest.raises(OSError, match="exists already"):
        write()
    assert target.read_text() == "theirs"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_permissions_and_links_are_kept(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "real.txt").chmod(0o640)
    (tmp_path / "link.txt").symlink_to("real.txt")
    with replacing(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    assert (tmp_path / "real.txt").stat().st_mode & 0o777 == 0o640


SLOW_METHOD = """
import sys, time
from contone.enhance import Temperature
def slow(self, X, L):
    print("started", flush=True)
    time.sleep(60)
Temperature._fit_enhance = slow
sys.argv = ["contone", "enhance", "songs.csv", "--labels", "calm,happy,sad", "-m", "temperature", "-o", "soft.csv"]
from contone.cli import main
main()
"""


def test_ctrl_c_leaves_nothing(folder, forks):
    running = forks.start("-c", SLOW_METHOD, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout.readline() == "started\n"
    time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode != 0
    assert "Traceback" not in said
    assert leftovers(folder) == []
