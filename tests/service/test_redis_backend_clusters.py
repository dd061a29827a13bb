"""Guarantee: a URL of a node of a cluster is enough; a master that fails is ridden out, or one clear 503."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from engines.clusters import Cluster
from engines.servers import needs_redis
from service.redis_backend import ask, make, url_of
from support import eventually

import fullbloom

pytestmark = needs_redis


@pytest.fixture
def nodes(tmp_path):
    running = Cluster(tmp_path / "cluster")
    yield running
    running.stop()


def test_filters_are_over_all_nodes_and_a_master_that_fails_is_ridden_out(start, nodes):
    services = [start("--redis", url_of(nodes.nodes[number]), folder=str(number)) for number in (0, 4)]
    first, replica = services  # the second knows a replica only, and has a registry of its own
    made = make(first, "seen")
    assert made["details"]["shards"] == 48
    assert make(replica, "other")["details"]["shards"] == 48
    keys = [f"key {number}" for number in range(3000)]
    assert ask(first, "seen", "add", keys=keys).json()["yes"] > 2950
    assert ask(first, "seen", "check", keys=keys).json()["yes"] == 3000
    place = made["place"]
    with nodes.client() as client:
        strings = {nodes.node_of(client, key).port for key in client.scan_iter(f"{place}:bits:*")}
        assert strings == {node.port for node in nodes.nodes[:3]}
        for node in nodes.nodes[:3]:
            client.wait(1, 5000, target_nodes=client.get_node(host="127.0.0.1", port=node.port))
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
    found = eventually(lambda: (told := ask(first, "seen", "check", keys=keys)).status_code == 200 and told)
    assert found.json()["yes"] == 3000
    assert ask(first, "seen", "add", key="later").json() == {"new": True}
    assert first.http.get("/readyz").status_code == 200
    assert first.http.get("/v1/filters/seen").json()["estimated"] > 2900
    assert first.http.delete("/v1/filters/seen").status_code == 204
    assert make(first, "after")["details"]["shards"] == 48


def test_the_command_line_takes_a_node_of_a_cluster(nodes, tmp_path):
    url = url_of(nodes.nodes[1])
    full = fullbloom.BloomFilter(20_000, layout="blocked")
    full.update(range(10_000))
    full.save(tmp_path / "words.bloom")

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "fullbloom", *map(str, words)], capture_output=True, text=True, timeout=120
        )

    done = run("redis-load", tmp_path / "words.bloom", url, "words")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(run("redis-info", url, "words", "--json").stdout)
    assert (told["shards"], told["whole"]) == (48, True)
    assert run("redis-save", url, "words", tmp_path / "saved.bloom").returncode == 0
    assert fullbloom.open(tmp_path / "saved.bloom") == full
    wrong = run("redis-info", f"unix://{nodes.nodes[1].folder}/redis.sock", "words")
    assert wrong.returncode == 2
    assert len(wrong.stderr.strip().splitlines()) == 1
    assert "Unix Domain" in wrong.stderr
