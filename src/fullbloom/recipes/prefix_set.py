"""Sorted prefixes of hashes as differences: the set of malicious addresses in Chromium's file.

Chrome's first list of malicious addresses was a Bloom filter. Later it was a set of 32-bit prefixes of
hashes, sorted and stored as 16-bit differences: runs of at most 100 differences, each behind a whole prefix
in an index. A prefix takes 2.1 bytes in a list of half a million, and the rate of a lookup is its number of
prefixes over 2^32. `GolombSet` stores the same values in less (`fullbloom.recipes.url_check`).

>>> listed = PrefixSet([7, 1000, 70_000, 4_000_000_000])
>>> 70_000 in listed, 70_001 in listed, listed.num_runs
(True, False, 3)
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from fullbloom.errors import FormatError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["PrefixSet", "hash_prefix"]

#: Magic, version, entries of the index, differences, whole hashes.
_HEAD = struct.Struct("<5I")
_MAGIC, _VERSION = 0x864088DD, 3
_ENTRY = struct.Struct("<2I")
_DIGEST_BYTES = 16
_MOST_RUN, _MOST_DIFFERENCE, _PREFIXES = 100, 1 << 16, 1 << 32


def hash_prefix(expression: str) -> int:
    """Return the first four bytes of the SHA-256 of an expression as a number, the little end first.

    >>> hash_prefix("evil.example/")
    2090140144
    """
    return int.from_bytes(hashlib.sha256(expression.encode()).digest()[:4], "little")


class PrefixSet:
    """A set of numbers below 2^32, stored as differences.

    prefixes: in any order; repeated ones count once. Raises ``ParameterError`` for a number out of range.
    """

    def __init__(self, prefixes: Iterable[int] = ()) -> None:
        #: The first prefix of each run, and where its differences begin.
        self._firsts: list[int] = []
        self._starts: list[int] = []
        self._differences: list[int] = []
        last, run = 0, _MOST_RUN
        for prefix in sorted(set(prefixes)):
            if not 0 <= prefix < _PREFIXES:
                raise ParameterError(f"a prefix must be from 0 to 2**32 - 1, got {prefix}")
            if run == _MOST_RUN or prefix - last >= _MOST_DIFFERENCE:
                self._firsts.append(prefix)
                self._starts.append(len(self._differences))
                run = 0
            else:
                self._differences.append(prefix - last)
                run += 1
            last = prefix

    @property
    def num_runs(self) -> int:
        """Entries of the index."""
        return len(self._firsts)

    def __len__(self) -> int:
        """Return the number of prefixes."""
        return len(self._firsts) + len(self._differences)

    def __iter__(self) -> Iterator[int]:
        """Yield the prefixes in order."""
        for at in range(len(self._firsts)):
            yield from accumulate(self._list_run(at), initial=self._firsts[at])

    def __contains__(self, prefix: int) -> bool:
        """Return whether the prefix is listed. Reads one run."""
        at = bisect_right(self._firsts, prefix) - 1
        return at >= 0 and prefix in accumulate(self._list_run(at), initial=self._firsts[at])

    def _list_run(self, at: int) -> list[int]:
        end = self._starts[at + 1] if at + 1 < len(self._starts) else len(self._differences)
        return self._differences[self._starts[at] : end]

    def to_bytes(self) -> bytes:
        """Return the set as Chromium's file of version 3, without whole hashes."""
        data = b"".join(
            [
                _HEAD.pack(_MAGIC, _VERSION, len(self._firsts), len(self._differences), 0),
                *(_ENTRY.pack(*entry) for entry in zip(self._firsts, self._starts, strict=True)),
                struct.pack(f"<{len(self._differences)}H", *self._differences),
            ]
        )
        return data + hashlib.md5(data, usedforsecurity=False).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> PrefixSet:
        """Return the set in a file of version 3. Raises ``FormatError`` for any other bytes."""
        if len(data) < _HEAD.size + _DIGEST_BYTES:
            raise FormatError(f"a prefix set has at least 36 bytes, got {len(data)}")
        magic, version, index, differences, hashes = _HEAD.unpack_from(data)
        if (magic, version) != (_MAGIC, _VERSION):
            raise FormatError("the bytes are not a prefix set, or one of another version than 3")
        if hashes:
            raise FormatError(f"a prefix set with {hashes} whole hashes cannot be read; only prefixes can")
        size = _HEAD.size + index * _ENTRY.size + 2 * differences + _DIGEST_BYTES
        if size != len(data):
            raise FormatError(f"a prefix set of {index} runs takes {size} bytes, got {len(data)}")
        body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if hashlib.md5(body, usedforsecurity=False).digest() != digest:
            raise FormatError("the digest at the end of the prefix set is not that of its bytes")
        found, end = cls(), _HEAD.size + index * _ENTRY.size
        entries = list(_ENTRY.iter_unpack(body[_HEAD.size : end]))
        found._firsts, found._starts = [first for first, _ in entries], [start for _, start in entries]
        found._differences = list(struct.unpack(f"<{differences}H", body[end:]))
        if not found._is_sound():
            raise FormatError("the prefixes of the set are not in order")
        return found

    def _is_sound(self) -> bool:
        """Return whether runs follow each other, and prefixes ascend."""
        starts = [*self._starts, len(self._differences)]
        if starts[0] or 0 in self._differences or any(a > b for a, b in pairwise(starts)):
            return False
        last = -1
        for prefix in self:
            if not last < prefix < _PREFIXES:
                return False
            last = prefix
        return True
