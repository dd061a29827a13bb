"""Guarantee: spiders that share a filter fetch a page once, and continue while the Redis server is down."""

from __future__ import annotations

import json
import logging
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("scrapy", reason="scrapy is not installed: pip install -r requirements/recipes.txt")

from engines.servers import Server, needs_redis
from scrapy import Request
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from fullbloom.engines.redis import RedisBloomFilter
from fullbloom.errors import EngineUnavailable, IncompatibleFilters, ParameterError
from fullbloom.recipes.fleet import Fleet
from fullbloom.recipes.scrapy import DupeFilter, Options

pytestmark = needs_redis


def spider(server, **settings):
    base = {"FULLBLOOM_REDIS_URL": f"redis://127.0.0.1:{server.port}/0", "FULLBLOOM_CAPACITY": 10_000}
    made = DupeFilter.from_crawler(get_crawler(settings_dict=base | settings))
    made.open()
    return made


def requests(numbers):
    return [Request(f"http://example.org/{n}") for n in numbers]


def test_each_of_many_requests_is_new_to_one_spider(server):
    name = uuid.uuid4().hex
    spiders = [spider(server, FULLBLOOM_REDIS_NAME=name) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(lambda one: [one.request_seen(r) for r in requests(range(300))], spiders))
    assert [answers.count(False) for answers in zip(*seen, strict=True)] == [1] * 300
    for one in spiders:
        one.close("finished")
    stats = [one._stats.get_stats() for one in spiders]
    assert all(abs(values["dupefilter/fullbloom/requests"] - 300) < 20 for values in stats)
    assert all(0 <= values["dupefilter/fullbloom/expected_lost"] < 1e-3 for values in stats)
    # It stays for the next run.
    assert all(map(spider(server, FULLBLOOM_REDIS_NAME=name).request_seen, requests(range(300))))


def test_the_name_is_the_spiders_and_the_seed_is_drawn(server):
    one = spider(server)
    with server.client() as client:
        manifest = json.loads(client.get("scrapy:default:fullbloom"))
    assert one.options.redis_name == "scrapy:default"
    assert manifest["seed"] != 0


def test_spiders_continue_while_the_server_is_down(tmp_path, caplog):
    server = Server(tmp_path)
    one = spider(server)
    assert not one.request_seen(*requests([1]))
    server.kill()
    with caplog.at_level(logging.WARNING):
        # A key that only the server held may come again once; the fallback finds duplicates of new keys.
        assert [one.request_seen(r) for r in requests([1, 1, 2, 2])] == [False, True, False, True]
        one.close("finished")
    assert caplog.text.count("this process continues with a filter in memory") == 1
    assert one._stats.get_value("dupefilter/fullbloom/requests") == 0


def test_a_server_that_cannot_be_reached_keeps_the_spider_from_opening():
    with pytest.raises(EngineUnavailable) as failed:
        spider(type("Nobody", (), {"port": 1}))
    assert "scrapy:default" in str(failed.value)


def test_unlike_parameters_are_refused(server):
    name = uuid.uuid4().hex
    spider(server, FULLBLOOM_REDIS_NAME=name)
    with pytest.raises(IncompatibleFilters, match="capacity"):
        spider(server, FULLBLOOM_REDIS_NAME=name, FULLBLOOM_CAPACITY=20_000)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FULLBLOOM_REDIS_URL": "redis://h"}, "FULLBLOOM_CAPACITY must say"),
        (
            {"FULLBLOOM_REDIS_URL": "http://:hushhush@h", "FULLBLOOM_CAPACITY": 9},
            "FULLBLOOM_REDIS_URL must be",
        ),
    ],
)
def test_settings_of_redis_are_checked(settings, said):
    with pytest.raises(ParameterError, match=said) as failed:
        Options.read(Settings(settings)).create_filter()
    assert "hushhush" not in str(failed.value)


def test_many_that_open_at_once_have_one_filter(server):
    name, url = uuid.uuid4().hex, f"redis://127.0.0.1:{server.port}"
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: Fleet.open(url, name, 1000, 1e-3), range(8)))
    assert len({one.shared.manifest.id for one in opened}) == 1
    assert sum(one.add("a") for one in opened) == 1
    with server.client() as client:
        assert "a" in RedisBloomFilter(client, name)
