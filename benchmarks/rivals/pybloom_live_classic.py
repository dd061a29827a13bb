"""pybloom-live: Python over bitarray. Optional: left out with a printed reason where it does not install."""

from typing import Any

from pybloom_live import BloomFilter

from benchmarks.rivals import Call, Rival, map_lookups


def _update(f: Any, _kind: str) -> Call:
    add = f.add

    def update(keys: Any) -> None:
        for key in keys:
            add(key)

    return update


RIVAL = Rival(
    name="pybloom-live",
    make=BloomFilter,
    add=lambda f, _kind: f.add,
    update=_update,
    contains_many=map_lookups,
    emulated=frozenset({"update", "contains_many"}),
    bits=lambda f: f.num_bits,
    slow=True,
)
