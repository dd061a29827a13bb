"""cuckoofilter over CuckooFilter; its capacity counts buckets, ours keys."""

from _base import Wrapped, renamed

import fullbloom


class CuckooFilter(Wrapped):
    def __init__(self, capacity, fingerprint_length, bucket_size=4, max_displacements=500):
        keys = int(0.95 * capacity * bucket_size)
        self.inner = fullbloom.CuckooFilter(
            keys, bucket_size=bucket_size, fingerprint_bits=8 * fingerprint_length
        )

    bucket_size = property(lambda self: self.inner.bucket_size)
    capacity = property(lambda self: self.inner.num_buckets)
    size = property(lambda self: self.inner.num_added)

    def load_factor(self):
        return self.inner.fill

    def insert(self, item):
        with renamed(FilterFull=Exception):
            return self.inner.add(item)

    def contains(self, item):
        return item in self.inner

    def delete(self, item):
        return self.inner.discard(item)
