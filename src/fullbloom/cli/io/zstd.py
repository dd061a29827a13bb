"""zstd: of the standard library, or of a package where the interpreter is older."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable


def _package(purpose: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise Refusal(f"{purpose} zstd needs the extra: pip install 'fullbloom[zstd]'") from None
    return zstandard


def decompressor() -> tuple[Callable[[], Any], type[Exception]]:
    """Return the maker of decompressors of one frame, and their error."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor, zstd.ZstdError
    package = _package("reading")
    return package.ZstdDecompressor().decompressobj, package.ZstdError


def compressor() -> Any:
    """Return what compresses one frame."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdCompressor()
    return _package("writing").ZstdCompressor().compressobj()
