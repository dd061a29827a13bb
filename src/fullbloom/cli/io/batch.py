"""One batch of records, and how those of them that are kept or dropped are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fullbloom import _core


@dataclass(slots=True)
class Batch:
    """Records of one block, and what belongs in front of them: a header, a byte order mark."""

    records: _core.KeyedRecords
    header: bytes = b""

    def kept(self, part: bytes | None) -> bytes:
        """Return what is written for ``part``, the records that go to the first output."""
        return self.header + part if self.header and part else part or self.header

    def dropped(self, part: bytes | None) -> bytes:
        """Return what is written for ``part``, the records of the second output; None is no output."""
        return b"" if part is None else self.header + part

    def printed(self, written: int) -> int:
        """Return how many bytes of records are out, of ``written`` bytes of `kept`."""
        return max(written - len(self.header), 0)
