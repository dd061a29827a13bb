# Generated from async_transport.py by scripts/generate_sync.py (`make stubs`); do not edit.

"""Runs generators of requests over a client of redis: one server, or the nodes of a cluster."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import redis.exceptions as redis_errors

from fullbloom.engines.redis.protocol.errors import (
    CLIENT_ERRORS,
    no_transactions,
    translate_errors,
    translate_replies,
)
from fullbloom.engines.redis.protocol.requests import (
    Call,
    JoinedExchange,
    Locate,
    QueryTimeout,
    SendBatch,
    Sleep,
    Transaction,
)
from fullbloom.engines.redis.transport.cluster import (
    AskNode,
    ExchangeAll,
    MoveSlot,
    RenewMap,
    default_shards,
    follow_call,
    pause_after,
    read_max_retries,
    route_batch,
    run_side_by_side,
)
from fullbloom.engines.redis.transport.connections import (
    read_timeout,
    sync_all,
    sync_check_client,
    sync_connection,
    sync_exchange,
    sync_exchange_with,
    sync_initialize,
    sync_node_at,
    sync_node_connection,
    sync_sleep,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from fullbloom._core import WireExchange
    from fullbloom.engines.redis.protocol.requests import Acks, Request, Steps
    from fullbloom.engines.redis.transport.cluster import Action

T = TypeVar("T")


class Transport:
    """Sends requests to the one server of a client."""

    #: True when all keys are on one server.
    whole = True

    def __init__(self, client: Any, name: str) -> None:
        """Take the client; nothing is sent yet."""
        sync_check_client(client)
        self.client = client
        self.name = name

    def shards(self) -> int:
        """Return the default number of shards of a new filter."""
        return 1

    def run(self, steps: Steps[T]) -> T:
        """Answer the requests of a generator until it returns."""
        try:
            requests = next(steps)
            while True:
                try:
                    answers = self._answer_all(requests)
                except BaseException as error:  # noqa: BLE001 - the generator cleans up and raises it again
                    requests = steps.throw(error)
                else:
                    requests = steps.send(answers)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _answer_all(self, requests: list[Request]) -> list[Any]:
        if len(requests) == 1:
            return [self._answer(requests[0])]
        batches = [request for request in requests if isinstance(request, SendBatch)]
        if batches and len(batches) == len(requests):
            with translate_errors(self.name):
                return self._send_all(batches)
        return sync_all([self._answer(request) for request in requests])

    def _answer(self, request: Request) -> Any:
        if isinstance(request, Sleep):
            return sync_sleep(request.seconds)
        if isinstance(request, QueryTimeout):
            return read_timeout(self.client)
        with translate_errors(self.name):
            if isinstance(request, Locate):
                return self._address(request.key)
            if isinstance(request, Transaction):
                return self._transact(request)
            return self._call(request) if isinstance(request, Call) else self._send(request)

    def _address(self, _key: bytes) -> str:
        return ""

    def _call(self, request: Call) -> Any:
        return self.client.execute_command(*request.words, NEVER_DECODE=True)

    def _transact(self, request: Transaction) -> list[Any] | None:
        if not self.whole:
            raise no_transactions(self.name)
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
        self._exchange(exchange, once=batch.once, acks=batch.acks)
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
            if once:
                sync_exchange(connection, exchange, acks)
            else:
                connection.retry.call_with_retry(
                    lambda: sync_exchange(connection, exchange, acks), lambda _error: connection.disconnect()
                )


class ClusterTransport(Transport):
    """Sends requests to the nodes of a cluster, at the same time where a batch has keys for several.

    The client's map of the cluster, its connections and its retries are used.
    """

    whole = False

    def shards(self) -> int:
        """Return the default number of shards of a new filter."""
        return default_shards(self.client)

    def _node(self, key: bytes | None) -> Any:
        return self.client.get_default_node() if key is None else self.client.get_node_from_key(key)

    def _node_at(self, host: str, port: int) -> Any:
        return sync_node_at(self.client, host, port)

    def _address(self, key: bytes) -> str:
        return str(self._node(key).name)

    def _call(self, request: Call) -> Any:
        sync_initialize(self.client)
        return self._drive(follow_call(request, self._node, self._node_at, read_max_retries(self.client)))

    def _route(self, batch: SendBatch) -> Generator[Action, Any, list[WireExchange]]:
        return route_batch(batch, self._node, self._node_at, read_max_retries(self.client))

    def _send(self, batch: SendBatch) -> list[WireExchange]:
        sync_initialize(self.client)
        exchanges: list[WireExchange] = self._drive(self._route(batch))
        return exchanges

    def _send_all(self, batches: list[SendBatch]) -> list[list[WireExchange]]:
        sync_initialize(self.client)
        exchanges: list[list[WireExchange]] = self._drive(
            run_side_by_side([self._route(batch) for batch in batches])
        )
        return exchanges

    def _drive(self, steps: Generator[Action, Any, Any]) -> Any:
        try:
            action = next(steps)
            while True:
                action = steps.send(self._perform(action))
        except StopIteration as stop:
            return stop.value

    def _perform(self, action: Action) -> Any:
        if isinstance(action, ExchangeAll):
            return sync_exchange_with(self.client, action.parts, action.acks)
        if isinstance(action, AskNode):
            return self._ask_node(action)
        if isinstance(action, MoveSlot):
            moved = redis_errors.MovedError(f"{action.slot} {action.host}:{action.port}")
            return self.client.nodes_manager.move_slot(moved)
        if isinstance(action, RenewMap):
            return self._renew_map(action)
        return sync_sleep(action.seconds)

    def _ask_node(self, action: AskNode) -> Any:
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
        sync_sleep(pause_after(self.client, action.failures))
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
