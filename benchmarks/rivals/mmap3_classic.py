"""pybloomfiltermmap3: C and Cython, classic layout, here in memory."""

from pybloomfilter import BloomFilter

from benchmarks.rivals import Rival, mapped

RIVAL = Rival(
    name="pybloomfiltermmap3",
    make=BloomFilter,
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=mapped,
    emulated=frozenset({"contains_many"}),
    bits=lambda f: f.num_bits,
)
