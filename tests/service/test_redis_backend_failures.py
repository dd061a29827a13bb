"""Filters of backend redis while their server is away, fails over, or another process deletes them."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import threading
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing

import pytest
from commands import REDIS, SERVICE, run_command
from engines.clusters import Cluster
from engines.servers import needs_redis
from service.forks import run
from service.redis_backend import ask, make, url_of
from support import LONG, eventually

import fullbloom

pytestmark = needs_redis


@pytest.fixture
def name(request):
    return request.node.name.replace("[", ":").replace("]", "").replace("_", "-")[-100:]


def test_a_server_that_is_away_is_503_until_it_returns(own_server, start, name):
    server = own_server(appendonly="yes", appendfsync="always")
    service = start("--redis", url_of(server))
    make(service, name)
    ask(service, name, "add", key="ada")
    service.create("memory")
    assert service.http.get("/readyz").status_code == 200
    server.kill()
    away = [
        ask(service, name, "check", key="ada"),
        ask(service, name, "add", key="ada"),
        service.http.get(f"/v1/filters/{name}"),
        service.http.get(f"/v1/filters/{name}/dump"),
        service.http.delete(f"/v1/filters/{name}"),
        service.http.post("/v1/filters", json={"name": "more", "capacity": 10, "backend": "redis"}),
    ]
    for answer in away:
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable"), answer.text
        assert answer.headers["retry-after"] == "1"
        assert "ada" not in answer.text
    assert service.http.get("/readyz").status_code == 503
    # What is not in Redis is answered, and so is the list.
    assert ask(service, "memory", "add", key="ada").json() == {"new": True}
    assert {one["name"] for one in service.http.get("/v1/filters").json()["filters"]} == {name, "memory"}
    server.start()
    assert ask(service, name, "check", key="ada").json() == {"found": True}
    assert make(service, "more")["num_added"] == 0


def test_data_lost_by_the_server_is_reported_as_lost(own_server, start, name):
    server = own_server(save="")
    service = start("--redis", url_of(server))
    make(service, name)
    ask(service, name, "add", key="ada")
    server.kill()
    server.start()
    for action in ("check", "add"):
        lost = ask(service, name, action, key="ada")
        assert (lost.status_code, lost.json()["code"]) == (500, "lost"), lost.text
    assert service.restart().http.delete(f"/v1/filters/{name}").status_code == 204
    make(service, name)
    assert ask(service, name, "check", key="ada").json() == {"found": False}


def test_a_process_without_a_redis_url_says_so(start, server, tmp_path, name):
    registry = ("--registry", f"sqlite:///{tmp_path / 'r.db'}")
    with_redis, without = (
        start(*registry, "--redis", url_of(server), folder="a"),
        start(*registry, folder="b"),
    )
    make(with_redis, name)
    refused = eventually(
        lambda: (outcome := ask(without, name, "check", key=1)).status_code == 503 and outcome
    )
    assert "--redis" in refused.json()["detail"]
    refused = without.http.post("/v1/filters", json={"name": "new", "capacity": 10, "backend": "redis"})
    assert refused.status_code == 422
    assert "--redis" in refused.json()["detail"]


@pytest.mark.parametrize("url", ["http://:hushhush@h", "hushhush", "redis://:hushhush@h:port/0"])
def test_an_invalid_url_is_refused_in_one_line_without_its_password(start, url):
    with pytest.raises(RuntimeError) as failed:
        start("--redis", url)
    said = str(failed.value)
    assert "redis://[USER:PASSWORD@]HOST:PORT/DB" in said
    assert "hushhush" not in said
    assert len(said.strip().splitlines()) == 1
    words = ("serve", "--check", "--http", "127.0.0.1:0", "--resp", "none", "--redis", url)
    checked = run_command(*words, imports=SERVICE)
    assert checked.returncode == 2
    assert checked.stderr == said.strip() + "\n"


def test_the_password_appears_nowhere(own_server, start, name):
    server = own_server(requirepass="hushhush")
    url = f"redis://:hushhush@127.0.0.1:{server.port}/0"
    service = start(FULLBLOOM_REDIS=url)
    make(service, name)
    outcome = [
        service.http.get(path).text for path in ("/v1/service", "/metrics", f"/v1/filters/{name}", "/docs")
    ]
    server.kill()
    outcome += [ask(service, name, "check", key=1).text, service.log.read_text()]
    assert not any("hushhush" in text for text in outcome)
    wrong = start(folder="wrong", FULLBLOOM_REDIS=url.replace("hushhush", "wrongone"))
    server.start()
    refused = wrong.http.post("/v1/filters", json={"name": "x", "capacity": 10, "backend": "redis"})
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert "wrongone" not in refused.text + wrong.log.read_text()


@pytest.mark.timed
def test_requests_to_memory_do_not_wait_for_redis(own_server, start, name):
    """The event loop asks no server: while one does not answer, others are answered."""
    server = own_server()
    service = start("--redis", url_of(server))
    make(service, name)
    service.create("memory")
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(4) as pool:
            slow = [pool.submit(ask, service, name, "check", key="ada") for _ in range(4)]
            for _ in range(20):
                assert ask(service, "memory", "check", key="ada").status_code == 200
            assert not any(one.done() for one in slow)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert all(one.result().status_code in {200, 503} for one in slow)


def test_a_hanging_server_leaves_threads_for_other_requests(own_server, start, name):
    """More requests than may wait: some are refused at once, and changes of memory are made meanwhile."""
    server = own_server()
    service = start("--redis", url_of(server))
    make(service, name)
    service.create("memory")
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(80) as pool:
            slow = [pool.submit(ask, service, name, "add", key=f"k{n}") for n in range(80)]
            wait(slow, return_when=FIRST_COMPLETED)
            for number in range(20):
                assert ask(service, "memory", "add", key=number).json() == {"new": True}
            codes = {one.result().json().get("code") for one in slow}
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert codes == {"overloaded", "unavailable"}


def test_filters_that_expire_while_the_server_is_away_are_dropped_later(own_server, start, name):
    """And keeps nothing else from happening: a token is revoked within a second or so."""
    server = own_server(appendonly="yes", appendfsync="always")
    service = start("--redis", url_of(server))
    make(service, name, expire=600.0)
    tokens = {}
    for one in ("t", "u"):  # the second is made by the first, which has every scope
        asked = {"name": one, "scopes": ["read", "write", "admin"]}
        instance = service.http.post("/v1/tokens", json=asked, headers=tokens.get("t")).json()
        tokens[one] = {"authorization": f"Bearer {instance['token']}"}
    assert service.http.get(f"/v1/filters/{name}", headers=tokens["t"]).status_code == 200
    server.kill()
    # It expires now, however long all of that took.
    with closing(sqlite3.connect(service.folder / "data" / "registry.db", timeout=60)) as rows, rows:
        assert rows.execute("update filters set expires = 1 where name = ?", (name,)).rowcount == 1
    eventually(lambda: "not dropped yet" in service.log.read_text())
    run("token", "revoke", "t", "--data", service.folder / "data")
    eventually(lambda: service.http.get("/v1/filters", headers=tokens["t"]).status_code == 401)
    assert "a periodic task failed" not in service.log.read_text()
    server.start()
    eventually(lambda: service.http.get(f"/v1/filters/{name}", headers=tokens["u"]).status_code == 404)
    with server.client() as client:
        eventually(lambda: client.dbsize() == 0)


@pytest.fixture
def nodes(tmp_path):
    running = Cluster(tmp_path / "cluster")
    yield running
    running.stop()


def has_followed(master):
    """Return whether the replica of a node has acknowledged all that the node has written."""
    with master.client() as client:
        said = client.info("replication")
    return said["connected_slaves"] == 1 and said["slave0"]["offset"] == said["master_repl_offset"]


def test_filters_span_all_nodes_and_survive_a_failover(start, nodes):
    services = [start("--redis", url_of(nodes.nodes[number]), folder=str(number)) for number in (0, 4)]
    first, replica = services  # the second knows a replica only, and has a registry of its own
    instance = make(first, "seen")
    assert instance["details"]["shards"] == 48
    assert make(replica, "other")["details"]["shards"] == 48
    keys = [f"key {number}" for number in range(3000)]
    assert ask(first, "seen", "add", keys=keys).json()["yes"] > 2950
    assert ask(first, "seen", "check", keys=keys).json()["yes"] == 3000
    place = instance["place"]
    with nodes.client() as client:
        strings = {nodes.node_of(client, key).port for key in client.scan_iter(f"{place}:bits:*")}
        assert strings == {node.port for node in nodes.nodes[:3]}
    for node in nodes.nodes[:3]:
        eventually(lambda node=node: has_followed(node))
    nodes.nodes[0].kill()  # the one that the URL names
    said = [ask(first, "seen", "check", keys=keys) for _ in range(3)]
    for answer in said:
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == 503:
            assert answer.json()["code"] == "unavailable"
            assert answer.headers["retry-after"] == "1"
            assert "key 1" not in answer.text
        else:
            assert answer.json()["yes"] == 3000
    found = eventually(
        lambda: (outcome := ask(first, "seen", "check", keys=keys)).status_code == 200 and outcome
    )
    assert found.json()["yes"] == 3000
    assert ask(first, "seen", "add", key="later").json() == {"new": True}
    assert first.http.get("/readyz").status_code == 200
    assert first.http.get("/v1/filters/seen").json()["estimated"] > 2900
    assert first.http.delete("/v1/filters/seen").status_code == 204
    assert make(first, "after")["details"]["shards"] == 48


def test_the_command_line_accepts_a_cluster_node(nodes, tmp_path):
    url = url_of(nodes.nodes[1])
    full = fullbloom.BloomFilter(20_000, layout="blocked")
    full.update(range(10_000))
    full.save(tmp_path / "words.bloom")

    def run(*words):
        return run_command(*words, imports=REDIS)

    done = run("redis-load", tmp_path / "words.bloom", url, "words")
    assert (done.returncode, done.stderr) == (0, "")
    outcome = json.loads(run("redis-info", url, "words", "--json").stdout)
    assert (outcome["shards"], outcome["whole"]) == (48, True)
    assert run("redis-save", url, "words", tmp_path / "saved.bloom").returncode == 0
    assert fullbloom.open(tmp_path / "saved.bloom") == full
    wrong = run("redis-info", f"unix://{nodes.nodes[1].folder}/redis.sock", "words")
    assert wrong.returncode == 2
    assert len(wrong.stderr.strip().splitlines()) == 1
    assert "Unix Domain" in wrong.stderr


ROUNDS = 400 * LONG if LONG else 40


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    return tmp_path_factory.mktemp("registry") / "r.db"


@pytest.fixture(scope="module")
def two(new_service, server, registry):
    return [new_service("--registry", f"sqlite:///{registry}", "--redis", url_of(server)) for _ in range(2)]


@pytest.fixture
def client(server):
    with server.client() as instance:
        instance.flushall()
        yield instance


def test_concurrent_creations_and_deletions_of_a_name_are_atomic(two, client):
    said, odd = [], []
    right = {
        "create": {(201, None), (409, "exists")},
        "delete": {(204, None), (404, "missing")},
        "add": {(200, None), (404, "missing"), (503, "unavailable")},
    }

    def work(service, how):
        body = {"name": "one", "capacity": 1000}
        for turn in itertools.count():
            # Most creations find the name taken: there are more rounds until some have not.
            if turn >= ROUNDS and said.count(("create", 201)) > 5:
                return
            if how == "create":
                answer = service.http.post("/v1/filters", json={**body, "backend": "redis"})
            elif how == "delete":
                answer = service.http.delete("/v1/filters/one")
            else:
                answer = ask(service, "one", "add", keys=[1, 2, 3])
            code = answer.json()["code"] if answer.status_code >= 400 else None
            said.append((how, answer.status_code))
            if (answer.status_code, code) not in right[how]:
                odd.append((how, answer.text))

    threads = [
        threading.Thread(target=work, args=(service, how))
        for service in two
        for how in ("create", "create", "delete", "add")
    ]
    [thread.start() for thread in threads]
    [thread.join(300) for thread in threads]
    outcome = Counter(said)
    assert not odd, (odd[:5], outcome)
    assert outcome["create", 201] > 5
    # Each delete is reported once; two clients never report the same one.
    left = sum(service.http.delete("/v1/filters/one").status_code == 204 for service in two)
    assert outcome["delete", 204] + left == outcome["create", 201]
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


def test_leftovers_of_a_killed_creation_or_deletion_are_dropped(two, client, registry):
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
        # The row goes last, and with it the claim to the name.
        again = {"name": f"left{number}", "capacity": 10_000, "backend": "redis"}
        eventually(lambda again=again: two[1].http.post("/v1/filters", json=again).status_code == 201)
        two[0].http.delete(f"/v1/filters/left{number}")


def test_a_server_that_is_away_hides_no_filter(new_service, own_server):
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
