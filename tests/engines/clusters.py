"""Several real servers that belong together: a cluster of six, a master and its replica under Sentinel."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
from engines.servers import REDIS, SECONDS, Server, free_port
from redis.backoff import ConstantBackoff
from redis.retry import Retry

_SLOTS = 16384
#: A node of a cluster talks with the others at its port and 10,000.
_BUS = 10_000
#: Retries of clients that must survive a failover: 60 s.
MAX_RETRIES = 300
#: Milliseconds after which nodes replace one that does not answer: of a cluster that no test ends a node of,
#: so that a busy machine does not look like a failure; and of one in which a replica has to take over soon.
PATIENT, HASTY = 60_000, 1000


def failover_retry() -> Retry:
    """Retry until a failover is over."""
    return Retry(ConstantBackoff(0.2), MAX_RETRIES)


def _port() -> int:
    """A port that is free now, and so is that of the bus."""
    return free_port(_BUS)


class Node(Server):
    """A node of a cluster, which needs a second port."""

    find_port = staticmethod(_port)


class Cluster:
    """Three masters and three replicas that take over within seconds."""

    def __init__(self, folder: Path, masters: int = 3):
        options = {
            "cluster_enabled": "yes",
            "cluster_node_timeout": HASTY,
            "cluster_require_full_coverage": "no",
        }
        self.nodes = [Node(folder / str(number), **options) for number in range(2 * masters)]
        try:
            self._join(masters)
        except BaseException:
            self.stop()
            raise

    def _join(self, masters: int) -> None:
        first = self.nodes[0]
        ids = []
        for number, node in enumerate(self.nodes):
            with node.client() as client:
                ids.append(client.execute_command("CLUSTER MYID").decode())
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
                if number < masters:
                    low, high = number * _SLOTS // masters, (number + 1) * _SLOTS // masters - 1
                    client.execute_command("CLUSTER ADDSLOTSRANGE", low, high)
                if node is not first:
                    client.execute_command("CLUSTER MEET", "127.0.0.1", first.port)
        self._until(lambda client: len(client.execute_command("CLUSTER NODES")) >= len(self.nodes))
        for number, node in enumerate(self.nodes[masters:]):
            with node.client() as client:
                client.execute_command("CLUSTER REPLICATE", ids[number])
        self._until(lambda client: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
        self.synced()

    def _until(self, holds) -> None:
        deadline = time.monotonic() + SECONDS
        for node in self.nodes:
            with node.client() as client:
                while not holds(client):
                    if time.monotonic() > deadline:
                        raise RuntimeError("the cluster did not come together")
                    time.sleep(0.02)

    def synced(self) -> None:
        """Waits until every replica follows its master."""

        def follows(client: redis.Redis) -> bool:
            result = client.info("replication")
            return result["role"] == "master" or result["master_link_status"] == "up"

        self._until(follows)

    def set_node_timeout(self, milliseconds: int) -> None:
        """Choose how long a node may be silent before the others replace it."""
        for node in self.nodes:
            node.options["cluster_node_timeout"] = milliseconds
            with node.client() as client:
                client.config_set("cluster-node-timeout", milliseconds)

    def client(self, **options: object) -> redis.RedisCluster:
        """A client of it."""
        return redis.RedisCluster(host="127.0.0.1", port=self.nodes[0].port, **options)

    def node_of(self, client: redis.RedisCluster, key: bytes | str) -> Node:
        """The node that serves a key."""
        port = client.get_node_from_key(key).port
        return next(node for node in self.nodes if node.port == port)

    def commands(self) -> dict[int, int]:
        """Commands that each node had so far."""
        counts = {}
        for node in self.nodes:
            with node.client() as client:
                counts[node.port] = client.info("stats")["total_commands_processed"]
        return counts

    def stop(self) -> None:
        """Ends all nodes."""
        for node in self.nodes:
            node.kill()


class Sentinel:
    """A process that makes the replica the master when that one is gone."""

    def __init__(self, folder: Path, master: Server):
        folder.mkdir(parents=True)
        self.port = _port()
        (folder / "sentinel.conf").write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor main 127.0.0.1 {master.port} 1\n"
            "sentinel down-after-milliseconds main 60000\nsentinel failover-timeout main 2000\n"
        )
        with (folder / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(
                [REDIS, str(folder / "sentinel.conf"), "--sentinel"], stdout=log, stderr=log
            )
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            with suppress(redis.exceptions.RedisError), redis.Redis(port=self.port) as client:
                if client.execute_command("SENTINEL REPLICAS", "main"):
                    return
            time.sleep(0.05)
        raise RuntimeError((folder / "log.txt").read_text())

    def hasten(self) -> None:
        """Let it replace a master that is silent for half a second, as a busy one may be, too."""
        with redis.Redis(port=self.port) as client:
            client.execute_command("SENTINEL", "SET", "main", "down-after-milliseconds", 500)

    def stop(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait(SECONDS)


@contextmanager
def migrate_slot(cluster: Cluster, slot: int, source: Node, target: Node):
    """Migrate a slot from one node to another; inside, ``move(key)`` moves a key."""
    with source.client() as here, target.client() as there:
        ids = [client.execute_command("CLUSTER MYID").decode() for client in (here, there)]
        there.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[0])
        here.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[1])

        def move(key: bytes) -> None:
            here.execute_command("MIGRATE", "127.0.0.1", target.port, key, 0, 60_000)

        yield move
        for key in here.execute_command("CLUSTER GETKEYSINSLOT", slot, 1000):
            move(key)
        for node in cluster.nodes:
            with node.client() as client, suppress(redis.exceptions.ResponseError):  # a replica
                client.execute_command("CLUSTER SETSLOT", slot, "NODE", ids[1])


@contextmanager
def join_node(cluster: Cluster, folder: Path):
    """Let a node without slots join the cluster; the cluster forgets it at the end."""
    node = Node(folder, **cluster.nodes[0].options | {"cluster_node_timeout": HASTY})
    try:
        with node.client() as client:
            number = client.execute_command("CLUSTER MYID").decode()
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", 1000)
            client.execute_command("CLUSTER MEET", "127.0.0.1", cluster.nodes[0].port)
        deadline = time.monotonic() + SECONDS
        for each in (*cluster.nodes, node):
            with each.client() as client:
                while (
                    len(client.execute_command("CLUSTER NODES")) <= len(cluster.nodes)
                    or client.execute_command("CLUSTER INFO")["cluster_state"] != "ok"
                ):
                    if time.monotonic() > deadline:
                        raise RuntimeError("the node did not join")
                    time.sleep(0.02)
        with node.client() as client:
            client.config_set("cluster-node-timeout", PATIENT)
        yield node
    finally:
        node.kill()
        for each in cluster.nodes:
            with each.client() as client:
                client.execute_command("CLUSTER FORGET", number)
