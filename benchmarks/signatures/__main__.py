"""Queries of three terms in 1M documents, beside a NumPy pass over the same signatures row by row.

``python -m benchmarks.signatures [DOCUMENTS]``: interleaved in one run; prints medians, ratios, and false
drops beside those that the law expects.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fullbloom import SignatureIndex

from .bits import read_signatures, signature_of
from .corpus import draw_corpus, draw_queries
from .law import expected_false_drops

if TYPE_CHECKING:
    from collections.abc import Callable

    from .corpus import Corpus

LONGEST, VOCABULARY, QUERIES, ROUNDS, SEED = 40, 200_000, 30, 5, 20261123
#: Seeds and documents with which the law is compared.
SEEDS, PART = 20, 50_000
#: At most this share of documents without a term passes a query of it.
FPR = 0.01


def measure(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that ``call`` takes, and its result."""
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def build(name: str, index: SignatureIndex, documents: Any) -> SignatureIndex:
    """Add ``documents`` and print what that took."""
    seconds, count = measure(lambda: index.add_many(documents))
    bits = 8 * index.nbytes / count
    print(f"{name}: {index!r}, {bits:.0f} bits a document, fill {index.fill:.3f}, built in {seconds:.1f} s")
    return index


@dataclass
class Results:
    """Times of each way to answer, and counts of what it returned."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    drops: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    matches: int = 0


def run_query(
    results: Results, indexes: dict[str, SignatureIndex], signatures: Any, query: list[int]
) -> dict[str, Any]:
    """Time ``query`` each way; the first index has the bits of ``signatures``."""
    asked, found = np.array(query), {}
    wanted = signature_of(next(iter(indexes.values())), query)
    seconds, found["numpy"] = measure(lambda: np.flatnonzero(((signatures & wanted) == wanted).all(axis=1)))
    results.times["numpy"].append(seconds)
    for name, index in indexes.items():
        seconds, found[name] = measure(partial(index.candidates, asked))
        results.times[name].append(seconds)
    if not np.array_equal(found["numpy"], found[next(iter(indexes))]):
        sys.exit(f"the same bits give other candidates for {query}")
    return found


def count_drops(
    results: Results,
    corpus: Corpus,
    indexes: dict[str, SignatureIndex],
    query: list[int],
    found: dict[str, Any],
) -> None:
    """Count false drops of one query."""
    true = corpus.find_all(query)
    results.matches += len(true)
    for name in indexes:
        if not np.isin(true, found[name]).all():
            sys.exit(f"{name} loses a true match of {query}")
        results.drops[name].append(len(found[name]) - len(true))


def report(results: Results, documents: int) -> None:
    """Print medians, ratios and shares."""
    for name, seconds in results.times.items():
        ratios = [a / b for a, b in zip(results.times["numpy"], seconds, strict=True)]
        middle, ratio = 1e3 * statistics.median(seconds), statistics.median(ratios)
        print(
            f"{name}: {middle:.3f} ms per query; NumPy takes {ratio:.0f} times as long, "
            f"least {min(ratios):.1f}"
        )
    print(f"{results.matches} true matches in {QUERIES} queries")
    for name, drops in results.drops.items():
        count, share = sum(drops), sum(drops) / (sum(drops) + results.matches)
        of_all = count / (QUERIES * documents)
        print(f"{name}: {count} false drops, {share:.3f} of the candidates, {of_all:.2e} of all documents")


def check_law(corpus: Corpus, queries: list[list[int]], fill: float) -> None:
    """Compare the false drops of indexes of several seeds with those that the law expects."""
    off, total = [], 0.0
    for seed in range(SEEDS):
        index = SignatureIndex.for_terms(int(corpus.lengths.max()), FPR, fill=fill, seed=seed)
        index.add_many(corpus.to_arrow())
        found = sum(index.count_candidates(query) for query in queries)
        true = sum(len(corpus.find_all(query)) for query in queries)
        expected = sum(expected_false_drops(index, corpus, query) for query in queries)
        off.append(found - true - expected)
        total += expected
    errors = sum(off) / (statistics.stdev(off) * len(off) ** 0.5)
    print(
        f"fill {fill}: the law expects {total:.0f} false drops, measured {total + sum(off):.0f}, "
        f"{errors:+.1f} standard errors off ({SEEDS} seeds, {len(corpus.lengths):,} documents)"
    )


def main(documents: int) -> None:
    """Build, measure, print."""
    rng = np.random.default_rng(SEED)
    corpus = draw_corpus(documents, LONGEST, VOCABULARY, rng)
    longest, column = int(corpus.lengths.max()), corpus.to_arrow()
    print(f"{documents:,} documents of {corpus.lengths.mean():.1f} distinct terms, at most {longest}")
    shared = corpus.frequencies()
    indexes = {
        "flat": SignatureIndex.for_terms(longest, FPR, seed=1),
        "sparse": SignatureIndex.for_terms(longest, FPR, fill=0.1, seed=1),
        "ranked": SignatureIndex.for_terms(longest, 1e-4, fill=0.1, rank=3, frequencies=shared, seed=1),
    }
    for name, index in indexes.items():
        build(name, index, column)
    signatures, results = read_signatures(indexes["flat"]), Results()
    queries = draw_queries(corpus, QUERIES, 3, rng)
    for turn in range(ROUNDS):
        for query in queries:
            found = run_query(results, indexes, signatures, query)
            if turn == 0:
                count_drops(results, corpus, indexes, query, found)
    report(results, documents)
    part = draw_corpus(min(documents, PART), LONGEST, VOCABULARY, rng)
    for fill in (0.5, 0.1):
        check_law(part, queries, fill)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
