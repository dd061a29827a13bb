"""rbloom: Rust, classic layout, Python's hash()."""

from rbloom import Bloom

from benchmarks.rivals import Rival, mapped

RIVAL = Rival(
    name="rbloom",
    make=Bloom,
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=mapped,
    emulated=frozenset({"contains_many"}),
    bits=lambda f: f.size_in_bits,
)
