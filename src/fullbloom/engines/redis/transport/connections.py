"""Connections of redis-py's clients, its errors, and what differs between blocking and asyncio by nature.

Functions that begin with ``sync_`` and ``async_`` have the same parameters and results: `async_transport`
calls the second, and `scripts/generate_sync.py` generates `sync_transport`, which calls the first.

The commands of a batch are sent as one buffer, and replies are read natively from the connection's socket or
stream: packing and parsing each of them in Python would take most of the time. redis-py's parser reads where
a connection has neither.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

import redis.exceptions as redis_errors

from fullbloom.engines.redis.protocol import (
    acks_error,
    client_error,
    parse_number,
    refusal_error,
    reply_error,
    timeout_error,
    unreachable_error,
)
from fullbloom.errors import FullbloomError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

    from fullbloom._core import WireExchange
    from fullbloom.engines.redis.protocol import Acks, SendBatch

    #: A node, and the function that writes the commands for it.
    Part = tuple[Any, Callable[[], WireExchange]]

#: What redis-py raises: its cluster errors are not RedisErrors.
CLIENT_ERRORS = (redis_errors.RedisError, redis_errors.RedisClusterException, OSError)
_REFUSALS = (redis_errors.AuthenticationError, redis_errors.BusyLoadingError, redis_errors.ResponseError)
#: The codes of refusals that redis-py turns into classes and leaves out of their texts.
_CODES = (
    (redis_errors.ReadOnlyError, "READONLY"),
    (redis_errors.OutOfMemoryError, "OOM"),
    (redis_errors.NoPermissionError, "NOPERM"),
    (redis_errors.AuthenticationError, "WRONGPASS"),
    (redis_errors.BusyLoadingError, "LOADING"),
    (redis_errors.MasterDownError, "MASTERDOWN"),
    (redis_errors.ClusterDownError, "CLUSTERDOWN"),
    (redis_errors.TryAgainError, "TRYAGAIN"),
    (redis_errors.AskError, "ASK"),
    (redis_errors.MovedError, "MOVED"),
)


def translate(name: str, error: Exception) -> Exception:
    """Return the package's error for one of redis-py's."""
    if isinstance(error, FullbloomError):
        return error
    if isinstance(error, redis_errors.TimeoutError):
        return timeout_error(name)
    if isinstance(error, _REFUSALS):
        return refusal_error(name, format_refusal(error))
    if isinstance(error, (redis_errors.ConnectionError, redis_errors.RedisClusterException, OSError)):
        return unreachable_error(name, str(error))
    return client_error(name, str(error)) if isinstance(error, redis_errors.RedisError) else error


def format_refusal(error: Exception) -> str:
    """Return the text of a server's refusal, its code in front."""
    text = str(error)
    for kind, code in _CODES:
        if isinstance(error, kind):
            return f"{code} {text}"
    # redis-py leaves ERR out, and keeps codes that it does not know.
    return text if text.partition(" ")[0].isupper() else f"ERR {text}"


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise the package's errors for whatever redis-py raises inside ``with``.

    On replies that no server sends, redis-py raises built-in exceptions, whose texts may repeat the reply.
    """
    try:
        yield
    except (FullbloomError, *CLIENT_ERRORS) as error:
        raise translate(name, error) from None
    except Exception as error:  # noqa: BLE001 - such a reply may cause any exception
        raise reply_error(f"{type(error).__name__} in the client library") from None


def translate_replies(name: str, replies: list[Any]) -> list[Any]:
    """Return the replies of a transaction, with the package's errors."""
    return [translate(name, one) if isinstance(one, Exception) else one for one in replies]


def check_acks(acks: Acks, reply: Any) -> None:
    """Raise EngineUnavailable where fewer replicas than required confirmed a change."""
    confirmed = parse_number(reply)
    if confirmed < acks.replicas:
        raise acks_error(confirmed, acks)


def check_loaded(refusals: list[tuple[int, str]]) -> None:
    """Raise redis-py's error, which its retries know, for a server that is still loading its data."""
    if any(text.startswith("LOADING") for _, text in refusals):
        raise redis_errors.BusyLoadingError("the server is loading its data")


