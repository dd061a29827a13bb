"""Both ports share filters, keys and tokens."""

from __future__ import annotations

import itertools
import threading
import time

import httpx
import pytest
import redis
from support import eventually

import fullbloom


def resp(service, **named):
    host, _, port = service.resp.rpartition(":")
    return redis.Redis(host, int(port), **named)


def test_filters_of_resp_appear_in_the_registry(service):
    with resp(service) as client:
        assert client.execute_command("BF.ADD", "by:resp", "ada") == 1
        check = service.http.post("/v1/filters/by:resp/check", json={"keys": ["ada", "alan"]})
        assert check.json()["found"] == [True, False]
        # An address of the registry: statistics hang on it.
        eventually(lambda: service.http.get("/v1/service").json()["filters"] >= 1)
        client.execute_command("DEL", "by:resp")
    assert service.http.get("/v1/filters/by:resp").status_code == 404


def test_keys_of_http_are_keys_of_resp(service):
    service.create("by:http")
    service.http.post("/v1/filters/by:http/add", json={"keys": ["é", "b"]})
    with resp(service) as client:
        assert client.execute_command("BLOOM.CHECK", "by:http", "é", "b", "c") == [1, 1, 0]


@pytest.mark.long
def test_the_first_token_closes_both_ports_to_unauthenticated_clients(start):
    service = start()
    open_before = resp(service)
    assert open_before.ping()
    open_before.execute_command("BF.ADD", "seen", "ada")
    instance = service.http.post(
        "/v1/tokens", json={"name": "all", "scopes": ["read", "write", "admin"]}
    ).json()
    assert service.http.get("/v1/filters").status_code == 401
    with pytest.raises(redis.RedisError, match=r"NOAUTH|uthenticat"):
        open_before.execute_command("BF.EXISTS", "seen", "ada")
    with resp(service, password=instance["token"]) as client:
        assert client.execute_command("BF.EXISTS", "seen", "ada") == 1
    bearer = {"authorization": f"Bearer {instance['token']}"}
    reader = service.http.post(
        "/v1/tokens", json={"name": "r", "scopes": ["read"], "patterns": ["logs:*"]}, headers=bearer
    ).json()["token"]
    with (
        resp(service, password=reader) as client,
        pytest.raises(redis.ResponseError, match=r"NOPERM|no permissions"),
    ):
        client.execute_command("BF.ADD", "logs:1", "ada")
    assert service.http.delete("/v1/tokens/r", headers=bearer).status_code == 204
    with pytest.raises(redis.RedisError), resp(service, password=reader) as client:
        client.ping()


@pytest.mark.long
def test_windows_advance_and_filters_expire(service):
    service.create("window", window=2)
    service.create("gone", expire=1.5)
    begun = time.monotonic()
    service.http.post("/v1/filters/window/add", json={"key": "ada"})
    check = lambda: service.http.post("/v1/filters/window/check", json={"key": "ada"}).json()["found"]  # noqa: E731
    assert check() or time.monotonic() - begun > 2
    eventually(lambda: not check())
    eventually(lambda: service.http.get("/v1/filters/gone").status_code == 404)


def test_filters_restored_from_redisbloom_are_queried_over_http(start):
    service = start("--plain")
    with resp(service) as client:
        client.execute_command("BF.MADD", "moved", "ada", "é")
        client.execute_command("CF.INSERT", "counted", "ITEMS", "ada", "ada")
        found = service.http.post("/v1/filters/moved/check", json={"keys": ["ada", "é", "alan"]})
        assert found.json()["found"] == [True, True, False]
        lines = {"content-type": "text/plain", "accept": "application/json"}
        added = service.http.post("/v1/filters/moved/add", content="alan\nada\n", headers=lines)
        assert added.status_code == 200
        assert client.execute_command("BF.MEXISTS", "moved", "alan", "grace") == [1, 0]
        assert service.http.post("/v1/filters/counted/count", json={"keys": ["ada", "x"]}).json() == {
            "keys": 2,
            "counts": [2, 0],
        }
        assert service.http.post("/v1/filters/counted/remove", json={"keys": ["ada"]}).status_code == 200
        assert client.execute_command("CF.COUNT", "counted", "ada") == 1
        # A key of these is its bytes: numbers have none, and hashes are of another function.
        for keys in ([5], [["a", "b"]], [1.5, "a"]):
            refused = service.http.post("/v1/filters/moved/check", json={"keys": keys})
            assert refused.status_code == 400, refused.text
            assert "texts" in refused.text
        hashes = {"content-type": "application/vnd.fullbloom.hashes"}
        refused = service.http.post("/v1/filters/moved/check", content=bytes(16), headers=hashes)
        assert 400 <= refused.status_code < 500
        result = service.http.get("/v1/filters/moved").json()
        assert (result["kind"], result["num_added"], result["keyed"]) == ("redisbloom", 3, False)
        copy = service.http.get("/v1/filters/moved/dump").content
        assert fullbloom.loads(copy).contains_many(["ada", "é", "grace"]) == [True, True, False]
        assert service.http.put("/v1/filters/copied/dump", content=copy).status_code in {200, 201}
        for name in ("moved", "copied"):
            assert client.execute_command("BF.SCANDUMP", name, 1) == client.execute_command(
                "BF.SCANDUMP", "moved", 1
            )
    service.restart()
    with resp(service) as client:
        assert client.execute_command("BF.MEXISTS", "moved", "alan", "grace") == [1, 0]


