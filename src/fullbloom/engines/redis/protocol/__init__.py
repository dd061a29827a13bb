"""The protocol with servers: requests as values, checks of the replies, and errors.

Nothing in this package does I/O or imports redis-py. An operation that takes several requests is a generator:
it yields a list of requests, is sent their replies, and returns its result. A transport runs it: blocking or
with asyncio, against one server or the nodes of a cluster.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fullbloom._core import WireBatch
from fullbloom.errors import (
    EngineError,
    EngineFull,
    EngineNameTaken,
    EngineRefused,
    EngineTimeout,
    EngineUnavailable,
    FilterLost,
    FilterRolledBack,
    FormatError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom._core import WireCounterBatch, WireExchange, WireText

T = TypeVar("T")

HASH_BYTES = 8


class Call(NamedTuple):
    """A command about one key, or about the server itself; its reply is not decoded."""

    #: The key whose node gets the command; None for any node.
    key: bytes | None
    words: tuple[bytes | int, ...]


#: The shard's number, the key of its string, and a key on the same node for bits to merge.
Shard = tuple[int, bytes, bytes]


class Acks(NamedTuple):
    """How many replicas must confirm a change (WAIT), and how many milliseconds to wait for them."""

    replicas: int
    milliseconds: int


class SendBatch(NamedTuple):
    """The keys of a batch; the reply is a list of complete exchanges, one for each node."""

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
    """Asks which node of a cluster has a key; the reply is its address, "" without a cluster."""

    key: bytes


class Transaction(NamedTuple):
    """Commands about one key that the server executes as one (MULTI).

    The reply is a list of replies as the client library reads them, errors included.
    """

    calls: tuple[Call, ...]
    #: A key and the value that it must have (WATCH); the reply is None if it has another value.
    watch: tuple[bytes, bytes] | None = None


class QueryTimeout(NamedTuple):
    """Asks how many seconds the client waits for a reply; None if it has no limit."""


class Sleep(NamedTuple):
    """Waits; the reply is None."""

    seconds: float


#: A list of several requests has only batches or only calls.
Request = Call | Transaction | SendBatch | Locate | QueryTimeout | Sleep
#: A generator of requests that returns a T.
Steps = Generator[list[Request], list[Any], T]


def call(key: bytes | None, *words: bytes | int) -> Steps[Any]:
    """Send one command; return the reply as the client library reads it, which may be anything."""
    (reply,) = yield [Call(key, words)]
    return reply


def read_text(key: bytes | None, limit: int, *words: bytes | int) -> Steps[bytes | None]:
    """Send a command that returns at most ``limit`` bytes; None if it returns nothing."""
    return parse_text((yield from call(key, *words)), limit)


def read_part(key: bytes, first: int, size: int) -> Steps[bytes]:
    """Read a part of a string: fewer bytes if the string is shorter, none if it does not exist."""
    return (yield from read_text(key, size, b"GETRANGE", key, first, first + size - 1)) or b""


def read_number(key: bytes | None, *words: bytes | int) -> Steps[int]:
    """Send a command that returns an integer."""
    return parse_number((yield from call(key, *words)))


def count_bits(key: bytes, nbytes: int) -> Steps[int]:
    """Count the set bits in the first bytes of a string."""
    return min(max((yield from read_number(key, b"BITCOUNT", key, 0, nbytes - 1)), 0), 8 * nbytes)


def try_call(key: bytes | None, *words: bytes | int) -> Steps[bool]:
    """Send a command that may have no effect; False if the server says so."""
    reply = yield from call(key, *words)
    if reply is None or isinstance(reply, bool):
        return bool(reply)
    if isinstance(reply, (bytes, str)) and reply in {b"OK", "OK"}:
        return True
    return bool(parse_number(reply))


def try_script(script: bytes, keys: tuple[bytes, ...], *args: bytes | int) -> Steps[Any]:
    """Run a script that returns something; None if the server refuses scripts, or a command of this one."""
    try:
        return (yield from call(keys[0], b"EVAL", script, len(keys), *keys, *args))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        return None


def parse_text(reply: Any, limit: int) -> bytes | None:
    """Return a reply that must be at most ``limit`` bytes, or None."""
    if reply is None:
        return None
    if isinstance(reply, str):
        reply = reply.encode("utf-8", "surrogateescape")
    if not isinstance(reply, bytes):
        raise reply_error("no text")
    if len(reply) > limit:
        raise reply_error(f"{len(reply):,} bytes for {limit:,}")
    return reply


def parse_number(reply: Any) -> int:
    """Return a reply that must be a signed 64-bit integer."""
    if isinstance(reply, (bool, int)) and -(1 << 63) <= reply < 1 << 63:
        return int(reply)
    raise reply_error("no number")


#: Attempts while other clients keep changing the filter, and the shortest and longest seconds between them.
MAX_ATTEMPTS, _WAIT, _MAX_WAIT = 100, 0.02, 0.5


def back_off(attempt: int) -> Steps[None]:
    """Wait before every attempt but the first, longer each time."""
    if attempt:
        yield [Sleep(min(_WAIT * attempt, _MAX_WAIT))]


#: Seconds to wait for another client, unless this client's own timeout is shorter.
_MAX_WAIT_FOR_OTHERS = 10.0


def query_wait_limit() -> Steps[float]:
    """Return how many seconds to wait for another client."""
    (seconds,) = yield [QueryTimeout()]
    return _MAX_WAIT_FOR_OTHERS if seconds is None else min(_MAX_WAIT_FOR_OTHERS, seconds)


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
    reply = yield from try_script(_CHANGE_IF_EQUAL, (key,), before, *words)
    if reply is not None:
        return bool(parse_number(reply))
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
    reply = yield from try_script(_CHANGE_WITH_EXPIRY, (key, *others), name, when, *words)
    if reply is not None:
        return reply
    try:
        ((reply, _),) = yield [Transaction((Call(key, words), Call(key, (name, key, *expiry[1:]))))]
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no transactions either
        reply = yield from call(key, *words)
        yield from call(key, name, key, *expiry[1:])
    if isinstance(reply, Exception):
        raise reply
    return reply


#: Sets the time to live, unless the tag at the end has a generation after ARGV[1].
_SET_EXPIRY = (
    b"local tag = redis.call('GETRANGE', KEYS[1], -16, -1) "
    b"if #tag == 16 and struct.unpack('<I4', tag, 9) > tonumber(ARGV[1]) then return 0 end "
    b"return redis.call(ARGV[2], KEYS[1], ARGV[3])"
)


def set_expiry(key: bytes, expiry: ExpiryCommand, generation: int) -> Steps[None]:
    """Set the final time to live of a string that was created in this generation, unless it has a later one.

    A client that was paused before this would set the end of a ttl that a clear has started again since.
    """
    if len(expiry) == 1 or (yield from try_script(_SET_EXPIRY, (key,), generation, *expiry)) is None:
        yield from call(key, expiry[0], key, *expiry[1:])


def read_time(key: bytes) -> Steps[int]:
    """Return the milliseconds since 1970 by the clock of the node with ``key``."""
    return int(parse_time((yield from call(key, b"TIME"))) * 1000)


def parse_time(reply: Any) -> float:
    """Return the seconds since 1970 in a reply to TIME."""
    try:
        seconds, micros = (int(part) for part in reply)
    except (TypeError, ValueError, OverflowError):
        raise reply_error("no time") from None
    if not (0 <= seconds < 1 << 40 and 0 <= micros < _MICROSECONDS):
        raise reply_error("no time")
    return seconds + micros / _MICROSECONDS


_MOVED = (
    "a node of a cluster says that another node has the key; use a cluster client, or, if it is one, try "
    "again: slots are moving"
)
_ERRORS: dict[str, tuple[Callable[[str], EngineError], str]] = {
    "OOM": (
        EngineFull,
        "the server has reached its limit (maxmemory) and refused the change; raise it, or free memory",
    ),
    "READONLY": (EngineRefused, "the server is a replica and takes no changes; connect to its master"),
    "WRONGTYPE": (
        EngineNameTaken,
        "a key of its name holds something other than this filter; choose another name, or delete that key",
    ),
    "NOAUTH": (EngineRefused, "the server requires a password; give it to the client"),
    "WRONGPASS": (EngineRefused, "the server does not know this user and password"),
    "NOPERM": (EngineRefused, "the server does not allow this user the commands or keys of the filter"),
    "LOADING": (EngineUnavailable, "the server is loading its data; try again"),
    "BUSY": (EngineUnavailable, "the server is busy with a script; try again"),
    "MASTERDOWN": (EngineUnavailable, "the server's master is down, and the replica does not answer alone"),
    "CLUSTERDOWN": (EngineUnavailable, "the cluster is down; try again once its slots are served"),
    "TRYAGAIN": (EngineUnavailable, "the cluster is moving the filter's keys; try again"),
    "MOVED": (EngineUnavailable, _MOVED),
    "ASK": (EngineUnavailable, _MOVED),
    "MISCONF": (EngineRefused, "the server cannot save to its disk and takes no changes"),
    "NOREPLICAS": (EngineRefused, "the server has too few replicas and takes no changes"),
    "EXECABORT": (EngineError, "the server aborted the transaction"),
}
_UNKNOWN = "unknown command"
#: Characters of a server's text that a message repeats.
_MAX_TEXT = 200


def refusal_error(name: str, text: str) -> EngineError:
    """Return the error for a server's refusal: a code, a space, and text. No message repeats a key."""
    code, _, rest = text.partition(" ")
    if code in _ERRORS:
        kind, message = _ERRORS[code]
        return kind(f"filter {name!r}: {message}")
    if _UNKNOWN in text:  # the rest of the text repeats what was sent
        return EngineError(f"filter {name!r}: the server does not support a required command")
    return EngineError(f"filter {name!r}: the server refused: {escape(rest if code == 'ERR' else text)}")


