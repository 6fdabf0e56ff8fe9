"""`contone enhance --stream`: the same table as in memory, piece by piece; whatever stops it, it goes on."""

from __future__ import annotations

import gzip
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from contone import Inversion, LCdr, enhance, enhance_file
from contone.exceptions import DataError
from contone.runtime import machine
from contone.runtime.progress import Progress
from contone.tables import formats as tables
from contone.tables import pieces, streaming, text
from contone.tables.columns import Columns
from contone.tables.labels import LabelReading
from contone.tables.reading import problem_of
from contone.tables.settings import Reading, Streaming, Writing
from contone.tables.table import Table

LABELS = ["calm", "happy", "sad"]
DEGREES = [f"{name}_degree" for name in LABELS]


def table(n: int = 500, seed: int = 0) -> pl.DataFrame:
    """Text with line ends, quotes and separators in it, an id with zeros, numbers that look whole for a while."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(6)
    L = (X @ rng.normal(size=(3, 3)) + rng.normal(size=(n, 3)) > 0).astype(int)
    L[np.arange(n), np.arange(n) % 3] = 1
    return pl.DataFrame(
        {
            "song_id": [f"{i:05d}" for i in range(n)],
            "title": ['two\nlines, "quoted"', "plain", "", "semi;colon"] * (n // 4),
            "late": [i if i < n // 2 else i + 0.5 for i in range(n)],
            "note": ["7"] * (n - 1) + ["seven"],
            **{f"x{j}": X[:, j] for j in range(3)},
            **{name: L[:, j] for j, name in enumerate(LABELS)},
        },
        strict=False,
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    frame = table()
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(source: str, target: str, *more: str, method: str = "temperature") -> list[str]:
    return ["enhance", source, "-l", "calm,happy,sad", "--features", "x*,late", "-m", method, "-o", target, *more]


def read(source: object) -> pl.DataFrame:
    return pl.read_csv(source, infer_schema_length=None)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- the answer


@pytest.mark.parametrize(
    ("source", "target"), [("t.csv", "out.parquet"), ("t.csv.gz", "out.csv"), ("t.parquet", "out.csv")]
)
def test_a_row_wise_method_gives_the_same_file_as_in_memory(folder, run, source, target):
    assert run(*command(source, f"whole_{target}")).exit_code == 0
    for rows in (97, 499, 10_000):  # 499 leaves a piece with a single row
        result = run(*command(source, target, "--chunk-rows", str(rows), "--force"))
        assert result.exit_code == 0, result.output
        if target.endswith(".csv"):
            assert Path(target).read_bytes() == Path(f"whole_{target}").read_bytes()
        else:
            assert pl.read_parquet(target).equals(pl.read_parquet(f"whole_{target}"))
        assert not Path(f".{target}.parts").exists()


def test_a_model_is_fitted_on_a_sample_and_applied_to_every_row(folder, run):
    assert (
        run(*command("t.parquet", "a.parquet", "--chunk-rows", "100", "--preset", "tuned", method="lcdr")).exit_code
        == 0
    )
    frame = pl.read_parquet("t.parquet")
    X = frame.select("x0", "x1", "x2", "late")
    expected = LCdr.preset("tuned").fit(X, frame.select(LABELS)).predict(X)
    np.testing.assert_allclose(pl.read_parquet("a.parquet").select(DEGREES).to_numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("method", [m for m in enhance.methods() if hasattr(enhance.methods()[m](), "enhance")])
def test_every_inductive_method_streams(folder, run, brief, method):
    few = [part for key, value in brief(enhance.methods()[method]).items() for part in ("-p", f"{key}={value}")]
    result = run(*command("t.csv", "out.csv", "--chunk-rows", "200", "--sample-rows", "120", *few, method=method))
    assert result.exit_code == 0, result.output
    D = read("out.csv").select(DEGREES).to_numpy()
    assert len(D) == 500
    np.testing.assert_allclose(D.sum(axis=1), 1.0, atol=1e-9)
    assert (D >= 0).all()


@pytest.mark.parametrize("place", ["in the sample", "beyond it"])
def test_a_missing_value_anywhere_is_found_before_the_fit_where_it_is_an_error(folder, run, flat, place):
    frame = read("t.csv")
    row = 2 if place == "in the sample" else 499
    holes = frame.with_columns(pl.when(pl.int_range(pl.len()) == row).then(None).otherwise(pl.col("x1")).alias("x1"))
    holes.write_csv("holes.csv")
    more = ("--chunk-rows", "200", "--sample-rows", "120")
    assert run(*command("t.csv", "full.csv", *more, "--missing", "error")).exit_code == 0
    refused = run(*command("holes.csv", "out.csv", *more, "--missing", "error"))
    assert refused.exit_code != 0
    assert "x1" in flat(refused.output)
    assert not Path("out.csv").exists()
    assert run(*command("holes.csv", "out.csv", *more)).exit_code == 0


def test_a_method_that_needs_all_rows_says_that_it_cannot(folder, run, flat):
    result = run(*command("t.csv", "out.csv", "--stream", method="lp"))
    assert result.exit_code == 2
    assert "LP needs all rows at once; these methods can stream: " in flat(result.stderr)
    assert "lcdr" in flat(result.stderr)


def test_the_sample_is_drawn_evenly_from_the_whole_file():
    class Halves(pieces.Pieces):
        def read(self, wanted=None):
            return iter([(0, Table(frame[:400])), (1, Table(frame[400:]))])

    source = Halves(Path("none"), [0, 400, 1000])
    frame = pl.DataFrame({"x": np.arange(1000.0), "a": np.ones(1000), "b": np.zeros(1000)})
    request = streaming.Request(
        Path("none"), LCdr(), Reading(), Writing("none.csv"), Streaming(sample_rows=200), Progress()
    )
    reading = LabelReading(["a", "b"], {"a": None, "b": None})
    blank = problem_of(Table(frame[:0]), Columns(["a", "b"], ["x"], []), reading, Reading())
    sample = streaming.draw_sample(source, blank, request)
    drawn = sample.table.stored["x"].to_numpy()
    np.testing.assert_array_equal(drawn, sample.numbers)
    assert len(drawn) == len(sample.Y) == len(set(drawn)) == 200
    assert (np.diff(drawn) > 0).all()
    assert 60 <= (drawn < 400).sum() <= 100  # 80 expected


# ------------------------------------------------------------------------------------------------------- the pieces


@pytest.mark.parametrize(("rows", "block"), [(1, 1), (1, 64), (3, 1 << 20), (7, 1), (7, 64), (500, 1 << 20)])
def test_records_are_cut_at_their_ends_wherever_the_blocks_end(folder, monkeypatch, rows, block):
    table(12).write_csv("small.csv")
    monkeypatch.setattr(text, "BLOCK_BYTES", block)
    cut = pieces.cut(Path("small.csv"), rows)
    whole = tables.read(Path("small.csv"))
    found = [piece for _, piece in cut.read()]
    assert [len(p.stored) for p in found] == [min(rows, 12 - s) for s in range(0, 12, rows)]
    assert pl.concat([p.stored for p in found]).equals(whole.stored)
    assert pl.concat([p.values for p in found]).equals(whole.values)
    assert cut.numeric == whole.numeric


def test_a_file_without_a_last_line_end_and_with_carriage_returns_is_cut_right(folder):
    Path("odd.csv").write_bytes(b"x,a,b\r\n1,1,0\r\n2,0,1\r\n3,1,1")
    cut = pieces.cut(Path("odd.csv"), 2)
    assert cut.starts == [0, 2, 3]
    assert [piece.values["x"].to_list() for _, piece in cut.read()] == [[1, 2], [3]]


def test_a_quote_that_is_never_closed_is_an_error(folder):
    Path("odd.csv").write_text('x,a\n1,"1\n2,1\n')
    with pytest.raises(DataError, match="never closed"):
        pieces.cut(Path("odd.csv"), 2)


def test_the_size_of_a_file_is_estimated_without_reading_it(folder):
    assert pieces.estimated_shape(Path("t.parquet")) == (500, 10)
    rows, columns = pieces.estimated_shape(Path("t.csv"))
    assert columns == 10
    assert 500 <= rows <= 700  # line ends within quotes count as well


def test_bad_rows_are_found_before_the_fit_and_named(folder, run, flat):
    frame = table()
    frame.with_columns(pl.Series("sad", [*frame["sad"][:450], *[2] * 50])).write_csv("bad.csv")
    result = run(*command("bad.csv", "out.csv", "--chunk-rows", "100"))
    assert result.exit_code == 1
    assert "in row 50, label 'sad' is 2" in flat(result.stderr)
    assert "counted from row 400 of bad.csv" in flat(result.stderr)
    assert not Path("out.csv").exists()


# ----------------------------------------------------------------------------------------------- when it is chosen


def test_a_file_larger_than_memory_is_streamed_without_being_asked(folder, run, flat, monkeypatch):
    monkeypatch.setenv(machine.LIMIT_VARIABLE, "250KB")
    result = run(*command("t.parquet", "out.parquet", "--param", "c=0.3"))
    assert result.exit_code == 0, result.output
    assert "t.parquet has about 500 rows and needs about" in flat(result.stderr)
    assert "streaming" in flat(result.stderr)


def test_a_file_larger_than_memory_that_cannot_be_streamed_is_refused_with_an_estimate(folder, run, flat, monkeypatch):
    monkeypatch.setenv(machine.LIMIT_VARIABLE, "100KB")
    result = run(*command("t.parquet", "out.parquet", method="lp"))
    assert result.exit_code == 1
    assert "LP needs all rows at once. Choose a method that can stream" in flat(result.stderr)
    assert "CONTONE_MEMORY_LIMIT" in flat(result.stderr)


def test_small_files_are_not_streamed(folder, run):
    assert "parts" not in run(*command("t.parquet", "out.parquet")).stderr


# ----------------------------------------------------------------------------------------------- stop, and go on

KILLED = """
import os, signal, sys
from contone.tables import streaming
before, written = streaming._write_part, []
def write(*arguments):
    part = before(*arguments)
    written.append(1)
    if len(written) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return part
