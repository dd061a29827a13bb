"""Bloom's textbook rate, the exact one, and their bounds, in filters of a few bits."""

from __future__ import annotations

from functools import partial

import fullbloom
from benchmarks.figures.model import Case, Subject
from benchmarks.figures.sampling import formula, rate
from fullbloom import theory

TEXT = """The textbook rate treats the bits of a filter as independent. In a small filter they are not, and
the exact rate (Bose et al. 2008, Christensen et al. 2010) is higher. Filters of these shapes, with
independent positions (`scheme="seeded"`), have the exact one. The filters of Fullbloom do not force k
distinct positions, so the last column of the published table has only its law."""

FRACTIONS = {
    (2, 1, 2): "5/8",
    (3, 2, 2): "55/81",
    (4, 2, 2): "505/1024",
    (8, 2, 3): "3096717/16777216",
    (18, 3, 3): "4409344158601/64268410079232",
}
LAWS = ("exact", "classic", "exponential", "Goel-Gupta bound", "k distinct positions")
FUNCTIONS = (
    theory.exact_fpr,
    theory.classic_fpr,
    theory.exponential_fpr,
    theory.goel_gupta_fpr,
    theory.distinct_fpr,
)
TABLE = {
    (18, 3, 3): ("0.0686083", "0.0650406", "0.0609162", "0.0978373", "0.0601727"),
    (32, 3, 5): ("0.00865336", "0.00780740", "0.00733857", "0.0149356", "0.00642014"),
    (64, 10, 4): ("0.0491419", "0.0477150", "0.0466482", "0.0560567", "0.0472365"),
    (100, 10, 7): ("0.00893631", "0.00839481", "0.00819372", "0.0108532", "0.00842041"),
    (1024, 100, 7): ("0.00736626", "0.00731984", "0.00730242", "0.00751776", "0.00731787"),
}
SOURCES = ("Bose et al. 2008", "Bloom 1970", "Mitzenmacher, Upfal 2005", "Goel, Gupta 2010", "exact law")


def subject() -> Subject:
    """The cases: fractions, then five laws of each shape, and the filter itself."""
    cases = [
        Case(
            "exact rate as a fraction",
            published,
            formula(partial(theory.rational_fpr, items, bits, hashes)),
            "Bose et al. 2008",
            f"m = {bits}, n = {items}, k = {hashes}",
        )
        for (bits, items, hashes), published in FRACTIONS.items()
    ]
    for (bits, items, hashes), figures in TABLE.items():
        shape = f"m = {bits:,}, n = {items}, k = {hashes}"
        for law, function, published, source in zip(LAWS, FUNCTIONS, figures, SOURCES, strict=True):
            cases.append(
                Case(f"{law}: law", published, formula(partial(function, items, bits, hashes)), source, shape)
            )
        make = partial(fullbloom.BloomFilter.with_shape, bits, hashes, capacity=items, scheme="seeded")
        cases.append(
            Case(
                "rate of filters, against the exact one",
                figures[0],
                rate(make, items, filters=20_000 if bits < 100 else 4000, probes=500),
                SOURCES[0],
                shape,
                law=theory.exact_fpr(items, bits, hashes),
            )
        )
    cases.append(
        Case(
            "least sum of false-positive and false-negative rate over a stream",
            "0.9802",
            formula(partial(theory.stream_floor, 1024, 100_000, 1 << 16)),
            "Gerbet et al.; Geraud-Stewart et al. 2019",
            "2^16 symbols, m = 1024, window 100,000",
        )
    )
    return Subject("occupancy", "The textbook rate and the exact one", TEXT, cases)