def escape(text: str) -> str:
    """Return a server's text without control characters, cut to a line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_MAX_TEXT])


def reply_error(what: str) -> FormatError:
    """Return the error for a reply that none of our commands returns."""
    return FormatError(
        f"the server's answer does not fit the command ({what}); is there a proxy, or another program?"
    )


def client_error(name: str, why: str) -> EngineError:
    """Return the error for an exception of the client library itself."""
    return EngineError(f"filter {name!r}: the client library failed: {escape(why)}")


def acks_error(confirmed: int, acks: Acks) -> EngineUnavailable:
    """Return the error for a change that too few replicas confirmed."""
    return EngineUnavailable(
        f"{confirmed} of {acks.replicas} replicas confirmed the change within {acks.milliseconds / 1000} s; "
        "the server has it, and may lose it in a failover: add it again, wait longer, or ask for fewer acks"
    )


def unreachable_error(name: str, why: str) -> EngineUnavailable:
    """Return the error for a server that cannot be reached; ``why`` is the client library's text."""
    reason = f" ({escape(why).rstrip('.')})" if why else ""
    return EngineUnavailable(
        f"filter {name!r}: the server cannot be reached, or closed the connection{reason}; "
        "pending adds may have been done"
    )


def timeout_error(name: str) -> EngineTimeout:
    """Return the error for a server that takes too long."""
    return EngineTimeout(
        f"filter {name!r}: the server did not answer within the client's timeout; "
        "pending adds may have been done"
    )


