"""What one port made, the other knows: filters, keys, tokens."""

from __future__ import annotations

import time

import pytest
import redis


def resp(service, **named):
    host, _, port = service.resp.rpartition(":")
    return redis.Redis(host, int(port), **named)


def eventually(check, seconds=10):
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.05)
    return found


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


def test_the_first_token_closes_both_ports_to_who_has_none(start):
    service = start()
    open_before = resp(service)
    assert open_before.ping()
    open_before.execute_command("BF.ADD", "seen", "ada")
    made = service.http.post("/v1/tokens", json={"name": "all", "scopes": ["read", "write", "admin"]}).json()
    assert service.http.get("/v1/filters").status_code == 401
    with pytest.raises(redis.RedisError, match=r"NOAUTH|uthenticat"):
        open_before.execute_command("BF.EXISTS", "seen", "ada")
    with resp(service, password=made["token"]) as client:
        assert client.execute_command("BF.EXISTS", "seen", "ada") == 1
    bearer = {"authorization": f"Bearer {made['token']}"}
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


def test_windows_pass_by_themselves_and_filters_expire(service):
    service.create("window", window=2)
    service.create("gone", expire=1.5)
    service.http.post("/v1/filters/window/add", json={"key": "ada"})
    check = lambda: service.http.post("/v1/filters/window/check", json={"key": "ada"}).json()["found"]  # noqa: E731
    assert check() is True
    eventually(lambda: not check())
    eventually(lambda: service.http.get("/v1/filters/gone").status_code == 404)
