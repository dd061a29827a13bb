"""pybloomfiltermmap3's BloomFilter: in memory, or mapped from a file for adding in place."""

import base64
import os

from _base import Wrapped, inner_of

import fullbloom


class BloomFilter(Wrapped):
    def __init__(self, capacity, error_rate, filename=None, mode="rw+", perm=0o755, hash_seeds=None):
        inner = fullbloom.BloomFilter(capacity, error_rate, layout="classic")
        self.inner = inner if filename is None else self._filed(inner, filename, perm)
        self.mode = mode

    @staticmethod
    def _filed(inner, filename, perm=0o755):
        inner.save(filename)
        os.chmod(filename, perm)  # noqa: PTH101 - as given, without the umask
        return fullbloom.BloomFilter.open(filename, mode="r+")

    @classmethod
    def open(cls, filename, mode="rw"):
        return cls.around(fullbloom.BloomFilter.open(filename, mode="r" if mode == "r" else "r+"), mode=mode)

    capacity = property(lambda self: self.inner.capacity)
    error_rate = property(lambda self: self.inner.target_fpr)
    num_hashes = property(lambda self: self.inner.num_hashes)
    num_bits = property(lambda self: self.inner.num_bits)
    bit_count = property(lambda self: round(self.inner.fill * self.inner.num_bits))
    read_only = property(lambda self: self.mode == "r")
    filename = property(lambda self: self.inner.path)
    name = property(lambda self: os.fsencode(self.inner.path))

    def __repr__(self):
        return (
            f"<BloomFilter capacity: {self.capacity}, error: {self.error_rate:0.3f}, "
            f"num_hashes: {self.num_hashes}>"
        )

    def __len__(self):
        return round(self.inner.approx_count()[0])

    def add(self, key):
        return not self.inner.add(key)

    def update(self, keys):
        self.inner.update(keys)

    def clear_all(self):
        self.inner.clear()

    def sync(self):
        self.inner.flush()

    def union(self, other):
        self.inner |= inner_of(other)
        return self

    def intersection(self, other):
        self.inner &= inner_of(other)
        return self

    __ior__ = union
    __iand__ = intersection

    def copy(self, filename):
        return self.around(self._filed(self.inner.copy(), filename), mode="rw")

    def copy_template(self, filename, perm=0o755):
        inner = self.inner.copy()
        inner.clear()
        return self.around(self._filed(inner, filename, perm), mode="rw")

    def to_base64(self):
        return base64.b64encode(self.inner.to_bytes())

    @classmethod
    def from_base64(cls, filename, text, perm=0o755):
        inner = fullbloom.BloomFilter.from_bytes(base64.b64decode(text))
        return cls.around(cls._filed(inner, filename, perm), mode="rw")
