"""Requests to servers as values, and the replies; nothing here sends.

An operation that takes several requests is a generator: it yields a list of requests that may be sent at the
same time, is sent their answers, and returns its result. A transport drives it: blocking or asyncio, over one
server or the nodes of a cluster.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fullbloom._core import WireBatch
from fullbloom.errors import EngineError, EngineNameTaken, EngineTimeout, EngineUnavailable, FormatError

if TYPE_CHECKING:
    from fullbloom._core import WireCounterBatch, WireExchange, WireText

T = TypeVar("T")


class Call(NamedTuple):
    """A command about one key, or about the server itself; the answer is the reply, undecoded."""

    #: The key whose node is asked; None for any node.
    key: bytes | None
    words: tuple[bytes | int, ...]


#: The shard's number, the key of its string, and a key on the same node for bits to merge.
Shard = tuple[int, bytes, bytes]


class Acks(NamedTuple):
    """How many replicas must confirm a change (WAIT), and how many milliseconds to wait for them."""

    replicas: int
    milliseconds: int


class SendBatch(NamedTuple):
    """The keys of a batch; the answer is a list of complete exchanges, one for each node."""

    batch: WireBatch | WireCounterBatch | WireText
    #: The shards that the batch touches.
    shards: list[Shard]
    #: True to send it once even if the connection breaks, because the server may have executed it.
    once: bool = False
    #: Replicas that must confirm what was added before it counts as acknowledged.
    acks: Acks | None = None

    def needs_retry_by_key(self, exchange: WireExchange) -> bool:
        """Take what a node refused; True if each key has to be sent by itself.

        Keys that are sent together are merged by a script, which may be forbidden where BITFIELD is not, or
        unknown to a proxy. Later batches do not try again.
        """
        if not (isinstance(self.batch, WireBatch) and exchange.is_whole and exchange.refusals):
            return False
        codes = [text.split(" ", 1)[0] for _, text in exchange.refusals]
        self.batch.take(exchange)
        self.batch.go_by_key(always=bool({"NOPERM", "ERR"}.intersection(codes)))
        return True


class Locate(NamedTuple):
    """Asks which node of a cluster has a key; the answer is its address, "" without a cluster."""

    key: bytes


class Transaction(NamedTuple):
    """Commands about one key that the server executes as one (MULTI).

    The answer is a list of replies as the client reads them, errors included.
    """

    calls: tuple[Call, ...]
    #: A key and the value that it must have (WATCH); the answer is None if it has another value.
    watch: tuple[bytes, bytes] | None = None


class QueryTimeout(NamedTuple):
    """Asks how many seconds the client waits for an answer; None if it has no limit."""


class Sleep(NamedTuple):
    """Waits; the answer is None."""

    seconds: float


Request = Call | Transaction | SendBatch | Locate | QueryTimeout | Sleep
#: A generator of requests that returns a T.
Steps = Generator[list[Request], list[Any], T]


def call(key: bytes | None, *words: bytes | int) -> Steps[Any]:
    """Send one command; return the reply as the client library reads it, which may be anything."""
    (answer,) = yield [Call(key, words)]
    return answer


def read_text(key: bytes | None, limit: int, *words: bytes | int) -> Steps[bytes | None]:
    """Send a command that returns at most ``limit`` bytes; None if it returns nothing."""
    return parse_text((yield from call(key, *words)), limit)


def read_part(key: bytes, first: int, size: int) -> Steps[bytes]:
    """Read a part of a string: fewer bytes if the string is shorter, none if it does not exist."""
    return (yield from read_text(key, size, b"GETRANGE", key, first, first + size - 1)) or b""


def read_number(key: bytes | None, *words: bytes | int) -> Steps[int]:
    """Send a command that returns an integer."""
    return parse_number((yield from call(key, *words)))


def try_call(key: bytes | None, *words: bytes | int) -> Steps[bool]:
    """Send a command that may have no effect; False if the server says so."""
    answer = yield from call(key, *words)
    if answer is None or answer is True or answer is False:
        return bool(answer)
    if answer in {b"OK", "OK"}:
        return True
    return bool(parse_number(answer))


def parse_text(answer: Any, limit: int) -> bytes | None:
    """Return a reply that must be at most ``limit`` bytes, or None."""
    if answer is None:
        return None
    if isinstance(answer, str):
        answer = answer.encode("utf-8", "surrogateescape")
    if not isinstance(answer, bytes):
        raise unexpected_reply("no text")
    if len(answer) > limit:
        raise unexpected_reply(f"{len(answer):,} bytes for {limit:,}")
    return answer


def parse_number(answer: Any) -> int:
    """Return a reply that must be a signed 64-bit integer."""
    if isinstance(answer, (bool, int)) and -(1 << 63) <= answer < 1 << 63:
        return int(answer)
    raise unexpected_reply("no number")


#: Attempts while other clients keep changing the filter, and the shortest and longest seconds between them.
MAX_ATTEMPTS, _WAIT, _MAX_WAIT = 100, 0.02, 0.5


def back_off(attempt: int) -> Steps[None]:
    """Wait before every attempt but the first, longer each time."""
    if attempt:
        yield [Sleep(min(_WAIT * attempt, _MAX_WAIT))]


def unexpected_reply(what: str) -> FormatError:
    """Return the error for a reply that none of our commands returns."""
    return FormatError(
        f"the server's answer does not fit the command ({what}); is there a proxy, or another program?"
    )


#: Longest value of a manifest's key or a record that is read; the key may hold something else, of 512 MB.
MAX_VALUE_BYTES = 1 << 16


def read_value(key: bytes) -> Steps[bytes | None]:
    """Read the value of a manifest's key or a record; None if it does not exist.

    Of a longer value only the first `MAX_VALUE_BYTES` and one more are sent.
    """
    try:
        text = yield from read_part(key, 0, MAX_VALUE_BYTES + 1)
    except (EngineTimeout, EngineUnavailable, EngineNameTaken):
        raise
    except EngineError:  # `fullbloom serve` has no GETRANGE; its notes are no longer than this
        text = b""
    # GETRANGE returns nothing for an empty value and for a missing key. GET distinguishes them in one
    # command; around an EXISTS, another client may create and delete the key.
    return text or (yield from read_text(key, MAX_VALUE_BYTES, b"GET", key))


_CHANGE_IF_EQUAL = (
    b"if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.call(unpack(ARGV, 2)) return 1"
)


def change_if_equal(key: bytes, before: bytes, *words: bytes | int) -> Steps[bool]:
    """Execute ``words``, which change ``key``, atomically if the value of ``key`` is ``before``.

    As a script; where scripts are refused, as a transaction that watches the key; where transactions are
    refused too, as on `fullbloom serve`, as two commands.
    """
    try:
        return bool((yield from read_number(key, b"EVAL", _CHANGE_IF_EQUAL, 1, key, before, *words)))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts; or the command itself is refused, and will be again below
        pass
    try:
        (replies,) = yield [Transaction((Call(key, words),), (key, before))]
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no transactions either
        if (yield from read_value(key)) != before:
            return False
        yield from call(key, *words)
        return True
    if replies is not None and isinstance(replies[0], Exception):
        raise replies[0]
    return replies is not None


_MICROSECONDS = 1_000_000
#: A command that sets or removes the time to live of a key, without the key.
ExpiryCommand = tuple[bytes | int, ...]

_CHANGE_WITH_EXPIRY = (
    b"local answer = redis.call(unpack(ARGV, 3)) "
    b"if ARGV[1] == 'PERSIST' then redis.call('PERSIST', KEYS[1]) "
    b"else redis.call(ARGV[1], KEYS[1], ARGV[2]) end "
    b"return answer"
)


def change_with_expiry(
    key: bytes, expiry: ExpiryCommand, *words: bytes | int, others: tuple[bytes, ...] = ()
) -> Steps[Any]:
    """Execute ``words``, which create or change ``key``, and set its time to live, atomically.

    Between two commands a client could stop, and leave a string that expires too early, or never. So they are
    sent as a script; where scripts are refused, as a transaction; where transactions are refused too, one
    after the other. ``others`` are the further keys in ``words``.
    """
    name, when = expiry[0], expiry[1] if len(expiry) > 1 else 0
    try:
        return (
            yield from call(
                key, b"EVAL", _CHANGE_WITH_EXPIRY, 1 + len(others), key, *others, name, when, *words
            )
        )
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts; or the command itself is refused, and will be again below
        both = Call(key, words), Call(key, (name, key, *expiry[1:]))
    try:
        ((answer, _),) = yield [Transaction(both)]
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no transactions either
        answer = yield from call(key, *words)
        yield from call(key, name, key, *expiry[1:])
    if isinstance(answer, Exception):
        raise answer
    return answer


def read_time(key: bytes) -> Steps[int]:
    """Return the milliseconds since 1970 by the clock of the node with ``key``."""
    return int(parse_time((yield from call(key, b"TIME"))) * 1000)


def parse_time(answer: Any) -> float:
    """Return the seconds since 1970 in a reply to TIME."""
    try:
        seconds, micros = (int(part) for part in answer)
    except (TypeError, ValueError):
        raise unexpected_reply("no time") from None
    if not (0 <= seconds < 1 << 40 and 0 <= micros < _MICROSECONDS):
        raise unexpected_reply("no time")
    return seconds + micros / _MICROSECONDS


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


def buffers(exchange: WireExchange | JoinedExchange) -> Iterable[bytes]:
    """Return the buffers to be sent."""
    return exchange.buffers() if isinstance(exchange, JoinedExchange) else [exchange.buffer]
