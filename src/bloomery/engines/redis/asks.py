"""What is asked of the servers, as values: nothing here sends.

Whatever takes more than one question is a generator: it yields questions that may be asked at the same
time, is sent their answers, and returns what came of it. A transport drives it: waiting or not, over one
server or the nodes of a cluster.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bloomery._core import WireBatch

if TYPE_CHECKING:
    from bloomery._core import WireCounterBatch, WireExchange

T = TypeVar("T")


class Call(NamedTuple):
    """A command about one key of the server, or about the server itself.

    Its answer is the reply, undecoded.
    """

    #: The key whose node is asked; any node may answer without one.
    key: bytes | None
    words: tuple[bytes | int, ...]


#: Its number, the name of its string, and a name on the same node for bits on their way to it.
Shard = tuple[int, bytes, bytes]


class Send(NamedTuple):
    """The keys of a batch; its answer is a list of exchanges, one a node, whose replies have all come."""

    batch: WireBatch | WireCounterBatch
    #: Each shard that the batch touches.
    shards: list[Shard]
    #: Not sent again when a connection breaks, as it may have been done.
    once: bool = False

    def is_refused_whole(self, exchange: WireExchange) -> bool:
        """Keep what a node answered; True when it has to be asked once more, for each key by itself.

        Keys that go together are a script of the server: it may be forbidden where a BITFIELD is not, or a
        proxy may not know it, and later batches need not try.
        """
        if not (isinstance(self.batch, WireBatch) and exchange.is_whole and exchange.refusals):
            return False
        codes = [text.split(" ", 1)[0] for _, text in exchange.refusals]
        self.batch.take(exchange)
        self.batch.go_by_key(always=bool({"NOPERM", "ERR"}.intersection(codes)))
        return True


class Where(NamedTuple):
    """The node of a cluster that has a key; its answer is its address, or "" of a server alone."""

    key: bytes


class Whole(NamedTuple):
    """Commands about one key that the server does as one (MULTI).

    Its answer is a list of replies as the client reads them, errors among them.
    """

    calls: tuple[Call, ...]


class Pause(NamedTuple):
    """A while to wait; its answer is None."""

    seconds: float


Ask = Call | Whole | Send | Where | Pause
#: A generator of questions that returns a T.
Steps = Generator[list[Ask], list[Any], T]


def call(key: bytes | None, *words: bytes | int) -> Steps[Any]:
    """Ask one thing."""
    (answer,) = yield [Call(key, words)]
    return answer
