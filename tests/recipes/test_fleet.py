"""A filter in Redis with a fallback in memory."""

from __future__ import annotations

from types import SimpleNamespace

from fullbloom.errors import EngineUnavailable
from fullbloom.recipes.fleet import Fleet


class Shared:
    """A filter on a server that may be away."""

    manifest = SimpleNamespace(fpr=1e-6)

    def __init__(self):
        self.keys, self.is_away = set(), False

    def add(self, key):
        if self.is_away:
            raise EngineUnavailable("the server is away")
        is_new = key not in self.keys
        self.keys.add(key)
        return is_new


def test_a_key_that_was_new_during_an_outage_is_not_new_after_it():
    shared = Shared()
    fleet = Fleet(shared)
    assert fleet.add("before")
    shared.is_away = True
    assert [fleet.add("during"), fleet.add("during")] == [True, False]
    shared.is_away = False
    assert [fleet.add("during"), fleet.add("before"), fleet.add("after")] == [False, False, True]
    assert shared.keys == {"before", "during", "after"}
    assert fleet.alone == 2
