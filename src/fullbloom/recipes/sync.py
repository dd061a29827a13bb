"""Compare the sets of lines of two machines by exchanging kilobytes, and merge them.

The client draws a secret, with which both sides hash their lines, and requests coded symbols of the server's
set until it knows the hashes that only one side has: about 19 bytes for each of these, however many lines the
sets share. Then each side sends the lines that the other lacks, and a checksum of the merged set, under
another hash, proves that no line is missing.

Frames are a letter, a length of 4 bytes and that many bytes; numbers are little-endian. After each frame the
client waits for the response:

    client                                             server
    H  "fullbloom sync 1", secret (16)                  h  1 when it takes lines, else 0
    C  differences expected at most (4)                c  a characteristic sketch
    S  symbols wanted (4)                              s  coded symbols
    W  hashes of lines wanted (8 each)                 l  checksum (8), lines, packed by zlib
    L  checksum of both (8), lines, packed by zlib     d  nothing: it has them

The client sends the last frame only if the server takes lines, and requests the sketch only if it expects few
differences: a sketch takes 8 bytes per difference instead of 22, and symbols follow if there are more. A peer
may send at most ``limit`` bytes, in frames no longer than requested, and receives at most ``limit`` bytes of
lines, each line once. A peer that sends invalid data, never stops, or requests more causes an error.
"""

from __future__ import annotations

import secrets
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fullbloom import _core
from fullbloom.errors import FilterFull, FormatError, IncompatibleFilters, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["LIMIT", "Channel", "Side", "SyncResult", "ask", "serve"]

#: The most bytes that a peer may send, compressed or not, and that it may request.
LIMIT = 1 << 26

_GREETING = b"fullbloom sync 1"
_SECRET = 16
_HASH = 8
#: Head of a sketch, its values beyond the bound, and the largest bound.
_SKETCH_HEAD, _BEYOND, _MOST_EXPECTED = 24, 3, 1024
#: Head of the stream, and the longest symbol.
_STREAM_HEAD, _SYMBOL = 24, 22
#: The number of symbols requested first, and then 1/8 of those received: at most 1/9 are superfluous.
_FIRST, _PART = 64, 8
_MOST_AT_ONCE = 1 << 17
_SUM = 1 << 64
#: The checksum uses another seed, so that lines with equal hashes do not collide there more often.
_CHECK_SEED = 1


class Channel(Protocol):
    """A connection to the peer."""

    def read(self, count: int) -> bytes:
        """Return exactly ``count`` bytes; raise ``EOFError`` or ``TimeoutError`` if they do not arrive."""

    def write(self, data: bytes) -> None:
        """Send all of ``data``."""


@dataclass
class Side:
    """The distinct lines of one side, by their hashes under the secret of a run."""

    lines: Iterable[bytes]
    secret: bytes
    by_hash: dict[int, bytes] = field(init=False)
    checksum: int = field(init=False)

    def __post_init__(self) -> None:
        """Hash the lines: 0.3 us per line."""
        lines = list(self.lines)
        self.by_hash = dict(zip(_core.hash_many(lines, secret=self.secret), lines, strict=True))
        self.checksum = checksum(list(self.by_hash.values()), self.secret)


@dataclass(frozen=True)
class SyncResult:
    """The result: the lines that only one side has, proven complete, and the number of symbols used."""

    mine: list[bytes]
    theirs: list[bytes]
    #: True when the peer has taken the lines that it lacked.
    taken: bool
    symbols: int


def checksum(lines: list[bytes], secret: bytes) -> int:
    """Return the sum of the second hashes of distinct lines; disjoint sets add up to their union."""
    hashes: list[int] = _core.hash_many(lines, seed=_CHECK_SEED, secret=secret)
    return sum(hashes) % _SUM


