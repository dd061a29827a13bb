"""Responses to changes, compressed and stored for requests that repeat them, in fair shares of the tokens."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.service.http.asgi import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Changes of all tokens, and bytes of all large responses: the most, and what a cut leaves. A cut visits all
#: tokens, so it frees space for many changes; it blocks the event loop, so not for too many.
MAX_CHANGES, CHANGES = 30_500, 30_000
MAX_BYTES, BYTES = 16 << 20, (16 << 20) - (256 << 10)
#: Seconds for which a change is stored.
TTL = 600.0
#: Most bytes of a compressed response: the flags of a million keys have 125,000, as random JSON 484,000.
MAX_RESPONSE = 1 << 20
#: A response of more bytes is large: it may be dropped before its change is. Others are part of the change.
_SMALL = 256
#: Bodies of more bytes are compressed and decompressed in a thread: that takes 0.1 ms or more.
_QUICK = 1 << 14
_PIECE = 1 << 16


class Change(NamedTuple):
    """A change that was made: when, the length and digest of its body, and its response."""

    at: float
    length: int
    digest: bytes
    #: None if the response is too large, or was dropped.
    response: bytes | None = None
    #: Bytes of the response's body if it is compressed, else 0.
    nbytes: int = 0

    async def read_response(self) -> Response | None:
        """Return the response, if it is stored."""
        if self.response is None:
            return None
        head, _, body = self.response.partition(b"\0")
        if self.nbytes > _QUICK:
            body = await asyncio.to_thread(zlib.decompress, body, bufsize=self.nbytes)
        elif self.nbytes:
            body = zlib.decompress(body, bufsize=self.nbytes)
        status, media_type, *fields = head.split(b"\n")
        return Response(int(status), media_type, body, tuple(zip(fields[::2], fields[1::2], strict=True)))


class _Share:
    """The changes of one token, oldest first."""

    def __init__(self) -> None:
        """Start empty."""
        self.changes: OrderedDict[bytes, Change] = OrderedDict()
        #: Bytes of the large responses, by the keys of their changes.
        self.large: OrderedDict[bytes, int] = OrderedDict()
        self.nbytes = 0

    def drop_expired(self, oldest: float) -> None:
        while self.changes and next(iter(self.changes.values())).at < oldest:
            self.drop_change()

    def drop_change(self) -> None:
        """Forget the oldest change."""
        key, _ = self.changes.popitem(last=False)
        self.nbytes -= self.large.pop(key, 0)

    def drop_response(self) -> None:
        """Drop the oldest large response; its change is still stored."""
        key, nbytes = self.large.popitem(last=False)
        self.nbytes -= nbytes
        self.changes[key] = self.changes[key]._replace(response=None, nbytes=0)

    def set_response(self, key: bytes, response: bytes, nbytes: int) -> int:
        """Store the response of a change unless the change was dropped; return the bytes of a large one."""
        if key not in self.changes:
            return 0
        self.changes[key] = self.changes[key]._replace(response=response, nbytes=nbytes)
        if len(response) <= _SMALL:
            return 0
        self.large[key] = len(response)
        self.nbytes += len(response)
        return len(response)


class ResponseStore:
    """The changes of each token in the last ten minutes, with their responses.

    If there are too many, the tokens with the most lose their oldest; a token within its fair share loses
    nothing. Large responses have a bound of their own, and are dropped before their changes are.
    """

    def __init__(self) -> None:
        """Start empty."""
        #: By token; the one that stored a change last is at the end.
        self._shares: OrderedDict[int, _Share] = OrderedDict()
        #: What is stored, or was until it expired or was dropped: a cut counts again.
        self._changes = self._nbytes = 0

    def find(self, token: int, key: bytes) -> Change | None:
        """Return a change of a token, unless it is too old."""
        share = self._shares.get(token)
        if share is None:
            return None
        share.drop_expired(time.monotonic() - TTL)
        return share.changes.get(key)

    async def store(self, token: int, key: bytes, length: int, digest: bytes, response: Response) -> None:
        """Store a change and its response."""
        share = self._shares.setdefault(token, _Share())
        self._shares.move_to_end(token)
        # At once: whatever happens while the response is compressed, the change is not made again.
        share.changes[key] = Change(time.monotonic(), length, digest)
        self._changes += 1
        if self._changes > MAX_CHANGES:
            self._cut()
        if len(response.body) > _QUICK:
            packed, nbytes = await asyncio.to_thread(_pack, response)
        else:
            packed, nbytes = _pack(response)
        if packed is not None:
            self._nbytes += share.set_response(key, packed, nbytes)
            if self._nbytes > MAX_BYTES:
                self._cut()

    def _cut(self) -> None:
        """Drop what is expired, then what is beyond the bounds."""
        oldest = time.monotonic() - TTL
        for share in self._shares.values():
            share.drop_expired(oldest)
        for token in [token for token, share in self._shares.items() if not share.changes]:
            del self._shares[token]
        if self._changes > MAX_CHANGES:
            self._changes = self._level(lambda share: len(share.changes), _Share.drop_change, CHANGES)
        if self._nbytes > MAX_BYTES:
            self._nbytes = self._level(lambda share: share.nbytes, _Share.drop_response, BYTES)

    def _level(self, measure: Callable[[_Share], int], drop: Callable[[_Share], None], most: int) -> int:
        """Drop from the tokens with the most until ``most`` is left; return what is left."""
        sizes = list(map(measure, self._shares.values()))
        total, level = sum(sizes), find_level(sizes, most)
        if total <= most:
            return total
        for share, size in zip(self._shares.values(), sizes, strict=True):
            while size > level and total > most:
                drop(share)
                left = measure(share)
                total, size = total - size + left, left  # noqa: PLW2901 - the size of the share now
        return total


def find_level(sizes: Iterable[int], most: int) -> int:
    """Return the level to which the larger sizes must fall so that the sum of all is at most ``most``.

    >>> find_level([9, 2, 1], 8), find_level([9, 9, 2], 8), find_level([1, 2], 8)
    (5, 3, 2)
    """
    ordered = sorted(sizes)
    for at, size in enumerate(ordered):
        level = most // (len(ordered) - at)
        if size > level:
            return level
        most -= size
    return ordered[-1] if ordered else 0


def _pack(response: Response) -> tuple[bytes | None, int]:
    """Return the response as text, and its body's length if that is compressed; None if it is too large."""
    head = b"\n".join((b"%d" % response.status, response.media_type, *chain(*response.headers))) + b"\0"
    if len(head) + len(response.body) <= _SMALL:
        return head + bytes(response.body), 0
    body = memoryview(response.body)
    packer, parts, length = zlib.compressobj(1), [head], len(head)
    for start in range(0, len(body), _PIECE):
        parts.append(packer.compress(body[start : start + _PIECE]))
        length += len(parts[-1])
        if length > MAX_RESPONSE:  # before the rest takes time and memory
            return None, 0
    parts.append(packer.flush())
    packed = b"".join(parts)
    return (packed, len(body)) if len(packed) <= MAX_RESPONSE else (None, 0)
