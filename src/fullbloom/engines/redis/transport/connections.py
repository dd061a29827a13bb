"""What differs between blocking and asyncio: connections, sleeping, and how single keys are batched.

Functions that begin with ``sync_`` and ``async_`` have the same parameters and results: the asyncio transport
and filters call the second, and `scripts/generate_sync.py` generates the blocking ones, which call the first.

The commands of a batch are sent as one buffer, and replies are read natively from the connection's socket or
stream: packing and parsing each of them in Python would take most of the time. redis-py's parser reads where
a connection has neither.
"""

from __future__ import annotations

import asyncio
import copy
import time
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

import redis.exceptions as redis_errors

from fullbloom.engines.redis.protocol.errors import CLIENT_ERRORS, check_acks, check_loaded, error_text
from fullbloom.engines.redis.protocol.requests import buffers
from fullbloom.errors import ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence

    from fullbloom._core import WireExchange
    from fullbloom.engines.redis.protocol.requests import Acks, JoinedExchange

    #: A node, and what writes the commands for it.
    Part = tuple[Any, Callable[[], WireExchange]]

T = TypeVar("T")

sync_sleep = time.sleep
async_sleep = asyncio.sleep

#: Bytes requested of a socket at a time.
_RECEIVED = 1 << 16
#: Keys of concurrent tasks that are sent together at most.
_LARGEST_BATCH = 4096


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


def sync_all(results: list[T]) -> list[T]:
    """Return the results, which came one after the other."""
    return results


