"""abloom: C, split blocks of 512 bits, Python's hash()."""

from abloom import BloomFilter

from benchmarks.rivals import Rival, mapped

RIVAL = Rival(
    name="abloom",
    make=BloomFilter,
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=mapped,
    emulated=frozenset({"contains_many"}),
    bits=lambda f: f.bit_count,
)
