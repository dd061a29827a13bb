"""A server that speaks RESP and keeps no strings, such as this package's service, is refused in one line."""

from __future__ import annotations

import pytest
import redis
from service.conftest import Running

from bloomery.engines.redis import RedisBloomFilter
from bloomery.errors import EngineError

pytest.importorskip("bloomery_server", reason="needs the wheel bloomery-server")


@pytest.mark.parametrize("backend", [None, "auto", "module"])
def test_the_service_has_no_place_for_a_manifest(tmp_path, backend):
    running = Running(tmp_path)
    try:
        host, _, port = running.resp.rpartition(":")
        with redis.Redis(host=host, port=int(port)) as client:
            with pytest.raises(EngineError, match="does not know a command"):
                RedisBloomFilter(client, "f", 1000, backend=backend)
            assert client.dbsize() == 0
    finally:
        running.kill()
