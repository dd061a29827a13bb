"""How long strings stand on a server: for good, for a minute while they are made, or to the end of a term.

Renaming a string and setting its time to live are two commands, and whoever is stopped between them would
leave a string that vanishes too early, or never. So they go as one script; where the server takes none, as
one transaction; and where it takes none of those either, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.asks import Call, Whole, call, unexpected
from bloomery.errors import EngineError, EngineTimeout, EngineUnavailable

if TYPE_CHECKING:
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.manifest import Manifest

_SECOND = 1_000_000
#: A command about the time to live of a key, without the key.
Lasts = tuple[bytes | int, ...]

_SCRIPT = (
    b"local answer = redis.call(unpack(ARGV, 3)) "
    b"if ARGV[1] == 'PERSIST' then redis.call('PERSIST', KEYS[1]) "
    b"else redis.call(ARGV[1], KEYS[1], ARGV[2]) end "
    b"return answer"
)


class Expired(Exception):
    """The moment has come at which a filter vanishes: it holds nothing."""


def lasts(stood: Manifest) -> Lasts:
    """Return how long the strings of a filter stand."""
    return (b"PEXPIREAT", stood.expires) if stood.ttl else (b"PERSIST",)


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
