"""A batch to the nodes of a cluster that hold its shards, sent after them when they move.

Nothing here sends: a generator yields what is to be exchanged with which nodes at the same time, or what is
to be done about the client's map of the cluster, and is sent the outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import redis.exceptions as refusals

from fullbloom.engines.redis.protocol.requests import Acks, Call, Send, Shard, unexpected
from fullbloom.errors import FullbloomError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from fullbloom._core import WireExchange

T = TypeVar("T")

#: Redirections that a batch follows, as redis-py has it for a command.
_HOPS = 16
#: Those that it follows without a pause: while a slot changes hands, two nodes may send askers to each other
#: until both know.
_AT_ONCE = 3
#: What a node says that may serve the slot later, or not at all.
_DOWN = ("CLUSTERDOWN", "LOADING", "MASTERDOWN")
_ASK = "ASK"
_TO = ("MOVED", _ASK)
#: What another node, or another moment, may do.
_ELSEWHERE = (*_DOWN, *_TO, "TRYAGAIN")
_SHORT_PAUSE = 0.05
_SLOTS = 16384
#: No node is known for a slot, or at an address.
_UNKNOWN = (refusals.RedisError, refusals.RedisClusterException)
_BROKEN = (
    refusals.ConnectionError,
    refusals.TimeoutError,
    refusals.ClusterDownError,
    refusals.RedisClusterException,
    OSError,
)


#: Shards for each primary of a new filter: even, however names fall on slots, within a quarter.
SHARDS_A_PRIMARY = 16


def retries_of(client: Any) -> int:
    """Return how often the client itself would try again."""
    return int(client.retry.get_retries())


def pause_after(client: Any, failures: int) -> float:
    """Return the seconds that the client would wait after so many failures."""
    backoff = getattr(client.retry, "_backoff", None)
    return float(backoff.compute(failures)) if backoff is not None else 0.05 * failures


def default_shards(client: Any) -> int:
    """Return the number of shards of a new filter."""
    return SHARDS_A_PRIMARY * max(1, len(client.get_primaries()))


class Exchanges(NamedTuple):
    """Nodes and what to exchange with them; the answer is a list of errors, None where all replies came.

    Each exchange is made when it is sent, while other nodes work already.
    """

    parts: list[tuple[Any, Callable[[], WireExchange]]]
    acks: Acks | None = None


class Question(NamedTuple):
    """A node and a command for it, behind an ASKING or not; the answer is the reply, or an error."""

    node: Any
    words: tuple[bytes | int, ...]
    asking: bool


class Moved(NamedTuple):
    """A slot that another node has now."""

    slot: int
    host: str
    port: int


class Renew(NamedTuple):
    """The map is to be read anew after the n-th failure: after a pause, from the failed nodes last."""

    failed: list[Any]
    failures: int


class Wait(NamedTuple):
    """A while to wait."""

    seconds: float


Need = Exchanges | Question | Moved | Renew | Wait


def failed_over(error: Exception) -> bool:
    """Tell whether the map may be another one after this: not after a refused password, or of a full pool."""
    broken = isinstance(error, _BROKEN)
    return broken and not isinstance(error, (refusals.AuthenticationError, refusals.MaxConnectionsError))


@dataclass
class _Patience:
    """How often a question has been sent elsewhere, and how often it failed."""

    retries: int
    hops: int = 0
    failures: int = 0

    def is_over(self) -> bool:
        return self.failures > self.retries or self.hops > _HOPS

    def rest(self) -> Generator[Need, Any, None]:
        """Wait a while before the next of many redirections."""
        if self.hops > _AT_ONCE:
            yield Wait(_SHORT_PAUSE)


def follow_call(
    ask: Call, node_of: Callable[[bytes | None], Any], node_at: Callable[[str, int], Any], retries: int
) -> Generator[Need, Any, Any]:
    """Ask the node of a key, wherever it moves; the reply, undecoded."""
    patience, asked = _Patience(retries), None
    while True:
        node: Any = None
        try:
            node = asked or node_of(ask.key)
            answer = yield Question(node, ask.words, asked is not None)
        except _UNKNOWN as unknown:
            answer = unknown
        if not isinstance(answer, Exception):
            return answer
        asked, broken = None, failed_over(answer)
        if not broken and not isinstance(answer, (refusals.AskError, refusals.TryAgainError)):
            raise answer
        patience.failures += broken
        patience.hops += not broken
        if patience.is_over():
            raise answer
        yield from patience.rest()
        if broken:
            yield Renew([] if node is None else [node], patience.failures)
        elif isinstance(answer, refusals.MovedError):  # a kind of AskError
            yield Moved(answer.slot_id, answer.host or node.host, answer.port)
        elif isinstance(answer, refusals.AskError):
            asked = node_at(answer.host or node.host, answer.port)
        else:
            yield Wait(_SHORT_PAUSE)


@dataclass
class _Part:
    """What one node is asked."""

    node: Any
    shards: list[Shard]
    asking: bool
    send: Send
    made: WireExchange | None = None

    @property
    def exchange(self) -> WireExchange:
        return self.made or self.make()

    def make(self) -> WireExchange:
        """Write the commands."""
        self.made = self.send.batch.exchange(self.shards, asking=self.asking)
        return self.made


class _Detour:
    """What came of the parts of a batch that have to be asked once more."""

    def __init__(self, *, once: bool) -> None:
        self.once = once
        self.left: list[Shard] = []
        self.refused: list[WireExchange] = []
        self.broken: list[Any] = []
        self.error: Exception | None = None
        self.is_down = False
        self.moves: dict[int, Moved] = {}
        self.asked: dict[int, Moved] = {}

    def note(self, part: _Part, error: Exception | None) -> bool:
        """Take in what a node answered; True when the part has to be asked once more."""
        told = [(shard, text.split(" ")) for shard, text in part.exchange.refusals]
        told = [(shard, words) for shard, words in told if words[0] in _ELSEWHERE]
        by_key = part.send.is_refused_whole(part.exchange)
        if error is None and not told and not by_key:
            return False
        self.left += part.shards
        self.refused.append(part.exchange)
        if error is not None:
            if self.once or isinstance(error, FullbloomError) or not failed_over(error):
                raise error
            self.error = error
            self.broken.append(part.node)
        for shard, (code, *rest) in told:
            self.is_down |= code in _DOWN
            if code in _TO:
                move = _moved(rest, part.node)
                if code != _ASK:
                    self.moves[move.slot] = move
                elif not by_key:  # which may mean the place beside a string that is where it was
                    self.asked[shard] = move
        return True

    def needs(self, failures: int) -> Generator[Need, Any, None]:
        """Ask for what is to be done before the next try."""
        yield from self.moves.values()
        if self.broken or self.is_down:
            yield Renew(self.broken, failures)
        elif not self.moves and not self.asked:
            yield Wait(_SHORT_PAUSE)


def route_batch(
    send: Send, node_of: Callable[[bytes], Any], node_at: Callable[[str, int], Any], retries: int
) -> Generator[Need, Any, list[WireExchange]]:
    """Exchange a batch with the nodes of its shards; the exchanges whose answers hold.

    ``node_of`` tells the node of a key by the client's map, ``node_at`` that of an address. A broken
    connection is tried again as often as the client itself would.
    """
    patience, left = _Patience(retries), send.shards
    done: list[WireExchange] = []
    asked: dict[int, Any] = {}
    while left:
        try:
            parts = _parts(send, left, node_of, asked)
        except _UNKNOWN:
            patience.failures += 1
            if patience.is_over():
                raise
            yield Renew([], patience.failures)
            continue
        outcomes = yield Exchanges([(part.node, part.make) for part in parts], send.acks)
        detour = _Detour(once=send.once)
        for part, outcome in zip(parts, outcomes, strict=True):
            if detour.note(part, outcome):
                send.batch.take(part.exchange)  # what was told stays, whatever the next node says
            else:
                done.append(part.exchange)
        left = detour.left
        if not left:
            break
        patience.failures += bool(detour.broken or detour.is_down)
        patience.hops += not (detour.broken or detour.is_down)
        if patience.is_over():
            if detour.error is not None:
                raise detour.error
            return [*done, *detour.refused]  # whose refusals tell
        yield from detour.needs(patience.failures)
        yield from patience.rest()
        asked = {shard: node_at(to.host, to.port) for shard, to in detour.asked.items()}
    return done


def run_side_by_side(steps: list[Generator[Need, Any, T]]) -> Generator[Need, Any, list[T]]:
    """Drive several batches at once: what they exchange goes out together."""
    told: dict[int, T] = {}
    needs: dict[int, Need] = {}

    def go_on(number: int, outcome: Any) -> None:
        try:
            needs[number] = steps[number].send(outcome)
        except StopIteration as stop:
            needs.pop(number, None)
            told[number] = stop.value

    for number in range(len(steps)):
        go_on(number, None)
    while needs:
        exchanges = {number: need for number, need in needs.items() if isinstance(need, Exchanges)}
        for number in set(needs) - set(exchanges):
            go_on(number, (yield needs[number]))
        parts = [part for need in exchanges.values() for part in need.parts]
        acks = next((need.acks for need in exchanges.values() if need.acks is not None), None)
        outcomes = iter((yield Exchanges(parts, acks)) if parts else ())
        for number, need in exchanges.items():
            go_on(number, list(islice(outcomes, len(need.parts))))
    return [told[number] for number in range(len(steps))]


def _parts(
    send: Send, left: list[Shard], node_of: Callable[[bytes], Any], asked: dict[int, Any]
) -> list[_Part]:
    """One exchange a node, and one more a node that is to be asked although its slot is not there yet."""
    groups: dict[tuple[Any, bool], list[Shard]] = {}
    for shard in left:
        number, key, _ = shard
        asking = number in asked
        node = asked[number] if asking else node_of(key)
        groups.setdefault((node, asking), []).append(shard)
    return [_Part(node, shards, asking, send) for (node, asking), shards in groups.items()]


def _moved(words: list[str], node: Any) -> Moved:
    """Slot and address, ``host:port``; without a host it is that of the node that answered."""
    try:
        host, _, port = words[1].rpartition(":")
        slot, number = int(words[0]), int(port)
    except (IndexError, ValueError):
        raise unexpected("a redirection to nowhere") from None
    if not (0 <= slot < _SLOTS and 0 < number < 1 << 16):
        raise unexpected("a redirection to nowhere")
    return Moved(slot, host or node.host, number)
