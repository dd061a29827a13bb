"""flor's BloomFilter: bytes as keys, written to and read from a stream, with data of the user's behind."""

from _base import Wrapped

import fullbloom


class BloomFilter(Wrapped):
    def __init__(self, n=1, p=0.1, data=b""):
        self.inner = fullbloom.BloomFilter(n, p, layout="classic")
        self.data = data

    n = property(lambda self: self.inner.capacity)
    p = property(lambda self: self.inner.target_fpr)
    m = property(lambda self: self.inner.num_bits)
    M = property(lambda self: self.inner.num_bits // 8)
    k = property(lambda self: self.inner.num_hashes)
    N = property(lambda self: self.inner.num_added)
    _bytes = property(lambda self: self.inner.to_bytes())

    def add(self, key):
        return not self.inner.add(key)

    def write(self, stream):
        data = self.inner.to_bytes()
        stream.write(len(data).to_bytes(8, "little") + data + self.data)

    def read(self, stream):
        size = int.from_bytes(stream.read(8), "little")
        self.inner = fullbloom.BloomFilter.from_bytes(stream.read(size))
        self.data = stream.read()
