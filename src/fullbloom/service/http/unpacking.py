"""Packed bodies: gzip, and zstd with the extra ``fullbloom[zstd]``."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes that are unpacked to at a time, and from: the size of a piece is known before the next is read.
#: A member of gzip data copies what follows it in the packed bytes, so these are few.
_PIECE, _PACKED = 1 << 18, 1 << 14
#: Most members of a gzip body: 655 MB of block gzip, which has one for every 64 KiB. Each takes 1 µs, and an
#: empty one has 20 bytes.
MAX_MEMBERS = 10_000
_GZIP = 16 + zlib.MAX_WBITS
#: The largest window of zstd as a content encoding (RFC 9659): what unpacking takes beside its result.
_MAX_WINDOW = 1 << 23


def join(parts: list[bytes], length: int, budget: Any) -> bytes:
    """Return the parts as one; for a moment both are in memory."""
    budget.grow(length)
    body = b"".join(parts)
    parts.clear()
    budget.resize(budget.nbytes - length)
    return body


def too_large(max_bytes: int) -> Refused:
    """Return the error for a body beyond ``max_bytes``."""
    return Refused("large", f"a request may have {max_bytes} bytes, unpacked; send it in several")


def unpack(encoding: bytes, body: bytes, max_bytes: int, budget: Any) -> bytes:
    """Return the unpacked body; ``Refused`` beyond ``max_bytes``. The budget grows by what it takes."""
    parts, length = [], 0
    for piece in _unpack_pieces(encoding, body, budget):
        if not piece:  # in the list it would take memory that the budget does not count
            continue
        length += len(piece)
        if length > max_bytes:
            raise too_large(max_bytes)
        budget.grow(len(piece))
        parts.append(piece)
    return join(parts, length, budget)


def _unpack_pieces(encoding: bytes, body: bytes, budget: Any) -> Iterator[bytes]:
    if encoding == b"gzip":
        try:
            yield from _unpack_gzip(body)
        except zlib.error as error:
            raise Refused("invalid", f"the body is not gzip data: {error}") from None
    elif encoding == b"zstd":
        yield from _unpack_zstd(body, budget)
    else:
        raise Refused("media-type", "content-encoding is gzip, zstd or identity")


def _unpack_gzip(body: bytes) -> Iterator[bytes]:
    """Unpack the members of gzip data, a bounded piece at a time."""
    stream, members = zlib.decompressobj(_GZIP), 1
    for start in range(0, len(body), _PACKED):
        packed = body[start : start + _PACKED]
        while packed:
            if stream.eof:
                if members == MAX_MEMBERS:
                    text = f"a gzip body may have {MAX_MEMBERS} members; compress it as a whole"
                    raise Refused("invalid", text)
                stream, members = zlib.decompressobj(_GZIP), members + 1
            yield stream.decompress(packed, _PIECE)
            packed = stream.unused_data if stream.eof else stream.unconsumed_tail
    while not stream.eof and (piece := stream.decompress(b"", _PIECE)):
        yield piece
    if body and not stream.eof:
        raise Refused("invalid", "the body's gzip data ends too early")


def _unpack_zstd(body: bytes, budget: Any) -> Iterator[bytes]:
    """Unpack zstd frames, a bounded piece at a time; meanwhile the budget includes the window."""
    try:
        import zstandard
    except ImportError:
        raise Refused("media-type", "zstd needs the extra zstd on the service's side; send gzip") from None
    try:
        window = max(zstandard.get_frame_parameters(body).window_size, 1)
        if window > _MAX_WINDOW:
            raise Refused(
                "invalid",
                f"the body's zstd window has {window} bytes; "
                f"a content encoding may have {_MAX_WINDOW} (RFC 9659)",
            )
        budget.grow(_MAX_WINDOW)
        reader: Any = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(
            body, read_across_frames=True
        )
        while piece := reader.read(_PIECE):
            yield piece
    except zstandard.ZstdError as error:
        raise Refused("invalid", f"the body is not zstd data: {error}") from None
    budget.resize(budget.nbytes - _MAX_WINDOW)
