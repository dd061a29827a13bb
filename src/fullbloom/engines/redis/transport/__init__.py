"""Sends requests over the clients of redis-py: blocking and asyncio, one server and a cluster.

The client's pool, TLS, passwords and retries are used. The functions here create blocking clients from URLs.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import redis.exceptions as redis_errors

from fullbloom.engines.redis.protocol.errors import CLIENT_ERRORS, translate

#: Seconds between retries while a replica takes over, and how many there are.
_FAILOVER_PAUSE = 1.0
_FAILOVER_RETRIES = 4


def create_client(url: str, *, timeout: float | None = None, **options: Any) -> Any:
    """Return a client for a ``redis://``, ``rediss://`` or ``unix://`` URL; ValueError for any other.

    With a ``timeout``, in seconds, a broken request is retried once; without it redis-py's defaults apply.
    ``options`` are those of ``redis.Redis.from_url``. Nothing is sent yet.
    """
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    parts = urlsplit(url)
    database = parts.path.strip("/")
    if database and parts.scheme != "unix" and not database.isdecimal():
        raise ValueError("the database of a server is a number")  # which the client would take for 0
    if timeout is not None:
        options = {"retry": Retry(NoBackoff(), 1), **_timeouts(timeout), **options}
    return Redis.from_url(url, **options)


def connect(url: str, name: str, *, timeout: float | None = None, **options: Any) -> Any:
    """Return a client for a URL: a cluster client if the server answers that it is a node of a cluster.

    Raises EngineError or one of its subclasses, which name the filter ``name``; ValueError for an invalid
    URL. With a ``timeout``, in seconds, cluster clients retry for some seconds, to survive a failover.
    """
    client = create_client(url, timeout=timeout, **options)
    try:
        return _choose_client(client, url, timeout, options)
    except CLIENT_ERRORS as error:
        raise translate(name, error) from None


def _choose_client(client: Any, url: str, timeout: float | None, options: dict[str, Any]) -> Any:
    from redis.backoff import ConstantBackoff
    from redis.cluster import RedisCluster
    from redis.retry import Retry

    try:
        is_node = bool(client.info("cluster").get("cluster_enabled"))
    except redis_errors.ResponseError:  # this user may not run INFO
        return client
    if not is_node:
        return client
    client.close()
    if timeout is not None:
        retry = Retry(ConstantBackoff(_FAILOVER_PAUSE), _FAILOVER_RETRIES)
        options = {"retry": retry, **_timeouts(timeout), **options}
    return RedisCluster.from_url(url, **options)


def _timeouts(seconds: float) -> dict[str, float]:
    return {"socket_timeout": seconds, "socket_connect_timeout": seconds}


def ping(client: Any) -> bool:
    """Return whether the server responds, or any primary of the cluster."""
    if not hasattr(client, "nodes_manager"):
        return bool(client.ping())
    for node in client.get_primaries():
        with suppress(*CLIENT_ERRORS):
            return bool(client.get_redis_connection(node).ping())
    return False


def delete_keys(client: Any, name: str) -> None:
    """Delete all strings and the manifest of a name, found by SCAN."""
    pattern = re.sub(r"([\\\[\]*?])", r"\\\1", f"{name}:bits") + "*"
    try:
        for key in [*client.scan_iter(match=pattern, count=1000), f"{name}:fullbloom"]:
            client.unlink(key)
    except CLIENT_ERRORS as error:
        raise translate(name, error) from None
