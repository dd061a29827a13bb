"""scalable-cuckoo-filter: CuckooFilter for both fixed kinds, DynamicCuckooFilter for the one that grows."""

from _base import Wrapped

import fullbloom


class _Cuckoo(Wrapped):
    def insert(self, item):
        self.inner.add(item)
        return True

    def contains(self, item):
        return item in self.inner

    def delete(self, item):
        return self.inner.discard(item)


class CuckooFilter(_Cuckoo):
    def __init__(self, capacity, error_rate, bucket_size=4, max_kicks=500):
        self.inner = fullbloom.CuckooFilter(capacity, error_rate, bucket_size=bucket_size)


class BCuckooFilter(CuckooFilter):
    pass


class ScalableCuckooFilter(_Cuckoo):
    def __init__(self, initial_capacity, error_rate, bucket_size=4, max_kicks=500):
        self.inner = fullbloom.DynamicCuckooFilter(initial_capacity, error_rate, bucket_size=bucket_size)
