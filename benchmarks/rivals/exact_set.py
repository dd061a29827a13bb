"""Python's `set`: exact, and about 30 times the memory."""

from benchmarks.rivals import Rival, map_lookups

RIVAL = Rival(
    name="set (exact)",
    make=lambda _capacity, _fpr: set(),
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=map_lookups,
    emulated=frozenset({"contains_many"}),
    sized=False,
)
