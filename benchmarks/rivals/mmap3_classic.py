"""pybloomfiltermmap3: C and Cython, classic layout, here in memory."""

from pybloomfilter import BloomFilter

from benchmarks.rivals import Rival, map_lookups

RIVAL = Rival(
    name="pybloomfiltermmap3",
    make=BloomFilter,
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=map_lookups,
    emulated=frozenset({"contains_many"}),
    bits=lambda f: f.num_bits,
)
