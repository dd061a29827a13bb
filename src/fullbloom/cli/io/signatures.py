"""Signatures of files that do not consist of lines, and the remedy for each."""

from __future__ import annotations

import re
from typing import NamedTuple

from fullbloom.cli.failures import Refusal

#: Bytes that decide.
HEAD = 64


class Signature(NamedTuple):
    """The first bytes of a format, its name, and the remedy."""

    begins: bytes
    name: str
    remedy: str


_COLUMNS = "name its key with --select COLUMN"
_UNPACK = "unpack it first"
SIGNATURES = (
    Signature(b"PAR1", "a Parquet file", _COLUMNS),
    Signature(b"ARROW1\0\0", "an Arrow file", _COLUMNS),
    Signature(b"\xff\xff\xff\xff", "an Arrow stream", _COLUMNS),
    Signature(b"ORC", "an ORC file", "write it as Parquet or CSV first"),
    Signature(b"Obj\x01", "an Avro file", "write it as Parquet or JSON lines first"),
    Signature(b"\xfd7zXZ\0", "compressed by xz", _UNPACK),
    Signature(b"BZh", "compressed by bzip2", _UNPACK),
    Signature(b"PK\x03\x04", "a zip archive", _UNPACK),
    Signature(b"SQLite format 3\0", "an SQLite database", "export the column as CSV first"),
    Signature(b"\x1f\x8b", "packed by gzip twice", _UNPACK),
    Signature(b"\x28\xb5\x2f\xfd", "packed by zstd twice", _UNPACK),
    Signature(b"\x89BLOOM\r\n", "a filter file", "look into it with: fullbloom info"),
)
#: Bytes that no text has.
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x80-\xff]")


def require_lines(head: bytes | memoryview, name: str) -> None:
    """Refuse an input whose first bytes are those of another format.

    A word list may begin with "ORCA": bytes after a signature of letters must include one that is not text.
    """
    first = bytes(head[:HEAD])
    for begins, what, remedy in SIGNATURES:
        if first.startswith(begins) and _BINARY.search(first):
            raise Refusal(f"{name}: this is {what}, not lines; {remedy}")


def is_binary(head: bytes | memoryview) -> bool:
    """Return whether a terminal cannot show an output that begins so: it has a signature, or a zero byte."""
    first = bytes(head)
    return b"\0" in first or any(first == signature.begins for signature in SIGNATURES)
