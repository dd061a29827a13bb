# Generated from async_transport.py by scripts/generate_sync.py (`make stubs`); do not edit.

"""Runs generators of requests over a client of redis: one server, or the nodes of a cluster."""

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
    check_acks,
    check_loaded,
    format_refusal,
    list_buffers,
    read_timeout,
    sync_check_client,
    sync_connection,
    sync_exchange_with,
    sync_find_node,
    sync_find_reader,
    sync_initialize,
    sync_limit_time,
    sync_node_connection,
    sync_sleep,
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


def sync_send(connection: Any, exchange: WireExchange | JoinedExchange) -> None:
    """Send the commands, from the first on."""
    exchange.restart()
    connection.send_packed_command(list_buffers(exchange))


def sync_receive(connection: Any, exchange: WireExchange | JoinedExchange, acks: Acks | None = None) -> None:
    """Read the replies; disconnect unless all of them came. Raise unless replicas confirmed the change."""
    confirmed = None
    try:
        with sync_limit_time(connection):
            _read_replies(connection, exchange)
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


def _read_replies(connection: Any, exchange: WireExchange | JoinedExchange) -> None:
    read, is_complete = sync_find_reader(connection), False
    while not is_complete:
        if read is not None:
            data = read(_RECEIVED_BYTES)
            if not data:
                raise ConnectionResetError
            is_complete = exchange.feed(data)
        else:
            try:
                reply = connection.read_response(disable_decoding=True, disconnect_on_error=False)
                is_complete = exchange.accept(reply)
            except redis_errors.ResponseError as error:
                is_complete = exchange.refuse(format_refusal(error))


class Transport:
    """Sends requests to the one server of a client."""

    #: True when all keys are on one server.
    is_single = True

    def __init__(self, client: Any, name: str) -> None:
        """Take the client; nothing is sent yet."""
        sync_check_client(client)
        self.client = client
        self.name = name

    def count_default_shards(self) -> int:
        """Return the default number of shards of a new filter."""
        return 1

    def run(self, steps: Steps[T]) -> T:
        """Answer the requests of a generator until it returns."""
        try:
            requests = next(steps)
            while True:
                try:
                    replies = self._answer_all(requests)
                except BaseException as error:  # noqa: BLE001 - the generator cleans up and raises it again
                    requests = steps.throw(error)
                else:
                    requests = steps.send(replies)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _answer_all(self, requests: list[Request]) -> list[Any]:
        if len(requests) == 1:
            return [self._answer(requests[0])]
        batches = [request for request in requests if isinstance(request, SendBatch)]
        with translate_errors(self.name):
            if batches:
                return self._send_all(batches)
            return self._call_all([request for request in requests if isinstance(request, Call)])

    def _answer(self, request: Request) -> Any:
        if isinstance(request, Sleep):
            return sync_sleep(request.seconds)
        if isinstance(request, QueryTimeout):
            return read_timeout(self.client)
        with translate_errors(self.name):
            if isinstance(request, Locate):
                return self._find_address(request.key)
            if isinstance(request, Transaction):
                return self._transact(request)
            return self._call(request) if isinstance(request, Call) else self._send(request)

    def _find_address(self, _key: bytes) -> str:
        return ""

    def _call(self, request: Call) -> Any:
        return self.client.execute_command(*request.words, NEVER_DECODE=True)

    def _call_all(self, calls: list[Call]) -> list[Any]:
        """Send several commands over one connection, without waiting for each reply."""
        replies: list[Any] = []
        for first in range(0, len(calls), _MAX_CALLS):
            with self.client.pipeline(transaction=False) as pipe:
                for one in calls[first : first + _MAX_CALLS]:
                    pipe.execute_command(*one.words, NEVER_DECODE=True)
                replies += pipe.execute(raise_on_error=False)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    def _transact(self, request: Transaction) -> list[Any] | None:
        if not self.is_single:
            raise transaction_error(self.name)
        with self.client.pipeline(transaction=True) as pipe:
            if request.watch is not None:
                key, value = request.watch
                pipe.watch(key)
                words = ("GETRANGE", key, 0, len(value))  # one byte more than the value has
                if pipe.execute_command(*words, NEVER_DECODE=True) != value:
                    return None
                pipe.multi()
            for one in request.calls:
                pipe.execute_command(*one.words)
            try:
                replies: list[Any] = pipe.execute(raise_on_error=False)
            except redis_errors.WatchError:
                return None
        return translate_replies(self.name, replies)

    def _send(self, batch: SendBatch) -> list[WireExchange]:
        """Send all shards of a batch to the server."""
        exchange = self._exchange_batch(batch)
        return [self._exchange_batch(batch) if batch.needs_retry_by_key(exchange) else exchange]

    def _exchange_batch(self, batch: SendBatch) -> WireExchange:
        exchange = batch.batch.exchange(batch.shards)
        try:
            self._exchange(exchange, once=batch.once, acks=batch.acks)
        finally:
            if batch.once:  # what was answered is known, even if the rest is not
                batch.batch.take(exchange)
        return exchange

    def _send_all(self, batches: list[SendBatch]) -> list[list[WireExchange]]:
        """Send several batches to the server in one round trip."""
        joined = JoinedExchange(batches)
        acks = next((batch.acks for batch in batches if batch.acks is not None), None)
        self._exchange(joined, once=any(batch.once for batch in batches), acks=acks)
        return [
            [self._exchange_batch(batch) if batch.needs_retry_by_key(part) else part]
            for batch, part in zip(batches, joined.parts, strict=True)
        ]

    def _exchange(self, exchange: WireExchange | JoinedExchange, *, once: bool, acks: Acks | None) -> None:
        """Exchange over a connection of the client, with its retries unless ``once``."""
        with sync_connection(self.client) as connection:

            def send_and_receive() -> None:
                sync_send(connection, exchange)
                sync_receive(connection, exchange, acks)

            if once:
                send_and_receive()
            else:
                connection.retry.call_with_retry(send_and_receive, lambda _error: connection.disconnect())


