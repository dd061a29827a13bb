"""What tests of filters in Redis share."""

from __future__ import annotations

import time


def url_of(server):
    return f"redis://127.0.0.1:{server.port}/0"


def make(service, name, **settings):
    return service.create(name, backend="redis", **settings)


def ask(service, name, action, **body):
    return service.http.post(f"/v1/filters/{name}/{action}", json=body)


def eventually(check, seconds=15):
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.05)
    return found
