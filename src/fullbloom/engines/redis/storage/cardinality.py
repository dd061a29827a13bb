"""The number of keys that a filter of the server's own counts, read in the round trip of a batch.

BF.CARD never decreases unless the filter is replaced. It follows the commands of the batch on the same
connection, so a filter that was replaced before the batch counts fewer keys than the client knows of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.engines.redis.protocol.requests import unexpected_reply

if TYPE_CHECKING:
    from fullbloom._core import WireBatch, WireExchange
    from fullbloom.engines.redis.protocol.requests import Shard

#: The longest reply: an error message.
_MAX_LINE_BYTES = 64 << 10
_LINE_END = b"\r\n"
_MAX_DIGITS = 19
_ASKING = b"*1\r\n$6\r\nASKING\r\n"


class CardinalityBatch:
    """A batch for a filter of the server's own that asks for its number of keys, too."""

    def __init__(self, batch: WireBatch) -> None:
        """Take the batch."""
        self._batch = batch

    def exchange(self, shards: list[Shard], *, asking: bool = False) -> CardinalityExchange:
        """Return the commands of the batch, followed by BF.CARD."""
        ((_, key, _),) = shards
        return CardinalityExchange(self._batch.exchange(shards, asking=asking), key, asking=asking)

    def take(self, exchange: CardinalityExchange) -> None:
        """Store the results of an exchange."""
        self._batch.take(exchange.batch)


class CardinalityExchange:
    """The commands of such a batch for one server, and their replies; methods as of a `WireExchange`."""

    def __init__(self, batch: WireExchange, key: bytes, *, asking: bool) -> None:
        """Take the exchange of the batch, and the filter's key."""
        self.batch = batch
        #: The number of keys; None until it arrived, and if the server refused the command.
        self.cardinality: int | None = None
        command = b"*2\r\n$7\r\nBF.CARD\r\n$%d\r\n%s\r\n" % (len(key), key)
        self.buffer = batch.buffer + (_ASKING + command if asking else command)
        #: Replies that follow those of the batch.
        self._replies = 1 + asking
        self.restart()

    def restart(self) -> None:
        """Start again, for the same commands sent once more."""
        self.batch.restart()
        self._in_batch, self._left, self._line = True, self._replies, b""

    def feed(self, data: bytes) -> bool:
        """Take bytes as they arrive; True when all replies have arrived."""
        if self._in_batch:
            left = self.batch.feed_part(data)
            if left is None:
                return False
            self._in_batch, data = False, data[len(data) - left :]
        self._line += data
        while self._left and (end := self._line.find(_LINE_END)) >= 0:
            line, self._line = self._line[:end], self._line[end + len(_LINE_END) :]
            self._left -= 1
            if not self._left:
                self._take_line(line)
        if len(self._line) > (_MAX_LINE_BYTES if self._left else 0):
            raise unexpected_reply("more than a number")
        return not self._left

    def _take_line(self, line: bytes) -> None:
        if line.startswith(b"-"):  # this user may not ask for it
            self.cardinality = None
        elif line.startswith(b":") and line[1:].isdigit() and len(line) <= 1 + _MAX_DIGITS:
            self.cardinality = int(line[1:])
        else:
            raise unexpected_reply("no number")

    def accept(self, reply: Any) -> bool:
        """Take the next reply as the client library read it."""
        if self._in_batch:
            self._in_batch = not self.batch.accept(reply)
            return False
        self._left -= 1
        if not self._left:
            if type(reply) is not int or reply < 0:
                raise unexpected_reply("no number")
            self.cardinality = reply
        return not self._left

    def refuse(self, text: str) -> bool:
        """Take an error as the next reply."""
        if self._in_batch:
            self._in_batch = not self.batch.refuse(text)
            return False
        self._left -= 1
        return not self._left

    @property
    def refusals(self) -> list[tuple[int, str]]:
        """The errors of the server except a refused BF.CARD, without which the batch is valid."""
        return self.batch.refusals
