"""Streamed compression of what is written: gzip and zstd."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

from fullbloom.cli.io.zstd import compressor

if TYPE_CHECKING:
    from fullbloom.cli.io.blocks import Block

#: Half of the time of gzip's own 6, for a tenth more bytes.
_LEVEL = 4


class Packer(Protocol):
    """What zlib and zstd have in common."""

    def compress(self, data: Block, /) -> bytes:
        """Take ``data``; return what is ready."""

    def flush(self) -> bytes:
        """Return the rest."""


def packer(path: str) -> Packer:
    """Return what packs for ``path``, by its suffix; the bytes do not tell when or where that was."""
    if path.endswith(".gz"):
        return zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
    made: Packer = compressor()
    return made
