"""abloom's BloomFilter over the layout "split". Both of its modes are the one mode of Fullbloom."""

from _base import Wrapped, inner_of

import fullbloom


class BloomFilter(Wrapped):
    def __init__(self, capacity, fp_rate=0.01, serializable=False, free_threading=False):
        self.inner = fullbloom.BloomFilter(capacity, fp_rate, layout="split")
        self._flags = (serializable, free_threading)

    capacity = property(lambda self: self.inner.capacity)
    fp_rate = property(lambda self: self.inner.target_fpr)
    k = property(lambda self: self.inner.num_hashes)
    bit_count = property(lambda self: self.inner.num_bits)
    byte_count = property(lambda self: self.inner.num_bits // 8)
    serializable = property(lambda self: self._flags[0])
    free_threading = property(lambda self: self._flags[1])

    def _new(self, inner):
        return self.around(inner, _flags=self._flags)

    def __repr__(self):
        return f"<BloomFilter capacity={self.capacity} fp_rate={self.fp_rate}>"

    def add(self, item):
        self.inner.add(item)

    def update(self, items):
        self.inner.update(items)

    def copy(self):
        return self._new(self.inner.copy())

    def clear(self):
        self.inner.clear()

    def __or__(self, other):
        return self._new(self.inner | inner_of(other))

    def __ior__(self, other):
        self.inner |= inner_of(other)
        return self

    def to_bytes(self):
        return self.inner.to_bytes()

    @classmethod
    def from_bytes(cls, data):
        return cls.around(fullbloom.BloomFilter.from_bytes(data), _flags=(True, False))
