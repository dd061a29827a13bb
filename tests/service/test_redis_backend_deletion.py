"""Guarantee: processes of one registry that make and delete one name leave nothing and call nothing lost."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter

import pytest
from engines.servers import needs_redis
from service.redis_backend import ask, make, url_of
from support import LONG, eventually

pytestmark = needs_redis

ROUNDS = 400 * LONG if LONG else 40


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    return tmp_path_factory.mktemp("registry") / "r.db"


@pytest.fixture(scope="module")
def two(new_service, server, registry):
    return [new_service("--registry", f"sqlite:///{registry}", "--redis", url_of(server)) for _ in range(2)]


@pytest.fixture
def client(server):
    with server.client() as made:
        made.flushall()
        yield made


def test_a_name_that_two_make_ask_and_delete_is_there_or_not(two, client):
    told, odd = Counter(), []
    right = {
        "create": {(201, None), (409, "exists")},
        "delete": {(204, None), (404, "missing")},
        "add": {(200, None), (404, "missing"), (503, "unavailable")},
    }

    def work(service, how):
        body = {"name": "one", "capacity": 1000}
        for _ in range(ROUNDS):
            if how == "create":
                answer = service.http.post("/v1/filters", json={**body, "backend": "redis"})
            elif how == "delete":
                answer = service.http.delete("/v1/filters/one")
            else:
                answer = ask(service, "one", "add", keys=[1, 2, 3])
            code = answer.json()["code"] if answer.status_code >= 400 else None
            told[how, answer.status_code] += 1
            if (answer.status_code, code) not in right[how]:
                odd.append((how, answer.text))

    threads = [
        threading.Thread(target=work, args=(service, how))
        for service in two
        for how in ("create", "create", "delete", "add")
    ]
    [thread.start() for thread in threads]
    [thread.join(300) for thread in threads]
    assert not odd, (odd[:5], told)
    assert told["create", 201] > 5
    # What a delete told is one delete each: none of two is told of the same filter.
    left = sum(service.http.delete("/v1/filters/one").status_code == 204 for service in two)
    assert told["delete", 204] + left == told["create", 201]
    assert client.keys("*one*") == []
    for service in two:
        assert service.http.get("/v1/filters/one").status_code == 404


@pytest.mark.parametrize("lost", ["manifest", "a string", "changed"])
def test_deleting_a_lost_filter_takes_its_cells(two, client, lost):
    place = make(two[0], "gone", options={"shards": 4})["place"]
    assert ask(two[1], "gone", "add", keys=list(range(500))).status_code == 200
    if lost == "manifest":
        client.delete(f"{place}:fullbloom")
    elif lost == "changed":
        client.set(f"{place}:fullbloom", "{}")
    else:
        client.delete(next(client.scan_iter(f"{place}:bits*")))
    assert two[0].http.delete("/v1/filters/gone").status_code == 204
    assert client.keys("*") == []
    assert make(two[1], "gone")["name"] == "gone"
    assert two[0].http.delete("/v1/filters/gone").status_code == 204


def test_what_a_maker_or_deleter_left_when_it_ended_is_dropped(two, client, registry):
    """As after a kill between the strings and the row, and between the row and the strings."""
    for number, created in ((0, 1), (-1, None)):
        place = make(two[0], f"left{number}")["place"]
        with sqlite3.connect(registry) as rows:
            rows.execute(
                "update filters set number = ?, created = coalesce(?, created) where place = ?",
                (number, created, place),
            )
        eventually(lambda place=place: not client.keys(f"{place}*"))
        eventually(lambda number=number: two[1].http.get(f"/v1/filters/left{number}").status_code == 404)
        assert make(two[1], f"left{number}")
        two[0].http.delete(f"/v1/filters/left{number}")


def test_a_server_that_is_away_hides_nothing(new_service, own_server):
    server = own_server(appendonly="yes", appendfsync="always")
    service = new_service("--redis", url_of(server))
    make(service, "one")
    ask(service, "one", "add", key="ada")
    server.kill()
    refused = service.http.delete("/v1/filters/one")
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    server.start()
    assert eventually(lambda: ask(service, "one", "check", key="ada").json().get("found"))
    assert service.http.delete("/v1/filters/one").status_code == 204
