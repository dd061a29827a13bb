"""A copy of a running service is whole, and comes back into a folder or into a service."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import os
import socket
import tarfile
import threading
import time
from pathlib import Path

import pytest
import redis
from commands import SERVICE, run_command
from service.forks import create_token
from support import eventually

from fullbloom.cli import main, remote

SIZES = {"small": 100, "smaller": 10, "large": 1_000_000}


def fullbloom(*words, **environment):
    return run_command(*words, imports=SERVICE, **environment)


def check_keys(service, name, keys, **headers):
    return service.http.post(f"/v1/filters/{name}/check", json={"keys": keys}, headers=headers).json()[
        "found"
    ]


def test_a_backup_is_restored(start, tmp_path):
    service = start()
    for name, capacity in SIZES.items():
        service.create(name, capacity=capacity, fpr=1e-6)
        service.http.post(f"/v1/filters/{name}/add", json={"keys": [name, "both"]})
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host=host, port=int(port)) as client:
        client.set("note", "text")
    stop = threading.Event()

    def go_on():
        at = 0
        while not stop.is_set():
            service.http.post("/v1/filters/large/add", json={"key": f"meanwhile-{at}"})
            at += 1

    other = threading.Thread(target=go_on)
    other.start()
    copy = tmp_path / "copy.tar"
    done = fullbloom("backup", "--url", service.url, copy)
    stop.set()
    other.join()
    assert done.returncode == 0, done.stderr
    assert copy.stat().st_mode & 0o777 == 0o600
    for name in SIZES:
        service.http.post(f"/v1/filters/{name}/add", json={"key": "after"})
    refused = fullbloom("restore", copy, "--url", service.url)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    done = fullbloom("restore", copy, "--url", service.url, "--replace")
    assert done.returncode == 0, done.stderr
    for name in SIZES:
        assert check_keys(service, name, [name, "both", "after"]) == [True, True, False]
    done = fullbloom("restore", copy, "--data", tmp_path / "other" / "data")
    assert done.returncode == 0, done.stderr
    assert service.stop() == 0
    second = start(folder="other")
    for name in SIZES:
        assert check_keys(second, name, [name, "both", "after"]) == [True, True, False]
    host, _, port = second.resp.rpartition(":")
    with redis.Redis(host=host, port=int(port)) as client:
        assert client.get("note") == b"text"
    assert second.node == service.node
    assert fullbloom("restore", copy, "--data", tmp_path / "other" / "data").returncode == 2
    assert not list((service.folder / "data").glob("backup-*"))


def test_a_backup_requires_the_token(start, tmp_path):
    service = start()
    token = fullbloom(
        "token", "create", "root", "--scope", "admin", "--data", service.folder / "data"
    ).stdout.strip()
    # The service reads new tokens once a second.
    eventually(lambda: service.http.get("/v1/filters").status_code == 401)
    refused = fullbloom("backup", "--url", service.url, tmp_path / "x.tar")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / "x.tar").exists()
    assert (
        fullbloom("backup", "--url", service.url, tmp_path / "x.tar", FULLBLOOM_TOKEN=token).returncode == 0
    )


#: An address to which no request must be sent.
UNUSED = "http://127.0.0.1:1"
NAMES = ["../evil", "/etc/evil", "data/../../evil", "data/filters/../x", "data/log/1.log", "data/x"]


def test_a_restored_folder_remembers_that_there_were_tokens(start, tmp_path):
    service = start()
    token = create_token(service.folder / "data")
    service.restart()
    copy, folder = tmp_path / "copy.tar", tmp_path / "other" / "data"
    done = fullbloom("backup", "--url", service.url, copy, FULLBLOOM_TOKEN=token)
    assert done.returncode == 0, done.stderr
    assert fullbloom("restore", copy, "--data", folder).returncode == 0
    # The registry is lost on the way, or was never part of the copy: a PostgreSQL one is not.
    (folder / "registry.db").unlink()
    (folder / "node").unlink()
    done = fullbloom("serve", "--data", folder, "--http", "127.0.0.1:0", "--resp", "none")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert str(folder / "tokens") in done.stderr


def write_backup(path, index, *members):
    """Write a tar with an index, as bytes or an object, and members: a name or `TarInfo`, and the content."""
    data = index if isinstance(index, bytes) else json.dumps(index).encode()
    with tarfile.open(path, "w") as tar:
        for name, content in [("index.json", data), *members]:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def check_refused(path, tmp_path, url):
    """Check that restoring is refused in one line, with nothing written or sent."""
    # The service removes the files of a backup after it has sent them.
    eventually(lambda: not any(tmp_path.rglob("backup-*")))
    before = set(tmp_path.rglob("*"))
    for target in (("--data", tmp_path / "new"), ("--url", url)):
        done = fullbloom("restore", path, *target)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert str(path) in done.stderr
        assert len(done.stderr) < 400
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_backup_with_another_member_is_refused(tmp_path, name, kind):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    write_backup(tmp_path / "evil.tar", {"version": 1, "filters": {}}, ("data/manifest", b""), (member, b""))
    check_refused(tmp_path / "evil.tar", tmp_path, UNUSED)


FILE = "data/filters/1.bundle"
INDEXES = {
    "no JSON": b"x",
    "not UTF-8": b"\xff\xfe{",
    "a deep list": b"[" * 100_000,
    "a list": [],
    "no version": {"filters": {}},
    "a later version": {"version": 2, "filters": {}},
    "no filters": {"version": 1},
    "a list of filters": {"version": 1, "filters": [1]},
    "a missing file": {"version": 1, "filters": {"a": ["data/filters/2.bundle", 0, 1]}},
    "another file": {"version": 1, "filters": {"a": ["../../etc/passwd", 0, 1]}},
    "two numbers": {"version": 1, "filters": {"a": [FILE, 0]}},
    "a text": {"version": 1, "filters": {"a": [FILE, "0", 1]}},
    "a flag": {"version": 1, "filters": {"a": [FILE, True, 1]}},
    "a negative start": {"version": 1, "filters": {"a": [FILE, -1, 1]}},
    "a negative length": {"version": 1, "filters": {"a": [FILE, 0, -1]}},
    "a start beyond the end": {"version": 1, "filters": {"a": [FILE, 4, 0]}},
    "a length beyond the end": {"version": 1, "filters": {"a": [FILE, 1, 3]}},
    "a terabyte": {"version": 1, "filters": {"a": [FILE, 0, 1 << 40]}},
    "a name that is not Unicode": b'{"version": 1, "filters": {"\\ud800": ["data/filters/1.bundle", 0, 1]}}',
}


@pytest.mark.parametrize("case", INDEXES)
def test_a_backup_with_an_invalid_index_is_refused(tmp_path, case):
    path = tmp_path / "lying.tar"
    write_backup(path, INDEXES[case], ("data/manifest", b""), (FILE, b"abc"))
    check_refused(path, tmp_path, UNUSED)


def test_an_incomplete_or_damaged_backup_is_refused(start, tmp_path):
    service = start()
    service.create("whole")
    whole = tmp_path / "whole.tar"
    assert fullbloom("backup", "--url", service.url, whole).returncode == 0
    data = whole.read_bytes()
    index = {"version": 1, "filters": {}}
    path = tmp_path / "part.tar"
    write_backup(path, index)
    check_refused(path, tmp_path, service.url)
    write_backup(path, index, ("data/manifest", b""), ("data/manifest", b"x"))
    check_refused(path, tmp_path, service.url)
    for damaged in (b"", b"x" * 2000, data[:300], data[: len(data) // 2 // 512 * 512 + 100]):
        path.write_bytes(damaged)
        check_refused(path, tmp_path, service.url)
    for pack in (gzip.compress, lzma.compress):
        packed = pack(data)
        path.write_bytes(packed[: len(packed) // 2])
        check_refused(path, tmp_path, service.url)


def test_a_server_that_is_no_service_is_reported_in_one_line(tmp_path):
    replies = [
        b"",
        b"-ERR unknown command\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 500 " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 500 X\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ]
    for reply in replies:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=respond_once, args=(listener, reply))
            thread.start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            done = fullbloom("backup", "--url", url, tmp_path / "copy.tar")
            thread.join()
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (reply[:60], done.stderr)
        assert url in done.stderr
        assert list(tmp_path.iterdir()) == []


class Response(io.BytesIO):
    """A body of a service, which calls ``meanwhile`` before its second read."""

    def __init__(self, body, meanwhile=None):
        super().__init__(body)
        self.headers = {"content-length": str(len(body))}
        self._meanwhile, self._reads = meanwhile, 0

    def read(self, size=-1):
        self._reads += 1
        if self._reads == 2 and self._meanwhile:
            self._meanwhile()
        return super().read(size)


@pytest.fixture
def run_backup(monkeypatch):
    """Run a command on a response, in this process."""

    def run(file, response):
        monkeypatch.setattr(remote, "send_request", lambda *_: contextlib.nullcontext(response))
        return main(["backup", "--quiet", str(file)])

    return run


def test_two_backups_to_one_file_at_once_leave_one_of_them_whole(tmp_path, run_backup):
    first, second = b"A" * (3 << 20), b"B" * (1 << 20)
    file, results = tmp_path / "copy.tar", []

    def run_second():
        results.append(run_backup(file, Response(second)))
        assert file.read_bytes() == second

    assert run_backup(file, Response(first, run_second)) == 0
    assert results == [0]
    assert file.read_bytes() == first
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "cut"])
def test_a_backup_changes_no_other_file_and_only_its_owner_reads_it(tmp_path, run_backup, is_whole):
    file, notes = tmp_path / "copy.tar", tmp_path / "copy.tar.new"
    for path in (file, notes):
        path.write_bytes(b"notes")
        path.chmod(0o644)
    modes = []
    response = Response(b"secret" * (1 << 18))
    response._meanwhile = lambda: modes.extend(
        path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path not in {file, notes}
    )
    if not is_whole:
        response.headers["content-length"] = "9"
    assert run_backup(file, response) == (0 if is_whole else 2)
    assert modes == [0o600]
    assert (notes.read_bytes(), notes.stat().st_mode & 0o777) == (b"notes", 0o644)
    assert file.stat().st_mode & 0o777 == (0o600 if is_whole else 0o644)
    assert sorted(tmp_path.iterdir()) == [file, notes]


def test_a_backup_follows_no_link_and_replaces_no_device(tmp_path, run_backup, capfd):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "copy.tar.new").symlink_to("victim")
    os.mkfifo(tmp_path / "pipe")
    assert run_backup(tmp_path / "copy.tar", Response(b"filters")) == 0
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert run_backup(tmp_path / "pipe", Response(b"filters")) == 2
    assert str(tmp_path / "pipe") in capfd.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


def respond_once(listener, reply):
    peer, _ = listener.accept()
    with peer:
        peer.recv(65536)
        with contextlib.suppress(OSError):
            peer.sendall(reply)


def test_a_restored_folder_is_on_the_disk_before_its_manifest(start, tmp_path, monkeypatch):
    """Each file and all names are synced before the manifest has its name: the power may go at any time."""
    service = start()
    for name in SIZES:
        service.create(name)
        service.http.post(f"/v1/filters/{name}/add", json={"key": name})
    copy = tmp_path / "copy.tar"
    assert fullbloom("backup", "--url", service.url, copy).returncode == 0
    folder = tmp_path / "new" / "data"
    synced, real = [], os.fsync

    def fsync(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        state = (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None
        synced.append((path, state, (folder / "manifest").exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert main(["restore", str(copy), "--data", str(folder), "--quiet"]) == 0
    before = {path: state for path, state, named in synced if not named}
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 3
    for path in files:
        first = folder / "manifest.new" if path.name == "manifest" else path
        assert before[first] == (path.stat().st_size, path.stat().st_mtime_ns), path
    assert {folder, folder / "filters", folder / "log", folder.parent} <= set(before)
    # The manifest's own name comes last.
    assert synced[-1][0] == folder
    assert synced[-1][2]


@pytest.mark.parametrize("wanted", ["bytes=999999999999-", "lines=1", "bytes=5-"])
def test_a_backup_is_sent_as_a_whole_and_leaves_no_copy(start, wanted):
    """Whatever range is requested: a download that goes on would join parts of two backups."""
    service = start()
    service.create("one")
    answer = service.http.get("/v1/backup", headers={"range": wanted})
    assert answer.status_code == 200
    assert len(answer.content) == int(answer.headers["content-length"])
    eventually(lambda: not list((service.folder / "data").glob("backup-*")))


@pytest.mark.long
def test_leftovers_of_a_crash_during_a_backup_are_removed_and_logged(start):
    service = start()
    service.create("one")
    data = service.folder / "data"
    service.kill()
    left = data / "backup-x1y2z3"
    (left / "data").mkdir(parents=True)
    (left / "data" / "secret.key").write_bytes((data / "secret.key").read_bytes())
    (data / "backup-notes.txt").write_text("a file of somebody's")
    service.start()
    assert not left.exists()
    assert (data / "backup-notes.txt").exists()
    warned = [
        line for line in service.log.read_text().splitlines() if "contained a copy of secret.key" in line
    ]
    assert len(warned) == 1
    assert str(left) in warned[0]
    # While a copy is made, nobody else reads it.
    seen, end = [], threading.Event()

    def copy():
        while not end.is_set():
            service.http.get("/v1/backup")

    copying = threading.Thread(target=copy)
    copying.start()
    deadline = time.monotonic() + 60
    while len(seen) < 100 and time.monotonic() < deadline:
        for path in data.glob("backup-*/**/*"):
            with contextlib.suppress(FileNotFoundError):
                seen.append(path.stat().st_mode & 0o077)
    end.set()
    copying.join()
    assert set(seen) == {0}
