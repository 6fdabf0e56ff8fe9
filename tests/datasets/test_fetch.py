"""From a name to a file: search order, hashes, and downloads that go wrong."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import http.server
import importlib
import io
import os
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from contone import datasets
from contone.exceptions import DataError

# The package exports the function of the same name, so the module is asked for by its full name.
fetching = importlib.import_module("contone.datasets.fetch")
downloading = importlib.import_module("contone.datasets.fetch")


class Server(http.server.ThreadingHTTPServer):
    """Serves bytes by file name, and counts who asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cut = 0
        self.wait = 0.0
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/files"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with the file, or with fewer bytes than promised where the server is told to cut."""

    server: Server

    def do_GET(self):
        name = Path(self.path).name
        self.server.asked.append(name)
        time.sleep(self.server.wait)
        content = self.server.files.get(name)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) - self.server.cut])

    def log_message(self, *args):
        """Keep the test output clean."""


@pytest.fixture
def server(monkeypatch):
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("CONTONE_MIRROR", running.address)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that CONTONE_DATA points to."""
    path = tmp_path / "folder"
    path.mkdir()
    monkeypatch.setenv("CONTONE_DATA", str(path))
    return path


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A cache of its own, not there yet, and no CONTONE_DATA."""
    path = tmp_path / "a" / "cache"
    monkeypatch.setenv("CONTONE_CACHE", str(path))
    monkeypatch.delenv("CONTONE_DATA", raising=False)
    return path


def content_of(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"features": rng.normal(size=(30, 4)), "labels": rng.dirichlet(np.ones(3), size=30)}


@pytest.fixture(params=["sha256", "blob"])
def published(request, monkeypatch):
    """The bytes of a small set that stands in the registry as 'tiny-set', hashed in either way."""
    stream = io.BytesIO()
    savemat(stream, content_of())
    content = stream.getvalue()
    header = f"blob {len(content)}\0".encode()
    kinds = {"sha256": hashlib.sha256(content).hexdigest(), "blob": hashlib.sha1(header + content).hexdigest()}
    entry = fetching.Entry(
        name="tiny-set",
        file="Tiny_Set.mat",
        n=30,
        d=4,
        q=3,
        about="a set for tests",
        citation="nobody",
        licence="none",
        base="http://127.0.0.1:9/nowhere/",
        label_prefix="tone",
        **{request.param: kinds[request.param]},
    )
    known = {**fetching.registry(), "tiny-set": entry}
    monkeypatch.setattr(fetching, "registry", lambda: known)
    return content


def left_in(path: Path) -> list[str]:
    """Everything in the folder, hidden files too."""
    return sorted(p.name for p in path.rglob("*")) if path.exists() else []


# ---------------------------------------------------------------------------------------------------- the registry


def test_the_registry_knows_the_sets_of_the_paper_and_the_others():
    assert len(datasets.names()) == len(set(datasets.names())) == 26
    seed = {name for name in datasets.names() if datasets.status(name).in_paper}
    yeast = {f"yeast-{s}" for s in ("alpha", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo", "spo5", "spoem")}
    assert seed == yeast | {"flickr", "twitter"}
    others = {
        *("sjaffe", "movie", "human-gene", "natural-scene", "sbu-3dfe", "m2b"),
        *("scut-fbp", "emotion6", "music", "painting", "raf-ml", "fbp5500"),
    }
    assert set(datasets.names()) == seed | others | {"artificial", "artificial-training"}


def test_every_entry_has_exactly_one_hash_a_source_and_a_citation():
    for entry in fetching.registry().values():
        assert (len(entry.sha256), len(entry.blob)) in {(64, 0), (0, 40)}, entry.name
        assert entry.base.startswith("https://")
        assert "082937638e075b35d349a2e69e36219d52512dc8" in entry.base
        assert fetching._plain(Path(entry.file).stem) == fetching._plain(entry.name)
        assert entry.citation
        assert entry.licence


def test_git_blob_ids_are_those_of_git(tmp_path):
    # `printf 'hello\n' | git hash-object --stdin` gives this id.
    (tmp_path / "Greeting.mat").write_bytes(b"hello\n")
    entry = fetching.Entry(
        "greeting", "Greeting.mat", 0, 0, 0, "", "", "", "", blob="ce013625030ba8dba906f756967f9e9ca394464a"
    )
    assert fetching.mismatch(tmp_path / "Greeting.mat", entry) == ""
    (tmp_path / "Greeting.mat").write_bytes(b"hello!\n")
    assert "git blob id" in fetching.mismatch(tmp_path / "Greeting.mat", entry)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("alpha", "yeast-alpha"), ("yeast-alfa", "yeast-alpha"), ("fliker", "flickr"), ("3dfe", "sbu-3dfe")],
)
def test_an_unknown_name_gets_the_nearest_names(wrong, near, cached):
    with pytest.raises(DataError, match=f"no data set '{wrong}'. Did you mean .*'{near}'"):
        datasets.load(wrong)


