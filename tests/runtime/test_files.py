"""Whatever goes wrong while a file is written, the target is whole or as it was; leftovers are found, locks end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time

import pytest

from contone.exceptions import DataError, OutputError
from contone.runtime import files
from contone.runtime.files import check_folder, locked, open_private_folder, remove_leftovers, replacing

FAULTS = {"chmod": errno.EPERM, "fsync": errno.ENOSPC, "replace": errno.EROFS, "close": errno.EIO}


@pytest.mark.parametrize("call", ["chmod", "fsync", "replace"])
@pytest.mark.parametrize("existing", [False, True])
def test_any_failing_call_leaves_the_target_as_it_was(tmp_path, monkeypatch, call, existing):
    target = tmp_path / "out.txt"
    if existing:
        target.write_text("precious")

    def fail(*_, **__):
        raise OSError(FAULTS[call], os.strerror(FAULTS[call]))

    def write():
        with replacing(target) as temporary:
            temporary.write_text("new")
            monkeypatch.setattr(files.os, call, fail)

    with pytest.raises(OutputError, match=os.strerror(FAULTS[call])):
        write()
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == (["out.txt"] if existing else [])
    assert not existing or target.read_text() == "precious"


def test_a_full_disk_shows_as_what_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(files.tempfile, "mkstemp", _full)
    with (
        pytest.raises(OutputError, match=r"Cannot write .*out.txt: No space left on device"),
        replacing(tmp_path / "out.txt"),
    ):
        pytest.fail("there was nothing to write to")


def _full(**_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folders_without_permission_are_an_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="permission"), replacing(tmp_path / "out.txt"):
        pass


@pytest.mark.parametrize("name", ["n" * 300, "zero\0byte"])
def test_impossible_names_are_an_error(tmp_path, name):
    with pytest.raises(OutputError):
        files.check_target(tmp_path / name, overwrite=True)


@pytest.mark.parametrize("length", [10, 200, 234, 235, 236, 237, 255])
def test_names_up_to_the_limit_can_be_written(tmp_path, length):
    target = tmp_path / "n".ljust(length, "n")
    with replacing(target) as temporary:
        temporary.write_text("x")
        assert (target.name in temporary.name) == (length <= files.LONGEST_NAME - 20)
    assert target.read_text() == "x"


def test_only_regular_files_are_read(tmp_path):
    (tmp_path / "file").write_text("x")
    for name in ("file", "missing"):
        files.check_regular(tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    for path, said in ((tmp_path, "is a folder: name a file"), (tmp_path / "pipe", "is not a regular file: copy it")):
        with pytest.raises(DataError, match=f"{path.name} {said}"):
            files.check_regular(path)


HANG = """
import sys, time
from contone.runtime.files import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("there", flush=True)
    time.sleep(60)
"""


def test_leftovers_of_killed_writers_are_removed_and_no_others(tmp_path, forks):
    target = tmp_path / "out.txt"
    foreign = tmp_path / ".out.txt.mine.part"
    foreign.write_text("somebody's")
    (tmp_path / ".out.txt.abcdefgh.part").symlink_to(foreign)
    running = forks.start("-c", HANG, target, stdout=subprocess.PIPE)
    assert running.stdout.readline() == "there\n"
    assert remove_leftovers(target) == []  # its owner lives
    with running:
        running.kill()
    assert len(remove_leftovers(target)) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == [".out.txt.abcdefgh.part", ".out.txt.mine.part"]


LOCK = """
import sys, time
from pathlib import Path
from contone.runtime.files import locked
with locked(Path(sys.argv[1]), "It is used"):
    print("there", flush=True)
    time.sleep(60)
