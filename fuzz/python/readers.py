"""The readers of the command line: lines, CSV, TSV, JSON lines and gzip, in pieces of any size.

Held to it: what is read comes out again byte for byte, each key has a hash, and what cannot be read is a
`Refusal`. Coverage is that of the branches of the readers, which are Python.
"""

from __future__ import annotations

import argparse
import gzip
from typing import TYPE_CHECKING

from driver import Branches, Input, fuzz

Branches("fullbloom.cli.io", "csv", "json")

import fullbloom  # after the driver, whose hooks it needs
from fullbloom.cli.failures import Refusal
from fullbloom.cli.io import compressed
from fullbloom.cli.io.blocks import Blocks
from fullbloom.cli.io.records import Records
from fullbloom.cli.stops import Stops

if TYPE_CHECKING:
    from collections.abc import Iterator

SELECTS = ["a", "1", "2", "9", "a.b", "b", "\u00e9", "", "."]
TYPES = ["auto", "auto", "str", "int", "float", "bool", "uuid"]


class Pieces:
    """A source that gives some bytes in pieces."""

    def __init__(self, name: str, data: bytes, pieces: list[int]) -> None:
        self.name, self.data, self.pieces = name, data, pieces or [64]
        self.at = self.taken = self.turn = 0
        self.size, self.packed = len(data), False

    def ready(self, _timeout: float | None) -> bool:
        """Always."""
        return True

    def readinto(self, target: memoryview) -> int:
        """The next piece."""
        self.turn += 1
        count = min(len(target), 1 + self.pieces[self.turn % len(self.pieces)], len(self.data) - self.at)
        target[:count] = self.data[self.at : self.at + count]
        self.at += count
        return count

    def close(self) -> None:
        """Nothing to let go of."""


def cut(data: bytes, pieces: list[int]) -> Iterator[bytes]:
    """The data in pieces."""
    at = turn = 0
    while at < len(data):
        count = 1 + (pieces[turn % len(pieces)] if pieces else 64)
        yield data[at : at + count]
        at, turn = at + count, turn + 1


def unpacked(source: Input, data: bytes, pieces: list[int]) -> bytes | None:
    """What a compressed input holds; None where it is damaged."""
    whole = (
        gzip.compress(data[:200], 1, mtime=0) + bytes(source.below(3)) + data[200:]
        if source.below(2)
        else data
    )
    try:
        given = b"".join(compressed.gunzip(cut(whole, pieces), "x"))
    except Refusal:
        return None
    if whole is not data and not data[200:].strip(b"\0"):
        assert given == data[:200]
    return given


def target(source: Input) -> None:
    """One input: how it is read, then what is read."""
    kind = source.choice(["lines", "csv", "tsv", "jsonl", "gzip"])
    selects = [source.choice(SELECTS) for _ in range(1 + source.below(3))]
    no_header = bool(source.below(2))
    pieces = [source.byte() for _ in range(source.below(5))]
    size = 1 + source.byte()
    parts = 1 + source.below(3)
    data = source.data[source.at :]
    step = len(data) // parts + 1
    datas = [data[i : i + step] for i in range(0, len(data), step)]
    stops = Stops()
    if kind == "gzip":
        unpacked(source, data, pieces)
        return
    inputs = [Pieces("in", part, pieces) for part in datas]
    # Of all inputs but the last that are not empty, a last line without newline gets one.
    expected = b"".join(
        part if part.endswith(b"\n") or i == len(datas) - 1 or not part else part + b"\n"
        for i, part in enumerate(datas)
    )
    blocks = Blocks(inputs, stops, size=size)
    if kind == "lines":
        read = [bytes(block) for block in blocks]
        assert b"".join(read) == expected
        assert all(block.endswith(b"\n") for block in read[:-1])
        return
    args = argparse.Namespace(select=selects, no_header=no_header, format=kind, delimiter=None, threads=1)
    args.files = [part.name for part in inputs]
    args.key_type, args.skip_bad = [source.choice(TYPES)], bool(source.below(2))
    out, headers = [], 0
    seen = fullbloom.BloomFilter(100)
    try:
        records = Records(args, inputs, stops, seen, longest=1 << 20)
        for batch in records:
            headers += bool(batch.header)
            keys = len(batch.records) - batch.records.without_key - batch.records.faults
            assert len(batch.records.add_some(seen, 0, 1 << 20)) == keys
            out += [batch.header, batch.records.part(b"\1" * keys)[1] or b""]
    except Refusal as refusal:
        assert str(refusal)
        assert len(str(refusal)) < 2000 + 4 * len(data)
        return
    assert headers <= 1
    if (kind == "jsonl" or no_header) and not records.faults and b"\xef\xbb\xbf" not in expected:
        assert b"".join(out) == expected


if __name__ == "__main__":
    fuzz(target)
