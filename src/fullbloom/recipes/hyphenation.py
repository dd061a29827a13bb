"""Bloom's program of 1970: words are hyphenated by rule, and a filter saves lookups of exceptions on disk.

Simple rules hyphenate nine words of ten. The others are in a dictionary, which was too large for the memory
of the time. A filter of all exceptions was not: only a word that it finds needs an access to the disk.

After Burton H. Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970.

>>> program = Hyphenator({"present": "pres-ent"}, rule=lambda word: "-".join(word.partition("pre")[1:]))
>>> program.hyphenate("prepare"), program.hyphenate("present")
('pre-pare', 'pres-ent')
>>> program.words, program.accesses
(2, 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom import BloomFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Hyphenator", "find_exceptions"]

#: Bits per exception and probes of the paper's example: 300,000 bits for 50,000 exceptions.
_BITS_PER_WORD, _NUM_HASHES = 6, 4


def find_exceptions(hyphenations: Mapping[str, str], rule: Callable[[str], str]) -> dict[str, str]:
    """Return the words that ``rule`` hyphenates wrongly, with their hyphenation.

    >>> find_exceptions({"ab": "a-b", "cd": "cd"}, rule="-".join)
    {'cd': 'cd'}
    """
    return {word: parts for word, parts in hyphenations.items() if rule(word) != parts}


class Hyphenator:
    """Hyphenates words by rule, except those in a dictionary that is slow to access.

    exceptions: the dictionary, such as a ``dbm`` file. It is read once, to fill the filter, and then accessed
    only for words that the filter finds. rule: hyphenates every other word. num_bits, num_hashes: the shape
    of the filter; by default six bits per exception and four probes, as in the paper. seed: of the filter.
    Raises ``ParameterError`` for a shape that no filter has, and the errors of ``exceptions`` and ``rule``.

    A word that the filter finds by mistake costs an access and is then hyphenated by rule, so the result is
    always right.
    """

    def __init__(
        self,
        exceptions: Mapping[str, str] | Mapping[str, bytes],
        rule: Callable[[str], str],
        *,
        num_bits: int | None = None,
        num_hashes: int = _NUM_HASHES,
        seed: int = 0,
    ) -> None:
        self.exceptions, self.rule = exceptions, rule
        if num_bits is None:
            num_bits = max(_BITS_PER_WORD * len(exceptions), 64)
        self.filter = BloomFilter.with_shape(
            num_bits, num_hashes, capacity=max(len(exceptions), 1), seed=seed
        )
        self.filter.update(list(exceptions))
        #: Words hyphenated, accesses to the dictionary, and accesses that found nothing.
        self.words = self.accesses = self.wasted = 0

    def hyphenate(self, word: str) -> str:
        """Return ``word`` with hyphens. Costs a lookup in the filter, and an access if it finds the word."""
        self.words += 1
        if word in self.filter:
            self.accesses += 1
            try:
                parts = self.exceptions[word]
            except KeyError:
                self.wasted += 1
            else:
                return parts if isinstance(parts, str) else parts.decode()  # dbm has bytes
        return self.rule(word)

    @property
    def avoided(self) -> float:
        """Share of the words that needed no access; 1.0 before the first word."""
        return 1 - self.accesses / self.words if self.words else 1.0
