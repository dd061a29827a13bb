"""`Joined`: several batches in one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bloomery._core import WireExchange
    from bloomery.engines.redis.asks import Send


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
