"""Lines whose keys are hashes: ``HASH:count``, as in lists of leaked passwords, or texts to hash.

A key is the hash in upper-case hexadecimal digits. No message contains a line or a key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fullbloom import _core
from fullbloom.cli.failures import Refusal
from fullbloom.cli.report import note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.blocks import Block, Blocks, TypedLine
    from fullbloom.cli.options import RecordOptions

#: What ``key_domains`` has for such keys.
DIGEST = "digest"
#: The text after the hash, and a carriage return.
_REST = re.compile(rb":[^\n]*|\r(?=\n)")
_DIGITS = b"0123456789ABCDEF"
#: Digits of NTLM and MD5, SHA-1, SHA-224, SHA-256, SHA-384, SHA-512.
_LENGTHS = (32, 40, 56, 64, 96, 128)
_COUNTED_HASH = re.compile(rb"(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{40}|[0-9A-Fa-f]{64}):[0-9]+\r?")
#: Lines of hashes among the first ones that make a list of them, and the bytes to find them in.
_LINES, _HEAD = 8, 8 * 96


def hash_blocks(options: RecordOptions, blocks: Blocks | TypedLine) -> Iterable[Block]:
    """Return the blocks, or with ``--hex`` or ``--sha1-of`` blocks of the hashes of their lines.

    A list of hashes is refused unless ``--no-hex`` says that its lines are the keys: all of them would be
    absent from a filter of hashes, and no password would be found in a filter of such lines.
    """
    if options.hex:
        return _Hexadecimal(blocks)
    if options.sha1_of:
        return map(_sha1, blocks)
    return _refuse_hashes(blocks) if options.hex is None else blocks


def record_digests(options: RecordOptions, seen: Filter) -> None:
    """Record in a filter that the lines added to it were hashes, if they were."""
    if options.has_hashes:
        _core.record_digests(seen)


def warn_of_digests(options: RecordOptions, seen: Filter, *, lines: int, found: int) -> None:
    """Warn if none of the lines was in a filter of hashes, and they were looked up as they are."""
    if lines and not found and not options.has_hashes and DIGEST in seen.key_domains.split(", "):
        note(
            options,
            "the filter holds hashes in hexadecimal digits, and no line was found; give --sha1-of to look "
            "up the SHA-1 of each line, or --hex for lines that are hashes",
        )


def _refuse_hashes(blocks: Blocks | TypedLine) -> Iterator[Block]:
    name = None
    for block in blocks:
        if block and name != blocks.name:
            name = blocks.name
            _require_no_hashes(memoryview(block), name)
        yield block


def _require_no_hashes(head: memoryview, name: str) -> None:
    """Refuse a list of HASH:count whose lines would be used as keys: they would match no password."""
    lines = bytes(head[:_HEAD]).split(b"\n")[:_LINES]
    # The last one may be cut.
    whole = [line for line in lines[:-1] if line] or lines[:1]
    if whole and all(_COUNTED_HASH.fullmatch(line) for line in whole):
        raise Refusal(
            f"{name}: the lines look like HASH:count; give --hex to take the hashes as keys, or --no-hex to "
            "take the lines as they are"
        )


def _sha1(block: Block) -> bytes:
    import hashlib  # OpenSSL takes 4 MB, which `dedup --memory` would lack

    lines = bytes(block).split(b"\n")
    if not lines[-1]:
        lines.pop()
    hashes = (hashlib.sha1(line.removesuffix(b"\r"), usedforsecurity=False).hexdigest() for line in lines)
    return "".join(f"{text.upper()}\n" for text in hashes).encode()


class _Hexadecimal:
    """The hashes of lines, all of one length; any other line is refused with its number."""

    def __init__(self, blocks: Blocks | TypedLine) -> None:
        self._blocks = blocks
        self._digits = 0
        self._before = 0
        self._name = ""

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            if block:  # not of an idle second
                yield self._hashes(bytes(block))

    def _hashes(self, block: bytes) -> bytes:
        if self._name != self._blocks.name:
            # A line that an earlier input did not end does not count for this one.
            self._name, self._before = self._blocks.name, -1 if self._blocks.carried else 0
        keys = _REST.sub(b"", block if block.endswith(b"\n") else block + b"\n").upper()
        if not self._digits:
            self._digits = self._length(keys)
        lines, width = block.count(b"\n") + (not block.endswith(b"\n")), self._digits + 1
        even = len(keys) == lines * width and keys[self._digits :: width] == b"\n" * lines
        if not even or keys.translate(None, _DIGITS) != b"\n" * lines:
            raise Refusal(self._describe_fault(keys))
        self._before += lines
        return keys

    def _length(self, keys: bytes) -> int:
        found = keys.find(b"\n")
        return found if found in _LENGTHS else _LENGTHS[1]

    def _describe_fault(self, keys: bytes) -> str:
        """Return which line is not a hash, without its content."""
        lines = keys.split(b"\n")
        wrong = next(i for i, line in enumerate(lines) if len(line) != self._digits or line.strip(_DIGITS))
        fault = (
            "a hash of another length" if not lines[wrong].strip(_DIGITS) and lines[wrong] else "not a hash"
        )
        return (
            f"{self._name}: line {self._before + wrong + 1:,} is {fault}: "
            f'it needs {self._digits} hexadecimal digits, and then the end of the line or a ":"'
        )
