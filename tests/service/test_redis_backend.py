"""Guarantee: every process of one registry answers for a filter of backend redis, and none wrongly."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from engines.servers import needs_redis
from service.redis_backend import ask, make, url_of
from support import eventually

import fullbloom
from fullbloom.engines.redis import RedisBloomFilter

pytestmark = needs_redis


@pytest.fixture(scope="module")
def two(new_service, server, tmp_path_factory):
    """Two services with data folders of their own, on one registry and one Redis server."""
    registry = f"sqlite:///{tmp_path_factory.mktemp('registry') / 'r.db'}"
    options = ("--registry", registry, "--redis", url_of(server))
    return [new_service(*options, FULLBLOOM_HISTORY__EVERY="0.3") for _ in range(2)]


@pytest.fixture
def name(request):
    return request.node.name.replace("[", ":").replace("]", "").replace("_", "-")[-100:]


def test_an_add_on_one_process_is_found_by_the_other_at_once(two, name):
    first, second = two
    instance = make(first, name, fpr=1e-6)
    assert (instance["backend"], instance["capacity"], instance["target_fpr"], instance["version"]) == (
        "redis",
        10_000,
        1e-6,
        None,
    )
    assert ask(first, name, "add", key="ada").json() == {"new": True}
    assert ask(second, name, "add", key="ada").json() == {"new": False}
    assert ask(second, name, "check", keys=["ada", "alan", 7]).json()["found"] == [True, False, False]
    assert ask(second, name, "add", keys=[7, 1.5, ["a", 1]]).json() == {
        "new": [True] * 3,
        "keys": 3,
        "yes": 3,
    }
    text = {"content-type": "text/plain", "accept": "application/x-ndjson"}
    lines = first.http.post(f"/v1/filters/{name}/check", content=b"alan\nada\r\n", headers=text)
    assert lines.text == "false\ntrue\n"
    assert first.http.get("/v1/filters", params={"prefix": name}).json()["filters"][0]["name"] == name
    eventually(lambda: second.http.get("/v1/filters", params={"prefix": name}).json()["filters"])


def test_responses_report_a_filter_over_capacity(two, name):
    """As those about a filter in memory do, in the body and in a header, on each process that adds."""
    first, second = two
    for backend in ("redis", "memory"):
        # The estimate of 2,000 keys is certainly above the capacity for one seed in a thousand.
        one, settings = f"{name}:{backend}", {"capacity": 2000, "fpr": 0.01, "keyed": False, "seed": 5}
        (make if backend == "redis" else type(first).create)(*((first, one)), **settings)
        for start, over in ((0, False), (1000, False), (2000, True), (3000, True)):
            keys = [f"k{number}" for number in range(start, start + 1000)]
            answer = ask(first, one, "add", keys=keys)
            assert answer.json().get("over_capacity", False) is over, (backend, start)
            assert answer.headers.get("x-fullbloom-over-capacity") == ("true" if over else None)
            assert ask(first, one, "check", key="k1").json().get("over_capacity", False) is over
    assert ask(second, f"{name}:redis", "add", keys=list(range(100))).json()["over_capacity"]
    metric = f'fullbloom_filter_over_capacity{{filter="{name}:redis"}} 1.0'
    assert metric in first.http.get("/metrics").text
    eventually(lambda: f'"filter": "{name}:redis"' in first.log.read_text() + second.log.read_text())
    assert "Warning" not in first.log.read_text()
    first.http.post(f"/v1/filters/{name}:redis/clear").raise_for_status()
    assert "over_capacity" not in ask(first, f"{name}:redis", "add", key="k1").json()


def test_responses_of_every_form_equal_those_of_a_filter_in_memory(two, name):
    """As many texts as make several bytes of bits: packed, in JSON, in lines, as ready hashes."""
    first, second = two
    make(first, name, keyed=False, seed=5, fpr=1e-9)
    first.create(f"{name}:memory", keyed=False, seed=5, fpr=1e-9)
    texts = [f"text {number}" for number in range(45)]
    asked = [*texts[::2], "other"]
    body = "\n".join(asked).encode()
    hashes = b"".join(hash_.to_bytes(8, "little") for hash_ in fullbloom.hash_many(asked, seed=5))
    for service, where in ((first, name), (first, f"{name}:memory")):
        assert ask(service, where, "add", keys=texts).json()["yes"] == 45
    for kind, content in (("text/plain", body), ("application/x-fullbloom-hashes", hashes)):
        for accept in ("application/octet-stream", "application/json", "application/x-ndjson"):
            headers = {"content-type": kind, "accept": accept}
            answers = [
                service.http.post(f"/v1/filters/{where}/check", content=content, headers=headers)
                for service, where in ((second, name), (first, f"{name}:memory"))
            ]
            assert answers[0].content == answers[1].content
            assert answers[0].headers["x-fullbloom-yes"] == "23"
    empty = second.http.post(f"/v1/filters/{name}/check", content=b"", headers={"content-type": "text/plain"})
    assert empty.content == b""


def test_one_of_several_concurrent_adds_of_a_key_is_new(two, name):
    make(two[0], name)

    def add(number):
        return ask(two[number % 2], name, "add", keys=[f"k{n}" for n in range(50)]).json()["new"]

    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(add, range(16)))
    assert [answers.count(True) for answers in zip(*result, strict=True)] == [1] * 50


@pytest.mark.long
def test_one_process_continues_when_the_other_is_killed(start, server, tmp_path, name):
    options = ("--registry", f"sqlite:///{tmp_path / 'r.db'}", "--redis", url_of(server))
    first, second = start(*options, folder="one"), start(*options, folder="two")
    make(first, name)
    ask(first, name, "add", key="ada")
    first.kill()
    assert ask(second, name, "check", key="ada").json() == {"found": True}
    assert ask(second, name, "add", key="alan").json() == {"new": True}
    assert ask(first.start(), name, "check", keys=["ada", "alan"]).json()["yes"] == 2
    assert second.http.delete(f"/v1/filters/{name}").status_code == 204
    assert ask(first, name, "check", key="ada").status_code == 404
    with server.client() as client:
        assert not client.keys(f"*{name}*")


def test_a_recreated_filter_is_the_new_one_for_every_process(two, name):
    first, second = two
    for _ in range(3):
        make(first, name)
        assert ask(second, name, "add", key="ada").json() == {"new": True}
        assert ask(first, name, "check", key="ada").json() == {"found": True}
        second.http.delete(f"/v1/filters/{name}")
    make(second, name, capacity=500)
    # Keys that were hashed for the old one are not looked for in the new: 503, and clients ask again.
    with fullbloom.Client(first.url) as client:
        assert "ada" not in client.filter(name)
    assert first.http.get(f"/v1/filters/{name}").json()["capacity"] == 500


def test_a_name_belongs_to_one_filter(two, name):
    first, second = two
    make(first, name)
    for service in two:
        for settings in ({"backend": "redis"}, {}):
            taken = service.http.post("/v1/filters", json={"name": name, "capacity": 10, **settings})
            assert (taken.status_code, taken.json()["code"]) == (409, "exists")
    second.create(f"{name}:memory")
    for settings in ({"backend": "redis"}, {}):
        taken = first.http.post("/v1/filters", json={"name": f"{name}:memory", "capacity": 10, **settings})
        assert taken.json()["code"] == "elsewhere"
        taken = second.http.post("/v1/filters", json={"name": f"{name}:memory", "capacity": 10, **settings})
        assert taken.json()["code"] == "exists"

    def race(service):
        answer = service.http.post(
            "/v1/filters", json={"name": f"{name}:race", "capacity": 9, "backend": "redis"}
        )
        return answer.status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(race, two * 4)) == [201] + [409] * 7


def test_the_dump_opens_as_the_filter(two, server, name, tmp_path):
    first, second = two
    make(first, name)
    ask(first, name, "add", keys=list(range(100)))
    secret = bytes.fromhex(second.http.get(f"/v1/filters/{name}/secret").json()["secret"])
    data = second.http.get(f"/v1/filters/{name}/dump").content
    (tmp_path / "f").write_bytes(data)
    opened = fullbloom.open(tmp_path / "f", secret=secret)
    assert all(opened.contains_many(list(range(100))))
    # And who has the secret reads the filter on the server itself.
    place = first.http.get(f"/v1/filters/{name}").json()["place"]
    with server.client() as client:
        assert RedisBloomFilter(client, place, secret=secret).dump() == opened
    first.http.post(f"/v1/filters/{name}/clear")
    assert ask(second, name, "check", key=5).json() == {"found": False}
    put = second.http.put(f"/v1/filters/{name}/dump", params={"replace": True}, content=data)
    assert put.status_code == 201, put.text
    assert ask(first, name, "check", keys=list(range(100))).json()["yes"] == 100
    taken = second.http.put(f"/v1/filters/{name}/dump", content=data)
    assert taken.json()["code"] == "exists"


def test_filters_are_merged(two, name):
    first, second = two
    like = {"seed": 9, "keyed": False, "fpr": 1e-6}
    make(first, name, **like)
    make(second, f"{name}:two", **like)
    first.create(f"{name}:memory", options={"layout": "blocked"}, **like)
    ask(first, f"{name}:two", "add", key="two")
    ask(first, f"{name}:memory", "add", key="memory")
    for source in (f"{name}:two", f"{name}:memory"):
        merged = ask(first, name, "merge", source=source)
        assert merged.status_code == 200, merged.text
    assert ask(second, name, "check", keys=["two", "memory", "none"]).json()["found"] == [True, True, False]
    other = make(first, f"{name}:unlike", capacity=77)
    refused = ask(second, name, "merge", source=other["name"])
    assert (refused.status_code, refused.json()["code"]) == (422, "incompatible")
    refused = ask(first, f"{name}:memory", "merge", source=name)
    assert (refused.status_code, refused.json()["code"]) == (422, "unsupported")
    assert ask(first, name, "merge", source="nobody").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/remove", {"key": 1}),
        ("post", "/count", {"key": 1}),
        ("post", "/add", {"keys": [1], "values": [1]}),
        ("post", "/advance", {}),
        ("post", "/clone", {"name": "other"}),
        ("patch", "", {"name": "other"}),
    ],
)
def test_unsupported_operations_are_refused_by_name(two, method, path, body):
    name = "cannot"
    two[0].http.post("/v1/filters", json={"name": name, "capacity": 10, "backend": "redis"})
    for service in two:
        refused = service.http.request(method, f"/v1/filters/{name}{path}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "unsupported"), refused.text
        assert "in Redis" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"kind": "cuckoo"}, "unsupported"),
        ({"grow": True}, "unsupported"),
        ({"window": 5.0}, "unsupported"),
        ({"strict": True}, "unsupported"),
        ({"options": {"growth": 2}}, "unsupported"),
        ({"options": {"shards": "x"}}, "invalid"),
        ({"options": {"shards": 0}}, "invalid"),
        ({"options": {"layout": "none"}}, "invalid"),
        ({"capacity": None}, "invalid"),
        ({"capacity": 10**12}, "limit"),
    ],
)
def test_unsupported_parameters_are_refused_by_name(two, name, settings, code):
    asked = {"name": name, "capacity": 10, "backend": "redis", **settings}
    refused = two[0].http.post("/v1/filters", json=asked)
    assert refused.json().get("code") == code, refused.text
    assert two[1].http.get(f"/v1/filters/{name}").status_code == 404
    assert two[1].create(name)  # the name is free


def test_layout_and_shards_are_accepted(two, name):
    instance = make(two[0], name, options={"layout": "split", "shards": 3})
    assert (instance["details"]["layout"], instance["details"]["shards"]) == ("split", 3)
    assert ask(two[1], name, "add", keys=list(range(1000))).json()["yes"] > 950


def test_conditions_on_versions_are_refused_rather_than_ignored(two, name):
    make(two[0], name)
    result = two[0].http.get(f"/v1/filters/{name}", headers={"if-none-match": '"1-0"'})
    assert result.status_code == 200
    assert "etag" not in result.headers
    refused = two[0].http.post(f"/v1/filters/{name}/add", json={"key": 1}, headers={"if-match": "*"})
    assert refused.json()["code"] == "unsupported"


def test_secrets_and_keys_are_not_in_redis(two, name, server):
    make(two[0], name)
    ask(two[0], name, "add", key="a key nobody else has")
    secret = two[0].http.get(f"/v1/filters/{name}/secret").json()["secret"]
    assert len(secret) == 32
    with server.client() as client:
        held = b"".join(key + client.get(key) for key in client.scan_iter("*"))
    assert bytes.fromhex(secret) not in held
    assert secret.encode() not in held
    assert b"nobody" not in held


def test_resp_reports_the_backend(two, name):
    make(two[0], name)
    for service in two:
        host, _, port = service.resp.rpartition(":")

        def ask_resp(host=host, port=port):
            with redis.Redis(host, int(port)) as client:
                try:
                    client.execute_command("BF.EXISTS", name, "ada")
                except redis.ResponseError as error:
                    return str(error)
            return None

        assert "is stored on Redis; use the HTTP port" in eventually(ask_resp)


def test_resp_refuses_to_create_redis_filters_and_names_http(two, name):
    host, _, port = two[0].resp.rpartition(":")
    with redis.Redis(host, int(port)) as client:
        for words in (
            ("BLOOM.CREATE", name, "KIND", "bloom", "CAPACITY", 1000, "BACKEND", "redis"),
            ("BF.RESERVE", name, 0.01, 1000, "BACKEND", "redis"),
        ):
            with pytest.raises(redis.ResponseError, match="filters in memory; use the HTTP port"):
                client.execute_command(*words)
            assert not client.exists(name)
        words = ("BLOOM.CREATE", name, "KIND", "bloom", "CAPACITY", 1000, "BACKEND", "memory")
        assert client.execute_command(*words) in (b"OK", "OK")


def test_statistics_cover_all_processes(two, name):
    first, second = two
    make(first, name)
    ask(first, name, "add", keys=list(range(100)))
    ask(second, name, "add", keys=list(range(50, 150)))
    ask(second, name, "check", keys=list(range(140, 160)))

    def sum_counters():
        info = first.http.get(f"/v1/filters/{name}").json()
        result = tuple(info[word] for word in ("adds", "new", "hits", "misses"))
        return result if sum(result) == 370 else None

    adds, new, hits, misses = eventually(sum_counters)
    assert (adds, hits + misses) == (200, 20)
    assert 145 <= new <= 150
    assert 10 <= hits <= 12
    history = eventually(
        lambda: [
            sample
            for sample in second.http.get(f"/v1/filters/{name}/history").json()["samples"]
            if sample["adds"] == 200
        ]
    )
    assert abs(history[0]["estimated_items"] - 150) < 15
    assert (
        f'fullbloom_filter_keys_total{{filter="{name}",what="adds"}} 100.0' in first.http.get("/metrics").text
    )
    # One of the two writes samples, each of counters that it has not written: none is there twice.
    time.sleep(1)
    samples = second.http.get(f"/v1/filters/{name}/history").json()["samples"]
    counters = [tuple(one[word] for word in ("adds", "new", "hits", "misses")) for one in samples]
    assert len(set(counters)) == len(counters)


def test_an_expired_filter_is_dropped(two, name, server):
    instance = make(two[0], name, expire=1.0)
    assert instance["expires"] is not None
    eventually(lambda: two[1].http.get(f"/v1/filters/{name}").status_code == 404)
    # It is hidden first; then go its cells, and its name.
    with server.client() as client:
        eventually(lambda: not client.keys(f"*{name}*"))
    again = {"name": name, "capacity": 10_000, "backend": "redis", "expire": 60.0}
    eventually(lambda: two[0].http.post("/v1/filters", json=again).status_code == 201)
    for expire in (None, 30.0):
        changed = two[1].http.patch(f"/v1/filters/{name}", json={"expire": expire}).json()["expires"]
        assert (changed is None) == (expire is None)
        assert two[0].http.get(f"/v1/filters/{name}").json()["expires"] == changed


def test_limits_apply_to_redis_filters(start, server, name):
    service = start(
        "--redis", url_of(server), FULLBLOOM_LIMITS__BATCH_KEYS="10", FULLBLOOM_LIMITS__KEY_BYTES="20"
    )
    make(service, name)
    text = {"content-type": "text/plain"}
    for body in (b"x\n" * 11, b"y" * 21):
        refused = service.http.post(f"/v1/filters/{name}/add", content=body, headers=text)
        assert (refused.status_code, refused.json()["code"]) == (413, "limit")
    assert ask(service, name, "add", keys=list(range(11))).json()["code"] == "limit"
    assert ask(service, name, "add", keys=list(range(10))).json()["yes"] == 10


def test_the_client_uses_a_redis_filter_like_any_other(two, name):
    first, second = two
    with fullbloom.Client(first.url) as one, fullbloom.Client(second.url) as other:
        instance = one.create(name, 1000, backend="redis")
        assert instance.add("ada")
        assert "ada" in other.filter(name)
        assert other.filter(name).contains_many(["ada", "alan"]) == [True, False]
