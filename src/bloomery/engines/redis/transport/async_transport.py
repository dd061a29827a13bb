"""Questions asked without blocking, over the clients of redis.asyncio.

To one server, or to the nodes of a cluster.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import redis.exceptions as refusals

from bloomery.engines.redis.protocol.requests import (
    Acks,
    Ask,
    Call,
    Joined,
    Pause,
    Send,
    Steps,
    Timeout,
    Where,
    Whole,
    buffers,
)
from bloomery.engines.redis.transport.cluster import Exchanges, Moved, Need, Question, Renew, followed, routed
from bloomery.engines.redis.transport.connections import patience, pause_of, spread
from bloomery.engines.redis.transport.sync_transport import (
    RAISED,
    RECEIVED,
    answered,
    check_acks,
    check_loaded,
    no_transactions,
    text_of,
    timeout_of,
    told,
)
from bloomery.errors import ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from bloomery._core import WireExchange

T = TypeVar("T")


def stream(connection: Any) -> Any:
    """Return the stream of a connection whose parser holds no bytes.

    None if there is none to be read from.
    """
    parser, reader = getattr(connection, "_parser", None), getattr(connection, "_reader", None)
    native = getattr(parser, "_reader", None)  # of hiredis
    if native is not None and hasattr(native, "has_data"):
        return None if native.has_data() else reader
    buffer = getattr(parser, "_buffer", None)  # of Python
    return reader if buffer == b"" else None


async def exchanged(connection: Any, exchange: WireExchange | Joined, acks: Acks | None = None) -> None:
    """Send the commands and read their replies; the connection is closed unless all of them came."""
    exchange.restart()
    confirmed = None
    try:
        await connection.send_packed_command(buffers(exchange))
        async with asyncio.timeout(connection.socket_timeout or None):
            reader = stream(connection)
            if reader is None:
                await _parsed(connection, exchange)
            else:
                await _received(reader, exchange)
        check_loaded(exchange)
        if acks is not None and not exchange.refusals:
            await connection.send_command("WAIT", acks.replicas, acks.milliseconds)
            confirmed = await connection.read_response()
    except TimeoutError:
        await connection.disconnect(nowait=True)
        raise refusals.TimeoutError("timeout reading from socket") from None
    except OSError:
        await connection.disconnect(nowait=True)
        raise refusals.ConnectionError("error while reading from socket") from None
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    if acks is not None and confirmed is not None:
        check_acks(acks, confirmed)


async def _received(reader: Any, exchange: WireExchange | Joined) -> None:
    while True:
        data = await reader.read(RECEIVED)
        if not data:
            raise ConnectionResetError
        if exchange.feed(data):
            return


async def _parsed(connection: Any, exchange: WireExchange | Joined) -> None:
    done = False
    while not done:
        try:
            reply = await connection.read_response(disable_decoding=True, disconnect_on_error=False)
            done = exchange.accept(reply)
        except refusals.ResponseError as error:
            done = exchange.refuse(text_of(error))


async def at_once(awaited: list[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of all; the first error as it is, when the others have ended.

    A TaskGroup would wrap it in an ExceptionGroup, which is no error of the package.
    """
    tasks = [asyncio.ensure_future(one) for one in awaited]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class AsyncTransport:
    """Asks the one server of a client."""

    #: True when all keys are on one server.
    whole = True

    def __init__(self, client: Any, name: str) -> None:
        """Take the client; nothing is sent yet."""
        self.client = client
        self.name = name

    def shards(self) -> int:
        """Return the shards of a new filter for which no number is given."""
        return 1

    async def run(self, steps: Steps[T]) -> T:
        """Answer the questions of a generator until it returns."""
        try:
            asks = next(steps)
            while True:
                try:
                    answers = await self._answers(asks)
                except BaseException as error:  # noqa: BLE001 - the generator tidies up and raises it again
                    asks = steps.throw(error)
                else:
                    asks = steps.send(answers)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _answers(self, asks: list[Ask]) -> list[Any]:
        if len(asks) == 1:
            return [await self._answer(asks[0])]
        sends = [ask for ask in asks if isinstance(ask, Send)]
        if self.whole and sends and len(sends) == len(asks):
            with answered(self.name):
                return await self._sent_together(sends)
        return await at_once([self._answer(ask) for ask in asks])

    async def _answer(self, ask: Ask) -> Any:
        if isinstance(ask, Pause):
            return await asyncio.sleep(ask.seconds)
        if isinstance(ask, Timeout):
            return timeout_of(self.client)
        with answered(self.name):
            if isinstance(ask, Where):
                return self._where(ask.key)
            if isinstance(ask, Whole):
                return await self._done_whole(ask)
            return await (self._called(ask) if isinstance(ask, Call) else self._sent(ask))

    def _where(self, _key: bytes) -> str:
        return ""

    async def _called(self, ask: Call) -> Any:
        return await self.client.execute_command(*ask.words, NEVER_DECODE=True)

    async def _done_whole(self, ask: Whole) -> list[Any] | None:
        if not self.whole:
            raise no_transactions(self.name)
        async with self.client.pipeline(transaction=True) as pipe:
            if ask.watch is not None:
                key, value = ask.watch
                await pipe.watch(key)
                if await pipe.execute_command("GET", key, NEVER_DECODE=True) != value:
                    return None
                pipe.multi()
            for one in ask.calls:
                pipe.execute_command(*one.words)
            try:
                replies: list[Any] = await pipe.execute(raise_on_error=False)
            except refusals.WatchError:
                return None
        return told(self.name, replies)

    async def _sent(self, ask: Send) -> list[WireExchange]:
        """Send all shards of a batch to the server."""
        exchange = await self._exchanged(ask)
        return [await self._exchanged(ask) if ask.is_refused_whole(exchange) else exchange]

    async def _exchanged(self, ask: Send) -> WireExchange:
        exchange = ask.batch.exchange(ask.shards)
        await self._over_one(exchange, once=ask.once, acks=ask.acks)
        return exchange

    async def _sent_together(self, asks: list[Send]) -> list[list[WireExchange]]:
        """Send several batches to the server in one round trip."""
        joined = Joined(asks)
        acks = next((ask.acks for ask in asks if ask.acks is not None), None)
        await self._over_one(joined, once=any(ask.once for ask in asks), acks=acks)
        return [
            [await self._exchanged(ask) if ask.is_refused_whole(part) else part]
            for ask, part in zip(asks, joined.parts, strict=True)
        ]

    async def _over_one(
        self, exchange: WireExchange | Joined, *, once: bool, acks: Acks | None = None
    ) -> None:
        """Exchange over a connection of the client."""
        pool = self.client.connection_pool
        connection = await pool.get_connection()
        try:
            if once:
                await exchanged(connection, exchange, acks)
            else:
                await connection.retry.call_with_retry(
                    lambda: exchanged(connection, exchange, acks), lambda _error: connection.disconnect()
                )
        finally:
            await asyncio.shield(pool.release(connection))


