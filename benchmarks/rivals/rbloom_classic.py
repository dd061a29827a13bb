"""rbloom: Rust, classic layout, Python's hash()."""

from rbloom import Bloom

from benchmarks.rivals import Rival, map_lookups

RIVAL = Rival(
    name="rbloom",
    make=Bloom,
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=map_lookups,
    emulated=frozenset({"contains_many"}),
    bits=lambda f: f.size_in_bits,
)
