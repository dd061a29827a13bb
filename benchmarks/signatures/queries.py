"""Queries of three terms in 1M documents, beside a NumPy pass over the same signatures row by row.

Interleaved in one run: medians, ratios, and false drops beside those that the law expects.
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

from benchmarks.outcome import Outcome, Table
from fullbloom import SignatureIndex

from .bits import read_signatures, signature_of
from .corpus import draw_corpus, draw_queries
from .law import expected_false_drops

if TYPE_CHECKING:
    from collections.abc import Callable

    from .corpus import Corpus

DOCUMENTS = 1_000_000
LONGEST, VOCABULARY, QUERIES, ROUNDS, SEED = 40, 200_000, 30, 5, 20261123
#: Seeds and documents with which the law is compared.
SEEDS, PART = 60, 50_000
PAGE = "how-to/signatures.md"
SHAPES = {
    "flat": "`fpr=0.01`",
    "sparse": "`fpr=0.01, fill=0.1`",
    "ranked": "`fpr=1e-4, fill=0.1, rank=3, frequencies=...`",
}
#: How much longer a NumPy pass must take.
LEAST_RATIO = 5.0
#: At most this share of documents without a term passes a query of it.
FPR = 0.01


def time_call(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that ``call`` takes, and its result."""
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


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
    seconds, found["numpy"] = time_call(lambda: np.flatnonzero(((signatures & wanted) == wanted).all(axis=1)))
    results.times["numpy"].append(seconds)
    for name, index in indexes.items():
        seconds, found[name] = time_call(partial(index.candidates, asked))
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


def check_law(
    corpus: Corpus, queries: list[list[int]], fill: float, seeds: int
) -> tuple[float, float, float]:
    """Return false drops of indexes of several seeds, those that the law expects, and standard errors."""
    off, total = [], 0.0
    for seed in range(seeds):
        index = SignatureIndex.for_terms(int(corpus.lengths.max()), FPR, fill=fill, seed=seed)
        index.add_many(corpus.to_arrow())
        found = sum(index.count_candidates(query) for query in queries)
        true = sum(len(corpus.find_all(query)) for query in queries)
        expected = sum(expected_false_drops(index, corpus, query) for query in queries)
        off.append(found - true - expected)
        total += expected
    errors = sum(off) / (statistics.stdev(off) * len(off) ** 0.5)
    return total + sum(off), total, errors


def measure(documents: int = DOCUMENTS, seeds: int = SEEDS) -> Outcome:
    """Build, ask, compare; ends the process if a shape loses a match, or answers otherwise than NumPy."""
    rng = np.random.default_rng(SEED)
    corpus = draw_corpus(documents, LONGEST, VOCABULARY, rng)
    longest, column = int(corpus.lengths.max()), corpus.to_arrow()
    indexes = {
        "flat": SignatureIndex.for_terms(longest, FPR, seed=1),
        "sparse": SignatureIndex.for_terms(longest, FPR, fill=0.1, seed=1),
        "ranked": SignatureIndex.for_terms(
            longest, 1e-4, fill=0.1, rank=3, frequencies=corpus.frequencies(), seed=1
        ),
    }
    for index in indexes.values():
        index.add_many(column)
    signatures, results = read_signatures(indexes["flat"]), Results()
    queries = draw_queries(corpus, QUERIES, 3, rng)
    for turn in range(ROUNDS):
        for query in queries:
            found = run_query(results, indexes, signatures, query)
            if turn == 0:
                count_drops(results, corpus, indexes, query, found)
    part = draw_corpus(min(documents, PART), LONGEST, VOCABULARY, rng)
    laws = {name: check_law(part, queries, fill, seeds) for name, fill in (("flat", 0.5), ("sparse", 0.1))}
    return describe(results, indexes, laws, documents)


def describe(
    results: Results,
    indexes: dict[str, SignatureIndex],
    laws: dict[str, tuple[float, float, float]],
    documents: int,
) -> Outcome:
    """Return the figures, their bars and the tables."""
    numpy = results.times["numpy"]
    figures, rows, bars = {"numpy_ms": 1e3 * statistics.median(numpy)}, [], {}
    for name, index in indexes.items():
        ratios = [a / b for a, b in zip(numpy, results.times[name], strict=True)]
        drops = sum(results.drops[name])
        figures |= {
            f"{name}_ms": 1e3 * statistics.median(results.times[name]),
            f"{name}_ratio": statistics.median(ratios),
            f"{name}_least_ratio": min(ratios),
            f"{name}_recheck": drops / (drops + results.matches),
        }
        bars |= {f"{name}_ratio": (LEAST_RATIO, 1e9), f"{name}_least_ratio": (LEAST_RATIO, 1e9)}
        rows.append(
            [
                SHAPES[name],
                f"{8 * index.nbytes / documents:,.0f}",
                f"{figures[f'{name}_ms']:.2f} ms",
                f"{statistics.median(ratios):.0f} times as long (at least {min(ratios):.0f})",
                f"{figures[f'{name}_recheck']:.2f}",
            ]
        )
    law_rows = []
    for name, (found, expected, errors) in laws.items():
        figures |= {f"{name}_law_errors": errors}
        # A false alarm in 370 runs.
        bars |= {f"{name}_law_errors": (-3.0, 3.0)}
        law_rows.append([SHAPES[name], f"{found:,.0f}", f"{expected:,.0f}", f"{errors:+.1f}"])
    columns = [
        "shape",
        "bits a document",
        "time of a query",
        "NumPy takes",
        "false drops among the candidates",
    ]
    law_columns = ["shape", "false drops", "expected by the law", "standard errors"]
    parameters = {"documents": documents, "queries": QUERIES, "rounds": ROUNDS, "seed": SEED, "seeds": SEEDS}
    tables = [
        Table("signature queries", PAGE, columns, rows),
        Table("signature law", PAGE, law_columns, law_rows),
    ]
    return Outcome(parameters, figures, tables, bars)
