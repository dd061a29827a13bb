"""A plain string of bits that another program fills with SETBIT, read and changed in its own layout.

A string does not record its rule, so the caller names it. One BITFIELD command asks or sets all bits of many
keys: one round trip, which the server executes as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from fullbloom import _core
from fullbloom.engines.redis.protocol.requests import (
    Steps,
    call,
    parse_text,
    read_number,
    read_part,
    unexpected_reply,
)
from fullbloom.errors import FilterLost, FormatError, IncompatibleFilters, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fullbloom.keys import Key

#: Bits of one command: 150 kB.
_MOST_BITS = 8192
#: Bytes of one GETRANGE.
_PORTION = 1 << 20
#: The bits of the longest string of a server, 512 MiB.
_LONGEST = 1 << 32
#: Longest name of a type, "string", "hash", ..., of modules, too.
_MAX_TYPE_BYTES = 64
#: Bytes of a key on a server.
_MAX_NAME_BYTES = 512


@dataclass(frozen=True)
class BitmapVerification:
    """How many of known members a string has under a rule; true if it has all of them."""

    #: Known members, and how many of them were found.
    asked: int
    found: int
    #: How many of them chance would find: any key is found with the present rate.
    by_chance: float

    def __bool__(self) -> bool:
        """Return whether all were found."""
        return self.found == self.asked


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
        if not 0 < len(key) <= _MAX_NAME_BYTES:
            raise ParameterError(f"name must have 1 to {_MAX_NAME_BYTES} bytes, got {len(key)}")
        if self.order not in {"lsb", "msb"}:
            raise ParameterError(f"order must be 'lsb' or 'msb', got {self.order!r}")
        object.__setattr__(self, "key", key)
        bare = [row["name"] for row in _core.foreign_formats() if row["bare"] and row["order"] == "lsb"]
        if self.rule not in bare:
            raise ParameterError(f"rule must be one of {', '.join(bare)}, got {self.rule!r}")
        _core.foreign_positions(self.rule, self.num_bits, self.num_hashes, [])
        if self.num_bits > _LONGEST:
            raise ParameterError(f"num_bits must be at most 2**32, the longest string, got {self.num_bits}")

    @property
    def nbytes(self) -> int:
        """Bytes that the bits take."""
        return -(-self.num_bits // 8)

    def offsets(self, keys: Iterable[Key]) -> list[list[int]]:
        """Return the offsets of the bits of each key, as GETBIT counts them."""
        positions = _core.foreign_positions(self.rule, self.num_bits, self.num_hashes, keys)
        if self.order == "msb":
            return positions
        return [[position ^ 7 for position in each] for each in positions]

    def check(self) -> Steps[int]:
        """Return the bytes of the string; raise if it is missing, holds something else, or is too long."""
        kind = parse_text((yield from call(self.key, b"TYPE", self.key)), _MAX_TYPE_BYTES)
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

    def send(self, keys: Iterable[Key], *, adding: bool) -> Steps[list[bool]]:
        """Look up or add keys; for each whether it was found, or new."""
        answers: list[bool] = []
        for portion in _portions(keys, max(1, _MOST_BITS // self.num_hashes)):
            offsets = self.offsets(portion)
            words: list[bytes | int] = [b"BITFIELD", self.key]
            for offset in (offset for each in offsets for offset in each):
                words += (b"SET", b"u1", offset, 1) if adding else (b"GET", b"u1", offset)
            bits = _parse_bits((yield from call(self.key, *words)), sum(map(len, offsets)))
            taken = iter(bits)
            answers += [all(list(islice(taken, len(each)))) != adding for each in offsets]
        return answers

    def verify(self, keys: Iterable[Key]) -> Steps[BitmapVerification]:
        """Count the known members that are found; nothing is written."""
        found = yield from self.send(keys, adding=False)
        rate = (yield from self.fill()) ** self.num_hashes
        return BitmapVerification(len(found), sum(found), len(found) * rate)

    def require(self, keys: Iterable[Key]) -> Steps[BitmapVerification]:
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

    def fill(self) -> Steps[float]:
        """Return the share of set bits."""
        return (yield from read_number(self.key, b"BITCOUNT", self.key)) / self.num_bits

    def dump(self) -> Steps[_core.ForeignFilter]:
        """Return the filter in memory, read in portions. Bits that are set meanwhile may be missing."""
        yield from self.check()
        data = bytearray(self.nbytes)
        for start in range(0, self.nbytes, _PORTION):
            part = yield from read_part(self.key, start, min(_PORTION, self.nbytes - start))
            data[start : start + len(part)] = part
            if not part:  # SETBIT makes a string no longer than its last bit needs
                break
        name = self.rule if self.order == "lsb" else f"{self.rule}-msb"
        return _core.ForeignFilter.from_foreign(
            data, name, num_bits=self.num_bits, num_hashes=self.num_hashes
        )


def _portions(keys: Iterable[Key], size: int) -> Iterator[list[Key]]:
    if isinstance(keys, (str, bytes)):
        raise ParameterTypeError("a batch takes many keys, got one text")
    if hasattr(keys, "to_pylist"):
        keys = keys.to_pylist()
    items = iter(keys)
    while portion := list(islice(items, size)):
        yield portion


def _parse_bits(answer: Any, count: int) -> list[int]:
    """Return the reply to a BITFIELD of ``count`` single bits."""
    if not isinstance(answer, list) or len(answer) != count or any(bit not in {0, 1} for bit in answer):
        raise unexpected_reply("not one bit for each")
    return answer
