"""Tell two machines' sets of lines apart by exchanging kilobytes, and unite them.

The asking side draws a secret, under which both hash their lines, and asks the serving side for coded
symbols of its set until it knows the hashes that either side has alone: about 19 bytes for each of these,
however many the sets share. Then lines go to where they are missing, and a checksum of the united set,
under another hash, proves that nothing was missed.

Frames are a letter, a length of 4 bytes and that many bytes; numbers are little-endian. After a frame it
waits for the answer:

    asking                                             serving
    H  "fullbloom sync 1", secret (16)                  h  1 when it takes lines, else 0
    C  differences expected at most (4)                c  a characteristic sketch
    S  symbols wanted (4)                              s  coded symbols
    W  hashes of lines wanted (8 each)                 l  checksum (8), lines, packed by zlib
    L  checksum of both (8), lines, packed by zlib     d  nothing: it has them

The last is asked only where lines are taken, the sketch only where few differences are expected: it takes 8
bytes each instead of 22, and where there are more of them, symbols follow. What a peer sends is bounded by
``limit`` bytes, in frames no longer than what was asked for, and so are the lines that it is sent, each of
them once: a peer that sends nonsense, never stops, or asks for more, ends in an error.
"""

from __future__ import annotations

import secrets
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fullbloom import _core
from fullbloom.errors import FilterFull, FormatError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["LIMIT", "Channel", "Side", "Synced", "ask", "serve"]

#: Bytes that a peer may send, that its lines may unpack to, and that the lines may have which it asks for.
LIMIT = 1 << 26

_GREETING = b"fullbloom sync 1"
_SECRET = 16
_HASH = 8
#: Head of a sketch, its values beyond the bound, and the largest bound.
_SKETCH_HEAD, _BEYOND, _MOST_EXPECTED = 24, 3, 1024
#: Head of the stream, and the longest symbol.
_STREAM_HEAD, _SYMBOL = 24, 22
#: Symbols asked for at first, and from then on this part of those that came: what is too many is a ninth at
#: most.
_FIRST, _PART = 64, 8
_MOST_AT_ONCE = 1 << 17
_SUM = 1 << 64
#: The checksum hashes anew, so that lines that meet in one hash meet there no more often than others.
_CHECK_SEED = 1


class Channel(Protocol):
    """What carries bytes to the peer and back."""

    def read(self, count: int) -> bytes:
        """Return exactly so many bytes; raise ``EOFError`` or ``TimeoutError`` where they do not come."""

    def write(self, data: bytes) -> None:
        """Send all of ``data``."""


@dataclass
class Side:
    """The lines of one side, each once, by their hashes under the secret of a run."""

    lines: Iterable[bytes]
    secret: bytes
    by_hash: dict[int, bytes] = field(init=False)
    checksum: int = field(init=False)

    def __post_init__(self) -> None:
        """Hash them: 0.3 us a line."""
        lines = list(self.lines)
        self.by_hash = dict(zip(_core.hash_many(lines, secret=self.secret), lines, strict=True))
        self.checksum = checksum(list(self.by_hash.values()), self.secret)


@dataclass(frozen=True)
class Synced:
    """What came of it: the lines of either side alone, proven complete, and the symbols that it took."""

    mine: list[bytes]
    theirs: list[bytes]
    #: True when the peer has taken the lines that it lacked.
    taken: bool
    symbols: int


def checksum(lines: list[bytes], secret: bytes) -> int:
    """Return the sum of other hashes of distinct lines: that of a united set is the sum of its parts'."""
    hashes: list[int] = _core.hash_many(lines, seed=_CHECK_SEED, secret=secret)
    return sum(hashes) % _SUM


