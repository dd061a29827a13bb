"""Creation of the strings of a time window: each with its tag and its expiry, unless it exists already."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fullbloom.engines.redis.protocol.keys import colocated_key
from fullbloom.engines.redis.protocol.manifest import TAG_BYTES
from fullbloom.engines.redis.protocol.requests import Call, Steps, call, parse_text, read_part, try_call
from fullbloom.errors import EngineError, EngineFull, EngineNameTaken, EngineTimeout, EngineUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Time to live, in milliseconds, of a string under its temporary key.
_CREATION_TTL = 60_000
#: Creates a string of ARGV[1] zero bytes, followed by a tag and with an expiry, unless it exists; returns the
#: tag of the string that exists.
_CREATE = (
    b"if redis.call('EXISTS', KEYS[1]) == 0 then "
    b"redis.call('SETRANGE', KEYS[1], ARGV[1], ARGV[2]) redis.call('PEXPIREAT', KEYS[1], ARGV[3]) end "
    b"return redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + #ARGV[2] - 1)"
)


class NewString(NamedTuple):
    """A string to be created: its key, the bytes of its cells, its tag, and the millisecond of its expiry."""

    key: bytes
    nbytes: int
    tag: bytes
    ends: int


def create_strings(new: Sequence[NewString]) -> Steps[list[bytes]]:
    """Create the missing strings; return the tags of all that exist then, b"" for others."""
    words = [(b"EVAL", _CREATE, 1, one.key, one.nbytes, one.tag, one.ends) for one in new]
    try:
        answers = yield [Call(one.key, each) for one, each in zip(new, words, strict=True)]
        return [parse_text(answer, TAG_BYTES) or b"" for answer in answers]
    except (EngineTimeout, EngineUnavailable, EngineFull, EngineNameTaken):
        raise
    except EngineError:  # no scripts
        tags = list[bytes]()
        for one in new:
            tags += [(yield from _create_by_rename(one))]
        return tags


def _create_by_rename(one: NewString) -> Steps[bytes]:
    """Create a string under a temporary key and rename it if its key is free, where scripts are refused."""
    temporary = colocated_key(one.key, b"new:" + one.tag.hex().encode())
    yield from call(temporary, b"SET", temporary, b"", b"PX", _CREATION_TTL)
    yield from call(temporary, b"SETRANGE", temporary, one.nbytes, one.tag)
    yield from call(temporary, b"PEXPIREAT", temporary, one.ends)
    try:
        if not (yield from try_call(one.key, b"RENAMENX", temporary, one.key)):
            yield from call(temporary, b"UNLINK", temporary)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # sent twice, or expired by now
        yield from call(temporary, b"UNLINK", temporary)
    return (yield from read_part(one.key, one.nbytes, len(one.tag)))
