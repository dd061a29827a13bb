"""Documents of terms that follow Zipf's law, and exact answers about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Corpus:
    """Distinct terms of each document, one document after the other."""

    offsets: npt.NDArray[np.int64]
    terms: npt.NDArray[np.int64]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of distinct terms of each document."""
        return np.diff(self.offsets)

    def to_arrow(self) -> pa.Array:
        """Return the documents as an Arrow column of lists."""
        return pa.ListArray.from_arrays(pa.array(self.offsets.astype(np.int32)), pa.array(self.terms))

    def frequencies(self) -> dict[int, float]:
        """Return the share of documents that have each of the 2,000 most frequent terms."""
        terms, counts = np.unique(self.terms, return_counts=True)
        top = np.argsort(-counts)[:2000]
        return {int(terms[i]): float(counts[i]) / len(self.lengths) for i in top}

    def find(self, term: int) -> npt.NDArray[np.int64]:
        """Return the documents that have ``term``, in order."""
        return np.searchsorted(self.offsets, np.flatnonzero(self.terms == term), side="right") - 1

    def find_all(self, query: list[int]) -> npt.NDArray[np.int64]:
        """Return the documents that have all terms of ``query``, in order."""
        found = self.find(query[0])
        for term in query[1:]:
            found = np.intersect1d(found, self.find(term))
        return found


def draw_corpus(documents: int, longest: int, vocabulary: int, rng: np.random.Generator) -> Corpus:
    """Draw documents of up to ``longest`` terms each, term t with a chance of about ``1 / t``."""
    # The inverse of the distribution function of 1/t, which is logarithmic.
    drawn = np.floor(np.exp(rng.random((documents, longest), dtype=np.float32) * np.log(vocabulary)))
    terms = np.sort(drawn.astype(np.int64), axis=1)
    kept = np.ones(terms.shape, dtype=bool)
    kept[:, 1:] = terms[:, 1:] != terms[:, :-1]
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return Corpus(offsets, terms[kept])


def draw_queries(corpus: Corpus, count: int, terms: int, rng: np.random.Generator) -> list[list[int]]:
    """Draw queries of distinct terms, each as frequent as among the terms of the documents."""
    queries: list[list[int]] = []
    while len(queries) < count:
        query = {int(term) for term in rng.choice(corpus.terms, terms)}
        if len(query) == terms:
            queries.append(sorted(query))
    return queries
