"""Cost of `CharacteristicSketch` beside coded symbols and an invertible table, for docs/reconciliation.md.

``python -m benchmarks.one_message`` [--keys N] [--rounds N]: the least CPU seconds of the rounds.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

DIFFERENCES = (10, 100, 1000)
#: Pairs of sets over which the bytes of coded symbols are averaged.
PAIRS = 100


def least(rounds: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU seconds of a call, and what it returned last."""
    seconds, answer = float("inf"), None
    for _ in range(rounds):
        begun = time.process_time()
        answer = work()
        seconds = min(seconds, time.process_time() - begun)
    return seconds, answer


def symbol_bytes(differences: int) -> float:
    """Mean bytes of coded symbols until all differences are known; they do not depend on the sets' size."""
    import numpy as np

    from fullbloom.compose import RatelessDecoder, RatelessEncoder

    half, sent = differences // 2, 0
    for pair in range(PAIRS):
        hashes = np.random.default_rng([differences, pair]).integers(0, 1 << 64, 2000 + half, dtype=np.uint64)
        encoder = RatelessEncoder(hashes[:2000], hashed=True)
        decoder = RatelessDecoder(hashes[half:], hashed=True)
        done = False
        while not done:
            piece = encoder.produce(1)
            sent += len(piece)
            done = decoder.feed(piece)
    return sent / PAIRS


def row(differences: int, keys: int, rounds: int) -> str:
    """Return the row of a number of differences."""
    import numpy as np

    from fullbloom import InvertibleBloomFilter
    from fullbloom.compose import CharacteristicSketch, RatelessEncoder

    half = differences // 2
    hashes = np.random.default_rng(differences).integers(0, 1 << 64, keys + half, dtype=np.uint64)
    there, here = hashes[:keys], hashes[half:]
    instance, sketch = least(rounds, lambda: CharacteristicSketch(there, differences, hashed=True))
    own, message = CharacteristicSketch(here, differences, hashed=True), sketch.to_bytes()
    answered, found = least(rounds, lambda: own.differences(message))
    if not found.complete or len(found.mine) + len(found.theirs) != 2 * half:
        raise RuntimeError(f"{differences} differences were not found")
    symbols = 3 * differences // 2
    coded, _ = least(rounds, lambda: RatelessEncoder(there, hashed=True).produce(symbols))
    table = len(InvertibleBloomFilter(differences, seed=1).to_bytes())
    return (
        f"| {differences} | {len(message)} B | {instance:.3f} s | {1000 * answered:.2f} ms "
        f"| {symbol_bytes(differences):.0f} B | {coded:.2f} s | {table} B |"
    )


def main() -> None:
    """Print a row for each number of differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print("| differences | sketch | time a side | answer | coded symbols | time a side | invertible table |")
    print("|---|---|---|---|---|---|---|")
    for differences in DIFFERENCES:
        print(row(differences, args.keys, args.rounds), flush=True)


if __name__ == "__main__":
    main()
