"""Files as they come, and folders that somebody else has prepared: a sentence or the right rows, never a traceback."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
import pytest

import contone
from contone.exceptions import ContoneError, DataError, OutputError
from contone.tables import Progress, checkpoint, streaming

ROWS = "x,a,b\n1,1,0\n2,0,1\n3,1,1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "in.csv").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stream(target: str = "o.csv", source: str = "in.csv", labels: str = "a,b", **more):
    return contone.enhance_file(source, target, labels=labels, method="uniform", stream=True, **more)


EXPECTED = "x,a,b,a_degree,b_degree\n1,1,0,0.5,0.5\n2,0,1,0.5,0.5\n3,1,1,0.5,0.5\n"


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


# --------------------------------------------------------------------------------------------- the folder of parts


@pytest.mark.parametrize("name", ["part-000000.csv", f"part-000000-{'0' * 16}-1-{'0' * 64}.csv", "job.joblib"])
def test_parts_without_a_plan_are_never_used(folder, name):
    Path(".o.csv.parts").mkdir()
    (folder / ".o.csv.parts" / name).write_text("x,a,b,a_degree,b_degree\n666,1,0,9,-8\n")
    stream()
    assert Path("o.csv").read_text() == EXPECTED
    assert names(folder) == ["in.csv", "o.csv"]


def unfinished(folder: Path, rows: int = 1) -> Path:
    """A run that stops just before the merge."""
    merge = streaming._merge

    def stop(*_):
        raise KeyboardInterrupt

    streaming._merge = stop
    try:
        with pytest.raises(KeyboardInterrupt):
            stream(chunk_rows=rows)
    finally:
        streaming._merge = merge
    return folder / ".o.csv.parts"


@pytest.mark.parametrize("damage", ["cut", "edited", "empty", "swapped", "renumbered", "link"])
def test_parts_that_are_not_what_was_written_are_made_again(folder, damage):
    where = unfinished(folder)
    first, second, _ = sorted(where.glob("part-*"))
    if damage == "cut":
        first.write_bytes(first.read_bytes()[:-4])
    elif damage == "edited":
        first.write_bytes(first.read_bytes().replace(b"0.5", b"0.9"))
    elif damage == "empty":
        first.write_bytes(b"")
    elif damage == "swapped":
        a, b = first.read_bytes(), second.read_bytes()
        first.write_bytes(b)
        second.write_bytes(a)
    elif damage == "renumbered":
        names = [first.name.replace("-000000-", "-000001-"), second.name.replace("-000001-", "-000000-")]
        for part, name in zip((first, second), names, strict=True):
            part.rename(where / name)
    else:
        elsewhere = folder / "elsewhere.csv"
        elsewhere.write_bytes(first.read_bytes())
        first.unlink()
        first.symlink_to(elsewhere)
    stream(chunk_rows=1)
    assert Path("o.csv").read_text() == EXPECTED


def test_parts_of_another_plan_are_not_used(folder):
    where = unfinished(folder)
    part = sorted(where.glob("part-*"))[0]
    token = checkpoint.PART.fullmatch(part.name)[2]
    part.rename(where / part.name.replace(token, "0" * 16))
    stream(chunk_rows=1)
    assert Path("o.csv").read_text() == EXPECTED


def test_the_plan_is_the_last_to_go(folder, monkeypatch):
    where = unfinished(folder)
    removed = []
    unlink = os.unlink
    monkeypatch.setattr(checkpoint.os, "unlink", lambda path: (removed.append(Path(path).name), unlink(path)))
    checkpoint.empty(where)
    assert removed[-1] == "plan.json"
    assert len(removed) == 5


def test_a_link_in_place_of_the_folder_is_not_followed(folder):
    precious = folder / "precious"
    precious.mkdir()
    (precious / "plan.json").write_text("{}")
    Path(".o.csv.parts").symlink_to(precious)
    with pytest.raises(OutputError, match="symbolic link"):
        stream(overwrite=True)
    assert names(precious) == ["plan.json"]


def test_what_is_not_ours_in_the_folder_stays(folder):
    Path(".o.csv.parts").mkdir()
    Path(".o.csv.parts/thesis.tex").write_text("years")
    Path(".o.csv.parts/part-000000.csv").mkdir()
    stream()
    assert names(folder / ".o.csv.parts") == ["part-000000.csv", "thesis.tex"]
    assert Path("o.csv").read_text() == EXPECTED


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"token": 7}', '{"token": "0000000000000000", "fingerprint": "x"}']
)
def test_a_damaged_plan_is_no_plan(folder, content):
    where = unfinished(folder)
    (where / "plan.json").write_text(content)
    stream(chunk_rows=1, overwrite=True)
    assert Path("o.csv").read_text() == EXPECTED


@pytest.mark.parametrize("name", ["plan.json", "model.contone"])
def test_one_changed_byte_of_plan_or_model_starts_the_run_afresh(folder, name):
    where = unfinished(folder)
    content = bytearray((where / name).read_bytes())
    place = content.find(b'"token": "') + 11 if name == "plan.json" else len(content) // 2
    content[place] ^= 1
    (where / name).write_bytes(bytes(content))
    warned: list[str] = []

    class Listen(Progress):
        def warn(self, message):
            warned.append(message)

    stream(chunk_rows=1, progress=Listen())
    assert warned == ["starting over: the unfinished run's files are damaged"]
    assert Path("o.csv").read_text() == EXPECTED


def test_a_damaged_model_starts_the_run_afresh(folder):
    where = unfinished(folder)
    (where / "model.contone").write_bytes(b"not a model")
    stream(chunk_rows=1)
    assert Path("o.csv").read_text() == EXPECTED


def test_two_runs_on_one_output_do_not_mix(folder):
    """The second finds the lock while the first is in the middle of its work."""
    refused = []

    class Second(Progress):
        def note(self, message):
            if "rows in" in message:
                thread = threading.Thread(target=self.again)
                thread.start()
                thread.join()

        def again(self):
            try:
                stream(overwrite=True)
            except OutputError as error:
                refused.append(str(error))

    stream(progress=Second())
    assert refused
    assert f"by another run (process {os.getpid()} on" in refused[0]
    assert Path("o.csv").read_text() == EXPECTED


@pytest.mark.parametrize("moment", ["before the parts", "after the parts"])
def test_an_input_that_changes_meanwhile_is_refused(folder, moment):
    class Change(Progress):
        def working(self, message):
            if moment == "before the parts" and message.startswith("enhancing"):
                Path("in.csv").write_text(ROWS.replace("3,1,1", "4,1,1"))
            return super().working(message)

        def counting(self, message, total, done=0):
            if moment == "after the parts" and message.startswith("enhancing"):
                Path("in.csv").write_text(ROWS.replace("3,1,1", "4,1,1"))
            return super().counting(message, total, done)

    with pytest.raises(DataError, match="changed while it was read"):
        stream(progress=Change())
    assert names(folder) == ["in.csv"]


def test_rows_are_counted_before_the_output_appears(folder, monkeypatch):
    add = checkpoint.add_part

    def short(where, number, token, n_rows, suffix, write):
        return add(where, number, token, n_rows - 1 if number == 1 else n_rows, suffix, write)

    monkeypatch.setattr(checkpoint, "add_part", short)
    with pytest.raises(OutputError, match="The parts have 2 rows, the input has 3"):
        stream(chunk_rows=1)
    assert not Path("o.csv").exists()


def test_streams_that_fail_on_their_data_leave_nothing(folder):
    Path("in.csv").write_text(ROWS + "4,2,0\n")
    with pytest.raises(DataError):
        stream()
    assert names(folder) == ["in.csv"]


def test_no_pickle_is_written_or_read(folder, monkeypatch):
    import joblib

    for name in ("load", "dump"):
        monkeypatch.setattr(joblib, name, lambda *_: pytest.fail("a pickle"))
    where = unfinished(folder)
    assert (where / "model.contone").read_bytes()[:2] == b"PK"
    assert where.stat().st_mode & 0o777 == 0o700
    stream(chunk_rows=1)


def test_the_environment_is_left_alone(folder, monkeypatch):
    pl.DataFrame({"x": [1.0, 2.0], "a": [1, 0], "b": [0, 1]}).write_parquet("in.parquet")
    with monkeypatch.context() as patched:
        patched.setattr(os, "environ", MappingProxyType(dict(os.environ)))  # any change is an error
        stream("o.parquet", "in.parquet", chunk_rows=1)


# ----------------------------------------------------------------------------------------------- files as they come


@pytest.mark.parametrize("streamed", [False, True])
def test_carried_columns_lose_not_a_letter_on_the_way_to_parquet(folder, streamed):
    big, phone, price = "12345678901234567890", "+4930123456", "1.10"
    Path("in.csv").write_text(
        f"x,code,phone,price,n,f,flag,a,b\n1,{big},{phone},{price},7,0.5,true,1,0\n2,{big},{phone},2.5,8,1.5,false,0,1\n"
    )
    contone.enhance_file(
        "in.csv", "o.parquet", labels="a,b", method="uniform", features="x", stream=streamed, ids="code"
    )
    found = pl.read_parquet("o.parquet")
    assert found["code"].to_list() == [big, big]
    assert found["phone"].to_list() == [phone, phone]
    assert found["price"].to_list() == [price, "2.5"]
    assert [found.schema[c] for c in ("n", "f", "flag", "a", "x")] == [
        pl.Int64, pl.Float64, pl.Boolean, pl.Int64, pl.Int64,
    ]  # fmt: skip


def test_a_feature_that_looks_like_a_code_keeps_its_letters_too(folder):
    Path("in.csv").write_text("x,phone,a,b\n1,+49301,1,0\n2,+49302,0,1\n")
    done = contone.enhance_file("in.csv", "o.parquet", labels="a,b", method="uniform")
    assert done.features == ("x", "phone")
    assert pl.read_parquet("o.parquet")["phone"].to_list() == ["+49301", "+49302"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("content", "first", "said"),
    [
        ("calme\u0301,b,x\n1,0,1\n0,1,2\n".encode(), "calme\u0301", None),
        ("café,b,x\n1,0,1\n0,1,2\n".encode("latin-1"), "café", "Windows-1252"),
        ("caf\u00e9\x81,b,x\n1,0,1\n0,1,2\n".encode("latin-1"), "café\x81", "read as Latin-1"),
        ("\ufeffcafé,b,x\n1,0,1\n0,1,2\n".encode(), "café", None),
        (b'"he said ""no""",b,x\n1,0,1\n0,1,2\n', 'he said "no"', None),
        (b'"two\nlines",b,x\n1,0,1\n0,1,2\n', "two\nlines", None),
    ],
)
def test_headers_are_read_as_they_were_meant(folder, streamed, content, first, said):
    Path("in.csv").write_bytes(content)
    heard: list[str] = []

    class Listen(Progress):
        def note(self, message):
            heard.append(message)

    done = contone.enhance_file(
        "in.csv", "o.csv", labels=[first, "b"], method="uniform", stream=streamed, progress=Listen()
    )
    assert done.labels == (first, "b")
    assert pl.read_csv("o.csv").height == 2
    assert any("not UTF-8" in line for line in heard) == (said is not None)
    assert said is None or any(said in line for line in heard)