class JoinedExchange:
    """Several batches sent over one connection at the same time, with the methods of an exchange."""

    def __init__(self, batches: list[SendBatch]) -> None:
        """Take the batches; their commands are written when they are sent."""
        self._batches = batches
        #: An exchange of each.
        self.parts: list[WireExchange] = []
        self._at = 0

    def restart(self) -> None:
        """Start again from the first command."""
        self._at = 0
        for part in self.parts:
            part.restart()

    def buffers(self) -> Iterator[bytes]:
        """Yield the buffers to send, writing each buffer while the server is busy with the previous one."""
        for number, batch in enumerate(self._batches):
            if number == len(self.parts):
                self.parts.append(batch.batch.exchange(batch.shards))
            yield self.parts[number].buffer

    def feed(self, data: bytes) -> bool:
        """Take received bytes; True once all replies are complete."""
        while self._at < len(self.parts) - 1:
            left = self.parts[self._at].feed_part(data)
            if left is None:
                return False
            self._at += 1
            data = data[len(data) - left :]
        return self.parts[-1].feed(data)

    def accept(self, reply: Any) -> bool:
        """Take the next reply as the client library read it."""
        return self._advance(done=self.parts[self._at].accept(reply))

    def refuse(self, text: str) -> bool:
        """Take a refusal as the next reply."""
        return self._advance(done=self.parts[self._at].refuse(text))

    def _advance(self, *, done: bool) -> bool:
        self._at += done
        return self._at == len(self.parts)

    @property
    def refusals(self) -> list[tuple[int, str]]:
        """The shard and text of each refusal."""
        return [refusal for part in self.parts for refusal in part.refusals]


def list_buffers(exchange: WireExchange | JoinedExchange) -> Iterable[bytes]:
    """Return the buffers to send."""
    return exchange.buffers() if isinstance(exchange, JoinedExchange) else [exchange.buffer]


sync_sleep = time.sleep
async_sleep = asyncio.sleep


def sync_check_client(client: Any) -> None:
    """Raise ParameterTypeError for an object that is not a blocking client."""
    execute = getattr(client, "execute_command", None)
    if execute is None or iscoroutinefunction(execute) or not _has_connections(client):
        raise ParameterTypeError(
            "client must be a redis.Redis, valkey.Valkey or redis.RedisCluster client (those of "
            f"redis.asyncio are for AsyncRedisBloomFilter), got {type(client).__name__}"
        )


def async_check_client(client: Any) -> None:
    """Raise ParameterTypeError for an object that is not a client of redis.asyncio."""
    if not iscoroutinefunction(getattr(client, "execute_command", None)) or not _has_connections(client):
        raise ParameterTypeError(
            "client must be a redis.asyncio.Redis or redis.asyncio.RedisCluster client, got "
            f"{type(client).__module__}.{type(client).__name__}"
        )


def _has_connections(client: Any) -> bool:
    return hasattr(client, "nodes_manager") or hasattr(client, "connection_pool")


def read_timeout(client: Any) -> float | None:
    """Return the seconds for which a client waits for a reply; None without a limit."""
    kwargs = getattr(getattr(client, "connection_pool", None), "connection_kwargs", None)
    if kwargs is None:
        manager = getattr(client, "nodes_manager", None)
        kwargs = getattr(manager, "connection_kwargs", None) or getattr(client, "connection_kwargs", None)
    seconds = (kwargs or {}).get("socket_timeout")
    return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None


def sync_initialize(client: Any) -> None:
    """Do nothing: a blocking cluster client reads the map of the cluster when it is created."""


async def async_initialize(client: Any) -> None:
    """Read the map of the cluster, unless the client has it."""
    await client.initialize()


class _PooledConnection:
    """A connection from a pool; a class, because a generator would cost 2 us for each single key."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        self._connection = self._pool.get_connection()
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        _drop_unread(self._connection, error)
        self._pool.release(self._connection)


def _drop_unread(connection: Any, error: BaseException | None) -> None:
    """Disconnect if replies may be unread: a signal handler may raise between sending and receiving.

    The next batch would take them for its own. After errors of the server or the client library none are.
    """
    if error is not None and not isinstance(error, (FullbloomError, redis_errors.RedisError)):
        connection.disconnect()


@contextmanager
def _lock_connection(client: Any) -> Iterator[Any]:
    """Lock the only connection of a client."""
    lock = getattr(client, "single_connection_lock", None)
    with lock if lock is not None else nullcontext():
        try:
            yield client.connection
        except BaseException as error:
            _drop_unread(client.connection, error)
            raise


def sync_connection(client: Any) -> AbstractContextManager[Any]:
    """Take a connection of the client."""
    if client.connection is None:
        return _PooledConnection(client.connection_pool)
    return _lock_connection(client)


@asynccontextmanager
async def async_connection(client: Any) -> AsyncIterator[Any]:
    """Take a connection of the client's pool."""
    pool = client.connection_pool
    connection = await pool.get_connection()
    try:
        yield connection
    finally:
        await asyncio.shield(pool.release(connection))


def sync_node_connection(client: Any, node: Any) -> AbstractContextManager[Any]:
    """Take a connection to a node of a cluster."""
    return _PooledConnection(client.get_redis_connection(node).connection_pool)