def contention_error(name: str) -> EngineTimeout:
    """Return the error after `MAX_ATTEMPTS` at a change that other clients' changes prevented."""
    return EngineTimeout(f"filter {name!r}: other clients keep changing it; try again")


def interruption_error(name: str, seconds: float) -> EngineTimeout:
    """Return the error for strings that expired before they were complete."""
    return EngineTimeout(
        f"filter {name!r}: this client was interrupted for {seconds} s while it created strings, and they "
        "have expired; try again"
    )


def rollback_error(name: str) -> FilterRolledBack:
    """Return the error for a server that returned to an earlier state."""
    return FilterRolledBack(
        f"filter {name!r}: the server went back to an earlier state (restarted from an older snapshot or a "
        "truncated log, or failed over to a replica that was behind); keys that it acknowledged are gone: "
        "clear() or load() starts over, opening the filter again continues with what is left"
    )


def loss_error(name: str, what: str) -> FilterLost:
    """Return the error for cells that are lost."""
    return FilterLost(
        f"filter {name!r}: the server has lost {what}; keys that it acknowledged are gone (restarted without "
        "its data, evicted, deleted, or failed over): call verify() for details; delete() and a new filter "
        "start over"
    )


def transaction_error(name: str) -> EngineError:
    """Return the error for cluster clients, not all of which have transactions."""
    return EngineError(f"filter {name!r}: no transactions over a client of a cluster")