def test_utf_16_is_read_whole_and_refused_in_pieces(folder):
    Path("in.csv").write_bytes(ROWS.encode("utf-16"))
    assert contone.enhance_file("in.csv", "o.csv", labels="a,b", method="uniform").n_rows == 3
    assert Path("o.csv").read_text() == EXPECTED
    with pytest.raises(DataError, match="convert it to UTF-8"):
        stream("p.csv")


def test_a_frame_written_with_its_index_streams(folder):
    Path("in.csv").write_text(",x,a,b\n0,1,1,0\n1,2,0,1\n2,3,1,1\n")
    assert stream(chunk_rows=2).features == ("x",)
    assert pl.read_csv("o.csv").columns[0] == ""


MALFORMED = {
    "empty.csv": b"",
    "blank.csv": b"\n\n\n",
    "zeros.csv": b"\0" * 50,
    "binary.csv": bytes(range(256)) * 4,
    "ragged.csv": b"x,a,b\n1,1,0\n2,0,1,9\n",
    "open_quote.csv": b'x,a,b\n1,"1,0\n2,0,1\n',
    "header_only.csv": b"x,a,b\n",
    "not_gzip.csv.gz": b"x,a,b\n1,1,0\n",
    "cut.csv.gz": gzip.compress(ROWS.encode() * 50)[:-12],
    "damaged.csv.gz": gzip.compress(os.urandom(2000))[:40] + b"x" * 2000,
    "cut.parquet": b"PAR1" + b"\0" * 100,
    "text_labels.csv": b"x,a,b\n1,often,0\n2,never,1\n",
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_end_in_a_sentence(folder, name, streamed):
    Path(name).write_bytes(MALFORMED[name])
    with pytest.raises(ContoneError) as raised:
        stream(source=name) if streamed else contone.enhance_file(name, "o.csv", labels="a,b", method="uniform")
    assert len(str(raised.value)) > 15
    assert names(folder) == sorted(["in.csv", name])


@pytest.mark.parametrize("streamed", [False, True])
def test_a_table_of_labels_only_is_for_methods_that_use_nothing_else(folder, streamed):
    Path("words.csv").write_text("t,a,b\nu,1,0\nv,0,1\nw,1,1\n")
    with pytest.raises(
        ContoneError, match="no numeric column is left .* GLLE needs features, these methods can do without"
    ):
        contone.enhance_file("words.csv", "o.csv", labels="a,b", method="glle", stream=streamed)
    done = contone.enhance_file("words.csv", "o.csv", labels="a,b", method="temperature", stream=streamed)
    assert (done.features, done.carried) == ((), ("t",))
    expected = contone.Temperature().fit_enhance(np.zeros((3, 1)), [[1, 0], [0, 1], [1, 1]])
    np.testing.assert_array_equal(pl.read_csv("o.csv").select(done.degrees).to_numpy(), expected)
    contone.tables.fit_file("words.csv", "m.contone", labels="a,b", method="temperature")
    contone.tables.apply_model("m.contone", "words.csv", "again.csv")
    assert Path("again.csv").read_text() == Path("o.csv").read_text()


def test_nested_columns_go_to_parquet_and_not_to_text(folder):
    pl.DataFrame({"x": [1.0, 2.0], "a": [1, 0], "b": [0, 1], "n": [[1, 2], [3]]}).write_parquet("in.parquet")
    for streamed in (False, True):
        with pytest.raises(ContoneError, match=r"cannot hold the column 'n' .*Write .parquet"):
            contone.enhance_file("in.parquet", "o.csv", labels="a,b", method="uniform", stream=streamed)
        contone.enhance_file("in.parquet", f"{streamed}.parquet", labels="a,b", method="uniform", stream=streamed)
        assert pl.read_parquet(f"{streamed}.parquet")["n"].to_list() == [[1, 2], [3]]


def test_a_pipe_is_refused_and_does_not_hang(folder):
    os.mkfifo("pipe.csv")
    with pytest.raises(DataError, match="not a regular file"):
        stream(source="pipe.csv")


@pytest.mark.parametrize("name", ["odd[1].csv", "odd*.csv", "odd\x1b[31m.csv", "日本.csv", "n" * 200 + ".csv"])
def test_odd_names_are_names(folder, name):
    Path("in.csv").rename(name)
    for target in ("o[1].csv", "m" * 240 + ".parquet"):
        assert stream(target, name).n_rows == 3


@pytest.mark.parametrize("name", [os.fsdecode(b"\xff\xfe.csv"), "n" * 304 + ".csv", "no/where.csv", "."])
def test_impossible_names_are_refused_with_a_sentence(folder, name):
    with pytest.raises(ContoneError):
        stream(source=name)
    with pytest.raises(ContoneError):
        stream(target=name)
    assert names(folder) == ["in.csv"]


# ----------------------------------------------------------------------------------------------- what Python gets


def test_the_result_says_what_was_done(folder):
    method = contone.Temperature(c=1.0)
    done = contone.enhance_file("in.csv", "o.csv", labels=["a", "b"], method=method)
    assert (done.path, done.n_rows, done.labels, done.features, done.carried, done.streamed) == (
        Path("o.csv"), 3, ("a", "b"), ("x",), (), False,
    )  # fmt: skip
    assert not hasattr(method, "label_distributions_")  # cloned: what is passed is never changed
    written = pl.read_csv("o.csv").select(done.degrees).to_numpy()
    np.testing.assert_array_equal(written, done.method.label_distributions_)
    with pytest.raises(ContoneError, match="exists already"):
        contone.enhance_file("in.csv", "o.csv", labels=["a", "b"])
    with pytest.raises(ContoneError, match="no method 'magic'; there are: logical"):
        contone.enhance_file("in.csv", "p.csv", labels=["a", "b"], method="magic")
