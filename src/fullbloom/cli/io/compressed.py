"""Streamed decompression: gzip with any number of members, zstd with any number of frames."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.frames import frames
from fullbloom.cli.io.zstd import decompressor

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

#: Most that one step unpacks.
_STEP = 1 << 18


def gunzip(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the unpacked bytes; zeros after a member are padding, as for gzip itself."""
    engine: Any = None
    try:
        for chunk in chunks:
            data = chunk
            while data:
                if engine is None:
                    data = data.lstrip(b"\0")
                    if not data:
                        break
                    engine = zlib.decompressobj(31)
                data = yield from _inflate(engine, data)
                if engine.eof:
                    engine = None
    except zlib.error as error:
        raise Refusal(f"{name}: damaged gzip data ({error})") from error
    if engine is not None:
        raise Refusal(f"{name}: the gzip data ends in the middle; the file was cut short")


def _inflate(engine: Any, data: bytes) -> Generator[bytes, None, bytes]:
    """Unpack ``data`` a step at a time; return what follows the end of the member."""
    while True:
        out = engine.decompress(data, _STEP)
        if out:
            yield out
        if engine.eof:
            return bytes(engine.unused_data)
        data = engine.unconsumed_tail
        if not data and len(out) < _STEP:
            return b""


def unzstd(chunks: Iterator[bytes], name: str, window: int) -> Iterator[bytes]:
    """Yield the unpacked bytes of all frames, of which none may want a window beyond ``window`` bytes."""
    make, failure = decompressor()
    try:
        for frame in frames(chunks, name, window):
            engine = make()
            for part in frame:
                if out := engine.decompress(part):
                    yield out
    except failure as error:
        raise Refusal(f"{name}: damaged zstd data ({error})") from error
