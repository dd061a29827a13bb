"""A restart recovers every acknowledged change; a data folder that lacks a file is refused by name."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest
from service.forks import create_token, run

KEYS = [f"key-{number}" for number in range(50)]


def start_refused(data) -> str:
    """Start a service that must not start: what it says."""
    said = run("serve", "--data", data, "--http", "127.0.0.1:0", "--resp", "none", check=2)
    assert said.count("\n") == 1, said
    return said


def count_own(service, **headers) -> int:
    answer = service.http.post("/v1/filters/seen/check", json={"keys": KEYS}, headers=headers)
    assert answer.status_code == 200, answer.text
    return sum(answer.json()["found"])


@pytest.fixture
def filled(start):
    service = start("--durability", "always")
    service.create("seen")
    service.http.post("/v1/filters/seen/add", json={"keys": KEYS})
    return service


def test_a_lost_registry_grants_no_access(filled):
    data = filled.folder / "data"
    token = create_token(data)
    filled.restart()
    assert filled.http.get("/v1/filters").status_code == 401
    filled.kill()
    for name in ("registry.db", "registry.db-wal", "registry.db-shm"):
        (data / name).unlink(missing_ok=True)
    said = start_refused(data)
    assert str(data / "tokens") in said
    assert "registry.db" in said
    assert "token create" in said
    # The remedy: other tokens. The old one opens nothing any more.
    fresh = create_token(data)
    filled.start()
    assert filled.http.get("/v1/filters").status_code == 401
    assert filled.http.get("/v1/filters", headers={"authorization": f"Bearer {token}"}).status_code == 401
    assert count_own(filled, authorization=f"Bearer {fresh}") == len(KEYS)


def test_a_missing_token_registry_is_detected_at_the_next_start(filled):
    data = filled.folder / "data"
    create_token(data)
    run("token", "revoke", "root", "--data", data)
    filled.stop()
    assert str(data / "tokens") in start_refused(data)
    (data / "tokens").unlink()
    filled.start()
    assert count_own(filled) == len(KEYS)


def test_a_lost_or_damaged_node_file_is_refused(filled):
    path = filled.folder / "data" / "node"
    filled.stop()
    name = path.read_bytes()
    for damaged in (None, b"", name[:3], b"another\n", b"\xff" * 16):
        if damaged is None:
            path.unlink()
        else:
            path.write_bytes(damaged)
        said = start_refused(path.parent)
        assert str(path) in said
        assert name.decode().strip() in said
    path.write_bytes(name)
    filled.start()
    assert count_own(filled) == len(KEYS)


def test_a_damaged_schema_of_the_registry_is_refused_in_one_line(filled):
    """The database can be opened; the first query fails."""
    data = filled.folder / "data"
    filled.stop()
    with closing(sqlite3.connect(data / "registry.db")) as registry:
        registry.execute("PRAGMA writable_schema=ON")
        registry.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE `' WHERE name = 'tokens'")
        registry.commit()
    assert "registry.db" in start_refused(data)
    said = run("token", "list", "--data", data, check=2)
    assert "registry.db" in said
    assert said.count("\n") == 1


@pytest.mark.long
def test_each_damaged_file_is_refused_or_recovered(filled, tmp_path):
    """Removed, emptied, cut, flipped: a service that starts has all keys, under their name."""
    rng = random.Random(11)
    filled.kill()
    data = filled.folder / "data"
    whole = tmp_path / "whole"
    shutil.copytree(data, whole)
    # Files of the native module are tried with it; a start takes a second.
    files = [whole / name for name in ("registry.db", "registry.db-wal", "node", "manifest")]
    files = [path.relative_to(whole) for path in files if path.exists()]
    assert {"manifest", "registry.db", "node"} <= {file.name for file in files}
    started = 0
    for file in files:
        content = (whole / file).read_bytes()
        at = rng.randrange(len(content)) if content else 0
        flipped = bytearray(content or b"\0")
        flipped[at] ^= 1 << rng.randrange(8)
        for damaged in (None, content[:at], bytes(flipped)):
            shutil.rmtree(data)
            shutil.copytree(whole, data)
            if damaged is None:
                (data / file).unlink()
            else:
                (data / file).write_bytes(damaged)
            try:
                filled.start()
            except RuntimeError as error:
                # SQLite says what is wrong with a database, and the service which one it is.
                said = str(error).splitlines()[-1]
                assert file.name.partition("-")[0] in said, (file, said)
            else:
                started += 1
                assert count_own(filled) == len(KEYS), file
                filled.kill()
    assert started > 0


def add(service, name, keys):
    body = "\n".join(keys)
    answer = service.http.post(
        f"/v1/filters/{name}/add", content=body, headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 200, answer.text
    return answer


def count_found(service, name, keys):
    answer = service.http.post(f"/v1/filters/{name}/check", json={"keys": keys})
    assert answer.status_code == 200, answer.text
    return answer.json()["found"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_service_restarts_with_all_filters(start, number):
    service = start()
    keys = [f"key-{i}" for i in range(1000)]
    before = service.create("seen", fpr=0.001)
    assert add(service, "seen", keys).headers["x-fullbloom-yes"] == "1000"
    service.create("other", kind="counting")
    service.http.delete("/v1/filters/other")
    assert service.stop(number) == 0
    service.start()
    assert all(count_found(service, "seen", keys))
    after = service.http.get("/v1/filters/seen").json()
    assert {k: after[k] for k in ("id", "seed", "keyed", "created", "nbytes")} == {
        k: before[k] for k in ("id", "seed", "keyed", "created", "nbytes")
    }
    assert [f["name"] for f in service.http.get("/v1/filters").json()["filters"]] == ["seen"]


def test_a_killed_service_restarts_with_every_acknowledged_change(start):
    service = start("--durability", "always")
    service.create("seen")
    for round_ in range(20):
        assert service.http.post("/v1/filters/seen/add", json={"key": f"one-{round_}"}).json() == {
            "new": True
        }
    service.kill()
    service.start()
    assert all(count_found(service, "seen", [f"one-{i}" for i in range(20)]))


def test_only_one_process_may_use_a_data_folder(start):
    import subprocess
    import sys

    service = start()
    words = [
        sys.executable,
        "-m",
        "fullbloom",
        "serve",
        "--data",
        service.folder / "data",
        "--http",
        "127.0.0.1:0",
    ]
    second = subprocess.run([*map(str, words), "--resp", "none"], capture_output=True, text=True, timeout=60)
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert "another process has this data folder open" in second.stderr