streaming._write_part = write
from contone.cli import main
sys.argv = ["contone", *sys.argv[1:]]
main()
"""


@pytest.fixture
def killed(folder, forks):
    """Run the command and be killed after three parts."""

    def start(*arguments: str) -> None:
        done = forks.run("-c", KILLED, *arguments, cwd=folder)
        assert done.returncode == -signal.SIGKILL, done.stderr

    return start


@pytest.mark.parametrize(("source", "target"), [("t.csv", "out.csv"), ("t.parquet", "out.parquet")])
def test_a_killed_run_goes_on_with_the_same_model_and_redoes_nothing(folder, run, killed, monkeypatch, source, target):
    wanted = command(source, target, "--chunk-rows", "100", "--sample-rows", "200", method="lcdr")
    killed(*wanted)
    assert not Path(target).exists()
    parts = sorted(Path(f".{target}.parts").glob("part-*"))
    assert len(parts) == 3
    stamps = {p.name: p.stat().st_mtime_ns for p in parts}
    read: list[int] = []
    original = pieces.Pieces.read

    def watched(self, wanted=None):
        for i, piece in original(self, wanted):
            read.append(i)
            yield i, piece

    monkeypatch.setattr(pieces.Pieces, "read", watched)
    monkeypatch.setattr(LCdr, "fit", lambda *_: pytest.fail("fitted again"))
    kept = {}
    monkeypatch.setattr(
        streaming, "_merge", lambda parts, *more, merge=streaming._merge: (kept.update(
            {p.path.name: p.path.stat().st_mtime_ns for p in parts}), merge(parts, *more))
    )  # fmt: skip
    result = run(*wanted)
    assert result.exit_code == 0, result.output
    assert "3 of 5 parts are done already" in result.stderr
    assert read == [3, 4]
    assert stamps.items() <= kept.items()
    monkeypatch.undo()
    os.chdir(folder)
    assert (
        run(*command(source, f"once_{target}", "--chunk-rows", "100", "--sample-rows", "200", method="lcdr")).exit_code
        == 0
    )
    assert Path(target).read_bytes() == Path(f"once_{target}").read_bytes()


def test_other_options_or_another_input_do_not_go_on_with_old_parts(folder, run, killed, flat):
    wanted = command("t.csv", "out.csv", "--chunk-rows", "100", method="lcdr")
    killed(*wanted)
    for changed in ([*wanted, "--param", "beta=0.01"], [*wanted[:-1], "50"]):
        result = run(*changed)
        assert result.exit_code == 2
        assert "holds an unfinished run with another input, other options" in flat(result.stderr)
    time.sleep(0.01)
    table(seed=1).write_csv("t.csv")
    assert run(*wanted).exit_code == 2
    result = run(*wanted, "--force")
    assert result.exit_code == 0, result.output
    assert "starting over" in result.stderr
    assert read("out.csv")["x0"].to_list() == table(seed=1)["x0"].to_list()


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(folder, forks, process):
    code = KILLED.replace("SIGKILL", "SIGINT")
    done = forks.run("-c", code, *command("t.csv", "out.csv", "--chunk-rows", "100"), cwd=folder)
    assert done.returncode != 0
    assert "the same command resumes there" in done.stderr
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr
    assert process(*command("t.csv", "out.csv", "--chunk-rows", "100"), cwd=folder).returncode == 0
    assert len(read(folder / "out.csv")) == 500


def test_existing_output_is_left_alone_and_stdout_works(folder, run, flat):
    Path("out.csv").write_text("precious")
    assert run(*command("t.csv", "out.csv", "--chunk-rows", "100")).exit_code == 2
    assert Path("out.csv").read_text() == "precious"
    result = run(*command("t.csv", "-", "--chunk-rows", "100"))
    assert len(read(result.stdout.encode())) == 500


def test_a_streamed_table_of_counts_is_read_as_votes_like_one_in_memory(folder):
    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(5, rng.dirichlet(np.ones(3))) for _ in range(30)])
    pl.DataFrame({"x": rng.normal(size=30), "a": counts[:, 0], "b": counts[:, 1], "c": counts[:, 2]}).write_csv("n.csv")
    method = Inversion(n_sweeps=20, n_burn=5)
    whole = enhance_file("n.csv", "whole.csv", labels="a,b,c", method=method)
    said = []

    class Notes(Progress):
        def note(self, message):
            said.append(message)

    parts = enhance_file("n.csv", "parts.csv", labels="a,b,c", method=method, chunk_rows=10, progress=Notes())
    assert parts.streamed
    assert parts.method.degradation == whole.method.degradation == "votes"
    assert any("read as votes" in line for line in said)
    rows = replace(parts.fitted_rows.__self__, sample=None).rows()  # as after an interruption
    np.testing.assert_array_equal(rows.Y.to_numpy(), counts)
