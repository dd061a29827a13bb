"""Bloom's table: disk accesses avoided by filters of several sizes, beside his formula."""

from __future__ import annotations

import math
import random

from benchmarks.outcome import Outcome, Table
from fullbloom import theory
from fullbloom.recipes.hyphenation import Hyphenator

WORDS, EXCEPTIONS, ERROR_FREE_BITS, SEED = 500_000, 50_000, 2_000_000, 1970
#: Bits and probes of the rows; the third is the paper's.
SHAPES = ((72_000, 1), (144_000, 2), (300_000, 4), (360_000, 5), (433_000, 6))


def draw_words(count: int, seed: int) -> list[str]:
    """Distinct words of letters, in random order."""
    draw = random.Random(seed)
    words: set[str] = set()
    while len(words) < count:
        words.add("".join(draw.choices("etaoinshrdlcumwfgypbvk", k=draw.randint(4, 11))))
    result = sorted(words)
    draw.shuffle(result)
    return result


def measure() -> Outcome:
    words = draw_words(WORDS, SEED)
    exceptions = {word: word for word in words[:EXCEPTIONS]}
    rows, figures = [], {}
    for num_bits, num_hashes in SHAPES:
        program = Hyphenator(exceptions, str, num_bits=num_bits, num_hashes=num_hashes)
        for word in words:
            program.hyphenate(word)
        rate = theory.classic_fpr(EXCEPTIONS, num_bits, num_hashes)
        expected = (1 - EXCEPTIONS / WORDS) * (1 - rate)
        error = math.sqrt((WORDS - EXCEPTIONS) * rate * (1 - rate)) / WORDS
        deviation = (program.avoided - expected) / error
        figures |= {f"avoided_{num_bits}": program.avoided, f"deviation_{num_bits}": deviation}
        rows.append(
            [
                f"{num_bits:,}",
                f"{num_hashes}",
                f"{num_bits / ERROR_FREE_BITS:.1%}",
                f"{expected:.2%}",
                f"{program.avoided:.2%}",
                f"{deviation:+.1f}",
            ]
        )
    columns = [
        "bits",
        "probes",
        "of an error-free area",
        "accesses avoided, by formula",
        "measured",
        "standard errors apart",
    ]
    parameters = {"words": WORDS, "exceptions": EXCEPTIONS, "seed": SEED}
    return Outcome(parameters, figures, [Table("hyphenation", "hyphenation.md", columns, rows)])
