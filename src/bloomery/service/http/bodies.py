"""Bodies of requests: read to a cap, unpacked to a cap, taken apart into keys."""

from __future__ import annotations

import json
import zlib
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import bloomery
from bloomery.errors import BloomeryError
from bloomery.service.failures import Refused
from bloomery.service.http.wire import header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bloomery.service.http.wire import Receive, Scope

TEXT, NDJSON, JSON = "text/plain", "application/x-ndjson", "application/json"
HASHES, ARROW = "application/x-bloomery-hashes", "application/vnd.apache.arrow.stream"
_PIECE = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS


class Disconnected(Exception):
    """The client went away."""


async def read(scope: Scope, receive: Receive, most: int) -> bytes:
    """Return the body, unpacked; ``Refused`` beyond ``most`` bytes, whether packed or not."""
    stated = header(scope, b"content-length")
    if stated is not None and int(stated) > most:
        raise _large(most)
    message = await receive()
    if message["type"] != "http.request":
        raise Disconnected
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts, length = [body], len(body)
        while message.get("more_body"):
            message = await receive()
            if message["type"] != "http.request":
                raise Disconnected
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            if length > most:
                raise _large(most)
        body = b"".join(parts)
    encoding = header(scope, b"content-encoding")
    return body if encoding is None else b"".join(_unpacked(encoding, body, most))


def _large(most: int) -> Refused:
    return Refused("large", f"a request may have {most} bytes, unpacked; send it in several")


def _unpacked(encoding: bytes, body: bytes, most: int) -> Iterator[bytes]:
    length = 0
    for piece in _pieces(encoding.lower(), body):
        length += len(piece)
        if length > most:
            raise _large(most)
        yield piece


def _pieces(encoding: bytes, body: bytes) -> Iterator[bytes]:
    if encoding == b"identity":
        yield body
    elif encoding == b"gzip":
        try:
            while body:
                stream = zlib.decompressobj(_GZIP)
                while body and not stream.eof:
                    yield stream.decompress(body, _PIECE)
                    body = stream.unconsumed_tail
                if not stream.eof:
                    yield stream.flush(_PIECE)
                if not stream.eof:
                    raise Refused("invalid", "the body's gzip data ends too early")
                body = stream.unused_data
        except zlib.error as error:
            raise Refused("invalid", f"the body is no gzip data: {error}") from None
    elif encoding == b"zstd":
        from bloomery.service.http.zstandard import pieces

        yield from pieces(body, _PIECE)
    else:
        raise Refused("media-type", "content-encoding is gzip, zstd or identity")


class Keys(NamedTuple):
    """Keys as the native half takes them: lines, one text, or ready hashes."""

    form: str
    body: bytes


def media_type(scope: Scope) -> str:
    """Return the type of the body, without its parameters."""
    value = header(scope, b"content-type")
    return "" if value is None else value.partition(b";")[0].strip().lower().decode("latin-1")


def as_key(value: Any) -> Any:
    """Return the key that a JSON value is: text, integer, float, bool, or a tuple of such for an array."""
    if isinstance(value, list):
        return tuple(as_key(part) for part in value)
    if value is None or isinstance(value, dict):
        raise Refused("invalid", "a key is a text, a number, true, false or an array of such")
    return value


def hashed(service: Any, name: str, keys: list[Any]) -> Keys:
    """Hash keys of any type as the filter does; texts go as they are where it has a hash of its own."""
    if not service.takes_hashes(name):
        return _packed(keys)
    seed, secret, base = service.hashing(name)
    try:
        hashes = bloomery.hash_many(keys, seed=seed, secret=secret, hash=base)
    except (BloomeryError, UnicodeEncodeError) as error:
        raise Refused("invalid", str(error)) from None
    return Keys("hashes", array("Q", hashes).tobytes())


def _packed(keys: list[Any]) -> Keys:
    """Put texts behind each other, each behind its length."""
    try:
        texts = [key.encode() for key in keys]
    except AttributeError:
        raise Refused(
            "invalid", "keys of this filter are texts: it has the hash of another program"
        ) from None
    except UnicodeEncodeError as error:
        raise Refused("invalid", f"a key is no Unicode: {error.reason}") from None
    return Keys("packed", b"".join(len(text).to_bytes(4, "little") + text for text in texts))


def loads(text: bytes | str) -> Any:
    """Read JSON; what is none is refused, and so is what nests without end."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        said = "it nests too deep" if isinstance(error, RecursionError) else str(error)
        raise Refused("invalid", f"the body is no JSON: {said}") from None


def text_lines(body: bytes) -> list[bytes]:
    r"""Return the keys of a text, one a line; the last may lack its end, and an end may be two characters.

    >>> text_lines(b"a\r\nb\n\nc")
    [b'a', b'b', b'', b'c']
    """
    lines = body.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def from_lines(service: Any, name: str, body: bytes) -> Keys:
    """JSON lines, a key each."""
    try:
        lines = body.decode().splitlines() if b"\r" in body else body.decode().split("\n")
    except UnicodeDecodeError:
        raise Refused("invalid", "the body is no UTF-8") from None
    return hashed(service, name, [as_key(loads(line)) for line in lines if line])


def from_arrow(service: Any, name: str, body: bytes) -> Keys:
    """The first column of an Arrow IPC stream."""
    from bloomery.service.http.arrow import columns

    seed, secret, base = service.hashing(name)
    parts = []
    try:
        for column in columns(body):
            hashes = bloomery.hash_many(column, seed=seed, secret=secret, hash=base)
            parts.append(array("Q", list(hashes)).tobytes() if isinstance(hashes, list) else _words(hashes))
    except BloomeryError as error:
        raise Refused("invalid", str(error)) from None
    return Keys("hashes", b"".join(parts))


def _words(column: Any) -> bytes:
    from bloomery.service.http.arrow import words

    return words(column)
