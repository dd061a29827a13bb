"""Questions to the nodes of a cluster, over a client of redis-py for clusters.

Its map of the cluster, its connections and its retries are used.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import redis.exceptions as refusals

from bloomery.engines.redis.transport import sync_transport as transport
from bloomery.engines.redis.transport.cluster import (
    Exchanges,
    Moved,
    Need,
    Question,
    Renew,
    followed,
    routed,
    side_by_side,
)
from bloomery.engines.redis.transport.sync_transport import RAISED, Transport

if TYPE_CHECKING:
    from collections.abc import Generator

    from bloomery._core import WireExchange
    from bloomery.engines.redis.protocol.requests import Call, Send

#: Shards for each primary of a new filter: even, however names fall on slots, within a quarter.
SHARDS_A_PRIMARY = 16
#: Seconds between tries while a replica takes over, and how many there are.
_FAILOVER_PAUSE = 1.0
_FAILOVER_TRIES = 4


def patience(client: Any) -> int:
    """Return how often the client itself would try again."""
    return int(client.retry.get_retries())


def pause_of(client: Any, failures: int) -> float:
    """Return the seconds that the client would wait after so many failures."""
    backoff = getattr(client.retry, "_backoff", None)
    return float(backoff.compute(failures)) if backoff is not None else 0.05 * failures


def spread(client: Any) -> int:
    """Return the number of shards of a new filter."""
    return SHARDS_A_PRIMARY * max(1, len(client.get_primaries()))


class ClusterTransport(Transport):
    """Asks the nodes of a cluster, at the same time where a batch has keys for several."""

    mark = "nodes_manager"
    whole = False

    def shards(self) -> int:
        """Return the shards of a new filter for which no number is given."""
        return spread(self.client)

    def _node(self, key: bytes | None) -> Any:
        return self.client.get_default_node() if key is None else self.client.get_node_from_key(key)

    def _where(self, key: bytes) -> str:
        return str(self._node(key).name)

    def _called(self, ask: Call) -> Any:
        steps = followed(ask, self._node, self._node_at, patience(self.client))
        return self._driven(steps)

    def _asked(self, need: Question) -> Any:
        pool = self.client.get_redis_connection(need.node).connection_pool
        connection = None
        try:
            connection = pool.get_connection()
            if need.asking:
                connection.send_command("ASKING")
                connection.read_response()
            connection.send_command(*need.words)
            return connection.read_response(disable_decoding=True)
        except RAISED as error:
            return error
        finally:
            if connection is not None:
                pool.release(connection)

    def _sent(self, ask: Send) -> list[WireExchange]:
        exchanges: list[WireExchange] = self._driven(
            routed(ask, self._node, self._node_at, patience(self.client))
        )
        return exchanges

    def _sent_together(self, asks: list[Send]) -> list[list[WireExchange]]:
        each = [routed(ask, self._node, self._node_at, patience(self.client)) for ask in asks]
        told: list[list[WireExchange]] = self._driven(side_by_side(each))
        return told

    def _driven(self, steps: Generator[Need, Any, Any]) -> Any:
        try:
            need = next(steps)
            while True:
                need = steps.send(self._done(need))
        except StopIteration as stop:
            return stop.value

    def _done(self, need: Need) -> Any:
        if isinstance(need, Exchanges):
            client = self.client
            return transport.together(
                [(client.get_redis_connection(node).connection_pool, each) for node, each in need.parts],
                need.acks,
            )
        if isinstance(need, Question):
            return self._asked(need)
        if isinstance(need, Moved):
            return self.client.nodes_manager.move_slot(_as_moved(need))
        if isinstance(need, Renew):
            return self._renewed(need)
        return time.sleep(need.seconds)

    def _node_at(self, host: str, port: int) -> Any:
        """Return the node of an address, which may have joined since: the map has only nodes with slots."""
        manager = self.client.nodes_manager
        node = manager.get_node(host=host, port=port)
        if node is None:  # as the client itself does after MOVED
            node = type(self.client.get_default_node())(host, port, "primary")
            node = manager.nodes_cache.setdefault(node.name, node)
        return node

    def _renewed(self, need: Renew) -> None:
        manager = self.client.nodes_manager
        time.sleep(pause_of(self.client, need.failures))
        for node in need.failed:
            manager.move_node_to_end_of_cached_nodes(node.name)
        with suppress(*RAISED):  # the next try tells
            manager.initialize()


def _as_moved(need: Moved) -> refusals.MovedError:
    return refusals.MovedError(f"{need.slot} {need.host}:{need.port}")


def reached(url: str, name: str, *, patience: float | None = None, **options: Any) -> Any:
    """Return a client of a URL: one for clusters where the server says that it is a node of one.

    Asks it; raises EngineError and its kin, which name the filter ``name``; ValueError for a URL that is
    none.
    patience: seconds for an answer; what breaks off is sent again for some seconds, so that a failover is
    ridden out.
    """
    client = transport.connected(url, patience=patience, **options)
    try:
        return _chosen(client, url, patience, options)
    except RAISED as error:
        raise transport.translated(name, error) from None


def _chosen(client: Any, url: str, patience: float | None, options: dict[str, Any]) -> Any:
    from redis.backoff import ConstantBackoff
    from redis.cluster import RedisCluster
    from redis.retry import Retry

    try:
        is_node = bool(client.info("cluster").get("cluster_enabled"))
    except refusals.ResponseError:  # this user may not know
        return client
    if not is_node:
        return client
    client.close()
    if patience is not None:
        times = {"socket_timeout": patience, "socket_connect_timeout": patience}
        options = {"retry": Retry(ConstantBackoff(_FAILOVER_PAUSE), _FAILOVER_TRIES), **times, **options}
    return RedisCluster.from_url(url, **options)


def answers(client: Any) -> bool:
    """Tell whether the server does, or a primary of the cluster."""
    if not hasattr(client, "nodes_manager"):
        return bool(client.ping())
    for node in client.get_primaries():
        with suppress(*RAISED):
            return bool(client.get_redis_connection(node).ping())
    return False


def erased(client: Any, name: str) -> None:
    """Delete all strings and the manifest of a name, which the server looks for."""
    pattern = re.sub(r"([\\\[\]*?])", r"\\\1", f"{name}:bits") + "*"
    try:
        for key in [*client.scan_iter(match=pattern, count=1000), f"{name}:bloomery"]:
            client.unlink(key)
    except RAISED as error:
        raise transport.translated(name, error) from None


def transport_of(client: Any, name: str) -> Transport:
    """Return what asks over this client."""
    return (ClusterTransport if hasattr(client, "nodes_manager") else Transport)(client, name)