@asynccontextmanager
async def async_node_connection(_client: Any, node: Any) -> AsyncIterator[Any]:
    """Take a connection to a node of a cluster."""
    connection = node.acquire_connection()
    try:
        await node.disconnect_if_needed(connection)
        yield connection
    finally:
        node.release(connection)


def sync_find_node(client: Any, host: str, port: int) -> Any:
    """Return the node at an address, which may have just joined: the map lists only nodes with slots."""
    manager = client.nodes_manager
    node = manager.get_node(host=host, port=port)
    if node is None:  # as redis-py does after MOVED
        node = type(client.get_default_node())(host, port, "primary")
        node = manager.nodes_cache.setdefault(node.name, node)
    return node


def async_find_node(client: Any, host: str, port: int) -> Any:
    """Return the node at an address, which may have just joined: the map lists only nodes with slots."""
    manager = client.nodes_manager
    node = client.get_node(host=host, port=port)
    if node is None:  # as redis-py does after MOVED
        node = type(client.get_default_node())(host, port, "primary", **manager.connection_kwargs)
        manager.set_nodes(manager.nodes_cache, {node.name: node})
    return node


def sync_limit_time(connection: Any) -> AbstractContextManager[Any]:
    """Do nothing: the socket has the client's timeout."""
    return nullcontext(connection)


def async_limit_time(connection: Any) -> asyncio.Timeout:
    """Limit how long replies may take, as the client does."""
    return asyncio.timeout(connection.socket_timeout or None)


def sync_find_reader(connection: Any) -> Callable[[int], bytes] | None:
    """Return the function that reads from a connection's socket; None if its parser has buffered bytes."""
    parser, socket = getattr(connection, "_parser", None), getattr(connection, "_sock", None)
    native = getattr(parser, "_reader", None)  # of hiredis
    buffer = getattr(parser, "_buffer", None)  # of redis-py's own parser
    if native is not None and hasattr(native, "has_data"):
        is_idle = not native.has_data()
    else:
        is_idle = buffer is not None and hasattr(buffer, "unread_bytes") and not buffer.unread_bytes()
    return socket.recv if is_idle and socket is not None else None


def async_find_reader(connection: Any) -> Callable[[int], Awaitable[bytes]] | None:
    """Return the function that reads from a connection's stream; None if its parser has buffered bytes."""
    parser, stream = getattr(connection, "_parser", None), getattr(connection, "_reader", None)
    native = getattr(parser, "_reader", None)  # of hiredis
    if native is not None and hasattr(native, "has_data"):
        is_idle = not native.has_data()
    else:
        is_idle = getattr(parser, "_buffer", None) == b""  # of redis-py's own parser
    return stream.read if is_idle and stream is not None else None


def sync_exchange_with(
    client: Any, parts: list[Part], send: Callable[..., None], receive: Callable[..., None]
) -> list[Exception | None]:
    """Exchange with several nodes at the same time: send everything before reading the first reply.

    Returns an error or None for each. Servers buffer the replies that are not read yet.
    """
    errors: list[Exception | None] = [None] * len(parts)
    taken: list[tuple[int, Any, Any]] = []
    exchanges: list[WireExchange] = []
    try:
        for number, (node, write) in enumerate(parts):
            pool = client.get_redis_connection(node).connection_pool
            exchanges.append(write())
            try:
                connection = pool.get_connection()
                taken.append((number, pool, connection))
                send(connection, exchanges[number])
            except CLIENT_ERRORS as error:
                errors[number] = error
        for number, _, connection in taken:
            if errors[number] is None:
                try:
                    receive(connection, exchanges[number])
                except CLIENT_ERRORS as error:
                    errors[number] = error
    except BaseException:
        for _, _, connection in taken:
            connection.disconnect()
        raise
    finally:
        for number, pool, connection in taken:
            if errors[number] is not None:
                connection.disconnect()
            pool.release(connection)
    return errors


async def async_exchange_with(
    client: Any,
    parts: list[Part],
    send: Callable[..., Awaitable[None]],
    receive: Callable[..., Awaitable[None]],
) -> list[Exception | None]:
    """Exchange with several nodes at the same time; return an error or None for each."""

    async def exchange_with(node: Any, write: Callable[[], WireExchange]) -> Exception | None:
        exchange = write()
        try:
            async with async_node_connection(client, node) as connection:
                await send(connection, exchange)
                await receive(connection, exchange)
        except CLIENT_ERRORS as error:
            return error
        return None

    # A TaskGroup would wrap the first error in an ExceptionGroup, which is not an error of this package.
    tasks = [asyncio.ensure_future(exchange_with(node, write)) for node, write in parts]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
