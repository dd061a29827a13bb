"""Bodies packed by zstd: of the standard library where it has it, else of the extra ``bloomery[zstd]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomery.service.failures import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    """Unpack ``body`` in pieces of about ``size`` bytes."""
    try:
        import zstandard
    except ImportError:
        raise Refused("media-type", "zstd needs the extra zstd on the service's side; send gzip") from None
    reader: Any = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        body, read_across_frames=True
    )
    try:
        while piece := reader.read(size):
            yield piece
    except zstandard.ZstdError as error:
        raise Refused("invalid", f"the body is no zstd data: {error}") from None
