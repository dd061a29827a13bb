"""Guarantee: a Redis server that is away, slow or empty is told as such, and keeps nothing else waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pytest
from engines.servers import needs_redis
from service.in_redis import ask, make, url_of
from support import eventually

pytestmark = needs_redis


@pytest.fixture
def name(request):
    return request.node.name.replace("[", ":").replace("]", "").replace("_", "-")[-100:]


def test_a_server_that_is_away_is_503_until_it_is_back(own_server, start, name):
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


def test_what_the_server_has_lost_is_told_not_forgotten(own_server, start, name):
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


def test_a_process_without_the_address_says_so(start, server, tmp_path, name):
    registry = ("--registry", f"sqlite:///{tmp_path / 'r.db'}")
    with_redis, without = (
        start(*registry, "--redis", url_of(server), folder="a"),
        start(*registry, folder="b"),
    )
    make(with_redis, name)
    refused = eventually(lambda: (told := ask(without, name, "check", key=1)).status_code == 503 and told)
    assert "--redis" in refused.json()["detail"]
    refused = without.http.post("/v1/filters", json={"name": "new", "capacity": 10, "backend": "redis"})
    assert refused.status_code == 422
    assert "--redis" in refused.json()["detail"]


@pytest.mark.parametrize("url", ["http://:hushhush@h", "hushhush", "redis://:hushhush@h:port/0"])
def test_a_url_that_is_none_is_one_line_without_its_password(start, url):
    with pytest.raises(RuntimeError) as failed:
        start("--redis", url)
    said = str(failed.value)
    assert "redis://[USER:PASSWORD@]HOST:PORT/DB" in said
    assert "hushhush" not in said
    assert len(said.strip().splitlines()) == 1
    words = [sys.executable, "-m", "fullbloom", "serve", "--check", "--http", "127.0.0.1:0", "--resp", "none"]
    checked = subprocess.run([*words, "--redis", url], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 2
    assert checked.stderr == said.strip() + "\n"


def test_the_password_is_nowhere(own_server, start, name):
    server = own_server(requirepass="hushhush")
    url = f"redis://:hushhush@127.0.0.1:{server.port}/0"
    service = start(FULLBLOOM_REDIS=url)
    make(service, name)
    told = [
        service.http.get(path).text for path in ("/v1/service", "/metrics", f"/v1/filters/{name}", "/docs")
    ]
    server.kill()
    told += [ask(service, name, "check", key=1).text, service.log.read_text()]
    assert not any("hushhush" in text for text in told)
    wrong = start(folder="wrong", FULLBLOOM_REDIS=url.replace("hushhush", "wrongone"))
    server.start()
    refused = wrong.http.post("/v1/filters", json={"name": "x", "capacity": 10, "backend": "redis"})
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert "wrongone" not in refused.text + wrong.log.read_text()


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


def test_a_server_that_hangs_leaves_threads_for_others(own_server, start, name):
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


def test_what_is_due_while_the_server_is_away_is_dropped_later(own_server, start, name):
    """And keeps nothing else from happening: a token is revoked within a second or so."""
    server = own_server(appendonly="yes", appendfsync="always")
    service = start("--redis", url_of(server))
    make(service, name, expire=1.0)
    tokens = {}
    for one in ("t", "u"):  # the second is made by the first, which has every scope
        asked = {"name": one, "scopes": ["read", "write", "admin"]}
        made = service.http.post("/v1/tokens", json=asked, headers=tokens.get("t")).json()
        tokens[one] = {"authorization": f"Bearer {made['token']}"}
    assert service.http.get(f"/v1/filters/{name}", headers=tokens["t"]).status_code == 200
    server.kill()
    eventually(lambda: "not dropped yet" in service.log.read_text())
    words = [sys.executable, "-m", "fullbloom", "token", "revoke", "t", "--data", service.folder / "data"]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    eventually(lambda: service.http.get("/v1/filters", headers=tokens["t"]).status_code == 401)
    assert "a periodic task failed" not in service.log.read_text()
    server.start()
    eventually(lambda: service.http.get(f"/v1/filters/{name}", headers=tokens["u"]).status_code == 404)
    with server.client() as client:
        eventually(lambda: client.dbsize() == 0)
