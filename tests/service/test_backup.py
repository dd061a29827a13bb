"""A copy of a running service is whole, and comes back into a folder or into a service."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest
import redis
from service.forks import create_token

from fullbloom.cli import main

SIZES = {"small": 100, "smaller": 10, "large": 1_000_000}


def fullbloom(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "fullbloom", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


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
    time.sleep(1.5)  # the service asks for new tokens once a second
    refused = fullbloom("backup", "--url", service.url, tmp_path / "x.tar")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / "x.tar").exists()
    assert (
        fullbloom("backup", "--url", service.url, tmp_path / "x.tar", FULLBLOOM_TOKEN=token).returncode == 0
    )


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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_an_invalid_backup_is_refused(tmp_path, name, kind):
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as tar:
        index = json.dumps({"version": 1, "filters": {}}).encode()
        member = tarfile.TarInfo("index.json")
        member.size = len(index)
        tar.addfile(member, io.BytesIO(index))
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
    before = set(tmp_path.rglob("*"))
    done = fullbloom("restore", path, "--data", tmp_path / "new")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert set(tmp_path.rglob("*")) == before


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
    seen = []
    copying = threading.Thread(target=lambda: [service.http.get("/v1/backup") for _ in range(20)])
    copying.start()
    while copying.is_alive():
        with contextlib.suppress(FileNotFoundError):
            seen += [path.stat().st_mode & 0o077 for path in data.glob("backup-*/**/*")]
    copying.join()
    assert set(seen) == {0}
