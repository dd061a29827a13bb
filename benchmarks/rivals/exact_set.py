"""Python's `set`: exact, and about 30 times the memory."""

from benchmarks.rivals import Rival, mapped

RIVAL = Rival(
    name="set (exact)",
    make=lambda _capacity, _fpr: set(),
    add=lambda f, _kind: f.add,
    update=lambda f, _kind: f.update,
    contains_many=mapped,
    emulated=frozenset({"contains_many"}),
    sized=False,
)