"""


def test_a_lock_names_its_owner_and_ends_with_it(tmp_path, forks):
    path = tmp_path / "lock"
    running = forks.start("-c", LOCK, path, stdout=subprocess.PIPE)
    assert running.stdout.readline() == "there\n"
    with (
        pytest.raises(OutputError, match=rf"It is used by another run \(process {running.pid} on"),
        locked(path, "It is used"),
    ):
        pass
    with running:
        running.send_signal(signal.SIGKILL)
    assert path.exists()  # stale: its owner is dead
    with locked(path, "It is used"):
        assert str(os.getpid()) in path.read_text()
    assert not path.exists()


def test_a_private_folder_is_ours_alone_and_never_a_link(tmp_path):
    before = os.umask(0)  # nothing else keeps others out
    try:
        made = open_private_folder(tmp_path / "work")
        with locked(tmp_path / "lock", "It is used"):
            assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    assert made.stat().st_mode & 0o777 == 0o700
    made.chmod(0o755)
    assert open_private_folder(made).stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(made)
    (tmp_path / "file").write_text("")
    for name, said in (("link", "symbolic link"), ("file", "not a folder")):
        with pytest.raises(OutputError, match=said):
            open_private_folder(tmp_path / name)


def test_a_private_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    made = open_private_folder(tmp_path / "work")
    monkeypatch.setattr(files.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(OutputError, match="another user"):
        open_private_folder(made)


def test_a_lock_that_is_removed_while_it_is_opened_is_taken_anew(tmp_path, monkeypatch):
    path, opened = tmp_path / "lock", []
    original = files._try_lock

    def remove_first(handle):
        if not opened:
            opened.append(time.monotonic())
            path.unlink()
        return original(handle)

    monkeypatch.setattr(files, "_try_lock", remove_first)
    with locked(path, "It is used"):
        assert path.exists()


def test_a_folder_that_cannot_hold_results_is_refused_before_any_work(tmp_path):
    check_folder(tmp_path)
    check_folder(tmp_path / "new" / "newer")  # may be missing
    check_folder(tmp_path / ("x" * files.LONGEST_NAME))
    with pytest.raises(OutputError, match="too long"):
        check_folder(tmp_path / ("x" * (files.LONGEST_NAME + 1)))
    with pytest.raises(OutputError, match="too long"):
        check_folder(tmp_path / ("ä" * (files.LONGEST_NAME // 2 + 1)))  # bytes count, not letters
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="not a folder"):
        check_folder(tmp_path / "file" / "new")


def test_own_files_are_regular_ones_of_this_user(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    found = [files.is_own_file(tmp_path / name) for name in ("file", "link", ".", "missing")]
    assert found == [True, False, False, False]
    monkeypatch.setattr(files.os, "geteuid", lambda: os.getuid() + 1)
    assert not files.is_own_file(tmp_path / "file")


def test_a_new_file_has_the_rights_that_are_usual_and_a_replaced_one_its_own(tmp_path):
    before = os.umask(0o022)
    try:
        for mask, expected in ((0, 0o666), (0o022, 0o644), (0o077, 0o600)):
            os.umask(mask)
            files.write_whole(tmp_path / f"new-{mask}", "text")
            assert (tmp_path / f"new-{mask}").stat().st_mode & 0o777 == expected
            assert os.umask(mask) == mask  # as it was
        for mode in (0o640, 0o755, 0o600):
            (tmp_path / "old").write_text("old")
            (tmp_path / "old").chmod(mode)
            files.write_whole(tmp_path / "old", "new", overwrite=True)
            assert (tmp_path / "old").stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)


def test_what_lies_beside_a_file_is_hidden_and_has_its_name_where_that_is_not_too_long(tmp_path):
    assert files.hidden_sibling(tmp_path / "a.csv", "parts") == tmp_path / ".a.csv.parts"
    for length in (files.LONGEST_NAME - 20, files.LONGEST_NAME - 19):
        found = files.hidden_sibling(tmp_path / ("é" + "x" * (length - 2)), "parts").name
        assert found.startswith(".é") is (length == files.LONGEST_NAME - 20)
        assert len(os.fsencode(found)) <= files.LONGEST_NAME
        assert found.endswith(".parts")
    long = [files.hidden_sibling(tmp_path / (name * 250), "x") for name in "ab"]
    assert long[0] != long[1]
