"""A lookup of keys of a type that was never added says so, in every answer and on every route."""

from __future__ import annotations

import asyncio
import json
import warnings

import httpx
import pyarrow as pa
import pytest
import redis
from support import eventually

import fullbloom

HEADER = "x-fullbloom-key-domain-warning"
MEMBER = "key_domain_warning"
NUMBERS = list(range(100))
TEXTS = [str(number) for number in NUMBERS]
TEXT, NDJSON, HASHES = "text/plain", "application/x-ndjson", "application/x-fullbloom-hashes"
ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"


def stream(column: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([column], names=["key"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def as_body(keys: list, kind: str) -> bytes:
    """The keys in a body of a media type; lines make texts of them."""
    if kind == JSON:
        return json.dumps({"keys": keys}).encode()
    if kind == NDJSON:
        return "".join(f"{json.dumps(key)}\n" for key in keys).encode()
    if kind == ARROW:
        return stream(pa.array(keys))
    return "".join(f"{key}\n" for key in keys).encode()


def ask(service, name: str, action: str, keys: list, kind: str = JSON, accept: str = JSON) -> httpx.Response:
    headers = {"content-type": kind, "accept": accept}
    url = f"/v1/filters/{name}/{action}"
    answer = service.http.post(url, content=as_body(keys, kind), headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def samples(service, name: str) -> int:
    return len(service.http.get(f"/v1/filters/{name}/history").json()["samples"])


def domains(service, name: str) -> str:
    return service.http.get(f"/v1/filters/{name}").json()["details"]["key_domains"]


def put(service, name: str, instance) -> str:
    answer = service.http.put(f"/v1/filters/{name}/dump", content=instance.to_bytes())
    assert answer.status_code == 201, answer.text
    return name


@pytest.mark.parametrize("kind", [JSON, NDJSON, TEXT, ARROW])
@pytest.mark.parametrize("accept", [JSON, NDJSON, ARROW, "application/octet-stream"])
def test_a_lookup_of_texts_in_a_filter_of_integers_warns(service, kind, accept):
    instance = fullbloom.BloomFilter(1000, 0.0001)
    instance.update(NUMBERS)
    name = put(service, f"int:{kind}:{accept}".replace("/", "-"), instance)
    for _ in range(2):  # the service knows no client: each answer says it
        answer = ask(service, name, "check", TEXTS, kind, accept)
        warning = answer.headers[HEADER]
        assert "type text" in warning
        assert "keys of type integer" in warning
        assert "send keys of the type that was added" in warning
        assert accept != JSON or answer.json()[MEMBER] == warning
    if kind != TEXT:
        answer = ask(service, name, "check", NUMBERS, kind, accept)
        assert HEADER not in answer.headers
        assert answer.headers["x-fullbloom-yes"] == str(len(NUMBERS))
        assert accept != JSON or MEMBER not in answer.json()


def test_a_single_key_warns_as_a_batch_does(service):
    service.create("one")
    ask(service, "one", "add", ["ada"], TEXT)
    answer = service.http.post("/v1/filters/one/check", json={"key": 5})
    assert answer.json() == {"found": False, MEMBER: answer.headers[HEADER]}
    answer = service.http.post("/v1/filters/one/check", json={"key": "ada"})
    assert (answer.json(), HEADER in answer.headers) == ({"found": True}, False)


@pytest.mark.parametrize("action", ["check", "count", "remove"])
def test_every_lookup_of_a_counting_filter_warns(service, action):
    name = f"counts:{action}"
    service.create(name, kind="counting")
    ask(service, name, "add", TEXTS)
    answer = ask(service, name, action, [1.5, *NUMBERS])
    assert "type integer, float were looked up" in answer.headers[HEADER]
    assert answer.json()[MEMBER] == answer.headers[HEADER]
    assert HEADER not in ask(service, name, action, TEXTS).headers


@pytest.mark.parametrize("kind", ["spatial", "bloomier"])
def test_values_of_another_type_of_keys_warn(service, kind):
    name = f"values:{kind}"
    if kind == "bloomier":
        put(service, name, fullbloom.BloomierMap.build({1: 36, 2: 41}))
    else:
        service.create(name, kind=kind, options={"areas": 3})
        service.http.post(f"/v1/filters/{name}/add", json={"keys": [1, 2], "values": [1, 2]})
    answer = ask(service, name, "values", ["1", "2"])
    assert "keys of type integer" in answer.headers[HEADER]
    assert answer.json()[MEMBER] == answer.headers[HEADER]
    answer = ask(service, name, "values", [1, 2])
    assert HEADER not in answer.headers
    one = service.http.post(f"/v1/filters/{name}/values", json={"key": "1"})
    assert one.json()[MEMBER] == one.headers[HEADER]


@pytest.mark.long
def test_key_types_are_recorded_on_every_route_and_survive_a_crash(start):
    service = start("--durability", "always")
    ways = {
        "text": (TEXT, ["a"], "text"),
        "json": (JSON, ["a", 1, True], "text, integer"),
        "float": (JSON, [1.5], "float"),
        "tuple": (NDJSON, [["a", 1]], "tuple"),
        "arrow": (ARROW, [1, 2], "integer"),
        "arrow-text": (ARROW, ["a"], "text"),
        "large": (JSON, [2**70], "integer"),
    }
    for name, (kind, keys, expected) in ways.items():
        service.create(name)
        ask(service, name, "add", keys, kind)
        assert domains(service, name) == expected
    service.create("pairs", kind="spatial", options={"areas": 3})
    service.http.post("/v1/filters/pairs/add", json={"keys": [1, 2], "values": [1, 2]})
    service.create("hashed")
    hashes = {"content-type": HASHES}
    service.http.post("/v1/filters/hashed/add", content=bytes(8), headers=hashes)
    service.create("resp")
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port)) as client:
        client.execute_command("BLOOM.ADD", "resp", "a")
    expected = {name: way[2] for name, way in ways.items()}
    expected |= {"pairs": "integer", "hashed": "hashed", "resp": "text"}
    assert {name: domains(service, name) for name in expected} == expected
    service.kill()
    service.start()
    assert {name: domains(service, name) for name in expected} == expected
    assert ask(service, "tuple", "check", [["a", 1]]).json()["found"] == [True]
    assert ask(service, "pairs", "values", [1, 2]).json()["values"] == [1, 2]
    service.restart()
    assert {name: domains(service, name) for name in expected} == expected
    assert "type integer" in ask(service, "resp", "check", [1]).headers[HEADER]


@pytest.mark.long
@pytest.mark.parametrize("command", ["BF.EXISTS", "BF.MEXISTS", "BLOOM.CHECK", "BLOOM.PCHECK"])
def test_a_lookup_of_texts_over_resp_is_logged_once_for_each_filter(start, command):
    service = start(FULLBLOOM_HISTORY__EVERY="0.2", FULLBLOOM_LOG_LEVEL="warning")
    for name, keys in {"numbers": NUMBERS, "texts": TEXTS, "both": [1, "1"], "empty": []}.items():
        service.create(name)
        ask(service, name, "add", keys)
    host, _, port = service.resp.rpartition(":")
    key = b"\x01\0\0\x005" if command == "BLOOM.PCHECK" else b"5"

    def warned():
        lines = [json.loads(line) for line in service.log.read_text().splitlines() if line.startswith("{")]
        return [line["filter"] for line in lines if "speak RESP" in line["message"]]

    with redis.Redis(host, int(port)) as client:
        for round_ in range(3):
            for name in ("numbers", "texts", "both", "empty"):
                client.execute_command(command, name, key)
            eventually(lambda more=round_: samples(service, "numbers") > more)
    assert eventually(warned) == ["numbers"]
    state = service.http.get("/v1/filters/numbers").json()
    assert "keys of type integer" in state[MEMBER]
    assert MEMBER not in service.http.get("/v1/filters/both").json()


def test_no_warning_is_given_if_the_types_are_unknown(service):
    service.create("empty")
    service.create("opaque")
    service.http.post("/v1/filters/opaque/add", content=bytes(8), headers={"content-type": HASHES})
    for name in ("empty", "opaque"):
        for keys in (TEXTS, NUMBERS, [1.5]):
            assert HEADER not in ask(service, name, "check", keys).headers
    ask(service, "empty", "add", TEXTS)
    answer = service.http.post("/v1/filters/empty/check", content=bytes(8), headers={"content-type": HASHES})
    assert HEADER not in answer.headers
    assert HEADER not in ask(service, "empty", "check", []).headers
    assert HEADER in ask(service, "empty", "check", NUMBERS).headers
    service.http.post("/v1/filters/empty/clear")
    assert HEADER not in ask(service, "empty", "check", NUMBERS).headers


def test_the_client_gives_the_warning_of_the_library(service):
    service.create("client")
    with fullbloom.Client(service.url) as client:
        seen = client.filter("client")
        seen.update(TEXTS)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert seen.contains_many(TEXTS) == [True] * len(TEXTS)
        for look in (lambda: seen.contains_many(NUMBERS), lambda: 5 in seen):
            with pytest.warns(fullbloom.KeyDomainWarning, match="type integer") as caught:
                look()
            assert [warning.filename for warning in caught] == [__file__]

    async def work():
        async with fullbloom.AsyncClient(service.url) as client:
            with pytest.warns(fullbloom.KeyDomainWarning):
                await client.filter("client").contains(5)

    asyncio.run(work())


def test_openapi_describes_the_warning_header_and_member(service):
    described = service.http.get("/openapi.json").json()["paths"]
    for action in ("check", "count", "remove", "values"):
        answer = described[f"/v1/filters/{{name}}/{action}"]["post"]["responses"]["200"]
        assert HEADER in {name.lower() for name in answer["headers"]}
        assert MEMBER in answer["content"]["application/json"]["schema"]["properties"]
