"""What finding duplicates among 20M longs has to send: sets of digits as they are, and other ways.

Two partitions send the digits of their rows to an owner, which answers with those that occur repeatedly; rows
of other digits are done. The hashes are drawn at random, one key in a hundred twice. Bytes are those of the
sets, of all rounds, and of the rows that are left, 9 bytes each: what Spark takes for a random long.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fullbloom.engines import hash_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS, REPEATED, SENDERS, ROW_BYTES = 20_000_000, 0.01, 2, 9
AS_IS = "as they are: two rounds, sets by Elias and Fano"
LIMIT = "all three, without overhead"


def draw_hashes() -> Any:
    """A hash for each row, in random order."""
    distinct = round(ROWS * (1 - REPEATED))
    hashes = np.random.default_rng(1).integers(0, 1 << 63, distinct, dtype=np.uint64) << np.uint64(1)
    rows = np.concatenate([hashes, hashes[: ROWS - distinct]])
    return np.random.default_rng(2).permutation(rows)


def count_encoded(size: int, universe: int, digits: Any) -> float:
    """Bytes of a set as it is sent."""
    del size
    return len(hash_sets.encode(digits, max(8, (universe - 1).bit_length())))


def count_entropy(size: int, universe: int, digits: Any) -> float:
    """Bytes of the shortest code of any set of this size: log2 of the number of such sets."""
    del digits
    bits = math.lgamma(universe + 1) - math.lgamma(size + 1) - math.lgamma(universe - size + 1)
    return bits / math.log(2) / 8


def send(
    hashes: Any,
    spreads: list[float],
    senders: int,
    count: Callable[[int, int, Any], float],
    *,
    whole_bits: bool,
) -> float:
    """Bytes of all rounds and of the rows that are left; each round has so many values of digits per row."""
    sent, left = 0.0, hashes
    for number, spread in enumerate(spreads):
        universe = max(256, math.ceil(spread * len(left)))
        if whole_bits:
            universe = 1 << math.ceil(math.log2(universe))
        # Other digits in each round: the leading ones of a product.
        salt = np.uint64(number * 0x51_7C_C1_B7_27_22_0A_95 % 2**64)
        mixed = (left ^ salt) * np.uint64(0x9E3779B97F4A7C15 + 2 * number)
        digits = ((mixed >> np.uint64(20)).astype(np.float64) / (1 << 44) * universe).astype(np.uint64)
        for part in np.array_split(digits, senders):
            unique = np.unique(part)
            sent += count(len(unique), universe, unique)
        order = np.argsort(digits, kind="stable")
        ordered = digits[order]
        is_repeated = np.zeros(len(digits), bool)
        same = ordered[1:] == ordered[:-1]
        is_repeated[order[1:]] |= same
        is_repeated[order[:-1]] |= same
        left = left[is_repeated]
    return sent + ROW_BYTES * len(left)


def measure() -> dict[str, Any]:
    """Bytes of each way."""
    hashes = draw_hashes()
    spreads = [hash_sets.SPREAD, hash_sets.LATER_SPREAD]
    ways: dict[str, float] = {
        AS_IS: send(hashes, spreads, SENDERS, count_encoded, whole_bits=True),
        "three rounds of fewer digits": send(hashes, [4, 4, 64], SENDERS, count_encoded, whole_bits=True),
        "the shortest code of each set": send(hashes, spreads, SENDERS, count_entropy, whole_bits=True),
        "one set of all rows, by one core": send(hashes, spreads, 1, count_encoded, whole_bits=True),
        LIMIT: min(
            send(hashes, [first] * rounds + [64], 1, count_entropy, whole_bits=False)
            for first in (1, 2, 4)
            for rounds in (2, 3, 4)
        ),
    }
    return {"rows": ROWS, "ways": ways}


def describe(figures: dict[str, Any]) -> Iterator[str]:
    """The lines for the terminal."""
    for name, nbytes in figures["ways"].items():
        yield f"  {name:50} {nbytes / 1e6:8.1f} MB  {8 * nbytes / figures['rows']:5.2f} bits per row"


def run(_folder: Path) -> Iterator[str]:
    """The lines of the table."""
    yield from describe(measure())
