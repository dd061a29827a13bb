"""Servers of a file of tests, and of one test."""

from __future__ import annotations

import uuid

import pytest
from engines.clusters import Cluster

from fullbloom.engines.redis.protocol.requests import SendBatch
from fullbloom.engines.redis.storage import strings


@pytest.fixture
def client(server):
    """A client of it."""
    with server.client() as instance:
        yield instance


@pytest.fixture
def name():
    """The name of a filter that no other test uses."""
    return f"f{uuid.uuid4().hex}"


@pytest.fixture(params=["together", "by key"])
def way(request, monkeypatch):
    """Keys that are added go together where that pays, or each by itself: no caller sees which."""

    def by_key(batch, shards):
        batch.go_by_key()
        return SendBatch(batch, shards)

    if request.param == "by key":
        monkeypatch.setattr(strings, "SendBatch", by_key)
    return request.param


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster that the tests of a file share."""
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.stop()
