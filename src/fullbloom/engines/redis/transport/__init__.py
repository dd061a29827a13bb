"""Sends requests over the clients of redis-py: blocking and asyncio, one server and a cluster.

The client's pool, TLS, passwords and retries are used. This module creates blocking clients from URLs, and
routes requests to the nodes of a cluster: a generator yields actions, such as exchanging commands with some
nodes at the same time or changing the client's map of the cluster, and is sent their results.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import redis.exceptions as redis_errors

from fullbloom.engines.redis.protocol import Acks, Call, SendBatch, Shard, reply_error
from fullbloom.engines.redis.protocol.manifest import Names, make_string_pattern
from fullbloom.engines.redis.transport.connections import CLIENT_ERRORS, translate_errors
from fullbloom.errors import FullbloomError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from fullbloom._core import WireExchange

T = TypeVar("T")

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
    with translate_errors(name):
        return _choose_client(client, url, timeout, options)


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
    """Delete the manifest of a name, and all strings that filters of this name left, found by SCAN."""
    is_string, names = make_string_pattern(name).fullmatch, Names(name)
    glob = re.sub(r"([\\\[\]*?])", r"\\\1", f"{name}:bits") + "*"
    with translate_errors(name):
        for key in client.scan_iter(match=glob, count=1000):
            if is_string(key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")):
                client.unlink(key)
        for other in (names.reshard, names.manifest):
            client.unlink(other)


#: Redirections that a batch follows; redis-py follows as many for a command.
_MAX_HOPS = 16
#: Redirections without a pause: while a slot changes hands, two nodes may redirect to each other until both
#: know.
_IMMEDIATE_HOPS = 3
#: Refusals of a node that may serve the slot later, or not at all.
_DOWN = ("CLUSTERDOWN", "LOADING", "MASTERDOWN")
_ASK = "ASK"
_REDIRECTIONS = ("MOVED", _ASK)
#: Refusals of commands that another node may execute, or the same one later.
_RETRIED = (*_DOWN, *_REDIRECTIONS, "TRYAGAIN")
_SHORT_PAUSE = 0.05
_SLOTS = 16384
#: Raised if no node is known for a slot, or at an address.
_UNKNOWN = (redis_errors.RedisError, redis_errors.RedisClusterException)
_BROKEN = (
    redis_errors.ConnectionError,
    redis_errors.TimeoutError,
    redis_errors.ClusterDownError,
    redis_errors.RedisClusterException,
    OSError,
)


#: Shards of a new filter for each primary: they are even within a quarter, however keys fall on slots.
SHARDS_PER_PRIMARY = 16


def read_max_retries(client: Any) -> int:
    """Return how often the client retries a command."""
    return int(client.retry.get_retries())


def compute_pause(client: Any, failures: int) -> float:
    """Return the seconds that the client waits after so many failures."""
    backoff = getattr(client.retry, "_backoff", None)
    return float(backoff.compute(failures)) if backoff is not None else 0.05 * failures


def count_default_shards(client: Any) -> int:
    """Return the default number of shards of a new filter."""
    return SHARDS_PER_PRIMARY * max(1, len(client.get_primaries()))


class ExchangeAll(NamedTuple):
    """Exchanges commands with several nodes; the result is a list of errors, None where all replies came.

    The commands for a node are written when they are sent, while other nodes already execute theirs.
    """

    parts: list[tuple[Any, Callable[[], WireExchange]]]
    acks: Acks | None = None


class SendCommand(NamedTuple):
    """Sends a command to a node, with ASKING if need be; the result is the reply, or the error."""

    node: Any
    words: tuple[bytes | int, ...]
    asking: bool


class MoveSlot(NamedTuple):
    """Records in the map that another node has a slot now."""

    slot: int
    host: str
    port: int


class RenewMap(NamedTuple):
    """Reads the map again, after a pause for the n-th failure, from the failed nodes last."""

    failed: list[Any]
    failures: int


class Delay(NamedTuple):
    """Waits."""

    seconds: float


Action = ExchangeAll | SendCommand | MoveSlot | RenewMap | Delay


def may_be_failover(error: Exception) -> bool:
    """Return whether the map may have changed: not after a wrong password, or if the pool is full."""
    is_broken = isinstance(error, _BROKEN)
    return is_broken and not isinstance(
        error, (redis_errors.AuthenticationError, redis_errors.MaxConnectionsError)
    )


@dataclass
class _RetryBudget:
    """How often a request was redirected, and how often it failed."""

    retries: int
    hops: int = 0
    failures: int = 0

    def is_exhausted(self) -> bool:
        return self.failures > self.retries or self.hops > _MAX_HOPS

    def back_off(self) -> Generator[Action, Any, None]:
        """Wait a little before the next of many redirections."""
        if self.hops > _IMMEDIATE_HOPS:
            yield Delay(_SHORT_PAUSE)


def follow_call(
    call: Call,
    find_node: Callable[[bytes | None], Any],
    find_node_at: Callable[[str, int], Any],
    retries: int,
) -> Generator[Action, Any, Any]:
    """Send a command to the node of its key, wherever that moves; return the reply, not decoded."""
    budget, asking_node = _RetryBudget(retries), None
    while True:
        node: Any = None
        try:
            node = asking_node or find_node(call.key)
            reply = yield SendCommand(node, call.words, asking_node is not None)
        except _UNKNOWN as unknown:
            reply = unknown
        if not isinstance(reply, Exception):
            return reply
        asking_node, is_broken = None, may_be_failover(reply)
        if not is_broken and not isinstance(reply, (redis_errors.AskError, redis_errors.TryAgainError)):
            raise reply
        budget.failures += is_broken
        budget.hops += not is_broken
        if budget.is_exhausted():
            raise reply
        yield from budget.back_off()
        if is_broken:
            yield RenewMap([] if node is None else [node], budget.failures)
        elif isinstance(reply, redis_errors.MovedError):  # a subclass of AskError
            yield MoveSlot(reply.slot_id, reply.host or node.host, reply.port)
        elif isinstance(reply, redis_errors.AskError):
            asking_node = find_node_at(reply.host or node.host, reply.port)
        else:
            yield Delay(_SHORT_PAUSE)


@dataclass
class _NodePart:
    """The part of a batch for one node."""

    node: Any
    shards: list[Shard]
    asking: bool
    send: SendBatch
    written: WireExchange | None = None

    @property
    def exchange(self) -> WireExchange:
        return self.written or self.write()

    def write(self) -> WireExchange:
        """Write the commands."""
        self.written = self.send.batch.exchange(self.shards, asking=self.asking)
        return self.written


class _Retry:
    """The parts of a batch that have to be sent again, and where to."""

    def __init__(self, *, once: bool) -> None:
        self.once = once
        self.left: list[Shard] = []
        self.refused: list[WireExchange] = []
        self.broken: list[Any] = []
        self.error: Exception | None = None
        self.is_down = False
        self.moves: dict[int, MoveSlot] = {}
        self.asking: dict[int, MoveSlot] = {}

    def record(self, part: _NodePart, error: Exception | None) -> bool:
        """Take a node's replies; True if the part has to be sent again."""
        refused = [(shard, text.split(" ")) for shard, text in part.exchange.refusals]
        refused = [(shard, words) for shard, words in refused if words[0] in _RETRIED]
        by_key = part.send.needs_retry_by_key(part.exchange)
        if error is None and not refused and not by_key:
            return False
        self.left += part.shards
        self.refused.append(part.exchange)
        if error is not None:
            if self.once or isinstance(error, FullbloomError) or not may_be_failover(error):
                raise error
            self.error = error
            self.broken.append(part.node)
        for shard, (code, *rest) in refused:
            self.is_down |= code in _DOWN
            if code in _REDIRECTIONS:
                move = _parse_redirection(rest, part.node)
                if code != _ASK:
                    self.moves[move.slot] = move
                elif not by_key:  # ASK for the key beside a string that has not moved
                    self.asking[shard] = move
        return True

    def prepare(self, failures: int) -> Generator[Action, Any, None]:
        """Yield the steps before the next try."""
        yield from self.moves.values()
        if self.broken or self.is_down:
            yield RenewMap(self.broken, failures)
        elif not self.moves and not self.asking:
            yield Delay(_SHORT_PAUSE)