async def async_all(awaited: list[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all at once; raise the first error as it is, after the others have ended.

    A TaskGroup would wrap it in an ExceptionGroup, which is not an error of this package.
    """
    tasks = [asyncio.ensure_future(one) for one in awaited]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class _Pooled:
    """A connection taken from a pool; a class, because a generator would cost 2 us for each single key."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        self._connection = self._pool.get_connection()
        return self._connection

    def __exit__(self, *_error: object) -> None:
        self._pool.release(self._connection)


@contextmanager
def _single(client: Any) -> Iterator[Any]:
    """Lock the only connection of a client."""
    lock = getattr(client, "single_connection_lock", None)
    with lock if lock is not None else nullcontext():
        yield client.connection


def sync_connection(client: Any) -> AbstractContextManager[Any]:
    """Take a connection of the client."""
    return _Pooled(client.connection_pool) if client.connection is None else _single(client)


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
    return _Pooled(client.get_redis_connection(node).connection_pool)


@asynccontextmanager
async def async_node_connection(_client: Any, node: Any) -> AsyncIterator[Any]:
    """Take a connection to a node of a cluster."""
    connection = node.acquire_connection()
    try:
        await node.disconnect_if_needed(connection)
        yield connection
    finally:
        node.release(connection)


def sync_node_at(client: Any, host: str, port: int) -> Any:
    """Return the node at an address, which may have just joined: the map lists only nodes with slots."""
    manager = client.nodes_manager
    node = manager.get_node(host=host, port=port)
    if node is None:  # as redis-py does after MOVED
        node = type(client.get_default_node())(host, port, "primary")
        node = manager.nodes_cache.setdefault(node.name, node)
    return node


def async_node_at(client: Any, host: str, port: int) -> Any:
    """Return the node at an address, which may have just joined: the map lists only nodes with slots."""
    manager = client.nodes_manager
    node = client.get_node(host=host, port=port)
    if node is None:  # as redis-py does after MOVED
        node = type(client.get_default_node())(host, port, "primary", **manager.connection_kwargs)
        manager.set_nodes(manager.nodes_cache, {node.name: node})
    return node


def idle_socket(connection: Any) -> Any:
    """Return the socket of a connection, if its parser has no buffered bytes; else None."""
    parser, socket = getattr(connection, "_parser", None), getattr(connection, "_sock", None)
    native = getattr(parser, "_reader", None)  # of hiredis
    buffer = getattr(parser, "_buffer", None)  # of redis-py's own parser
    if native is not None and hasattr(native, "has_data"):
        return None if native.has_data() else socket
    if buffer is not None and hasattr(buffer, "unread_bytes"):
        return None if buffer.unread_bytes() else socket
    return None


def idle_stream(connection: Any) -> Any:
    """Return the stream of a connection, if its parser has no buffered bytes; else None."""
    parser, stream = getattr(connection, "_parser", None), getattr(connection, "_reader", None)
    native = getattr(parser, "_reader", None)  # of hiredis
    if native is not None and hasattr(native, "has_data"):
        return None if native.has_data() else stream
    buffer = getattr(parser, "_buffer", None)  # of redis-py's own parser
    return stream if buffer == b"" else None


def sync_exchange(connection: Any, exchange: WireExchange | JoinedExchange, acks: Acks | None = None) -> None:
    """Send the commands and read their replies; disconnect unless all of them came."""
    send(connection, exchange)
    receive(connection, exchange, acks)


def send(connection: Any, exchange: WireExchange | JoinedExchange) -> None:
    """Send the commands, from the first on."""
    exchange.restart()
    connection.send_packed_command(buffers(exchange))


def receive(connection: Any, exchange: WireExchange | JoinedExchange, acks: Acks | None = None) -> None:
    """Read the replies; disconnect unless all of them came and replicas confirmed them."""
    confirmed = None
    try:
        socket = idle_socket(connection)
        if socket is None:
            _read_parser(connection, exchange)
        else:
            _read_socket(socket, exchange)
        check_loaded(exchange.refusals)
        if acks is not None and not exchange.refusals:
            connection.send_command("WAIT", acks.replicas, acks.milliseconds)
            confirmed = connection.read_response()
    except TimeoutError:
        connection.disconnect()
        raise redis_errors.TimeoutError("timeout reading from socket") from None
    except OSError:
        connection.disconnect()
        raise redis_errors.ConnectionError("error while reading from socket") from None
    except BaseException:
        connection.disconnect()
        raise
    if acks is not None and confirmed is not None:
        check_acks(acks, confirmed)


def _read_socket(socket: Any, exchange: WireExchange | JoinedExchange) -> None:
    while True:
        data = socket.recv(_RECEIVED)
        if not data:
            raise ConnectionResetError
        if exchange.feed(data):
            return


def _read_parser(connection: Any, exchange: WireExchange | JoinedExchange) -> None:
    done = False
    while not done:
        try:
            done = exchange.accept(connection.read_response(disable_decoding=True, disconnect_on_error=False))
        except redis_errors.ResponseError as error:
            done = exchange.refuse(error_text(error))


async def async_exchange(
    connection: Any, exchange: WireExchange | JoinedExchange, acks: Acks | None = None
) -> None:
    """Send the commands and read their replies; disconnect unless all of them came."""
    exchange.restart()
    confirmed = None
    try:
        await connection.send_packed_command(buffers(exchange))
        async with asyncio.timeout(connection.socket_timeout or None):
            stream = idle_stream(connection)
            if stream is None:
                await _read_async_parser(connection, exchange)
            else:
                await _read_stream(stream, exchange)
        check_loaded(exchange.refusals)
        if acks is not None and not exchange.refusals:
            await connection.send_command("WAIT", acks.replicas, acks.milliseconds)
            confirmed = await connection.read_response()
    except TimeoutError:
        await connection.disconnect(nowait=True)
        raise redis_errors.TimeoutError("timeout reading from socket") from None
    except OSError:
        await connection.disconnect(nowait=True)
        raise redis_errors.ConnectionError("error while reading from socket") from None
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    if acks is not None and confirmed is not None:
        check_acks(acks, confirmed)


async def _read_stream(stream: Any, exchange: WireExchange | JoinedExchange) -> None:
    while True:
        data = await stream.read(_RECEIVED)
        if not data:
            raise ConnectionResetError
        if exchange.feed(data):
            return


async def _read_async_parser(connection: Any, exchange: WireExchange | JoinedExchange) -> None:
    done = False
    while not done:
        try:
            reply = await connection.read_response(disable_decoding=True, disconnect_on_error=False)
            done = exchange.accept(reply)
        except redis_errors.ResponseError as error:
            done = exchange.refuse(error_text(error))


def sync_exchange_with(client: Any, parts: list[Part], acks: Acks | None) -> list[Exception | None]:
    """Exchange with several nodes at the same time: send everything before reading the first reply.

    Returns an error or None for each. Servers buffer the replies that are not read yet.
    """
    errors: list[Exception | None] = [None] * len(parts)
    taken: list[tuple[int, Any, Any]] = []
    exchanges: list[WireExchange] = []
    try:
        for number, (node, make) in enumerate(parts):
            pool = client.get_redis_connection(node).connection_pool
            exchanges.append(make())
            try:
                connection = pool.get_connection()
                taken.append((number, pool, connection))
                send(connection, exchanges[number])
            except CLIENT_ERRORS as error:
                errors[number] = error
        for number, _, connection in taken:
            if errors[number] is None:
                try:
                    receive(connection, exchanges[number], acks)
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


async def async_exchange_with(client: Any, parts: list[Part], acks: Acks | None) -> list[Exception | None]:
    """Exchange with several nodes at the same time; returns an error or None for each."""

    async def one(node: Any, make: Callable[[], WireExchange]) -> Exception | None:
        exchange = make()
        try:
            async with async_node_connection(client, node) as connection:
                await async_exchange(connection, exchange, acks)
        except CLIENT_ERRORS as error:
            return error
        return None

    return await async_all([one(node, make) for node, make in parts])


class KeyBatcher:
    """Sends each single key at once, as a blocking caller waits for it."""

    def __init__(self, send_hashes: Callable[[bytes], bytes]) -> None:
        """Take what sends hashes and returns a byte for each."""
        self._send = send_hashes

    def put(self, hash_: bytes) -> int:
        """Return the answer."""
        return self._send(hash_)[0]


class AsyncKeyBatcher:
    """Sends single keys of concurrent tasks as batches: keys that arrive during a batch form the next one.

    The first batch leaves at the end of the event loop's iteration. Each batch is a task of its own, so that
    cancelling a caller takes nothing from the others; its key is sent all the same, unless it was cancelled
    before the batch left.
    """

    def __init__(self, send_hashes: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Take what sends hashes and returns a byte for each."""
        self._send = send_hashes
        self._waiting: list[tuple[bytes, asyncio.Future[int]]] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, hash_: bytes) -> asyncio.Future[int]:
        """Return a future of the answer."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        self._waiting.append((hash_, answer))
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._send_waiting())
        return answer

    async def _send_waiting(self) -> None:
        while self._waiting:
            first, self._waiting = self._waiting[:_LARGEST_BATCH], self._waiting[_LARGEST_BATCH:]
            batch = [(hash_, answer) for hash_, answer in first if not answer.done()]
            if not batch:
                continue
            answers = [answer for _, answer in batch]
            try:
                results = await self._send(b"".join(hash_ for hash_, _ in batch))
            except Exception as error:  # noqa: BLE001 - every task gets it
                _settle(answers, [_copy(error) for _ in answers])
            except BaseException:  # the loop ends
                for answer in [*answers, *(answer for _, answer in self._waiting)]:
                    answer.cancel()
                self._waiting.clear()
                raise
            else:
                _settle(answers, list(results))


def _settle(answers: list[asyncio.Future[int]], results: Sequence[int | Exception]) -> None:
    """Give each task its own result, unless it was cancelled."""
    for answer, result in zip(answers, results, strict=True):
        if answer.done():
            continue
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)


def _copy(error: Exception) -> Exception:
    """Return a copy for each task, so that tracebacks do not mix."""
    try:
        return copy.copy(error)
    except Exception:  # noqa: BLE001 - some classes cannot be copied
        return error
