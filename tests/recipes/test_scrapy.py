"""`DUPEFILTER_CLASS` drops the requests that Scrapy's own drops, alone and shared in Redis."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from engines.servers import Server, needs_redis

import fullbloom
from fullbloom.engines.redis import RedisBloomFilter
from fullbloom.errors import EngineUnavailable, FormatError, IncompatibleFilters, ParameterError
from fullbloom.recipes.fleet import Fleet

scrapy = pytest.importorskip(
    "scrapy", reason="scrapy is not installed: pip install -r requirements/recipes.txt"
)

from scrapy.settings import Settings  # noqa: E402 - after the look for it
from scrapy.utils.test import get_crawler  # noqa: E402

from fullbloom.recipes.scrapy import DupeFilter, Options  # noqa: E402

OURS, THEIRS = "fullbloom.recipes.scrapy.DupeFilter", "scrapy.dupefilters.RFPDupeFilter"
PAGES = 60


@pytest.fixture
def site():
    """A site of PAGES pages with four links each, and how often each page was fetched."""
    fetched = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            number = int(self.path.strip("/"))
            fetched[number] += 1
            links = [(number * factor + factor) % PAGES for factor in (2, 3, 5, 7)] + [(number + 1) % PAGES]
            # The same page under another spelling: fingerprints are of canonical addresses.
            body = "".join(f'<a href="/{n}#part">{n}</a>' for n in links).encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/0", fetched
    server.shutdown()
    thread.join()
    server.server_close()


def crawl(url, **settings):
    program = Path(__file__).with_name("spider.py")
    words = [sys.executable, str(program), url, json.dumps(settings)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def dupe_filter(**settings):
    instance = DupeFilter.from_crawler(get_crawler(settings_dict={"DUPEFILTER_CLASS": OURS, **settings}))
    instance.open()
    return instance


def requests(numbers):
    return [scrapy.Request(f"http://example.org/{n}") for n in numbers]


def test_a_crawl_fetches_the_pages_of_scrapys_own_filter(site):
    url, fetched = site
    filtered = {}
    for kind in (THEIRS, OURS):
        fetched.clear()
        stats, log = crawl(url, DUPEFILTER_CLASS=kind)
        assert fetched == Counter(dict.fromkeys(range(PAGES), 1))
        filtered[kind] = stats["dupefilter/filtered"]
    assert filtered[OURS] == filtered[THEIRS] > PAGES
    assert stats["dupefilter/fullbloom/requests"] == PAGES
    assert "never fetched (FULLBLOOM_FPR)" in log
    assert 0 < stats["dupefilter/fullbloom/expected_lost"] < 1e-4


def test_a_job_resumes_after_a_stop(site, tmp_path):
    url, fetched = site
    job = {"DUPEFILTER_CLASS": OURS, "JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 1}
    crawl(url, **job, CLOSESPIDER_PAGECOUNT=20)
    first = sum(fetched.values())
    assert 20 <= first < PAGES
    assert (tmp_path / "job" / "requests.bloom").is_file()
    crawl(url, **job)
    assert set(fetched) == set(range(PAGES))
    assert max(fetched.values()) == 1


def test_requests_saved_by_a_killed_run_are_known(tmp_path):
    job = str(tmp_path)
    killed = dupe_filter(JOBDIR=job, FULLBLOOM_SAVE_EVERY=1e-9)
    assert not any(map(killed.request_seen, requests(range(100))))
    again = dupe_filter(JOBDIR=job)
    known = list(map(again.request_seen, requests(range(100))))
    # The save of the last request came with it, or, taking a twentieth of the time at most, a little earlier.
    assert known[0]
    assert known == sorted(known, reverse=True)


@pytest.mark.parametrize("capacity", [None, 2000])
def test_the_expected_loss_matches_the_loss(capacity):
    """At a rate that can be measured: new requests that are dropped, against the statistic."""
    settings = {"FULLBLOOM_FPR": 0.05, "FULLBLOOM_SEED": 7}
    if capacity:
        settings["FULLBLOOM_CAPACITY"] = capacity
    instance = dupe_filter(**settings)
    lost = sum(map(instance.request_seen, requests(range(2000))))
    instance.close("finished")
    expected = instance._stats.get_value("dupefilter/fullbloom/expected_lost")
    # Poisson, to five standard deviations and one.
    assert abs(lost - expected) <= 5 * expected**0.5 + 1
    assert expected <= 0.05 * 2000 / 0.95


def test_an_expected_loss_of_one_page_is_logged_as_a_warning(caplog):
    with caplog.at_level(logging.INFO, "fullbloom.recipes.scrapy"):
        dupe_filter(FULLBLOOM_CAPACITY=1000)
        assert [record.levelname for record in caplog.records] == ["INFO"]
        assert "1e-06 of new requests, at 1,000 of them, are taken for seen" in caplog.text
        caplog.clear()
        many = dupe_filter(FULLBLOOM_CAPACITY=1000, FULLBLOOM_FPR=0.5)
        for request in requests(range(1000)):
            many.request_seen(request)
        many.close("finished")
        assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_duplicates_are_logged_and_counted_as_scrapy_does(caplog):
    instance = dupe_filter()
    crawler = get_crawler()
    spider = type("One", (scrapy.Spider,), {"name": "one"})()
    spider.crawler = crawler
    (request,) = requests([1])
    assert [instance.request_seen(request) for _ in range(3)] == [False, True, True]
    with caplog.at_level(logging.DEBUG):
        instance.log(request, spider)
        instance.log(request, spider)
    assert crawler.stats.get_value("dupefilter/filtered") == 2
    assert caplog.text.count("no more duplicates will be shown") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FULLBLOOM_FPR", 0),
        ("FULLBLOOM_FPR", "1.5"),
        ("FULLBLOOM_FPR", "little"),
        ("FULLBLOOM_FPR", True),
        ("FULLBLOOM_FPR", float("nan")),
        ("FULLBLOOM_CAPACITY", 0),
        ("FULLBLOOM_CAPACITY", "many"),
        ("FULLBLOOM_CAPACITY", "1.5e0"),
        ("FULLBLOOM_CAPACITY", 1.5),
        ("FULLBLOOM_SAVE_EVERY", -1),
        ("FULLBLOOM_SEED", [1]),
    ],
)
def test_settings_out_of_range_are_named(name, value):
    with pytest.raises(ParameterError, match=name):
        Options.read(Settings({name: value}))


def test_settings_may_be_strings():
    read = Options.read(
        Settings({"FULLBLOOM_CAPACITY": "1e6", "FULLBLOOM_FPR": "1e-4", "FULLBLOOM_SEED": "3"})
    )
    assert read == Options(1e-4, 1_000_000, 300.0, 3)


def test_an_invalid_file_keeps_the_spider_from_opening(tmp_path):
    (tmp_path / "requests.bloom").write_bytes(b"nonsense")
    with pytest.raises(FormatError):
        dupe_filter(JOBDIR=str(tmp_path))
    assert (tmp_path / "requests.bloom").read_bytes() == b"nonsense"


def test_a_job_keeps_its_parameters_and_logs_that(tmp_path, caplog):
    job = {"JOBDIR": str(tmp_path), "FULLBLOOM_CAPACITY": 1000}
    dupe_filter(**job).close("finished")
    dupe_filter(**{**job, "FULLBLOOM_CAPACITY": 2000}).close("finished")
    assert "keeps its size of 1000 requests at 1e-06" in caplog.text
    assert fullbloom.open(tmp_path / "requests.bloom").capacity == 1000


def test_a_job_of_scrapys_own_filter_is_logged(tmp_path, caplog):
    (tmp_path / "requests.seen").write_bytes(b"")
    dupe_filter(JOBDIR=str(tmp_path))
    assert "requests.seen of Scrapy's own filter, which is not read" in caplog.text


def spider(server, **settings):
    base = {"FULLBLOOM_REDIS_URL": f"redis://127.0.0.1:{server.port}/0", "FULLBLOOM_CAPACITY": 10_000}
    instance = DupeFilter.from_crawler(get_crawler(settings_dict=base | settings))
    instance.open()
    return instance


@needs_redis
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


@needs_redis
def test_the_filter_is_named_after_the_spider_with_a_random_seed(server):
    one = spider(server)
    with server.client() as client:
        manifest = json.loads(client.get("scrapy:default:fullbloom"))
    assert one.options.redis_name == "scrapy:default"
    assert manifest["seed"] != 0


@needs_redis
def test_spiders_continue_while_the_redis_server_is_down(tmp_path, caplog):
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


@needs_redis
def test_a_server_that_cannot_be_reached_keeps_the_spider_from_opening():
    with pytest.raises(EngineUnavailable) as failed:
        spider(type("Nobody", (), {"port": 1}))
    assert "scrapy:default" in str(failed.value)


@needs_redis
def test_different_parameters_are_refused(server):
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
@needs_redis
def test_settings_of_redis_are_checked(settings, said):
    with pytest.raises(ParameterError, match=said) as failed:
        Options.read(Settings(settings)).create_filter()
    assert "hushhush" not in str(failed.value)


@needs_redis
def test_spiders_that_start_at_once_share_one_filter(server):
    name, url = uuid.uuid4().hex, f"redis://127.0.0.1:{server.port}"
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: Fleet.open(url, name, 1000, 1e-3), range(8)))
    assert len({one.shared.manifest.id for one in opened}) == 1
    assert sum(one.add("a") for one in opened) == 1
    with server.client() as client:
        assert "a" in RedisBloomFilter(client, name)