def route_batch(
    send: SendBatch, find_node: Callable[[bytes], Any], find_node_at: Callable[[str, int], Any], retries: int
) -> Generator[Action, Any, list[WireExchange]]:
    """Exchange a batch with the nodes of its shards; return the exchanges whose answers are valid.

    ``find_node`` returns the node of a key by the client's map, ``find_node_at`` the one at an address. A
    broken connection is retried as often as the client itself would.
    """
    budget, left = _RetryBudget(retries), send.shards
    done: list[WireExchange] = []
    asking: dict[int, Any] = {}
    while left:
        try:
            parts = _group_by_node(send, left, find_node, asking)
        except _UNKNOWN:
            budget.failures += 1
            if budget.is_exhausted():
                raise
            yield RenewMap([], budget.failures)
            continue
        outcomes = yield from _exchange_parts(send, parts)
        retry = _Retry(once=send.once)
        for part, outcome in zip(parts, outcomes, strict=True):
            if retry.record(part, outcome):
                send.batch.take(part.exchange)  # answers stay valid, whatever the next node says
            else:
                done.append(part.exchange)
        left = retry.left
        if not left:
            break
        has_failed = bool(retry.broken or retry.is_down)
        budget.failures += has_failed
        budget.hops += not has_failed
        if budget.is_exhausted():
            if retry.error is not None:
                raise retry.error
            return [*done, *retry.refused]  # the caller raises their refusals
        yield from retry.prepare(budget.failures)
        yield from budget.back_off()
        asking = {shard: find_node_at(to.host, to.port) for shard, to in retry.asking.items()}
    return done


