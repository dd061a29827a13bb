"""The real service, as a process of its own."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import pytest
from service.forks import spawn, wait_for_file
from service.slow_disk import SlowDisk


class ServiceRunner:
    """A service on ports of its own choice; `stop` ends it well, `kill` does not."""

    def __init__(self, folder: Path, *options: str, **environment: str):
        self.folder, self._options, self._environment = folder, options, environment
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self):
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        self.log = self.folder / "log.txt"
        words = ["serve", "--data", self.folder / "data", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]
        words += ["--ready-file", ready, *self._options]
        with self.log.open("ab") as log:
            self.process = spawn(list(map(str, words)), log, self._environment)
        if not wait_for_file(ready, self.process):
            self.kill()
            raise RuntimeError(self.log.read_text())
        said = json.loads(ready.read_text())
        self.url, self.resp, self.node = said["http"], said["resp"], said["node"]
        self.http = httpx.Client(base_url=self.url, timeout=60, verify=False)
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.http.close()
        self.process.send_signal(number)
        return self.process.wait(60)

    def kill(self):
        self.process.kill()
        self.process.wait(60)

    def restart(self):
        assert self.stop() == 0, self.log.read_text()
        return self.start()

    def create(self, name: str, **settings):
        answer = self.http.post("/v1/filters", json={"name": name, "capacity": 10_000, **settings})
        assert answer.status_code == 201, answer.text
        return answer.json()


@pytest.fixture
def start(tmp_path):
    """A function that starts a service, in a folder of its own unless one is given."""
    running: list[ServiceRunner] = []

    def begin(*options, folder: str = "one", **environment):
        running.append(ServiceRunner(tmp_path / folder, *options, **environment))
        return running[-1]

    yield begin
    for one in running:
        one.kill()


@pytest.fixture(scope="module")
def new_service(tmp_path_factory):
    """A function that starts a service for the tests of a file."""
    running = []

    def begin(*options, **environment):
        running.append(ServiceRunner(tmp_path_factory.mktemp("service"), *options, **environment))
        return running[-1]

    yield begin
    for one in running:
        one.kill()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """One service for the tests of a file; they use names of their own."""
    one = ServiceRunner(tmp_path_factory.mktemp("service"))
    yield one
    one.kill()


@pytest.fixture(scope="session")
def slow_disk(tmp_path_factory):
    """A disk whose syncs can be paused."""
    return SlowDisk(tmp_path_factory.mktemp("slow"))
