"""What is asked of the servers, as values: nothing here sends.

Whatever takes more than one question is a generator: it yields questions that may be asked at the same
time, is sent their answers, and returns what came of it. A transport drives it: waiting or not, over one
server or the nodes of a cluster.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bloomery._core import WireBatch
from bloomery.errors import FormatError

if TYPE_CHECKING:
    from bloomery._core import WireCounterBatch, WireExchange, WireText

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


class Acks(NamedTuple):
    """How many replicas must confirm a change (WAIT), and for how many milliseconds they are waited for."""

    replicas: int
    milliseconds: int


class Send(NamedTuple):
    """The keys of a batch; its answer is a list of exchanges, one a node, whose replies have all come."""

    batch: WireBatch | WireCounterBatch | WireText
    #: Each shard that the batch touches.
    shards: list[Shard]
    #: Not sent again when a connection breaks, as it may have been done.
    once: bool = False
    #: Replicas that must have what was added, if any, before it counts as acknowledged.
    acks: Acks | None = None

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
    #: A key and the value that it must have (WATCH); the answer is None where it has another.
    watch: tuple[bytes, bytes] | None = None


class Timeout(NamedTuple):
    """The seconds for which the client waits for an answer; None where it waits for ever."""


class Pause(NamedTuple):
    """A while to wait; its answer is None."""

    seconds: float


Ask = Call | Whole | Send | Where | Timeout | Pause
#: A generator of questions that returns a T.
Steps = Generator[list[Ask], list[Any], T]


def call(key: bytes | None, *words: bytes | int) -> Steps[Any]:
    """Ask one thing; the reply as the client library has it, which may be anything."""
    (answer,) = yield [Call(key, words)]
    return answer


def read_text(key: bytes | None, most: int, *words: bytes | int) -> Steps[bytes | None]:
    """Ask for a text of so many bytes at most; None where there is none."""
    return text((yield from call(key, *words)), most)


def read_part(key: bytes, first: int, size: int) -> Steps[bytes]:
    """Ask for a part of a string; fewer bytes where it is shorter, none where it is not there."""
    return (yield from read_text(key, size, b"GETRANGE", key, first, first + size - 1)) or b""


def read_number(key: bytes | None, *words: bytes | int) -> Steps[int]:
    """Ask for a whole number."""
    return number((yield from call(key, *words)))


def is_done(key: bytes | None, *words: bytes | int) -> Steps[bool]:
    """Ask for something to be done; False where the server says that it was not."""
    answer = yield from call(key, *words)
    if answer is None or answer is True or answer is False:
        return bool(answer)
    if answer in {b"OK", "OK"}:
        return True
    return bool(number(answer))


def text(answer: Any, most: int) -> bytes | None:
    """Return a reply that must be a text of so many bytes at most, or nothing."""
    if answer is None:
        return None
    if isinstance(answer, str):
        answer = answer.encode("utf-8", "surrogateescape")
    if not isinstance(answer, bytes):
        raise unexpected("no text")
    if len(answer) > most:
        raise unexpected(f"{len(answer):,} bytes for {most:,}")
    return answer


def number(answer: Any) -> int:
    """Return a reply that must be a whole number of 64 bits."""
    if isinstance(answer, (bool, int)) and -(1 << 63) <= answer < 1 << 63:
        return int(answer)
    raise unexpected("no number")


def unexpected(what: str) -> FormatError:
    """Return the error for a reply that no command of ours is answered with."""
    return FormatError(
        f"the server's answer does not fit what it was asked ({what}); is a proxy between, or another "
        "program?"
    )