class AsyncClusterTransport(AsyncTransport):
    """Asks the nodes of a cluster, at the same time where a batch has keys for several."""

    whole = False

    def shards(self) -> int:
        """Return the shards of a new filter for which no number is given."""
        return spread(self.client)

    def _node(self, key: bytes | None) -> Any:
        return self.client.get_default_node() if key is None else self.client.get_node_from_key(key.decode())

    def _where(self, key: bytes) -> str:
        return str(self._node(key).name)

    async def _called(self, ask: Call) -> Any:
        await self.client.initialize()
        return await self._driven(followed(ask, self._node, self._node_at, patience(self.client)))

    async def _sent(self, ask: Send) -> list[WireExchange]:
        await self.client.initialize()
        exchanges: list[WireExchange] = await self._driven(
            routed(ask, self._node, self._node_at, patience(self.client))
        )
        return exchanges

    async def _driven(self, steps: Generator[Need, Any, Any]) -> Any:
        try:
            need = next(steps)
            while True:
                need = steps.send(await self._done(need))
        except StopIteration as stop:
            return stop.value

    @staticmethod
    async def _asked(need: Question) -> Any:
        try:
            connection = need.node.acquire_connection()
            try:
                await need.node.disconnect_if_needed(connection)
                if need.asking:
                    await connection.send_command("ASKING")
                    await connection.read_response()
                await connection.send_command(*need.words)
                return await connection.read_response(disable_decoding=True)
            finally:
                need.node.release(connection)
        except RAISED as error:
            return error

    async def _done(self, need: Need) -> Any:
        if isinstance(need, Exchanges):
            return await at_once([self._with(node, each, need.acks) for node, each in need.parts])
        if isinstance(need, Question):
            return await self._asked(need)
        if isinstance(need, Moved):
            moved = refusals.MovedError(f"{need.slot} {need.host}:{need.port}")
            return await self.client.nodes_manager.move_slot(moved)
        if isinstance(need, Renew):
            return await self._renewed(need)
        return await asyncio.sleep(need.seconds)

    @staticmethod
    async def _with(node: Any, make: Callable[[], WireExchange], acks: Acks | None) -> Exception | None:
        """Exchange with one node; the error, if replies are missing."""
        exchange = make()
        try:
            connection = node.acquire_connection()
            try:
                await node.disconnect_if_needed(connection)
                await exchanged(connection, exchange, acks)
            finally:
                node.release(connection)
        except RAISED as error:
            return error
        return None

    def _node_at(self, host: str, port: int) -> Any:
        """Return the node of an address, which may have joined since: the map has only nodes with slots."""
        manager = self.client.nodes_manager
        node = self.client.get_node(host=host, port=port)
        if node is None:  # as the client itself does after MOVED
            node = type(self.client.get_default_node())(host, port, "primary", **manager.connection_kwargs)
            manager.set_nodes(manager.nodes_cache, {node.name: node})
        return node

    async def _renewed(self, need: Renew) -> None:
        await asyncio.sleep(pause_of(self.client, need.failures))
        with suppress(*RAISED):  # the next try tells
            for node in need.failed:
                self.client.nodes_manager.move_node_to_end_of_cached_nodes(node.name)
            await self.client.nodes_manager.initialize()


async def transport_of(client: Any, name: str) -> AsyncTransport:
    """Return what asks over this client."""
    if asyncio.iscoroutinefunction(getattr(client, "execute_command", None)):
        if hasattr(client, "nodes_manager"):
            with answered(name):
                await client.initialize()
            return AsyncClusterTransport(client, name)
        if hasattr(client, "connection_pool"):
            return AsyncTransport(client, name)
    raise ParameterTypeError(
        "client must be a redis.asyncio.Redis or redis.asyncio.RedisCluster client, got "
        f"{type(client).__module__}.{type(client).__name__}"
    )