def test_exec_runs_its_commands_without_interleaving(service):
    """Keys are added over both ports while transactions count them, at their beginning and at their end."""
    stop = threading.Event()
    service.create("counted:twice", capacity=1_000_000)
    with resp(service) as client:
        settings = ["capacity", 100_000, "keyed", "no", "seed", 1]
        client.execute_command("BLOOM.CREATE", "one", "KIND", "counting", *settings)
        client.execute_command("BLOOM.CREATE", "two", "KIND", "counting", *settings)
        client.execute_command("BLOOM.ADD", "two", "x")

    def add_over_http():
        with httpx.Client(base_url=service.url, timeout=60) as client:
            for turn in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
                keys = "\n".join(f"{turn}:{number}" for number in range(20))
                client.post(
                    "/v1/filters/counted:twice/add", content=keys, headers={"content-type": "text/plain"}
                )

    def merge_over_resp():
        with resp(service) as client:
            while not stop.is_set():
                client.execute_command("BLOOM.MERGE", "one", "two")

    threads = [threading.Thread(target=work) for work in (add_over_http, merge_over_resp)]
    for thread in threads:
        thread.start()
    try:
        with resp(service) as client:
            eventually(lambda: client.execute_command("BLOOM.COUNT", "one", "x") != [0])
            for _ in range(10):
                pipeline = client.pipeline(transaction=True)
                names = ["BLOOM.STATS", "counted:twice", "one"]
                pipeline.execute_command(*names)
                for _ in range(1000):
                    pipeline.execute_command("BLOOM.CHECK", "one", "y")
                pipeline.execute_command(*names)
                first, *_, last = pipeline.execute()
                assert count(first) == count(last)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def count(stats):
    """Names of filters and what was added to each, of an answer of BLOOM.STATS."""
    return {name: facts[b"num_added"] for name, facts in stats.items()}


def test_notes_are_not_listed_as_filters_over_http(service):
    service.create("beside")
    before = service.http.get("/v1/service").json()["filters"]
    with resp(service, decode_responses=True) as client:
        assert client.set("note", "text")
        assert client.set("note", "again", xx=True, ex=1000)
        path = "/v1/filters/note"
        answers = [
            service.http.get(path),
            service.http.post(f"{path}/check", json={"keys": ["a"]}),
            service.http.post(f"{path}/add", json={"keys": ["a"]}),
            service.http.post(f"{path}/clear"),
            service.http.get(f"{path}/dump"),
            service.http.get(f"{path}/secret"),
            service.http.get(f"{path}/history"),
            service.http.post(f"{path}/clone", json={"name": "other"}),
            service.http.patch(path, json={"name": "other"}),
            service.http.patch(path, json={"expire": 5}),
            service.http.delete(path),
            service.http.post("/v1/filters/beside/merge", json={"source": "note"}),
        ]
        assert {answer.status_code for answer in answers} == {404}, [a.text for a in answers]
        instance = service.http.post("/v1/filters", json={"name": "note", "capacity": 10})
        copied = service.http.post("/v1/filters/beside/clone", json={"name": "note", "replace": True})
        renamed = service.http.patch("/v1/filters/beside", json={"name": "note", "replace": True})
        file = service.http.get("/v1/filters/beside/dump").content
        put = service.http.put("/v1/filters/note/dump?replace=true", content=file)
        for answer in (instance, copied, renamed, put):
            assert answer.status_code == 409, answer.text
            assert "note" in answer.text
        assert client.get("note") == "again"
        names = [row["name"] for row in service.http.get("/v1/filters").json()["filters"]]
        assert "beside" in names
        assert "note" not in names
        assert service.http.get("/v1/service").json()["filters"] == before
        # A filter may have the name once the note is gone, and a filter that has it hides no note.
        assert client.delete("note")
        service.create("note")
        assert client.type("note") == "fullbloom"
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            client.get("note")
    assert service.http.delete("/v1/filters/note").status_code in {200, 204}


def test_notes_survive_a_kill(start):
    service = start("--durability", "always")
    with resp(service) as client:
        client.set("short", "1")
        client.set("long", b"x" * 60_000)
        client.execute_command("SAVE")
        client.execute_command("BF.ADD", "filter", "a")
        client.set("short", "2")
    service.kill()
    service.start()
    with resp(service) as client:
        assert (client.get("short"), client.get("long")) == (b"2", b"x" * 60_000)
        assert client.execute_command("BF.EXISTS", "filter", "a") == 1
    assert [row["name"] for row in service.http.get("/v1/filters").json()["filters"]] == ["filter"]
