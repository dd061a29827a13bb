"""Fullbloom, default layout."""

from benchmarks.rivals import OURS, Rival
from fullbloom import BloomFilter

RIVAL = Rival(
    name=OURS,
    make=BloomFilter,
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=lambda f, _kind: f.contains_many,
    add_many=lambda f, _kind: f.add_many,
    bits=lambda f: f.num_bits,
)
