"""Questions to one server, over the connections of a redis-py client.

Pool, TLS, passwords and retries are the client's. The commands of a batch go out as one buffer, and replies
are read from the connection's socket natively: packing and parsing each of them in Python would be most of
the time. Where a connection has no socket of its own to read from, the client's parser reads.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import redis.exceptions as refusals

from bloomery.engines.redis.protocol import errors
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
    number,
    unexpected,
)
from bloomery.errors import BloomeryError, EngineError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bloomery._core import WireExchange

T = TypeVar("T")

#: What redis-py raises: its errors of clusters are no RedisError.
RAISED = (refusals.RedisError, refusals.RedisClusterException, OSError)
#: Bytes asked of a socket at a time.
RECEIVED = 1 << 16
#: The codes of refusals that redis-py makes classes of and leaves out of their texts.
_CODES = (
    (refusals.ReadOnlyError, "READONLY"),
    (refusals.OutOfMemoryError, "OOM"),
    (refusals.NoPermissionError, "NOPERM"),
    (refusals.AuthenticationError, "WRONGPASS"),
    (refusals.BusyLoadingError, "LOADING"),
    (refusals.MasterDownError, "MASTERDOWN"),
    (refusals.ClusterDownError, "CLUSTERDOWN"),
    (refusals.TryAgainError, "TRYAGAIN"),
    (refusals.AskError, "ASK"),
    (refusals.MovedError, "MOVED"),
)


def text_of(error: Exception) -> str:
    """Return what a server refused with, its code in front."""
    text = str(error)
    for kind, code in _CODES:
        if isinstance(error, kind):
            return f"{code} {text}"
    # redis-py leaves ERR out, and keeps codes that it does not know.
    return text if text.partition(" ")[0].isupper() else f"ERR {text}"


def translated(name: str, error: Exception) -> Exception:  # noqa: PLR0911 - one a kind
    """Return the package's error for one of redis-py's."""
    if isinstance(error, BloomeryError):
        return error
    if isinstance(error, refusals.TimeoutError):
        return errors.late(name)
    if isinstance(error, (refusals.AuthenticationError, refusals.BusyLoadingError)):
        return errors.refused(name, text_of(error))
    if isinstance(error, (refusals.ConnectionError, refusals.RedisClusterException, OSError)):
        return errors.gone(name, str(error))
    if isinstance(error, refusals.ResponseError):
        return errors.refused(name, text_of(error))
    if isinstance(error, refusals.RedisError):
        return errors.strange(name, str(error))
    return error


@contextmanager
def answered(name: str) -> Iterator[None]:
    """Raise the package's errors for whatever a client library raises while a server answers it.

    What it makes of replies that no server sends are errors of Python: their texts may have parts of them.
    """
    try:
        yield
    except (BloomeryError, *RAISED) as error:
        raise translated(name, error) from None
    except Exception as error:  # noqa: BLE001 - anything at all may come of such a reply
        raise unexpected(f"{type(error).__name__} in the client library") from None


def timeout_of(client: Any) -> float | None:
    """Return the seconds for which a client waits for an answer; None where it waits for ever."""
    kwargs = getattr(getattr(client, "connection_pool", None), "connection_kwargs", None)
    if kwargs is None:
        manager = getattr(client, "nodes_manager", None)
        kwargs = getattr(manager, "connection_kwargs", None) or getattr(client, "connection_kwargs", None)
    seconds = (kwargs or {}).get("socket_timeout")
    return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None


def check_acks(acks: Acks, answer: Any) -> None:
    """Raise EngineUnavailable where fewer replicas confirmed a change than must."""
    have = number(answer)
    if have < acks.replicas:
        raise errors.too_few_acks(have, acks.replicas, acks.milliseconds)


def told(name: str, replies: list[Any]) -> list[Any]:
    """Return a transaction's replies, with the package's errors."""
    return [translated(name, one) if isinstance(one, Exception) else one for one in replies]


def no_transactions(name: str) -> EngineError:
    """Return the error for clients of clusters, of which not all have transactions."""
    return EngineError(f"filter {name!r}: no transactions over a client of a cluster")


def idle(connection: Any) -> Any:
    """Return the socket of a connection whose parser holds no bytes.

    None if there is none to be read from.
    """
    parser = getattr(connection, "_parser", None)
    socket = getattr(connection, "_sock", None)
    reader = getattr(parser, "_reader", None)  # of hiredis
    buffer = getattr(parser, "_buffer", None)  # of Python
    if reader is not None and hasattr(reader, "has_data"):
        return None if reader.has_data() else socket
    if buffer is not None and hasattr(buffer, "unread_bytes"):
        return None if buffer.unread_bytes() else socket
    return None


def connected(url: str, *, patience: float | None = None, **options: Any) -> Any:
    """Return a client of a URL, ``redis://``, ``rediss://`` or ``unix://``; ValueError for another.

    patience: seconds for an answer, and then what broke off is sent once more; the rules of redis-py unasked.
    ``options`` are those of ``redis.Redis.from_url``. Nothing is sent yet.
    """
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    parts = urlsplit(url)
    database = parts.path.strip("/")
    if database and parts.scheme != "unix" and not database.isdecimal():
        raise ValueError("the database of a server is a number")  # which the client would take for 0
    if patience is not None:
        times = {"socket_timeout": patience, "socket_connect_timeout": patience}
        options = {"retry": Retry(NoBackoff(), 1), **times, **options}
    return Redis.from_url(url, **options)


class Transport:
    """Asks the one server of a client."""

    #: What a client of this kind has, beside execute_command().
    mark = "connection_pool"
    #: True when all keys are on one server.
    whole = True

    def __init__(self, client: Any, name: str) -> None:
        """Take the client; nothing is sent yet."""
        ask = getattr(client, "execute_command", None)
        if ask is None or not hasattr(client, self.mark) or iscoroutinefunction(ask):
            raise ParameterTypeError(
                "client must be a redis.Redis, valkey.Valkey or redis.RedisCluster client (those of "
                f"redis.asyncio are for AsyncRedisBloomFilter), got {type(client).__name__}"
            )
        self.client = client
        self.name = name

    def shards(self) -> int:
        """Return the shards of a new filter for which no number is given."""
        return 1

    def run(self, steps: Steps[T]) -> T:
        """Answer the questions of a generator until it returns."""
        try:
            asks = next(steps)
            while True:
                try:
                    answers = self._answers(asks)
                except BaseException as error:  # noqa: BLE001 - the generator tidies up and raises it again
                    asks = steps.throw(error)
                else:
                    asks = steps.send(answers)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _answers(self, asks: list[Ask]) -> list[Any]:
        if not asks:
            return []
        sends = [ask for ask in asks if isinstance(ask, Send)]
        if len(asks) == 1 or len(sends) < len(asks):
            return [self._answer(ask) for ask in asks]
        with answered(self.name):
            return self._sent_together(sends)

    def _answer(self, ask: Ask) -> Any:
        if isinstance(ask, Pause):
            return time.sleep(ask.seconds)
        if isinstance(ask, Timeout):
            return timeout_of(self.client)
        with answered(self.name):
            if isinstance(ask, Where):
                return self._where(ask.key)
            if isinstance(ask, Whole):
                return self._done_whole(ask)
            return self._called(ask) if isinstance(ask, Call) else self._sent(ask)

    def _where(self, _key: bytes) -> str:
        return ""

    def _called(self, ask: Call) -> Any:
        return self.client.execute_command(*ask.words, NEVER_DECODE=True)

    def _done_whole(self, ask: Whole) -> list[Any] | None:
        if not self.whole:
            raise no_transactions(self.name)
        with self.client.pipeline(transaction=True) as pipe:
            if ask.watch is not None:
                key, value = ask.watch
                pipe.watch(key)
                if pipe.execute_command("GET", key, NEVER_DECODE=True) != value:
                    return None
                pipe.multi()
            for one in ask.calls:
                pipe.execute_command(*one.words)
            try:
                replies: list[Any] = pipe.execute(raise_on_error=False)
            except refusals.WatchError:
                return None
        return told(self.name, replies)

    def _sent(self, ask: Send) -> list[WireExchange]:
        """Send all shards of a batch to the server."""
        exchange = self._exchanged(ask)
        return [self._exchanged(ask) if ask.is_refused_whole(exchange) else exchange]

    def _exchanged(self, ask: Send) -> WireExchange:
        exchange = ask.batch.exchange(ask.shards)
        self._over_one(exchange, once=ask.once, acks=ask.acks)
        return exchange

    def _sent_together(self, asks: list[Send]) -> list[list[WireExchange]]:
        """Send several batches to the server in one round trip."""
        joined = Joined(asks)
        acks = next((ask.acks for ask in asks if ask.acks is not None), None)
        self._over_one(joined, once=any(ask.once for ask in asks), acks=acks)
        return [
            [self._exchanged(ask) if ask.is_refused_whole(part) else part]
            for ask, part in zip(asks, joined.parts, strict=True)
        ]

    def _over_one(self, exchange: WireExchange | Joined, *, once: bool, acks: Acks | None = None) -> None:
        """Exchange over a connection of the client."""
        client = self.client
        kept = client.connection  # a client of one connection, which it locks
        lock = getattr(client, "single_connection_lock", None) if kept is not None else None
        connection = kept or client.connection_pool.get_connection()
        if lock is not None:
            lock.acquire()
        try:
            if once:
                _exchanged(connection, exchange, acks)
            else:
                connection.retry.call_with_retry(
                    lambda: _exchanged(connection, exchange, acks), lambda _error: connection.disconnect()
                )
        finally:
            if lock is not None:
                lock.release()
            if kept is None:
                client.connection_pool.release(connection)


def _exchanged(connection: Any, exchange: WireExchange | Joined, acks: Acks | None = None) -> None:
    send(connection, exchange)
    receive(connection, exchange, acks)


def send(connection: Any, exchange: WireExchange | Joined) -> None:
    """Send the commands, from the first on."""
    exchange.restart()
    connection.send_packed_command(buffers(exchange))


def receive(connection: Any, exchange: WireExchange | Joined, acks: Acks | None = None) -> None:
    """Read the replies; the connection is closed unless all of them came, and replicas confirmed them."""
    confirmed = None
    try:
        socket = idle(connection)
        if socket is None:
            _parsed(connection, exchange)
        else:
            _received(socket, exchange)
        check_loaded(exchange)
        if acks is not None and not exchange.refusals:
            connection.send_command("WAIT", acks.replicas, acks.milliseconds)
            confirmed = connection.read_response()
    except TimeoutError:
        connection.disconnect()
        raise refusals.TimeoutError("timeout reading from socket") from None
    except OSError:
        connection.disconnect()
        raise refusals.ConnectionError("error while reading from socket") from None
    except BaseException:
        connection.disconnect()
        raise
    if acks is not None and confirmed is not None:
        check_acks(acks, confirmed)


def check_loaded(exchange: WireExchange | Joined) -> None:
    """Raise what clients try again after where a server that starts has not read its data yet."""
    if any(text.startswith("LOADING") for _, text in exchange.refusals):
        raise refusals.BusyLoadingError("the server is loading its data")


def together(
    parts: list[tuple[Any, Callable[[], WireExchange]]], acks: Acks | None = None
) -> list[Exception | None]:
    """Exchange with several pools at the same time: all is sent before the first reply is read.

    Returns an error, or None, of each. Servers keep the replies that nobody reads yet.
    """
    errors: list[Exception | None] = [None] * len(parts)
    open_: list[tuple[int, Any]] = []
    exchanges: list[WireExchange] = []
    try:
        for number, (pool, make) in enumerate(parts):
            exchange = make()
            exchanges.append(exchange)
            try:
                connection = pool.get_connection()
                open_.append((number, connection))
                send(connection, exchange)
            except RAISED as error:
                errors[number] = error
        for number, connection in open_:
            if errors[number] is None:
                try:
                    receive(connection, exchanges[number], acks)
                except RAISED as error:
                    errors[number] = error
    except BaseException:
        for _, connection in open_:
            connection.disconnect()
        raise
    finally:
        for number, connection in open_:
            if errors[number] is not None:
                connection.disconnect()
            parts[number][0].release(connection)
    return errors


def _received(socket: Any, exchange: WireExchange | Joined) -> None:
    while True:
        data = socket.recv(RECEIVED)
        if not data:
            raise ConnectionResetError
        if exchange.feed(data):
            return


def _parsed(connection: Any, exchange: WireExchange | Joined) -> None:
    done = False
    while not done:
        try:
            done = exchange.accept(connection.read_response(disable_decoding=True, disconnect_on_error=False))
        except refusals.ResponseError as error:
            done = exchange.refuse(text_of(error))
