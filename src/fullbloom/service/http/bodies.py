"""Bodies of requests: received and unpacked within a cap and within the service's memory."""

from __future__ import annotations

import asyncio
import zlib
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import fullbloom
from fullbloom.errors import FullbloomError
from fullbloom.service.failures import Refused
from fullbloom.service.http.wire import header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.service.http.wire import Receive, Scope
    from fullbloom.service.settings import Limits

TEXT, NDJSON, JSON = "text/plain", "application/x-ndjson", "application/json"
HASHES, ARROW = "application/x-fullbloom-hashes", "application/vnd.apache.arrow.stream"
#: What the native module calls the keys of a body of each type; `curl -d` sends none, or that of a form.
FORMS = {
    JSON: "json",
    "": "json",
    "application/x-www-form-urlencoded": "json",
    TEXT: "lines",
    NDJSON: "ndjson",
    HASHES: "hashes",
}
#: A body up to this size takes no bytes of the budget: so many requests at work as there may be hold little.
SMALL = 1 << 16
_PIECE = 1 << 18
#: Bytes that are unpacked at a time, so that what a piece unpacks to is known before the next is read.
_PACKED = 1 << 18
#: A gzip body up to this size is unpacked on the event loop: it becomes 4 MiB at most, which takes some ms.
_AT_ONCE = 1 << 12
_GZIP = 16 + zlib.MAX_WBITS
#: Bytes that a key takes while it is worked with: its hash, its answer and these as they are sent.
_KEY = 32


class Disconnected(Exception):
    """The client closed the connection."""


async def read(scope: Scope, receive: Receive, most: int, held: Any) -> bytes:
    """Return the body, unpacked; ``Refused`` beyond ``most`` bytes, whether packed or not.

    ``held`` grows by what the body takes; beyond the service's memory it is a fault, answered with 503.
    """
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
            part = message.get("body", b"")
            length += len(part)
            if length > most:
                raise _large(most)
            held.grow(len(part))
            parts.append(part)
        body = _joined(parts, length, held)
    encoding = header(scope, b"content-encoding")
    if encoding is None or encoding == b"identity":
        return body
    encoding = encoding.lower()
    if encoding == b"gzip" and len(body) <= _AT_ONCE:
        return _unpacked(encoding, body, most, held)
    return await asyncio.to_thread(_unpacked, encoding, body, most, held)


def _joined(parts: list[bytes], length: int, held: Any) -> bytes:
    """Return the parts as one; both are there for a moment."""
    held.grow(length)
    body = b"".join(parts)
    parts.clear()
    held.resize(held.nbytes - length)
    return body


def _large(most: int) -> Refused:
    return Refused("large", f"a request may have {most} bytes, unpacked; send it in several")


def _unpacked(encoding: bytes, body: bytes, most: int, held: Any) -> bytes:
    parts, length = [], 0
    for piece in _pieces(encoding, body, held):
        length += len(piece)
        if length > most:
            raise _large(most)
        held.grow(len(piece))
        parts.append(piece)
    return _joined(parts, length, held)


def _pieces(encoding: bytes, body: bytes, held: Any) -> Iterator[bytes]:
    if encoding == b"gzip":
        try:
            yield from _gunzipped(body)
        except zlib.error as error:
            raise Refused("invalid", f"the body is not gzip data: {error}") from None
    elif encoding == b"zstd":
        from fullbloom.service.http.zstandard import pieces

        yield from pieces(body, _PIECE, held)
    else:
        raise Refused("media-type", "content-encoding is gzip, zstd or identity")


def _gunzipped(body: bytes) -> Iterator[bytes]:
    """Unpack the members of gzip data, a bounded piece at a time."""
    stream = zlib.decompressobj(_GZIP)
    for start in range(0, len(body), _PACKED):
        packed = body[start : start + _PACKED]
        while packed:
            if stream.eof:
                stream = zlib.decompressobj(_GZIP)
            yield stream.decompress(packed, _PIECE)
            packed = stream.unused_data if stream.eof else stream.unconsumed_tail
    while not stream.eof and (piece := stream.decompress(b"", _PIECE)):
        yield piece
    if body and not stream.eof:
        raise Refused("invalid", "the body's gzip data ends too early")


def working_bytes(body: bytes, limits: Limits) -> int:
    """Return the bytes that the keys of a body may take at work; a key has a byte in the body at least."""
    return 0 if len(body) <= SMALL else _KEY * min(len(body), limits.batch_keys)


class Keys(NamedTuple):
    """Keys as the native module takes them: their form, and the filter's number where they are its hashes.

    The form of hashes of keys of a known type is "hashes of TYPE".
    """

    form: str
    body: bytes
    of: int | None = None


def media_type(scope: Scope) -> str:
    """Return the type of the body, without its parameters."""
    value = header(scope, b"content-type")
    return "" if value is None else value.partition(b";")[0].strip().lower().decode("latin-1")


def from_arrow(service: Any, name: str, body: bytes, limits: Limits, held: Any) -> Keys:
    """Hash the first column of an Arrow IPC stream."""
    from fullbloom.service.http.arrow import columns, words

    # The number is read before the hash: what is made under the name meanwhile has another one.
    version = service.version(name)
    seed, secret, base = service.hashing(name)
    parts = []
    form = "hashes"
    # The type of an Arrow column is that of its keys, so the first key says which it is.
    first = fullbloom.BloomFilter(1)
    try:
        for column in columns(body, limits, held):
            hashes = fullbloom.hash_many(column, seed=seed, secret=secret, hash=base)
            if form == "hashes" and len(column):
                first.update(column.slice(0, 1))
                form = f"hashes of {first.key_domains}"
            parts.append(array("Q", hashes).tobytes() if isinstance(hashes, list) else words(hashes))
    except FullbloomError as error:
        raise Refused("invalid", str(error)) from None
    return Keys(form, b"".join(parts), None if version is None else version[0])
