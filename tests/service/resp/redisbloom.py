"""The real RedisBloom, in a redis-server of its own."""

from __future__ import annotations

import pytest
from engines import servers


@pytest.fixture(scope="module")
def redisbloom(tmp_path_factory):
    """One for the tests of a file; they use names of their own."""
    module = servers.find_redisbloom()
    if servers.REDIS is None or module is None:
        pytest.skip(servers.NEEDS_REDISBLOOM)
    running = servers.start_with_module(tmp_path_factory.mktemp("redis"), module)
    yield running
    running.kill()
