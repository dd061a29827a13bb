"""What is asked of the servers, as values: nothing here sends.

Whatever takes more than one question is a generator: it yields questions that may be asked at the same
time, is sent their answers, and returns what came of it. A transport drives it: waiting or not, over one
server or the nodes of a cluster.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fullbloom._core import WireBatch
from fullbloom.errors import EngineError, EngineTimeout, EngineUnavailable, FormatError

if TYPE_CHECKING:
    from fullbloom._core import WireCounterBatch, WireExchange, WireText

T = TypeVar("T")


class Call(NamedTuple):
    """A command about one key of the server, or about the server itself.

    Its answer is the reply, undecoded.
    """

    #: The key whose node is asked; any node may answer without one.
    key: bytes | None
    words: tuple[bytes | int, ...]


#: Its number, the name of its string, and a name on the same node for bits on their way to it.
Shard = tuple[int, bytes, bytes]


class Acks(NamedTuple):
    """How many replicas must confirm a change (WAIT), and for how many milliseconds they are waited for."""

    replicas: int
    milliseconds: int


class Send(NamedTuple):
    """The keys of a batch; its answer is a list of exchanges, one a node, whose replies have all come."""

    batch: WireBatch | WireCounterBatch | WireText
    #: Each shard that the batch touches.
    shards: list[Shard]
    #: Not sent again when a connection breaks, as it may have been done.
    once: bool = False
    #: Replicas that must have what was added, if any, before it counts as acknowledged.
    acks: Acks | None = None

    def is_refused_whole(self, exchange: WireExchange) -> bool:
        """Keep what a node answered; True when it has to be asked once more, for each key by itself.

        Keys that go together are a script of the server: it may be forbidden where a BITFIELD is not, or a
        proxy may not know it, and later batches need not try.
        """
        if not (isinstance(self.batch, WireBatch) and exchange.is_whole and exchange.refusals):
            return False
        codes = [text.split(" ", 1)[0] for _, text in exchange.refusals]
        self.batch.take(exchange)
        self.batch.go_by_key(always=bool({"NOPERM", "ERR"}.intersection(codes)))
        return True


class Where(NamedTuple):
    """The node of a cluster that has a key; its answer is its address, or "" of a server alone."""

    key: bytes


class Whole(NamedTuple):
    """Commands about one key that the server does as one (MULTI).

    Its answer is a list of replies as the client reads them, errors among them.
    """

    calls: tuple[Call, ...]
    #: A key and the value that it must have (WATCH); the answer is None where it has another.
    watch: tuple[bytes, bytes] | None = None


class Timeout(NamedTuple):
    """The seconds for which the client waits for an answer; None where it waits for ever."""


class Pause(NamedTuple):
    """A while to wait; its answer is None."""

    seconds: float


Ask = Call | Whole | Send | Where | Timeout | Pause
#: A generator of questions that returns a T.
Steps = Generator[list[Ask], list[Any], T]


def call(key: bytes | None, *words: bytes | int) -> Steps[Any]:
    """Ask one thing; the reply as the client library has it, which may be anything."""
    (answer,) = yield [Call(key, words)]
    return answer


def read_text(key: bytes | None, most: int, *words: bytes | int) -> Steps[bytes | None]:
    """Ask for a text of so many bytes at most; None where there is none."""
    return text((yield from call(key, *words)), most)


def read_part(key: bytes, first: int, size: int) -> Steps[bytes]:
    """Ask for a part of a string; fewer bytes where it is shorter, none where it is not there."""
    return (yield from read_text(key, size, b"GETRANGE", key, first, first + size - 1)) or b""


def read_number(key: bytes | None, *words: bytes | int) -> Steps[int]:
    """Ask for a whole number."""
    return number((yield from call(key, *words)))


def is_done(key: bytes | None, *words: bytes | int) -> Steps[bool]:
    """Ask for something to be done; False where the server says that it was not."""
    answer = yield from call(key, *words)
    if answer is None or answer is True or answer is False:
        return bool(answer)
    if answer in {b"OK", "OK"}:
        return True
    return bool(number(answer))


def text(answer: Any, most: int) -> bytes | None:
    """Return a reply that must be a text of so many bytes at most, or nothing."""
    if answer is None:
        return None
    if isinstance(answer, str):
        answer = answer.encode("utf-8", "surrogateescape")
    if not isinstance(answer, bytes):
        raise unexpected("no text")
    if len(answer) > most:
        raise unexpected(f"{len(answer):,} bytes for {most:,}")
    return answer


def number(answer: Any) -> int:
    """Return a reply that must be a whole number of 64 bits."""
    if isinstance(answer, (bool, int)) and -(1 << 63) <= answer < 1 << 63:
        return int(answer)
    raise unexpected("no number")


#: Tries after which a client gives up that others overtake again and again; seconds between them, at most.
TRIES, _WAIT, _LONGEST_WAIT = 100, 0.02, 0.5


def paused(turn: int) -> Steps[None]:
    """Wait before every try but the first, longer and longer."""
    if turn:
        yield [Pause(min(_WAIT * turn, _LONGEST_WAIT))]


def unexpected(what: str) -> FormatError:
    """Return the error for a reply that no command of ours is answered with."""
    return FormatError(
        f"the server's answer does not fit what it was asked ({what}); is a proxy between, or another "
        "program?"
    )


#: A value under the manifest's name is read up to here, and refused as none beyond the longest manifest.
LONGEST_TEXT = 512 << 20
_GUARDED = b"if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.call(unpack(ARGV, 2)) return 1"


def guarded(key: bytes, before: bytes, *words: bytes | int) -> Steps[bool]:
    """Ask ``words``, which change ``key``, if its value is ``before``, at one moment.

    As a script; as a transaction that watches the key where scripts are refused; where neither is there, as
    on `fullbloom serve`, one after the other.
    """
    try:
        return bool((yield from read_number(key, b"EVAL", _GUARDED, 1, key, before, *words)))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts; or what the words are refused for, which they tell now
        pass
    try:
        (replies,) = yield [Whole((Call(key, words),), (key, before))]
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no transactions either
        if (yield from read_text(key, LONGEST_TEXT, b"GET", key)) != before:
            return False
        yield from call(key, *words)
        return True
    if replies is not None and isinstance(replies[0], Exception):
        raise replies[0]
    return replies is not None


_SECOND = 1_000_000
#: A command about the time to live of a key, without the key.
Lasts = tuple[bytes | int, ...]

_SCRIPT = (
    b"local answer = redis.call(unpack(ARGV, 3)) "
    b"if ARGV[1] == 'PERSIST' then redis.call('PERSIST', KEYS[1]) "
    b"else redis.call(ARGV[1], KEYS[1], ARGV[2]) end "
    b"return answer"
)


def timed(key: bytes, how: Lasts, *words: bytes | int, others: tuple[bytes, ...] = ()) -> Steps[Any]:
    """Ask ``words``, which make or change ``key``, and set how long it stands, at one moment.

    others: the further keys that the words name.
    """
    name, when = how[0], how[1] if len(how) > 1 else 0
    try:
        return (yield from call(key, b"EVAL", _SCRIPT, 1 + len(others), key, *others, name, when, *words))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts; or what the words are refused for, which they tell now
        both = Call(key, words), Call(key, (name, key, *how[1:]))
    try:
        ((answer, _),) = yield [Whole(both)]
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no transactions either
        answer = yield from call(key, *words)
        yield from call(key, name, key, *how[1:])
    if isinstance(answer, Exception):
        raise answer
    return answer


def now(key: bytes) -> Steps[int]:
    """Return the milliseconds since 1970 by the clock of the node that has ``key``."""
    return int(clock((yield from call(key, b"TIME"))) * 1000)


def clock(answer: Any) -> float:
    """Return the seconds since 1970 in a reply to TIME."""
    try:
        seconds, micros = (int(part) for part in answer)
    except (TypeError, ValueError):
        raise unexpected("no time") from None
    if not (0 <= seconds < 1 << 40 and 0 <= micros < _SECOND):
        raise unexpected("no time")
    return seconds + micros / _SECOND


class Joined:
    """Several batches that go out over one connection at the same time, as an exchange."""

    def __init__(self, asks: list[Send]) -> None:
        """Take the batches; their commands are written when they are sent."""
        self._asks = asks
        #: An exchange of each.
        self.parts: list[WireExchange] = []
        self._at = 0

    def restart(self) -> None:
        """Begin anew."""
        self._at = 0
        for part in self.parts:
            part.restart()

    def buffers(self) -> Iterator[bytes]:
        """Return what is to be sent, each written while the server is busy with the one before."""
        for number, ask in enumerate(self._asks):
            if number == len(self.parts):
                self.parts.append(ask.batch.exchange(ask.shards))
            yield self.parts[number].buffer

    def feed(self, data: bytes) -> bool:
        """Take bytes as they come; True when all replies have."""
        while self._at < len(self.parts) - 1:
            left = self.parts[self._at].feed_part(data)
            if left is None:
                return False
            self._at += 1
            data = data[len(data) - left :]
        return self.parts[-1].feed(data)

    def accept(self, reply: Any) -> bool:
        """Take the next reply as a client library read it."""
        return self._taken(done=self.parts[self._at].accept(reply))

    def refuse(self, text: str) -> bool:
        """Take a refusal as the next reply."""
        return self._taken(done=self.parts[self._at].refuse(text))

    def _taken(self, *, done: bool) -> bool:
        self._at += done
        return self._at == len(self.parts)

    @property
    def refusals(self) -> list[tuple[int, str]]:
        """What the server refused, and of which shard."""
        return [refusal for part in self.parts for refusal in part.refusals]


def buffers(exchange: WireExchange | Joined) -> Iterable[bytes]:
    """Return what is to be sent."""
    return exchange.buffers() if isinstance(exchange, Joined) else [exchange.buffer]
