"""The data plane on its own, as a process."""

from __future__ import annotations

import pytest

pytest.importorskip("redis", reason="redis-py is not installed")

from service.resp.data_plane import Service


@pytest.fixture
def start():
    """A function that starts a service."""
    running: list[Service] = []

    def begin(*places: object, **settings: object) -> Service:
        running.append(Service(*places, **settings))
        return running[-1]

    yield begin
    for one in running:
        one.kill()


@pytest.fixture(scope="module")
def service():
    """One service for the tests of a file; they use names of their own."""
    one = Service()
    yield one
    one.kill()