def test_every_spelling_of_a_name_is_one_name(cached, folder):
    for name in datasets.names():
        assert {fetching.canonical(said) for said in (name, name.upper(), name.replace("-", "_"))} == {name}
    savemat(folder / "Mine.mat", content_of())
    assert (fetching.canonical("Mine"), fetching.canonical("yours")) == ("Mine", "yours")


def test_why_the_network_did_not_deliver_is_said_in_one_line():
    from requests import Response, exceptions

    answer = Response()
    answer.status_code, answer.reason = 503, "Busy"
    for error, said in (
        (exceptions.HTTPError(response=answer), "the server answered 503 Busy"),
        (exceptions.HTTPError("broken off"), "broken off"),
        (exceptions.ReadTimeout("chain of wrappers"), "no answer in time"),
        (exceptions.ConnectionError("chain of wrappers", response=answer), "no connection; is there a network?"),
        (ValueError("no such address"), "no such address"),
    ):
        assert fetching._reason(error) == said


@pytest.mark.parametrize("length", [1, 200, 201, 5000])
def test_long_words_of_a_library_are_cut_at_200_letters(length):
    text = "".join(str(k % 10) for k in range(length))
    found = fetching._short(ValueError(text))
    assert found == text if length <= 200 else (len(found), found[:197], found[197:]) == (200, text[:197], "...")
    assert fetching._short(KeyError()) == "KeyError"


def test_a_name_like_no_other_gets_the_list(cached):
    with pytest.raises(DataError, match="There are: artificial, .*fbp5500"):
        datasets.load("xyz!")


# ------------------------------------------------------------------------------------------------ the search order


@pytest.mark.parametrize("spelling", ["Tiny_Set.mat", "tiny-set.mat", "TINYSET.mat"])
def test_a_file_put_into_the_folder_works_at_once(cached, folder, published, spelling):
    assert datasets.status("tiny-set").where == "missing"
    (folder / spelling).write_bytes(published)
    assert datasets.status("tiny-set").where == "folder"
    data = datasets.load("Tiny set")
    np.testing.assert_array_equal(data.D, content_of()["labels"])
    assert data.label_names == ("tone_0", "tone_1", "tone_2")
    assert data.notes == ()
    assert data.source == str(folder / spelling)


def test_the_folder_comes_before_the_cache_and_the_cache_before_the_net(server, cached, folder, published):
    cached.mkdir(parents=True)
    (cached / "Tiny_Set.mat").write_bytes(published)
    assert datasets.fetch("tiny-set") == cached / "Tiny_Set.mat"
    (folder / "Tiny_Set.mat").write_bytes(published)
    assert datasets.fetch("tiny-set") == folder / "Tiny_Set.mat"
    assert server.asked == []


def test_a_changed_file_in_the_folder_is_refused_not_replaced(server, folder, published):
    damaged = published[:-10]
    (folder / "Tiny_Set.mat").write_bytes(damaged)
    with pytest.raises(DataError, match="not the published Tiny_Set.mat .*truncated, damaged .* Delete it"):
        datasets.load("tiny-set")
    assert "not the published" in datasets.status("tiny-set").problem
    assert (folder / "Tiny_Set.mat").read_bytes() == damaged
    assert server.asked == []


def test_a_conversion_is_accepted_with_a_note_and_the_published_file_preferred(folder, published):
    np.savez(folder / "tiny-set.npz", **content_of())
    data = datasets.load("tiny-set")
    np.testing.assert_array_equal(data.X, content_of()["features"])
    assert data.notes == ("a conversion of Tiny_Set.mat, with no hash to check",)
    assert data.citation == "nobody"
    (folder / "Tiny_Set.mat").write_bytes(published)
    assert datasets.fetch("tiny-set").suffix == ".mat"


def test_a_conversion_of_another_shape_is_refused(folder, published):
    np.savez(folder / "tiny-set.npz", features=np.ones((30, 5)), labels=content_of()["labels"])
    with pytest.raises(DataError, match=r"n, d, q are \(30, 5, 3\); the registry says \(30, 4, 3\).*not a conversion"):
        datasets.load("tiny-set")