class ClusterTransport(Transport):
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
        return sync_find_node(self.client, host, port)

    def _find_address(self, key: bytes) -> str:
        return str(self._find_node(key).name)

    def _call(self, request: Call) -> Any:
        sync_initialize(self.client)
        retries = read_max_retries(self.client)
        return self._drive(follow_call(request, self._find_node, self._find_node_at, retries))

    def _call_all(self, calls: list[Call]) -> list[Any]:
        return [self._call(one) for one in calls]

    def _route(self, batch: SendBatch) -> Generator[Action, Any, list[WireExchange]]:
        return route_batch(batch, self._find_node, self._find_node_at, read_max_retries(self.client))

    def _send(self, batch: SendBatch) -> list[WireExchange]:
        sync_initialize(self.client)
        exchanges: list[WireExchange] = self._drive(self._route(batch))
        return exchanges

    def _send_all(self, batches: list[SendBatch]) -> list[list[WireExchange]]:
        sync_initialize(self.client)
        exchanges: list[list[WireExchange]] = self._drive(
            route_batches([self._route(batch) for batch in batches])
        )
        return exchanges

    def _drive(self, steps: Generator[Action, Any, Any]) -> Any:
        try:
            action = next(steps)
            while True:
                try:
                    outcome = self._perform(action)
                except BaseException as error:  # noqa: BLE001 - the generator raises it again
                    action = steps.throw(error)
                else:
                    action = steps.send(outcome)
        except StopIteration as stop:
            return stop.value

    def _perform(self, action: Action) -> Any:
        if isinstance(action, ExchangeAll):
            receive = partial(sync_receive, acks=action.acks)
            return sync_exchange_with(self.client, action.parts, sync_send, receive)
        if isinstance(action, SendCommand):
            return self._send_command(action)
        if isinstance(action, MoveSlot):
            moved = redis_errors.MovedError(f"{action.slot} {action.host}:{action.port}")
            return self.client.nodes_manager.move_slot(moved)
        if isinstance(action, RenewMap):
            return self._renew_map(action)
        return sync_sleep(action.seconds)

    def _send_command(self, action: SendCommand) -> Any:
        """Return a node's reply, or the error."""
        try:
            with sync_node_connection(self.client, action.node) as connection:
                if action.asking:
                    connection.send_command("ASKING")
                    connection.read_response()
                connection.send_command(*action.words)
                return connection.read_response(disable_decoding=True)
        except CLIENT_ERRORS as error:
            return error

    def _renew_map(self, action: RenewMap) -> None:
        manager = self.client.nodes_manager
        sync_sleep(compute_pause(self.client, action.failures))
        with suppress(*CLIENT_ERRORS):  # the next try reports it
            for node in action.failed:
                manager.move_node_to_end_of_cached_nodes(node.name)
            manager.initialize()


def create_transport(client: Any, name: str) -> Transport:
    """Return the transport for a client; ParameterTypeError for an object that is not one."""
    sync_check_client(client)
    if not hasattr(client, "nodes_manager"):
        return Transport(client, name)
    with translate_errors(name):
        sync_initialize(client)
    return ClusterTransport(client, name)
