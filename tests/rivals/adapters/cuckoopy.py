"""cuckoopy over CuckooFilter."""

from _base import Wrapped, renamed

import fullbloom


class CuckooFilterFullException(Exception):
    pass


class CuckooFilter(Wrapped):
    def __init__(self, capacity, bucket_size=4, fingerprint_size=1, max_displacements=500):
        self.inner = fullbloom.CuckooFilter(
            capacity, bucket_size=bucket_size, fingerprint_bits=8 * fingerprint_size
        )

    bucket_size = property(lambda self: self.inner.bucket_size)
    size = property(lambda self: self.inner.num_added)

    def __len__(self):
        return self.inner.num_added

    def insert(self, item):
        with renamed(FilterFull=CuckooFilterFullException):
            self.inner.add(item)
        return True

    def contains(self, item):
        return item in self.inner

    def delete(self, item):
        return self.inner.discard(item)
