"""Sizes, counts and rates as people write and read them."""

from __future__ import annotations

import argparse
import math
import re

from fullbloom.cli.printable import shorten

_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_THOUSANDS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_STEP = 1024
_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
#: A buffer of fewer bytes is slow.
_LEAST_LINE = 1 << 16
_MOST_BYTES = 1 << 63  # what Rust counts bytes with, and more than any machine has
_BLOCK_HASH = 32


def size(text: str) -> int:
    """Read ``64M``; K, M, G and T are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a size; write bytes, or 500K, 64M, 2G")
    number = float(match[1]) * _FACTORS[match[2].upper()]
    if number >= _MOST_BYTES:
        raise argparse.ArgumentTypeError(f"{shorten(text)} is more than 8 EiB; give what this machine has")
    return int(number)


def line_size(text: str) -> int:
    """Read the size of a longest line."""
    number = size(text)
    if number < _LEAST_LINE:
        raise argparse.ArgumentTypeError(f"must be at least {_LEAST_LINE >> 10}K, got {shorten(text)}")
    return number


def count(text: str) -> int:
    """Read ``1000000``, ``1_000_000``, ``1e6`` or ``1M``; K, M, G and T are powers of 1000. At least 1."""
    written, times = text.strip(), 1
    if written[-1:].upper() in _THOUSANDS:
        written, times = written[:-1], _THOUSANDS[written[-1:].upper()]
    try:
        number = float(written) * times
        whole = int(written) * times if written.replace("_", "").isdigit() else int(number)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{shorten(text)!r} is not a number; write 1000000, 1e6 or 1M"
        ) from None
    if whole < 1 or number != int(number):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {shorten(text)}")
    return whole


def delimiter(text: str) -> str:
    """Read the character between two cells, or its name.

    >>> delimiter("semicolon")
    ';'
    """
    found = _DELIMITERS.get(text, text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise argparse.ArgumentTypeError(
            f"{shorten(text)!r} is not a delimiter; give one ASCII character such as ';', or tab"
        )
    return found


def rate(text: str) -> float:
    """Read a false-positive rate, between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a number") from None
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"fpr must be between 0 and 1 (exclusive), got {shorten(text)}")
    return value


def price(text: str) -> float:
    """Read a positive cost, in any currency."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a number") from None
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {shorten(text)}")
    return value


def seconds(text: str) -> float:
    """Read a positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a number of seconds") from None
    if not 0 < value < 1e9:  # noqa: PLR2004 - thirty years
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, got {shorten(text)}")
    return value


def seed(text: str) -> int:
    """Read a seed: a whole number of 64 bits."""
    try:
        value = int(text)
    except ValueError:  # more digits than Python reads, too
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a whole number of 64 bits") from None
    if not 0 <= value < 1 << 64:
        raise argparse.ArgumentTypeError(f"must be between 0 and 2**64 - 1, got {shorten(text)}")
    return value


def row_group(text: str) -> int:
    """Return the number of a row group, from 0; a file has fewer than 2^31.

    >>> row_group("2")
    2
    """
    try:
        number = int(text)
    except ValueError:  # more digits than Python reads, too
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not the number of a row group") from None
    if not 0 <= number < 1 << 31:
        raise argparse.ArgumentTypeError(f"must be between 0 and 2**31 - 1, got {shorten(text)}")
    return number


def size_text(number: float) -> str:
    """Write 67108864 as ``64.0 MiB``."""
    value, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < _STEP:
            break
        value, unit = value / _STEP, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def rate_text(value: float) -> str:
    """Write a small number with three digits, without noise."""
    return f"{value:.3g}"


def duration_text(seconds: float) -> str:
    """Write 4520 seconds as ``1 h 15 min``, 90 as ``1 min 30 s``.

    >>> duration_text(4520), duration_text(90), duration_text(3.2)
    ('1 h 15 min', '1 min 30 s', '3 s')
    """
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def block_hash(text: str) -> bytes:
    """Return the 32 bytes of the hash of a block.

    >>> len(block_hash("00" * 32))
    32
    """
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(data) != _BLOCK_HASH:
        raise argparse.ArgumentTypeError(
            f"a hash of a block has 64 hexadecimal digits, got {shorten(text)!r}"
        )
    return data
