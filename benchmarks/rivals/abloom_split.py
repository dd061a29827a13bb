"""abloom: C, split blocks of 512 bits, Python's hash()."""

from abloom import BloomFilter

from benchmarks.rivals import Rival, map_lookups

RIVAL = Rival(
    name="abloom",
    make=BloomFilter,
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=map_lookups,
    emulated=frozenset({"contains_many"}),
    bits=lambda f: f.bit_count,
)
