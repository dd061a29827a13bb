"""Servers that have filters of their own, and fixtures that walk them.

The package's own service is one of them, with keyed filters and, plain, with RedisBloom's.
RedisBloom's module is that of a wheel; FULLBLOOM_VALKEY and FULLBLOOM_VALKEY_BLOOM name a valkey-server and
its module.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import redis
from engines import servers
from engines.servers import NEEDS_REDISBLOOM, find_redisbloom, start_with_module
from service.conftest import ServiceRunner

SERVICES = {"service": (), "plain service": ("--plain",)}
PROGRAMS = {
    "redisbloom": (servers.REDIS, find_redisbloom(), NEEDS_REDISBLOOM),
    "valkey-bloom": (
        os.environ.get("FULLBLOOM_VALKEY"),
        os.environ.get("FULLBLOOM_VALKEY_BLOOM"),
        "needs FULLBLOOM_VALKEY and FULLBLOOM_VALKEY_BLOOM",
    ),
}


class Service(ServiceRunner):
    """`fullbloom serve`, as the tests have servers."""

    def __init__(self, folder, *options, **environment):
        super().__init__(folder, *options, FULLBLOOM_RESP_FLUSH="true", **environment)

    @property
    def port(self):
        return int(self.resp.rpartition(":")[2])

    def client(self, **options):
        return redis.Redis(port=self.port, **{"retry": servers.quick_retry(), **options})


@pytest.fixture(scope="module", params=[*PROGRAMS, *SERVICES])
def running(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("module")
    if request.param in SERVICES:
        pytest.importorskip("fullbloom_server", reason="needs the wheel fullbloom-server")
        started = Service(folder, *SERVICES[request.param])
        yield started
        started.kill()
        return
    program, module, needs = PROGRAMS[request.param]
    if not program or not module:
        pytest.skip(needs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "REDIS", program)
        started = start_with_module(folder, Path(module))
        yield started
        started.kill()


@pytest.fixture(params=[2, 3])
def client(request, running):
    with running.client(protocol=request.param) as instance:
        instance.flushall()
        yield instance