def ask(
    lines: Iterable[bytes],
    channel: Channel,
    *,
    give: bool = False,
    limit: int = LIMIT,
    at_most: int | None = None,
) -> SyncResult:
    """Compare the local lines with those of a peer that runs `serve`, and fetch the missing ones.

    ``lines`` have no newlines; duplicates count once. ``give``: send the peer the lines that it lacks, if it
    takes lines. ``at_most``: the largest expected number of differences, up to 1024; peers of earlier
    releases do not support it. Raises ``FormatError`` for invalid data from the peer, ``ParameterError``, and
    the errors of ``channel``. Costs 1 us per line, and some 20 bytes and one line per difference; with
    ``at_most`` 8 bytes per expected difference, and some 5 ns per line and expected difference.
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
    found = None if at_most is None else _compare_sketches(side, peer, at_most)
    while found is None and not decoder.complete:
        wanted = min(max(_FIRST, decoder.symbols // _PART), _MOST_AT_ONCE)
        before = decoder.symbols
        peer.send(b"S", wanted.to_bytes(4, "little"))
        symbols = peer.receive(b"s", _STREAM_HEAD + wanted * _SYMBOL)
        try:
            decoder.feed(symbols)
        except FilterFull:
            text = f"{before:,} symbols do not separate the sets; raise the limit of {limit:,} bytes"
            raise FormatError(text) from None
        except IncompatibleFilters:
            raise _of_another_secret("symbols") from None
        if decoder.symbols == before:
            raise FormatError("the peer sent no symbols where some were requested")
    here, there, _ = decoder.decoded() if found is None else found
    peer.send(b"W", b"".join(key.to_bytes(_HASH, "little") for key in there))
    answer = peer.receive(b"l", limit)
    mine, theirs = [side.by_hash[key] for key in here], peer.unpack(answer[_HASH:], len(there))
    both = (side.checksum + checksum(theirs, secret)) % _SUM
    their_sum = int.from_bytes(answer[:_HASH], "little")
    if set(_core.hash_many(theirs, secret=secret)) != set(there) or len(theirs) != len(there):
        raise FormatError("the peer sent lines that were not requested; no line is added")
    if both != (their_sum + checksum(mine, secret)) % _SUM:
        raise FormatError("the checksums of the merged sets differ; no line is added, run it again")
    if give and takes:
        peer.send(b"L", both.to_bytes(_HASH, "little") + pack_lines(mine))
        peer.receive(b"d", 0)
    return SyncResult(mine, theirs, give and takes, decoder.symbols)


def _compare_sketches(side: Side, peer: _Peer, at_most: int) -> _core.SetDifference | None:
    """Return the differences from a sketch of the peer; None if there are more than ``at_most``."""
    peer.send(b"C", at_most.to_bytes(4, "little"))
    sketch = peer.receive(b"c", _SKETCH_HEAD + (at_most + _BEYOND) * _HASH)
    own = _core.CharacteristicSketch(list(side.by_hash), at_most, hashed=True, secret=side.secret)
    try:
        found = own.differences(sketch)
    except IncompatibleFilters:
        raise _of_another_secret("a sketch") from None
    return found if found.complete else None


def _of_another_secret(data: str) -> FormatError:
    """Return the error for ``data`` that does not use the secret which this run has drawn and sent."""
    return FormatError(f"the peer sent {data} under another seed or secret than it received; run it again")


def _send_sketch(side: Side, peer: _Peer, expected: int) -> None:
    if not 1 <= expected <= _MOST_EXPECTED:
        raise FormatError(f"the peer expects {expected} differences, the limit is {_MOST_EXPECTED}")
    sketch = _core.CharacteristicSketch(list(side.by_hash), expected, hashed=True, secret=side.secret)
    peer.send(b"c", sketch.to_bytes())


def serve(
    lines: Iterable[bytes],
    channel: Channel,
    *,
    take: Callable[[list[bytes]], None] | None = None,
    limit: int = LIMIT,
) -> SyncResult:
    """Respond to a peer that runs `ask`.

    ``take`` receives the lines that this side lacks, after the checksum proves them complete; without it the
    peer sends none. The contract, errors and cost are those of `ask`.
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
            raise FormatError(f"the peer requests {wanted} symbols after {encoder.symbols}, which has no end")
        peer.send(b"s", encoder.produce(wanted))
        frame = peer.next({b"S": 4, b"W": _HASH * len(side.by_hash)})
    keys = [int.from_bytes(frame[1][at : at + _HASH], "little") for at in range(0, len(frame[1]), _HASH)]
    if any(key not in side.by_hash for key in keys):
        raise FormatError("the peer requests lines that are not here")
    if len(set(keys)) < len(keys):
        raise FormatError("the peer requests a line twice; each is sent once")
    mine = [side.by_hash[key] for key in keys]
    if (size := sum(len(line) + 1 for line in mine)) > limit:
        raise FormatError(
            f"the peer requests {len(mine):,} lines of {size:,} bytes, the limit is {limit:,}; raise it"
        )
    peer.send(b"l", side.checksum.to_bytes(_HASH, "little") + pack_lines(mine))
    theirs: list[bytes] = []
    if take and (answer := peer.last(b"L")) is not None:
        # A symbol shows one difference at most.
        theirs = peer.unpack(answer[_HASH:], max(_MOST_EXPECTED, encoder.symbols))
        if int.from_bytes(answer[:_HASH], "little") != (side.checksum + checksum(theirs, secret)) % _SUM:
            raise FormatError("the checksums of the merged sets differ; no line is added, run it again")
        take(theirs)
        peer.send(b"d", b"")
    return SyncResult(mine, theirs, bool(theirs), encoder.symbols)


def pack_lines(lines: list[bytes]) -> bytes:
    """Return the compressed payload of ``lines``."""
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
        """Return the payload of an optional last frame; None if the peer closed the connection."""
        try:
            first = self._channel.read(1)
        except EOFError:
            return None
        return self._rest(first, {kind: self._limit})[1]

    def next(self, wanted: dict[bytes, int]) -> tuple[bytes, bytes]:
        """Return kind and payload of a frame; ``wanted`` maps the allowed kinds to their longest payloads."""
        return self._rest(self._channel.read(1), wanted)

    def _rest(self, kind: bytes, wanted: dict[bytes, int]) -> tuple[bytes, bytes]:
        if kind not in wanted:
            expected = " or ".join(repr(kind.decode()) for kind in wanted)
            raise FormatError(f"the peer does not speak the protocol: got {kind!r}, expected {expected}")
        length = int.from_bytes(self._channel.read(4), "little")
        if length > min(wanted[kind], self._left):
            raise FormatError(
                f"the peer announces {length:,} bytes where {min(wanted[kind], self._left):,} are allowed; "
                "the data is damaged, or needs a higher limit"
            )
        self._left -= length
        return kind, self._channel.read(length)

    def unpack(self, data: bytes, most: int) -> list[bytes]:
        """Return the lines of a payload of `pack_lines`, limited in size and number.

        A short line takes some 60 bytes here, 2 in the text, and a hundredth of one in the payload.
        """
        decompressor = zlib.decompressobj()
        try:
            text = decompressor.decompress(data, self._limit)
        except zlib.error:
            raise FormatError("the peer sent lines that do not unpack") from None
        if not decompressor.eof or decompressor.unused_data:
            raise FormatError(f"the peer sent lines that are damaged, or longer than {self._limit:,} bytes")
        if (count := text.count(b"\n")) > most:
            raise FormatError(f"the peer sent {count:,} lines where {most:,} may be missing")
        lines = text.split(b"\n")
        if lines.pop():
            raise FormatError("the peer sent a line without end")
        return lines
