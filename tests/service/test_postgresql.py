"""Two processes of the service on one real PostgreSQL: one owner a name, and the way to it."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from engines.servers import Server, needs_redis
from service.forks import run
from sqlalchemy import create_engine, text
from support import eventually

from fullbloom.service.registry import Registry


@pytest.fixture
def registry(database):
    """The URL of a registry of a test's own."""
    name = f"r{secrets.token_hex(4)}"
    engine = create_engine(database, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return database.replace("/postgres?", f"/{name}?")


def test_two_nodes_share_one_registry_of_names_and_tokens(start, database):
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(lambda folder: start("--registry", database, folder=folder), ("one", "two"))
    assert first.node != second.node
    first.create("mine")
    first.http.post("/v1/filters/mine/add", json={"key": "ada"})

    taken = second.http.post("/v1/filters", json={"name": "mine", "capacity": 10})
    assert taken.status_code == 421
    assert taken.json()["code"] == "elsewhere"
    assert taken.headers["location"] == f"{first.url}/v1/filters/mine"

    def redirect(path, method="post"):
        answer = second.http.request(method, path, json={"key": "ada"} if method == "post" else None)
        return answer if answer.status_code == 421 else None

    answer = redirect("/v1/filters/mine/check")  # at once: the registry is asked
    assert answer.headers["location"] == f"{first.url}/v1/filters/mine/check"
    followed = first.http.post(answer.headers["location"], json={"key": "ada"})
    assert followed.json() == {"found": True}
    for path in ("/v1/filters/mine", "/v1/filters/mine/history", "/v1/filters/mine/dump"):
        assert redirect(path, "get").headers["location"] == first.url + path

    host, _, port = second.resp.rpartition(":")

    def is_told():  # RESP asks nobody: it is told once a second
        try:
            return client.execute_command("BF.EXISTS", "mine", "alan")
        except redis.ResponseError as error:
            return "is stored on" in str(error)

    with (
        redis.Redis(host, int(port)) as client,
        pytest.raises(redis.ResponseError, match="mine is stored on"),
    ):
        eventually(is_told)
        client.execute_command("BF.ADD", "mine", "alan")

    # Many at once: each name has one owner, the other is told.
    names = [f"race:{i}" for i in range(20)]

    def race(service):
        return [service.http.post("/v1/filters", json={"name": n, "capacity": 10}).status_code for n in names]

    with ThreadPoolExecutor(2) as both:
        outcomes = list(zip(*both.map(race, (first, second)), strict=True))
    assert all(sorted(pair) == [201, 421] for pair in outcomes), outcomes

    # What RESP makes on one node, the other knows a moment later.
    with redis.Redis(host, int(port)) as client:
        client.execute_command("BF.ADD", "by:resp", "ada")
    eventually(lambda: first.http.get("/v1/filters/by:resp").status_code == 421)

    second.http.delete("/v1/filters/by:resp")
    eventually(
        lambda: first.http.post("/v1/filters", json={"name": "by:resp", "capacity": 9}).status_code == 201
    )

    token = first.http.post("/v1/tokens", json={"name": "all", "scopes": ["read", "write", "admin"]}).json()[
        "token"
    ]
    eventually(lambda: second.http.get("/v1/filters").status_code == 401)
    bearer = {"authorization": f"Bearer {token}"}
    nodes = second.http.get("/v1/nodes", headers=bearer).json()["nodes"]
    assert {node["http"] for node in nodes} == {first.url, second.url}
    assert first.restart().http.get("/v1/filters/mine", headers=bearer).status_code == 200


def test_a_silent_node_loses_its_names_and_is_renamed_when_it_returns(start, registry):
    """Its names are free once an administrator says so; what it comes back with is kept under other names."""
    # Each node says something, and reads what others say, once a second; a busy machine may be late.
    patience = {"FULLBLOOM_SILENCE": "10"}
    first, second = (start("--registry", registry, folder=folder, **patience) for folder in ("a", "b"))
    for name in ("lost", "kept"):
        first.create(name)
        first.http.post(f"/v1/filters/{name}/add", json={"key": "ada"})
    eventually(lambda: second.http.get("/v1/filters/lost").status_code == 421)
    gone = f"/v1/nodes/{first.node}"
    refused = second.http.delete(gone)
    assert (refused.status_code, refused.json()["code"]) == (409, "busy"), "it lives"
    assert second.http.delete(f"/v1/nodes/{second.node}").status_code == 409
    assert second.http.delete("/v1/nodes/nobody").status_code == 404
    first.kill()

    def says_silent():
        answer = second.http.post("/v1/filters", json={"name": "lost", "capacity": 10})
        return answer.status_code == 421 and "silent" in answer.json()["detail"]

    eventually(says_silent)
    eventually(lambda: second.http.delete(gone).status_code == 204)
    eventually(lambda: second.http.get("/v1/filters/lost").status_code == 404)
    eventually(
        lambda: second.http.post("/v1/filters", json={"name": "lost", "capacity": 10}).status_code == 201
    )

    first.start()
    assert first.http.post("/v1/filters/kept/check", json={"key": "ada"}).json() == {"found": True}
    assert eventually(lambda: first.http.get("/v1/filters/lost").status_code == 421)
    aside = f"lost.{first.node}.1"
    assert first.http.post(f"/v1/filters/{aside}/check", json={"key": "ada"}).json() == {"found": True}
    assert second.http.post("/v1/filters/lost/check", json={"key": "ada"}).json() == {"found": False}
    eventually(lambda: second.http.get(f"/v1/filters/{aside}").status_code == 421)


def test_a_name_created_on_two_nodes_by_resp_ends_with_one_owner(start, registry):
    first, second = (start("--registry", registry, folder=folder) for folder in ("c", "d"))
    clients = [
        redis.Redis(host, int(port))
        for host, _, port in (service.resp.rpartition(":") for service in (first, second))
    ]
    for turn in range(5):  # within the second in which nodes know nothing of each other's filters
        for client in clients:
            client.execute_command("BF.ADD", f"both:{turn}", "ada")

    def owners(name):
        found = [service.http.get(f"/v1/filters/{name}").status_code for service in (first, second)]
        return sorted(found) == [200, 421]

    for turn in range(5):
        eventually(lambda turn=turn: owners(f"both:{turn}"))
    for service, client in zip((first, second), clients, strict=True):
        listed = [one["name"] for one in service.http.get("/v1/filters").json()["filters"]]
        assert len(listed) == 5
        assert all(client.execute_command("BF.EXISTS", name, "ada") == 1 for name in listed)
        client.close()


def test_a_live_node_that_was_removed_registers_its_names_again(start, registry):
    """As after a while without the database: what nobody took meanwhile is its own again."""
    service = start("--registry", registry, folder="e")
    service.create("own")
    beside = Registry(registry)
    # Unless it says something between the two.
    while not beside.nodes.remove(service.node, beside.nodes.heartbeats()[service.node].at):
        pass
    eventually(lambda: beside.filters.find_owner("own") == (service.node, service.url))
    assert service.http.get("/v1/filters/own").status_code == 200
    beside.close()


@needs_redis
def test_every_node_serves_a_filter_in_redis(start, database, tmp_path):
    """Two processes on one PostgreSQL and one Redis: one adds, the other finds, even with the first dead."""
    server = Server(tmp_path / "redis")
    options = ("--registry", database, "--redis", f"redis://127.0.0.1:{server.port}/0")
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(lambda folder: start(*options, folder=folder), ("one", "two"))
    bearer = {"authorization": f"Bearer {_token(first)}"}
    first.http.headers.update(bearer)
    second.http.headers.update(bearer)
    for service in (first, second):  # a new token is known within a second
        eventually(lambda service=service: service.http.get("/v1/filters").status_code == 200)
    first.create("everybodys", backend="redis")
    taken = second.http.post("/v1/filters", json={"name": "everybodys", "capacity": 10})
    assert taken.json()["code"] == "exists"
    assert first.http.post("/v1/filters/everybodys/add", json={"key": "ada"}).json() == {"new": True}
    assert second.http.post("/v1/filters/everybodys/add", json={"key": "ada"}).json() == {"new": False}
    first.kill()
    found = second.http.post("/v1/filters/everybodys/check", json={"keys": ["ada", "alan"]}).json()["found"]
    assert found == [True, False]
    assert second.http.delete("/v1/filters/everybodys").status_code == 204
    server.stop()


def _token(service):
    """A token for everything, made by a process of its own: an earlier test has left one in the registry."""
    scopes = [word for scope in ("read", "write", "admin") for word in ("--scope", scope)]
    words = ("token", "create", "redis", *scopes, *service._options[:2], "--data", service.folder / "data")
    return run(*words).strip().splitlines()[-1]
