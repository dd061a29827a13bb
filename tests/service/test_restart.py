"""What was answered is there after a restart, whichever way the process ended."""

from __future__ import annotations

import signal

import pytest


def add(service, name, keys):
    body = "\n".join(keys)
    answer = service.http.post(
        f"/v1/filters/{name}/add", content=body, headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 200, answer.text
    return answer


def found(service, name, keys):
    answer = service.http.post(f"/v1/filters/{name}/check", json={"keys": keys})
    assert answer.status_code == 200, answer.text
    return answer.json()["found"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_service_comes_back_with_everything(start, number):
    service = start()
    keys = [f"key-{i}" for i in range(1000)]
    before = service.create("seen", fpr=0.001)
    assert add(service, "seen", keys).headers["x-fullbloom-yes"] == "1000"
    service.create("other", kind="counting")
    service.http.delete("/v1/filters/other")
    assert service.stop(number) == 0
    service.start()
    assert all(found(service, "seen", keys))
    after = service.http.get("/v1/filters/seen").json()
    assert {k: after[k] for k in ("id", "seed", "keyed", "created", "nbytes")} == {
        k: before[k] for k in ("id", "seed", "keyed", "created", "nbytes")
    }
    assert [f["name"] for f in service.http.get("/v1/filters").json()["filters"]] == ["seen"]


def test_a_killed_service_comes_back_with_what_it_answered(start):
    service = start("--durability", "always")
    service.create("seen")
    for round_ in range(20):
        assert service.http.post("/v1/filters/seen/add", json={"key": f"one-{round_}"}).json() == {
            "new": True
        }
    service.kill()
    service.start()
    assert all(found(service, "seen", [f"one-{i}" for i in range(20)]))


def test_only_one_process_has_a_folder(start):
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
