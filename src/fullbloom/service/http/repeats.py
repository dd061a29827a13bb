"""Requests with an ``Idempotency-Key``: the second gets the answer of the first."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from fullbloom.service.http.wire import Answer

#: Answers that are kept, how long, and how large one may be.
_MOST, _SECONDS, _LARGEST = 10_000, 600.0, 1 << 16
#: Bytes of all answers that are kept.
_MOST_BYTES = 16 << 20
_LONGEST = 255
#: A body beyond this size is not digested on the event loop.
_SMALL = 1 << 16


async def digest(body: bytes) -> bytes:
    """Return what tells two bodies apart."""
    if len(body) > _SMALL:
        return await asyncio.to_thread(_digest, body)
    return _digest(body)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


class Repeats:
    """Answers by who asked, what for, and under which key."""

    def __init__(self) -> None:
        """Begin without any."""
        self._kept: OrderedDict[tuple[int, str, bytes], tuple[float, bytes, Answer | None]] = OrderedDict()
        self._nbytes = 0

    def begin(self, who: int, path: str, key: bytes, digest: bytes) -> Answer | None:
        """Return the answer that was given before; None for the first, which is then `done` or `failed`."""
        if not 0 < len(key) <= _LONGEST:
            raise Refused("invalid", f"an Idempotency-Key has 1 to {_LONGEST} characters")
        place, now = (who, path, key), time.monotonic()
        while self._kept and next(iter(self._kept.values()))[0] < now - _SECONDS:
            self._drop_oldest()
        found = self._kept.get(place)
        if found is None:
            self._kept[place] = (now, digest, None)
            if len(self._kept) > _MOST:
                self._drop_oldest()
            return None
        if found[1] != digest:
            raise Refused("unprocessable", "the Idempotency-Key was used with another body; draw a new one")
        if found[2] is None:
            raise Refused("busy", "the request with this Idempotency-Key is still at work; ask again")
        return found[2]

    def done(self, who: int, path: str, key: bytes, answer: Answer) -> None:
        """Keep the answer of the first."""
        place = (who, path, key)
        found = self._kept.get(place)
        if found is None or found[2] is not None or len(answer.body) > _LARGEST:
            self.failed(who, path, key)
            return
        self._kept[place] = (found[0], found[1], answer)
        self._nbytes += len(answer.body)
        while self._nbytes > _MOST_BYTES:
            self._drop_oldest()

    def failed(self, who: int, path: str, key: bytes) -> None:
        """Forget the first: it may be tried again."""
        self._forget(self._kept.pop((who, path, key), None))

    def _drop_oldest(self) -> None:
        self._forget(self._kept.popitem(last=False)[1])

    def _forget(self, kept: tuple[float, bytes, Answer | None] | None) -> None:
        if kept is not None and kept[2] is not None:
            self._nbytes -= len(kept[2].body)
