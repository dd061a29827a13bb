"""scalable-cuckoo-filter-py over DynamicCuckooFilter."""

from pathlib import Path

from _base import Wrapped

import fullbloom


class PyScalableCuckooFilter(Wrapped):
    def __init__(self, initial_capacity, false_positive_probability):
        self.inner = fullbloom.DynamicCuckooFilter(initial_capacity, false_positive_probability)

    @staticmethod
    def debug_value(value):
        return fullbloom.hash_key(value)

    def is_empty(self):
        return not self.inner

    def insert(self, key):
        self.inner.add(key)

    def might_contain(self, key):
        return key in self.inner

    def remove(self, key):
        self.inner.discard(key)

    def false_positive_probability(self):
        return self.inner.target_fpr

    def serialize(self):
        return self.inner.to_bytes()

    @classmethod
    def deserialize(cls, data):
        return cls.around(fullbloom.DynamicCuckooFilter.from_bytes(data))

    def write_to_file(self, path):
        self.inner.save(path)

    @classmethod
    def read_from_file(cls, path):
        return cls.around(fullbloom.DynamicCuckooFilter.open(Path(path)))
