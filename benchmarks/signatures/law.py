"""The false drops that the law of signatures expects of a query, document by document."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fullbloom import SignatureIndex, theory

if TYPE_CHECKING:
    from .corpus import Corpus


@cache
def drop_rate(num_bits: int, bits_per_term: int, terms: int, probe_bits: int) -> float:
    """Return ``theory.signature_fpr``, remembered."""
    return float(theory.signature_fpr(num_bits, bits_per_term, terms, probe_bits))


def expected_false_drops(index: SignatureIndex, corpus: Corpus, query: list[int]) -> float:
    """Return the expected number of documents that pass without all terms of ``query``.

    index: without ranks and frequencies. A document with the terms S of the query passes if its other terms
    set the bits of the missing terms that those of S leave open.
    """
    (num_bits,), (bits_per_term,) = index.num_bits, index.bits_per_term
    rows = [{row for _, row in index.positions([term])} for term in query]
    has = np.zeros(len(corpus.lengths), dtype=np.int64)
    for i, term in enumerate(query):
        has[corpus.find(term)] |= 1 << i
    total = 0.0
    everything = range(len(query))
    for size in range(len(query)):
        for held in combinations(everything, size):
            covered = set().union(*(rows[i] for i in held)) if held else set()
            missing = set().union(*(rows[i] for i in everything if i not in held)) - covered
            lengths = corpus.lengths[has == sum(1 << i for i in held)]
            for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
                rate = drop_rate(num_bits, bits_per_term, int(length) - size, len(missing))
                total += float(count) * rate
    return total
