"""Runs generators of requests over a client of redis.asyncio: one server, or the nodes of a cluster."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import redis.exceptions as redis_errors

from fullbloom.engines.redis.protocol import (
    Call,
    Locate,
    QueryTimeout,
    SendBatch,
    Sleep,
    Transaction,
    transaction_error,
)
from fullbloom.engines.redis.transport import (
    ExchangeAll,
    MoveSlot,
    RenewMap,
    SendCommand,
    compute_pause,
    count_default_shards,
    follow_call,
    read_max_retries,
    route_batch,
    route_batches,
)
from fullbloom.engines.redis.transport.connections import (
    CLIENT_ERRORS,
    JoinedExchange,
    async_check_client,
    async_connection,
    async_exchange_with,
    async_find_node,
    async_find_reader,
    async_initialize,
    async_limit_time,
    async_node_connection,
    async_sleep,
    check_acks,
    check_loaded,
    format_refusal,
    list_buffers,
    read_timeout,
    translate_errors,
    translate_replies,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from fullbloom._core import WireExchange
    from fullbloom.engines.redis.protocol import Acks, Request, Steps
    from fullbloom.engines.redis.transport import Action

T = TypeVar("T")

#: Bytes requested of a connection at a time.
_RECEIVED_BYTES = 1 << 16
#: Commands that are sent before their replies are read.
_MAX_CALLS = 1000


async def async_send(connection: Any, exchange: WireExchange | JoinedExchange) -> None:
    """Send the commands, from the first on."""
    exchange.restart()
    await connection.send_packed_command(list_buffers(exchange))


async def async_receive(
    connection: Any, exchange: WireExchange | JoinedExchange, acks: Acks | None = None
) -> None:
    """Read the replies; disconnect unless all of them came. Raise unless replicas confirmed the change."""
    confirmed = None
    try:
        async with async_limit_time(connection):
            await _read_replies(connection, exchange)
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


async def _read_replies(connection: Any, exchange: WireExchange | JoinedExchange) -> None:
    read, is_complete = async_find_reader(connection), False
    while not is_complete:
        if read is not None:
            data = await read(_RECEIVED_BYTES)
            if not data:
                raise ConnectionResetError
            is_complete = exchange.feed(data)
        else:
            try:
                reply = await connection.read_response(disable_decoding=True, disconnect_on_error=False)
                is_complete = exchange.accept(reply)
            except redis_errors.ResponseError as error:
                is_complete = exchange.refuse(format_refusal(error))


class AsyncTransport:
    """Sends requests to the one server of a client."""

    #: True when all keys are on one server.
    is_single = True

    def __init__(self, client: Any, name: str) -> None:
        """Take the client; nothing is sent yet."""
        async_check_client(client)
        self.client = client
        self.name = name

    def count_default_shards(self) -> int:
        """Return the default number of shards of a new filter."""
        return 1

    async def run(self, steps: Steps[T]) -> T:
        """Answer the requests of a generator until it returns."""
        try:
            requests = next(steps)
            while True:
                try:
                    replies = await self._answer_all(requests)
                except BaseException as error:  # noqa: BLE001 - the generator cleans up and raises it again
                    requests = steps.throw(error)
                else:
                    requests = steps.send(replies)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _answer_all(self, requests: list[Request]) -> list[Any]:
        if len(requests) == 1:
            return [await self._answer(requests[0])]
        batches = [request for request in requests if isinstance(request, SendBatch)]
        with translate_errors(self.name):
            if batches:
                return await self._send_all(batches)
            return await self._call_all([request for request in requests if isinstance(request, Call)])

    async def _answer(self, request: Request) -> Any:
        if isinstance(request, Sleep):
            return await async_sleep(request.seconds)
        if isinstance(request, QueryTimeout):
            return read_timeout(self.client)
        with translate_errors(self.name):
            if isinstance(request, Locate):
                return self._find_address(request.key)
            if isinstance(request, Transaction):
                return await self._transact(request)
            return await (self._call(request) if isinstance(request, Call) else self._send(request))

    def _find_address(self, _key: bytes) -> str:
        return ""

    async def _call(self, request: Call) -> Any:
        return await self.client.execute_command(*request.words, NEVER_DECODE=True)

    async def _call_all(self, calls: list[Call]) -> list[Any]:
        """Send several commands over one connection, without waiting for each reply."""
        replies: list[Any] = []
        for first in range(0, len(calls), _MAX_CALLS):
            async with self.client.pipeline(transaction=False) as pipe:
                for one in calls[first : first + _MAX_CALLS]:
                    pipe.execute_command(*one.words, NEVER_DECODE=True)
                replies += await pipe.execute(raise_on_error=False)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    async def _transact(self, request: Transaction) -> list[Any] | None:
        if not self.is_single:
            raise transaction_error(self.name)
        async with self.client.pipeline(transaction=True) as pipe:
            if request.watch is not None:
                key, value = request.watch
                await pipe.watch(key)
                words = ("GETRANGE", key, 0, len(value))  # one byte more than the value has
                if await pipe.execute_command(*words, NEVER_DECODE=True) != value:
                    return None
                pipe.multi()
            for one in request.calls:
                pipe.execute_command(*one.words)
            try:
                replies: list[Any] = await pipe.execute(raise_on_error=False)
            except redis_errors.WatchError:
                return None
        return translate_replies(self.name, replies)

    async def _send(self, batch: SendBatch) -> list[WireExchange]:
        """Send all shards of a batch to the server."""
        exchange = await self._exchange_batch(batch)
        return [await self._exchange_batch(batch) if batch.needs_retry_by_key(exchange) else exchange]

    async def _exchange_batch(self, batch: SendBatch) -> WireExchange:
        exchange = batch.batch.exchange(batch.shards)
        try:
            await self._exchange(exchange, once=batch.once, acks=batch.acks)
        finally:
            if batch.once:  # what was answered is known, even if the rest is not
                batch.batch.take(exchange)
        return exchange

    async def _send_all(self, batches: list[SendBatch]) -> list[list[WireExchange]]:
        """Send several batches to the server in one round trip."""
        joined = JoinedExchange(batches)
        acks = next((batch.acks for batch in batches if batch.acks is not None), None)
        await self._exchange(joined, once=any(batch.once for batch in batches), acks=acks)
        return [
            [await self._exchange_batch(batch) if batch.needs_retry_by_key(part) else part]
            for batch, part in zip(batches, joined.parts, strict=True)
        ]

    async def _exchange(
        self, exchange: WireExchange | JoinedExchange, *, once: bool, acks: Acks | None
    ) -> None:
        """Exchange over a connection of the client, with its retries unless ``once``."""
        async with async_connection(self.client) as connection:

            async def send_and_receive() -> None:
                await async_send(connection, exchange)
                await async_receive(connection, exchange, acks)

            if once:
                await send_and_receive()
            else:
                await connection.retry.call_with_retry(
                    send_and_receive, lambda _error: connection.disconnect()
                )


class AsyncClusterTransport(AsyncTransport):
    """Sends requests to the nodes of a cluster, at the same time where a batch has keys for several.

    The client's map of the cluster, its connections and its retries are used.
    """

    is_single = False

    def count_default_shards(self) -> int:
        """Return the default number of shards of a new filter."""
        return count_default_shards(self.client)

    def _find_node(self, key: bytes | None) -> Any:
        return self.client.get_default_node() if key is None else self.client.get_node_from_key(key)

    def _find_node_at(self, host: str, port: int) -> Any:
        return async_find_node(self.client, host, port)

    def _find_address(self, key: bytes) -> str:
        return str(self._find_node(key).name)

    async def _call(self, request: Call) -> Any:
        await async_initialize(self.client)
        retries = read_max_retries(self.client)
        return await self._drive(follow_call(request, self._find_node, self._find_node_at, retries))

    async def _call_all(self, calls: list[Call]) -> list[Any]:
        return [await self._call(one) for one in calls]

    def _route(self, batch: SendBatch) -> Generator[Action, Any, list[WireExchange]]:
        return route_batch(batch, self._find_node, self._find_node_at, read_max_retries(self.client))

    async def _send(self, batch: SendBatch) -> list[WireExchange]:
        await async_initialize(self.client)
        exchanges: list[WireExchange] = await self._drive(self._route(batch))
        return exchanges

    async def _send_all(self, batches: list[SendBatch]) -> list[list[WireExchange]]:
        await async_initialize(self.client)
        exchanges: list[list[WireExchange]] = await self._drive(
            route_batches([self._route(batch) for batch in batches])
        )
        return exchanges

    async def _drive(self, steps: Generator[Action, Any, Any]) -> Any:
        try:
            action = next(steps)
            while True:
                try:
                    outcome = await self._perform(action)
                except BaseException as error:  # noqa: BLE001 - the generator raises it again
                    action = steps.throw(error)
                else:
                    action = steps.send(outcome)
        except StopIteration as stop:
            return stop.value

    async def _perform(self, action: Action) -> Any:
        if isinstance(action, ExchangeAll):
            receive = partial(async_receive, acks=action.acks)
            return await async_exchange_with(self.client, action.parts, async_send, receive)
        if isinstance(action, SendCommand):
            return await self._send_command(action)
        if isinstance(action, MoveSlot):
            moved = redis_errors.MovedError(f"{action.slot} {action.host}:{action.port}")
            return await self.client.nodes_manager.move_slot(moved)
        if isinstance(action, RenewMap):
            return await self._renew_map(action)
        return await async_sleep(action.seconds)

    async def _send_command(self, action: SendCommand) -> Any:
        """Return a node's reply, or the error."""
        try:
            async with async_node_connection(self.client, action.node) as connection:
                if action.asking:
                    await connection.send_command("ASKING")
                    await connection.read_response()
                await connection.send_command(*action.words)
                return await connection.read_response(disable_decoding=True)
        except CLIENT_ERRORS as error:
            return error

    async def _renew_map(self, action: RenewMap) -> None:
        manager = self.client.nodes_manager
        await async_sleep(compute_pause(self.client, action.failures))
        with suppress(*CLIENT_ERRORS):  # the next try reports it
            for node in action.failed:
                manager.move_node_to_end_of_cached_nodes(node.name)
            await manager.initialize()


async def create_transport(client: Any, name: str) -> AsyncTransport:
    """Return the transport for a client; ParameterTypeError for an object that is not one."""
    async_check_client(client)
    if not hasattr(client, "nodes_manager"):
        return AsyncTransport(client, name)
    with translate_errors(name):
        await async_initialize(client)
    return AsyncClusterTransport(client, name)
