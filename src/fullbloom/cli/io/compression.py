"""Streamed gzip and zstd; zstd is the standard library's, or a package's for older interpreters."""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING, Any, Protocol

from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.frames import frames

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator


#: Most bytes that one step decompresses.
_STEP = 1 << 18
#: Half of the time of gzip's own 6, for a tenth more bytes.
_LEVEL = 4


def gunzip(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the bytes of all members; zeros after a member are padding, as for gzip itself."""
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
    """Decompress ``data`` step by step; return the bytes after the member."""
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
    """Yield the bytes of all frames; a frame whose window exceeds ``window`` bytes is refused."""
    create, failure = _find_decompressor()
    try:
        for frame in frames(chunks, name, window):
            engine = create()
            for part in frame:
                if out := engine.decompress(part):
                    yield out
    except failure as error:
        raise Refusal(f"{name}: damaged zstd data ({error})") from error


class Packer(Protocol):
    """The interface that zlib's and zstd's compressors share."""

    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes:
        """Take ``data``; return the bytes that are ready."""

    def flush(self) -> bytes:
        """Return the rest."""


def create_packer(path: str) -> Packer:
    """Return a compressor for the suffix of ``path``; its bytes contain no time and no name."""
    if path.endswith(".gz"):
        return zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdCompressor()
    packer: Packer = _import_package("writing").ZstdCompressor().compressobj()
    return packer


def _import_package(purpose: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise Refusal(f"{purpose} zstd needs the extra: pip install 'fullbloom[zstd]'") from None
    return zstandard


def _find_decompressor() -> tuple[Callable[[], Any], type[Exception]]:
    """Return the function that creates a decompressor of one frame, and the error it raises."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor, zstd.ZstdError
    package = _import_package("reading")
    return package.ZstdDecompressor().decompressobj, package.ZstdError