def test_bytes_that_match_the_hash_are_right_whatever_the_registry_says_of_their_shape(folder, published, monkeypatch):
    entry = dataclasses.replace(fetching.registry()["tiny-set"], n=31, d=0)
    monkeypatch.setattr(fetching, "registry", lambda: {"tiny-set": entry})
    (folder / "Tiny_Set.mat").write_bytes(published)
    assert datasets.load("tiny-set").notes == ("n, d, q are (30, 4, 3); the registry says (31, 0, 3)",)


@pytest.mark.parametrize("known", [{"n": 31, "confirmed": False}, {"n": 0, "d": 0}], ids=["unconfirmed", "unknown"])
def test_a_conversion_is_not_held_to_shapes_that_nobody_confirmed(folder, published, monkeypatch, known):
    entry = dataclasses.replace(fetching.registry()["tiny-set"], **known)
    monkeypatch.setattr(fetching, "registry", lambda: {"tiny-set": entry})
    np.savez(folder / "tiny_set.npz", **content_of())
    assert datasets.load("tiny-set").D.shape == (30, 3)


def test_other_files_in_the_folder_are_loaded_by_their_name(folder):
    np.savez(folder / "My_survey.npz", **content_of(1))
    data = datasets.load("my-survey")
    assert (data.name, data.D.shape) == ("My_survey", (30, 3))
    assert "not in the registry" in data.notes[0]
    assert datasets.status("My_survey").where == "folder"


def test_the_shapes_of_own_files_are_listed_without_reading_them(folder):
    np.savez(folder / "mine.npz", **content_of(1))
    np.savez(folder / "flat.npz", features=np.ones(3), labels=np.ones((3, 2)))
    found = datasets.status("mine")
    assert (found.where, found.n, found.d, found.q, found.problem) == ("folder", 30, 4, 3, "")
    assert "no matrices 'features' and 'labels'" in datasets.status("flat").problem


def test_a_folder_that_is_not_there_is_named_in_the_error(server, tmp_path, cached, monkeypatch, published):
    monkeypatch.setenv("CONTONE_DATA", str(tmp_path / "typo"))
    with pytest.raises(DataError, match="typo: no such folder"):
        datasets.load("tiny-set")


def test_generated_sets_have_no_file():
    assert datasets.status("artificial").where == "generated"
    with pytest.raises(DataError, match="artificial is generated"):
        datasets.fetch("artificial")


# ---------------------------------------------------------------------------------------------------- the download


def test_a_download_is_checked_kept_and_not_repeated(server, cached, published):
    server.files["Tiny_Set.mat"] = published
    data = datasets.load("tiny-set")
    np.testing.assert_array_equal(data.X, content_of()["features"])
    assert left_in(cached) == ["Tiny_Set.mat"]
    assert (cached / "Tiny_Set.mat").read_bytes() == published
    datasets.load("tiny-set")
    assert server.asked == ["Tiny_Set.mat"]
    assert datasets.status("tiny-set").where == "cache"


def test_a_damaged_file_in_the_cache_is_fetched_again(server, cached, published):
    cached.mkdir(parents=True)
    (cached / "Tiny_Set.mat").write_bytes(published[:100])
    server.files["Tiny_Set.mat"] = published
    assert datasets.load("tiny-set").D.shape == (30, 3)
    assert left_in(cached) == ["Tiny_Set.mat"]


def test_a_wrong_hash_is_told_and_nothing_kept(server, cached, published):
    server.files["Tiny_Set.mat"] = b"<html>please log in</html>"
    with pytest.raises(DataError, match="not the published Tiny_Set.mat .26 bytes.*Nothing was kept"):
        datasets.load("tiny-set")
    assert left_in(cached) == []


def test_a_truncated_download_is_told_and_nothing_kept(server, cached, published):
    server.files["Tiny_Set.mat"] = published
    server.cut = 50
    with pytest.raises(DataError, match="Tiny_Set.mat"):
        datasets.load("tiny-set")
    assert left_in(cached) == []


def test_a_file_that_the_server_does_not_have(server, cached, published):
    with pytest.raises(DataError, match="cannot be downloaded from http://127.0.0.1.*answered 404"):
        datasets.load("tiny-set")
    assert left_in(cached) == []