def _exchange_parts(
    send: SendBatch, parts: list[_NodePart]
) -> Generator[Action, Any, list[Exception | None]]:
    """Exchange the parts; of a batch that is sent once, what was answered counts, whatever breaks."""
    try:
        outcomes: list[Exception | None]
        outcomes = yield ExchangeAll([(part.node, part.write) for part in parts], send.acks)
        return outcomes
    finally:
        if send.once:
            for part in parts:
                send.batch.take(part.exchange)


def route_batches(steps: list[Generator[Action, Any, T]]) -> Generator[Action, Any, list[T]]:
    """Route several batches at once: what they exchange is sent at the same time."""
    results: dict[int, T] = {}
    actions: dict[int, Action] = {}

    def resume(number: int, outcome: Any) -> None:
        try:
            actions[number] = steps[number].send(outcome)
        except StopIteration as stop:
            actions.pop(number, None)
            results[number] = stop.value

    for number in range(len(steps)):
        resume(number, None)
    while actions:
        exchanges = {number: one for number, one in actions.items() if isinstance(one, ExchangeAll)}
        for number in set(actions) - set(exchanges):
            resume(number, (yield actions[number]))
        parts = [part for one in exchanges.values() for part in one.parts]
        acks = next((one.acks for one in exchanges.values() if one.acks is not None), None)
        outcomes = iter((yield ExchangeAll(parts, acks)) if parts else ())
        for number, one in exchanges.items():
            resume(number, list(islice(outcomes, len(one.parts))))
    return [results[number] for number in range(len(steps))]


def _group_by_node(
    send: SendBatch, left: list[Shard], find_node: Callable[[bytes], Any], asking: dict[int, Any]
) -> list[_NodePart]:
    """Return a part for each node, and one more if it has to be sent ASKING for a moving slot."""
    groups: dict[tuple[Any, bool], list[Shard]] = {}
    for shard in left:
        number, key, _ = shard
        is_asking = number in asking
        node = asking[number] if is_asking else find_node(key)
        groups.setdefault((node, is_asking), []).append(shard)
    return [_NodePart(node, shards, is_asking, send) for (node, is_asking), shards in groups.items()]


def _parse_redirection(words: list[str], node: Any) -> MoveSlot:
    """Return the slot and address in ``slot host:port``; without a host it is the answering node's."""
    try:
        host, _, port = words[1].rpartition(":")
        slot, number = int(words[0]), int(port)
    except (IndexError, ValueError):
        raise reply_error("a redirection to nowhere") from None
    if not (0 <= slot < _SLOTS and 0 < number < 1 << 16):
        raise reply_error("a redirection to nowhere")
    return MoveSlot(slot, host or node.host, number)
