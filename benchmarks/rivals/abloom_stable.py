"""abloom with `serializable=True`: XXH64, the only mode of it that can be saved."""

from abloom import BloomFilter

from benchmarks.rivals import Rival, map_lookups

RIVAL = Rival(
    name="abloom (serializable)",
    make=lambda capacity, fpr: BloomFilter(capacity, fpr, serializable=True),
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=map_lookups,
    emulated=frozenset({"contains_many"}),
    bits=lambda f: f.bit_count,
)
