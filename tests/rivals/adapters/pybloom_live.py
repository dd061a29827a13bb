"""pybloom-live, and pybloom before it: a filter that is full, and one that grows by stages."""

from _base import Wrapped, inner_of

import fullbloom


class _Streamed(Wrapped):
    kind = None

    @property
    def error_rate(self):
        return self.inner.target_fpr

    @property
    def capacity(self):
        return self.inner.capacity

    def __len__(self):
        return self.inner.num_added

    def __bool__(self):
        return True

    def add(self, key, skip_check=False):
        new = self.inner.add(key)
        return not (new or skip_check)

    def union(self, other):
        return self.around(self.inner | inner_of(other))

    __or__ = union

    def tofile(self, stream):
        stream.write(self.inner.to_bytes())

    @classmethod
    def fromfile(cls, stream):
        return cls.around(cls.kind.from_bytes(stream.read()))


class BloomFilter(_Streamed):
    kind = fullbloom.BloomFilter

    def __init__(self, capacity, error_rate=0.001):
        self.inner = fullbloom.BloomFilter(capacity, error_rate, strict=True)

    def intersection(self, other):
        return self.around(self.inner & inner_of(other))

    __and__ = intersection

    def copy(self):
        return self.around(self.inner.copy())


class ScalableBloomFilter(_Streamed):
    kind = fullbloom.ScalableBloomFilter
    SMALL_SET_GROWTH = 2
    LARGE_SET_GROWTH = 4

    def __init__(self, initial_capacity=100, error_rate=0.001, mode=LARGE_SET_GROWTH):
        self.inner = fullbloom.ScalableBloomFilter(initial_capacity, error_rate, growth=mode)

    @property
    def scale(self):
        return self.inner.growth

    @property
    def initial_capacity(self):
        return self.inner.initial_capacity

    @property
    def filters(self):
        return [_Stage(capacity) for capacity in self.inner.stage_capacities]


class _Stage:
    def __init__(self, capacity):
        self.capacity = capacity


def make_hashfuncs(*_arguments):
    """Their choice of a hash, which tests of hashes import; Fullbloom has one rule."""
    raise NotImplementedError


def range_fn(*limits):
    return range(*limits)


running_python_3 = True
