"""Bodies packed by zstd, by the extra ``fullbloom[zstd]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The largest window of zstd as a content encoding (RFC 9659): what unpacking takes beside its result.
_WINDOW = 1 << 23


def pieces(body: bytes, size: int, held: Any) -> Iterator[bytes]:
    """Unpack ``body`` in pieces of about ``size`` bytes; ``held`` has the window's bytes meanwhile."""
    try:
        import zstandard
    except ImportError:
        raise Refused("media-type", "zstd needs the extra zstd on the service's side; send gzip") from None
    try:
        window = max(zstandard.get_frame_parameters(body).window_size, 1)
        if window > _WINDOW:
            raise Refused(
                "invalid",
                f"the body's zstd window has {window} bytes; "
                f"a content encoding may have {_WINDOW} (RFC 9659)",
            )
        held.grow(_WINDOW)
        reader: Any = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
            body, read_across_frames=True
        )
        while piece := reader.read(size):
            yield piece
    except zstandard.ZstdError as error:
        raise Refused("invalid", f"the body is not zstd data: {error}") from None
    held.resize(held.nbytes - _WINDOW)
