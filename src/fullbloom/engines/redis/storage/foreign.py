"""Filters whose layout is not this package's: those of the server's own, and bitmaps of other programs.

A filter of the server's own (BF.* of RedisBloom, Redis 8, valkey-bloom or our service) stores the hashes of
keys, 8 bytes each, lowest first, so all kinds of keys and secrets work as everywhere, and other clients can
follow docs/keys.md to query it. The server decides on bits and growth, so there is no ``dump``, ``load`` or
``|=``. Each batch asks whether the filter exists, because BF.MEXISTS answers "no" for a missing filter, and
how many keys it counts (BF.CARD). This number never decreases unless the filter is replaced, so fewer keys
than before mean that the server went back, or that somebody else reserved the key again, unless a client
cleared the filter: that takes an odd generation of the manifest before the key is replaced, and the next even
one after it.

A bitmap is a plain string of bits that another program fills with SETBIT, read and changed in its own layout.
A string does not record its rule, so the caller names it. One BITFIELD command reads or sets all bits of many
keys: one round trip, which the server executes as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from fullbloom import _core
from fullbloom.engines.redis.protocol import (
    SendBatch,
    Steps,
    call,
    count_bits,
    read_number,
    read_part,
    read_text,
    refusal_error,
    reply_error,
    rollback_error,
)
from fullbloom.engines.redis.protocol.create import PIECE, Overtaken
from fullbloom.engines.redis.protocol.manifest import MAX_NAME_BYTES, MAX_STRING_BYTES, MODULE
from fullbloom.engines.redis.protocol.open import OpenOptions, open_filter
from fullbloom.engines.redis.protocol.plan import MAX_TYPE_BYTES, PORTION
from fullbloom.engines.redis.storage import EXISTS, run_or_default
from fullbloom.engines.redis.storage.strings import LoadEstimate, Strings, run_iterator
from fullbloom.errors import (
    EngineError,
    FilterLost,
    FilterRolledBack,
    FormatError,
    IncompatibleFilters,
    ParameterError,
    ParameterTypeError,
)
from fullbloom.formats.verification import Verification

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fullbloom._core import WireBatch, WireCounterBatch, WireExchange
    from fullbloom.engines.redis.protocol import Shard
    from fullbloom.engines.redis.storage import Snapshot
    from fullbloom.keys import Key

#: The longest reply: an error message.
_MAX_LINE_BYTES = 64 << 10
_LINE_END = b"\r\n"
_MAX_DIGITS = 19
_ASKING = b"*1\r\n$6\r\nASKING\r\n"


class CardinalityBatch:
    """A batch for a filter of the server's own that reads its number of keys, too (BF.CARD).

    The command follows those of the batch on the same connection, so a filter that was replaced before the
    batch counts fewer keys than the client knows of.
    """

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
            raise reply_error("more than a number")
        return not self._left

    def _take_line(self, line: bytes) -> None:
        if line.startswith(b"-"):  # this user may not ask for it
            self.cardinality = None
        elif line.startswith(b":") and line[1:].isdigit() and len(line) <= 1 + _MAX_DIGITS:
            self.cardinality = int(line[1:])
        else:
            raise reply_error("no number")

    def accept(self, reply: Any) -> bool:
        """Take the next reply as the client library read it."""
        if self._in_batch:
            self._in_batch = not self.batch.accept(reply)
            return False
        self._left -= 1
        if not self._left:
            if type(reply) is not int or reply < 0:
                raise reply_error("no number")
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


class Module(Strings):
    """The filter as one of the server's own."""

    def _exchange(
        self,
        part: Snapshot,
        batch: WireBatch | WireCounterBatch,
        *,
        once: bool = False,
        changing: bool = False,
    ) -> Steps[list[WireExchange]]:
        known, together = part.acknowledged.bits[0], CardinalityBatch(cast("WireBatch", batch))
        shards, acks = [part.shards[shard] for shard in batch.shards], self.acks if changing else None
        exchanges: list[CardinalityExchange]
        try:
            # It has the methods of a batch that transports call.
            (exchanges,) = yield [SendBatch(cast("WireBatch", together), shards, once, acks)]
            for exchange in exchanges:
                if exchange.refusals:
                    raise refusal_error(self.name, exchange.refusals[0][1])
        except EngineError:
            (key,) = part.names.bits
            if not (yield from read_number(key, b"EXISTS", key)):
                yield from self.refresh(part)
                raise (yield from self.explain_loss("the filter", key, part)) from None
            raise
        for exchange in exchanges:
            together.take(exchange)
            if exchange.cardinality is not None and exchange.batch.states[0][1] == EXISTS:
                least = known + (cast("WireBatch", batch).count if changing else 0)
                yield from self._compare_cardinality(part, least, exchange.cardinality)
        return [exchange.batch for exchange in exchanges]

    def _compare_cardinality(self, part: Snapshot, least: int, cardinality: int) -> Steps[None]:
        """Raise if the filter counts fewer keys than ``least``, unless it was cleared."""
        bits = part.acknowledged.bits
        if cardinality >= least:
            bits[0] = max(bits[0], cardinality)
            return
        current = yield from self.refresh(part)
        if current.manifest.generation > part.manifest.generation:
            return
        if part.manifest.is_clearing:
            bits[0] = cardinality
            return
        self.rolled_back = True
        raise rollback_error(self.name)

    def _record_bits(self, part: Snapshot, shard: int, bits: int, counted: int) -> None:
        """Do nothing: `_exchange` has taken the number of keys."""

    def count_found(self, hashes: bytes) -> Steps[int]:
        """Count the given hashes that are found, also in a filter that counts fewer keys than before."""
        snapshot, found = self.snapshot, 0
        keys = snapshot.cells.hashed(hashes)
        for start in range(0, len(keys), PORTION):
            batch = keys.batch(start, start + PORTION)
            for exchange in (yield from super()._exchange(snapshot, batch)):
                if exchange.states[0][1] != EXISTS:
                    raise Overtaken
                batch.take(exchange)
            found += batch.count
        return found

    def require_cells(self, what: str) -> None:
        """Refuse what only strings support."""
        raise EngineError(
            f"filter {self.name!r}: a filter of the server's own (backend 'module') has no {what}; "
            "create it with backend='strings'"
        )

    @property
    def nbytes(self) -> int | None:
        """None: the server does not show it."""
        return None

    def read_tag(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Ask whether the filter exists."""
        snapshot = self.snapshot if known is None else known
        key = snapshot.names.bits[shard]
        if not (yield from read_number(key, b"EXISTS", key)):
            yield from self.refresh(snapshot)
            raise (yield from self.explain_loss("the filter", key, snapshot))
        return EXISTS

    def estimate_load(self) -> Steps[LoadEstimate]:
        """Read how many keys were new when they were added; false positives are not counted."""
        number = yield from run_or_default(self, self._count_new, int)
        fpr = self.manifest.fpr
        return LoadEstimate(fpr, float(number), number * fpr, None)

    def count_growing(self) -> Steps[tuple[list[int], bool]]:
        """Read the number of keys that were new; and whether it is less than this client knows of."""
        least, snapshot = self.acknowledged.bits[0], self.snapshot
        number = yield from self._count_new()
        if number < least and not (yield from read_number(key := self.names.bits[0], b"EXISTS", key)):
            return [number], False
        try:
            yield from self._compare_cardinality(snapshot, least, number)
        except FilterRolledBack:
            return [number], True
        return [number], False

    def _count_new(self) -> Steps[int]:
        yield from self.refresh()
        (key,) = self.names.bits
        number = yield from read_number(key, b"BF.CARD", key)
        if number < 0:
            raise reply_error("no number of keys")
        return number


def open_strings(options: OpenOptions, data: bytes | memoryview | None = None) -> Steps[Strings]:
    """Open a filter, or create it with the cells in ``data``."""
    manifest, is_new = yield from open_filter(options, data)
    kind = Module if manifest.backend == MODULE else Strings
    strings = kind(options.name, manifest, options.secret)
    strings.is_new = is_new
    return strings


#: Bits of one command: 150 kB.
_MAX_BITS = 8192


#: How many of known members a string has under a rule: bits in a string are verified as those in a file.
BitmapVerification = Verification


@dataclass(frozen=True)
class Bitmap:
    """The string's key, and the rule of its program."""

    name: str
    rule: str
    num_bits: int
    num_hashes: int
    #: "msb" if position p is bit p of the string, as SETBIT counts; "lsb" if bytes count from the other end.
    order: Literal["lsb", "msb"] = "msb"
    key: bytes = field(init=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not isinstance(self.name, str):
            raise ParameterTypeError(f"name must be a str, got {type(self.name).__name__}")
        key = self.name.encode("utf-8", "surrogateescape")
        if not 0 < len(key) <= MAX_NAME_BYTES:
            raise ParameterError(f"name must have 1 to {MAX_NAME_BYTES} bytes, got {len(key)}")
        if self.order not in ("lsb", "msb"):
            raise ParameterError(f"order must be 'lsb' or 'msb', got {self.order!r}")
        object.__setattr__(self, "key", key)
        bare = [row["name"] for row in _core.foreign_formats() if row["twin"] and row["order"] == "lsb"]
        if self.rule not in bare:
            raise ParameterError(f"rule must be one of {', '.join(bare)}, got {self.rule!r}")
        _core.foreign_positions(self.rule, self.num_bits, self.num_hashes, [])
        if self.num_bits > 8 * MAX_STRING_BYTES:
            raise ParameterError(f"num_bits must be at most 2**32, the longest string, got {self.num_bits}")

    @property
    def nbytes(self) -> int:
        """Bytes that the bits take."""
        return -(-self.num_bits // 8)

    def compute_offsets(self, keys: Iterable[Key]) -> list[list[int]]:
        """Return the offsets of the bits of each key, as GETBIT counts them."""
        positions = _core.foreign_positions(self.rule, self.num_bits, self.num_hashes, keys)
        if self.order == "msb":
            return positions
        return [[position ^ 7 for position in each] for each in positions]

    def require_string(self) -> Steps[int]:
        """Return the bytes of the string; raise if it is missing, holds something else, or is too long."""
        kind = yield from read_text(self.key, MAX_TYPE_BYTES, b"TYPE", self.key)
        if kind == b"none":
            raise FilterLost(
                f"no key {self.name!r} exists on the server; a bitmap is taken over, not created"
            )
        if kind != b"string":
            shown = (kind or b"").decode("ascii", "replace")
            raise FormatError(f"the key {self.name!r} holds a {shown}, not a string of bits")
        length = yield from read_number(self.key, b"STRLEN", self.key)
        if length > self.nbytes:
            raise FormatError(
                f"the string {self.name!r} has {length:,} bytes, and num_bits {self.num_bits:,} takes "
                f"{self.nbytes:,}; name the num_bits of its program"
            )
        return length

    def run_batch(self, keys: Iterable[Key], *, adding: bool) -> Steps[list[bool]]:
        """Look up or add keys; for each whether it was found, or new."""
        if isinstance(keys, (str, bytes)):
            raise ParameterTypeError("a batch takes many keys, got one text")
        keys = keys.to_pylist() if hasattr(keys, "to_pylist") else keys
        size, steps = max(1, _MAX_BITS // self.num_hashes), partial(self._run_portion, adding=adding)
        return (yield from run_iterator(keys, size, steps, answer=True)) or []

    def _run_portion(self, keys: list[Key], *, adding: bool) -> Steps[list[bool]]:
        offsets = self.compute_offsets(keys)
        words: list[bytes | int] = [b"BITFIELD", self.key]
        for offset in (offset for each in offsets for offset in each):
            words += (b"SET", b"u1", offset, 1) if adding else (b"GET", b"u1", offset)
        bits = iter(_parse_bits((yield from call(self.key, *words)), sum(map(len, offsets))))
        return [all(list(islice(bits, len(each)))) != adding for each in offsets]

    def verify(self, keys: Iterable[Key]) -> Steps[BitmapVerification]:
        """Count the known members that are found; nothing is written."""
        found = yield from self.run_batch(keys, adding=False)
        rate = (yield from self.compute_fill()) ** self.num_hashes
        return BitmapVerification(len(found), sum(found), len(found) * rate)

    def require_members(self, keys: Iterable[Key]) -> Steps[BitmapVerification]:
        """As `verify`; raise IncompatibleFilters if a known member is not found."""
        verified = yield from self.verify(keys)
        if verified.asked == 0:
            raise ParameterError("verify must have keys that were added; it has none")
        if not verified:
            raise IncompatibleFilters(
                f"the string {self.name!r} has {verified.found:,} of {verified.asked:,} known members under "
                f"rule {self.rule!r} with {self.num_bits:,} bits, {self.num_hashes} hashes and order "
                f"{self.order!r}, where chance finds {verified.by_chance:.3g}: its program has another rule, "
                "or the members are not in it; nothing was written"
            )
        return verified

    def compute_fill(self) -> Steps[float]:
        """Return the share of set bits."""
        return min((yield from count_bits(self.key, self.nbytes)) / self.num_bits, 1.0)

    def dump(self) -> Steps[_core.ForeignFilter]:
        """Return the filter in memory, read in portions. Bits that are set meanwhile may be missing."""
        length = yield from self.require_string()
        data = bytearray(self.nbytes)
        for start in range(0, self.nbytes, PIECE):
            part = yield from read_part(self.key, start, min(PIECE, self.nbytes - start))
            if len(part) < min(PIECE, length - start):
                raise FilterLost(f"the string {self.name!r} was deleted or cut while it was read")
            data[start : start + len(part)] = part
            if not part:  # SETBIT makes a string no longer than its last bit needs
                break
        name = self.rule if self.order == "lsb" else f"{self.rule}-msb"
        return _core.ForeignFilter.from_foreign(
            data, name, num_bits=self.num_bits, num_hashes=self.num_hashes
        )


def _parse_bits(reply: Any, count: int) -> list[int]:
    """Return the reply to a BITFIELD of ``count`` single bits."""
    is_valid = isinstance(reply, list) and len(reply) == count
    if not is_valid or not all(isinstance(bit, int) and 0 <= bit <= 1 for bit in reply):
        raise reply_error("not one bit for each")
    return cast("list[int]", reply)
