"""Cache policies to compare with: LRU, and W-TinyLFU with exact counts."""

from __future__ import annotations

from collections import Counter, OrderedDict


class Lru:
    """The least recently used objects; each miss writes."""

    def __init__(self, size: int) -> None:
        self.size, self.objects, self.hits, self.writes = size, OrderedDict[object, None](), 0, 0

    def request(self, key: object) -> None:
        if key in self.objects:
            self.objects.move_to_end(key)
            self.hits += 1
            return
        self.writes += 1
        self.objects[key] = None
        if len(self.objects) > self.size:
            self.objects.popitem(last=False)


class WindowTinyLfu:
    """Einziger, Friedman and Manes (2017): a small LRU window, and a segmented LRU that admits by frequency.

    The window has 1 % of the objects, the protected segment 80 % of the rest. Counts are exact where the
    paper has a sketch, are halved after ten requests per object, and end at 15. A write is an object that is
    admitted to the rest: the window is small enough for memory.
    """

    def __init__(self, size: int) -> None:
        self.window_size = max(size // 100, 1)
        self.protected_size = (size - self.window_size) * 8 // 10
        self.probation_size = size - self.window_size - self.protected_size
        self.sample, self.counted = 10 * size, 0
        self.counts: Counter[object] = Counter()
        self.window, self.probation, self.protected = (OrderedDict[object, None]() for _ in range(3))
        self.hits = self.writes = 0

    def request(self, key: object) -> None:
        self._count(key)
        if key in self.window:
            self.window.move_to_end(key)
        elif key in self.protected:
            self.protected.move_to_end(key)
        elif key in self.probation:
            self._promote(key)
        else:
            self.window[key] = None
            if len(self.window) > self.window_size:
                self._admit(self.window.popitem(last=False)[0])
            return
        self.hits += 1

    def _count(self, key: object) -> None:
        self.counts[key] = min(self.counts[key] + 1, 15)
        self.counted += 1
        if self.counted == self.sample:
            self.counted //= 2
            self.counts = Counter({k: count // 2 for k, count in self.counts.items() if count > 1})

    def _promote(self, key: object) -> None:
        del self.probation[key]
        self.protected[key] = None
        if len(self.protected) > self.protected_size:
            self.probation[self.protected.popitem(last=False)[0]] = None

    def _admit(self, candidate: object) -> None:
        if len(self.probation) + len(self.protected) < self.probation_size + self.protected_size:
            self.probation[candidate] = None
            self.writes += 1
            return
        victim = next(iter(self.probation))
        if self.counts[candidate] > self.counts[victim]:
            del self.probation[victim]
            self.probation[candidate] = None
            self.writes += 1