def test_no_network_names_the_file_the_folders_and_the_address(cached, monkeypatch, published):
    monkeypatch.delenv("CONTONE_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(DataError) as caught:  # nothing listens on port 9
        datasets.load("tiny-set")
    for part in (
        "Tiny_Set.mat",
        "http://127.0.0.1:9/nowhere/Tiny_Set.mat",
        str(cached),
        "CONTONE_DATA",
        "CONTONE_MIRROR",
    ):
        assert part in str(caught.value)
    assert left_in(cached) == []


def test_an_address_of_an_unknown_kind(cached, monkeypatch, published):
    monkeypatch.setenv("CONTONE_MIRROR", "gopher://example")
    with pytest.raises(DataError, match="gopher://example/Tiny_Set.mat is not an address"):
        datasets.load("tiny-set")


@pytest.mark.parametrize("step", ["write", "move"])
def test_a_full_disk_is_told_and_nothing_kept(server, cached, monkeypatch, published, step):
    server.files["Tiny_Set.mat"] = published

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if step == "write":
        import pooch

        class Full(pooch.HTTPDownloader):
            def __call__(self, url, output_file, pooch, check_only=False):
                output_file.write(published[:100])  # some of it fits
                full()

        monkeypatch.setattr(pooch.core, "choose_downloader", lambda url, progressbar: Full())
    else:
        monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DataError, match="cannot be stored in .*No space left.*CONTONE_CACHE"):
        datasets.load("tiny-set")
    assert left_in(cached) == []


def test_a_cache_that_cannot_be_made_is_told(server, cached, published):
    cached.parent.mkdir()
    cached.write_text("a file where the folder should be")
    with pytest.raises(DataError, match="cannot be stored in"):
        datasets.load("tiny-set")


FETCH_IN_PROCESS = """
import importlib, sys
fetching = importlib.import_module("contone.datasets.fetch")
known = {**fetching.registry(), "tiny-set": fetching.Entry(
    "tiny-set", "Tiny_Set.mat", 30, 4, 3, "", "", "", "", sha256=sys.argv[1])}
fetching.registry = lambda: known
print(fetching.load("tiny-set").D.shape)
"""


def test_two_processes_at_once_both_get_the_file(server, cached, forks):
    stream = io.BytesIO()
    savemat(stream, content_of())
    server.files["Tiny_Set.mat"] = stream.getvalue()
    server.wait = 0.5  # both have asked before either has an answer
    digest = hashlib.sha256(stream.getvalue()).hexdigest()
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [forks.start("-c", FETCH_IN_PROCESS, digest, **streams) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out.strip()) == (0, "(30, 3)"), err
    assert left_in(cached) == ["Tiny_Set.mat"]


def test_threads_at_once_all_get_the_file(server, cached, published):
    server.files["Tiny_Set.mat"] = published
    server.wait = 0.05
    shapes = []
    threads = [threading.Thread(target=lambda: shapes.append(datasets.load("tiny-set").D.shape)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shapes == [(30, 3)] * 4
    assert left_in(cached) == ["Tiny_Set.mat"]


# ------------------------------------------------------------------------------------------------------- real data


def test_every_file_at_hand_is_the_published_one(real):
    at_hand = [s for s in map(datasets.status, datasets.names()) if s.where == "folder"]
    assert [s.name for s in at_hand if s.problem] == []
    for s in at_hand:
        data = datasets.load(s.name)
        assert (*data.X.shape, data.D.shape[1]) == (s.n, s.d, s.q)
        assert data.notes == ()
        np.testing.assert_allclose(data.D.sum(axis=1), 1, atol=1e-12)


def test_load_reads_what_is_in_the_file(real):
    X, D = real("SJAFFE")
    data = datasets.load("SJAFFE")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_allclose(data.D, D, rtol=1e-15)
    assert data.citation


def test_a_server_cannot_fill_the_disk(server, cached, monkeypatch, published):
    server.files["Tiny_Set.mat"] = published
    monkeypatch.setattr(downloading, "MAX_DOWNLOAD", 100)
    with pytest.raises(DataError, match="sends more than"):
        datasets.load("tiny-set")
    assert left_in(cached) == []


def test_a_cache_that_cannot_be_looked_into_is_no_traceback(server, cached, published, monkeypatch, tmp_path):
    monkeypatch.setenv("CONTONE_CACHE", str(tmp_path / ("x" * 304)))
    assert datasets.status("tiny-set").where == "missing"
    with pytest.raises(DataError, match="cannot be stored in"):
        datasets.load("tiny-set")
