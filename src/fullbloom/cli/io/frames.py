"""The parts of zstd data (RFC 8878, section 3.1.1), so that no step unpacks more than one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.failures import Refusal
from fullbloom.cli.units import size_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

MAGIC = b"\x28\xb5\x2f\xfd"
#: Frames without data, which may be at any place.
SKIPPABLE = tuple(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))
#: The largest window that zstd itself accepts without --long.
LARGEST_WINDOW = 1 << 27
_RLE, _RESERVED = 1, 3
#: Most bytes of a block, packed or unpacked.
_BLOCK = 1 << 17
_CHECKSUM = 4
#: Most bytes that one read of a skippable frame takes.
_PULL = 1 << 16


class _Reader:
    """Bytes of ``chunks`` in the requested lengths."""

    def __init__(self, chunks: Iterator[bytes], name: str) -> None:
        self._chunks, self.name = chunks, name
        self._held, self._at = b"", 0

    def some(self, most: int) -> bytes:
        """Return between 1 and ``most`` bytes, none at the end."""
        while self._at == len(self._held):
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._held, self._at = chunk, 0
        out = self._held[self._at : self._at + most]
        self._at += len(out)
        return out

    def exactly(self, count: int, out: bytes = b"") -> bytes:
        """Return ``out`` and what follows, ``count`` bytes in all."""
        parts, have = [out], len(out)
        while have < count:
            parts.append(part := self.some(count - have))
            have += len(part)
            if not part:
                raise Refusal(f"{self.name}: the zstd data ends in the middle; the file was cut short")
        return b"".join(parts)


def frames(chunks: Iterator[bytes], name: str, window: int) -> Iterator[Iterator[bytes]]:
    """Yield of every frame with data its header and blocks: 128 KiB each at most once unpacked.

    Read all of a frame before the next. Raises `Refusal` for invalid frames, a frame that ends in the
    middle, and one that needs a window of more than ``window`` bytes.
    """
    reader = _Reader(chunks, name)
    while start := reader.some(4):
        magic = reader.exactly(4, start)
        if magic == MAGIC:
            yield _frame(reader, window)
        elif magic in SKIPPABLE:
            left = int.from_bytes(reader.exactly(4), "little")
            while left:
                left -= len(reader.exactly(min(left, _PULL)))
        else:
            raise Refusal(f"{name}: damaged zstd data (no frame begins with {magic.hex()})")


def _frame(reader: _Reader, window: int) -> Iterator[bytes]:
    descriptor = yield from _header(reader, window)
    last = False
    while not last:
        head = reader.exactly(3)
        value = int.from_bytes(head, "little")
        last, kind, size = bool(value & 1), value >> 1 & 3, value >> 3
        if kind == _RESERVED or size > _BLOCK:
            raise Refusal(f"{reader.name}: damaged zstd data (a block of type {kind} and {size} bytes)")
        yield reader.exactly(3 + (1 if kind == _RLE else size), head)
    if descriptor & _CHECKSUM:
        yield reader.exactly(4)


def _header(reader: _Reader, window: int) -> Generator[bytes, None, int]:
    """Yield the header of a frame; return its descriptor."""
    descriptor = reader.exactly(1)[0]
    single = bool(descriptor & 0x20)
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    content = (int(single), 2, 4, 8)[descriptor >> 6]
    rest = reader.exactly((not single) + dictionary + content)
    if single:
        wanted = int.from_bytes(rest[dictionary:], "little") + (256 if content == 2 else 0)  # noqa: PLR2004
    else:
        wanted = (8 + (rest[0] & 7)) << (7 + (rest[0] >> 3))
    if wanted > window:
        remedy = "give more --memory, or " if window < LARGEST_WINDOW else ""
        raise Refusal(
            f"{reader.name}: its zstd frame wants a window of {size_text(wanted)}, "
            f"more than {size_text(window)}; {remedy}pack it with a smaller one"
        )
    yield MAGIC + bytes((descriptor,)) + rest
    return descriptor