def ask(
    lines: Iterable[bytes],
    channel: Channel,
    *,
    give: bool = False,
    limit: int = LIMIT,
    at_most: int | None = None,
) -> Synced:
    """Tell the lines of this side from those of the peer that runs `serve`, and fetch what is missing here.

    ``lines`` without their newlines; repeated ones count once. ``give``: send the peer what it lacks, if it
    takes lines. ``at_most``: differences that are expected at most, up to 1024; a peer of an earlier release
    does not know it. Raises ``FormatError`` for a peer that sends something else, ``ParameterError``, and
    what ``channel`` raises. Costs a microsecond a line, and some 20 bytes and a line for each difference;
    with ``at_most`` 8 bytes for each of these, and some 5 ns for each line and each of them.
    """
    if at_most is not None and not 1 <= at_most <= _MOST_EXPECTED:
        raise ParameterError(f"at_most must be between 1 and {_MOST_EXPECTED}, got {at_most}")
    peer = _Peer(channel, limit)
    secret = secrets.token_bytes(_SECRET)
    peer.send(b"H", _GREETING + secret)
    takes = peer.receive(b"h", 1) == b"\1"
    side = Side(lines, secret)
    decoder = _core.RatelessDecoder(
        list(side.by_hash), hashed=True, max_symbols=limit // _SYMBOL + 1, secret=secret
    )
    found = None if at_most is None else _sketched(side, peer, at_most)
    while found is None and not decoder.complete:
        wanted = min(max(_FIRST, decoder.symbols // _PART), _MOST_AT_ONCE)
        before = decoder.symbols
        peer.send(b"S", wanted.to_bytes(4, "little"))
        symbols = peer.receive(b"s", _STREAM_HEAD + wanted * _SYMBOL)
        try:
            decoder.feed(symbols)
        except FilterFull:
            text = f"{before:,} symbols do not tell the sets apart; raise the limit of {limit:,} bytes"
            raise FormatError(text) from None
        if decoder.symbols == before:
            raise FormatError("the peer sent no symbols where some were asked for")
    here, there, _ = decoder.decoded() if found is None else found
    peer.send(b"W", b"".join(key.to_bytes(_HASH, "little") for key in there))
    answer = peer.receive(b"l", limit)
    mine, theirs = [side.by_hash[key] for key in here], peer.unpacked(answer[_HASH:])
    both = (side.checksum + checksum(theirs, secret)) % _SUM
    their_sum = int.from_bytes(answer[:_HASH], "little")
    if set(_core.hash_many(theirs, secret=secret)) != set(there) or len(theirs) != len(there):
        raise FormatError("the peer sent other lines than were asked for; nothing is taken over")
    if both != (their_sum + checksum(mine, secret)) % _SUM:
        raise FormatError("the checksums of the united sets differ; nothing is taken over, run it again")
    if give and takes:
        peer.send(b"L", both.to_bytes(_HASH, "little") + packed(mine))
        peer.receive(b"d", 0)
    return Synced(mine, theirs, give and takes, decoder.symbols)


def _sketched(side: Side, peer: _Peer, at_most: int) -> _core.Decoded | None:
    """Return the differences that a sketch of the peer tells; None where there are more than ``at_most``."""
    peer.send(b"C", at_most.to_bytes(4, "little"))
    sketch = peer.receive(b"c", _SKETCH_HEAD + (at_most + _BEYOND) * _HASH)
    own = _core.CharacteristicSketch(list(side.by_hash), at_most, hashed=True, secret=side.secret)
    found = own.differences(sketch)
    return found if found.complete else None


def _send_sketch(side: Side, peer: _Peer, expected: int) -> None:
    if not 1 <= expected <= _MOST_EXPECTED:
        raise FormatError(f"the peer expects {expected} differences, {_MOST_EXPECTED} are the most")
    sketch = _core.CharacteristicSketch(list(side.by_hash), expected, hashed=True, secret=side.secret)
    peer.send(b"c", sketch.to_bytes())


def serve(
    lines: Iterable[bytes],
    channel: Channel,
    *,
    take: Callable[[list[bytes]], None] | None = None,
    limit: int = LIMIT,
) -> Synced:
    """Answer a peer that runs `ask`.

    ``take`` gets the lines that this side lacks, once they are proven to be all; without it none are sent.
    Contract, errors and cost are those of `ask`.
    """
    peer = _Peer(channel, limit)
    greeting = peer.receive(b"H", len(_GREETING) + _SECRET)
    if not greeting.startswith(_GREETING) or len(greeting) != len(_GREETING) + _SECRET:
        raise FormatError(
            "the peer speaks another version of the protocol; use the same release on both sides"
        )
    secret = greeting[len(_GREETING) :]
    peer.send(b"h", b"\1" if take else b"\0")
    side = Side(lines, secret)
    encoder = _core.RatelessEncoder(list(side.by_hash), hashed=True, secret=secret)
    frame = peer.next({b"C": 4, b"S": 4, b"W": _HASH * len(side.by_hash)})
    if frame[0] == b"C":
        _send_sketch(side, peer, int.from_bytes(frame[1], "little"))
        frame = peer.next({b"S": 4, b"W": _HASH * len(side.by_hash)})
    while frame[0] == b"S":
        wanted = int.from_bytes(frame[1], "little")
        most = min(_MOST_AT_ONCE, max(_FIRST, limit // _SYMBOL))
        if not 1 <= wanted <= most or encoder.symbols * _SYMBOL > limit:
            raise FormatError(f"the peer asks for {wanted} symbols after {encoder.symbols}: that has no end")
        peer.send(b"s", encoder.produce(wanted))
        frame = peer.next({b"S": 4, b"W": _HASH * len(side.by_hash)})
    keys = [int.from_bytes(frame[1][at : at + _HASH], "little") for at in range(0, len(frame[1]), _HASH)]
    if any(key not in side.by_hash for key in keys):
        raise FormatError("the peer asks for lines that are not here")
    if len(set(keys)) < len(keys):
        raise FormatError("the peer asks for a line twice; each is sent once")
    mine = [side.by_hash[key] for key in keys]
    if (size := sum(len(line) + 1 for line in mine)) > limit:
        raise FormatError(
            f"the peer asks for {len(mine):,} lines of {size:,} bytes, the limit is {limit:,}; raise it"
        )
    peer.send(b"l", side.checksum.to_bytes(_HASH, "little") + packed(mine))
    theirs: list[bytes] = []
    if take and (answer := peer.last(b"L")) is not None:
        theirs = peer.unpacked(answer[_HASH:])
        if int.from_bytes(answer[:_HASH], "little") != (side.checksum + checksum(theirs, secret)) % _SUM:
            raise FormatError("the checksums of the united sets differ; nothing is taken over, run it again")
        take(theirs)
        peer.send(b"d", b"")
    return Synced(mine, theirs, bool(theirs), encoder.symbols)


def packed(lines: list[bytes]) -> bytes:
    """Return the lines as sent."""
    return zlib.compress(b"".join(line + b"\n" for line in lines))


class _Peer:
    """Frames to and from the other side, within a limit."""

    def __init__(self, channel: Channel, limit: int) -> None:
        self._channel = channel
        self._left = self._limit = limit

    def send(self, kind: bytes, payload: bytes) -> None:
        self._channel.write(kind + len(payload).to_bytes(4, "little") + payload)

    def receive(self, kind: bytes, most: int) -> bytes:
        return self.next({kind: most})[1]

    def last(self, kind: bytes) -> bytes | None:
        """Return the payload of a frame that may not come any more."""
        try:
            first = self._channel.read(1)
        except EOFError:
            return None
        return self._rest(first, {kind: self._limit})[1]

    def next(self, wanted: dict[bytes, int]) -> tuple[bytes, bytes]:
        """Return kind and payload of a frame, of one of these kinds and at most so long."""
        return self._rest(self._channel.read(1), wanted)

    def _rest(self, kind: bytes, wanted: dict[bytes, int]) -> tuple[bytes, bytes]:
        if kind not in wanted:
            expected = " or ".join(repr(kind.decode()) for kind in wanted)
            raise FormatError(f"the peer does not speak the protocol: got {kind!r} where {expected} stands")
        length = int.from_bytes(self._channel.read(4), "little")
        if length > min(wanted[kind], self._left):
            raise FormatError(
                f"the peer announces {length:,} bytes where {min(wanted[kind], self._left):,} may come; "
                "it is damaged, or needs a higher limit"
            )
        self._left -= length
        return kind, self._channel.read(length)

    def unpacked(self, data: bytes) -> list[bytes]:
        """Return the lines that `packed` packed, of no more bytes than the limit."""
        unpack = zlib.decompressobj()
        try:
            text = unpack.decompress(data, self._limit)
        except zlib.error:
            raise FormatError("the peer sent lines that do not unpack") from None
        if not unpack.eof or unpack.unused_data:
            raise FormatError(f"the peer sent lines that are damaged, or longer than {self._limit:,} bytes")
        lines = text.split(b"\n")
        if lines.pop():
            raise FormatError("the peer sent a line without end")
        return lines
