"""fastbloom-rs over BloomFilter and CountingBloomFilter, whose calls know the type of a key by themselves."""

from _base import Wrapped, inner_of

import fullbloom


class _Filter(Wrapped):
    kind = None

    def add(self, key):
        self.inner.add(key)

    def contains(self, key):
        return key in self.inner

    add_bytes = add_str = add_int = add
    contains_bytes = contains_str = contains_int = contains

    def add_batch(self, keys):
        self.inner.update(keys)

    def contains_batch(self, keys):
        return self.inner.contains_many(keys)

    add_int_batch = add_str_batch = add_bytes_batch = add_batch
    contains_int_batch = contains_str_batch = contains_bytes_batch = contains_batch

    def clear(self):
        self.inner.clear()

    def hashes(self):
        return self.inner.num_hashes

    def get_hash_indices(self, key):
        return self.inner.positions(key)

    def get_bytes(self):
        return self.inner.to_bytes()

    get_int_array = get_bytes

    @classmethod
    def from_bytes(cls, data, _hashes):
        return cls.around(cls.kind.from_bytes(data))

    from_int_array = from_bytes

    def save_to_file(self, path):
        self.inner.save(path)

    save_to_file_with_hashes = save_to_file

    @classmethod
    def from_file(cls, path, _hashes=None):
        return cls.around(cls.kind.open(path))

    from_file_with_hashes = from_file


class BloomFilter(_Filter):
    kind = fullbloom.BloomFilter

    def __init__(self, capacity, fpr):
        self.inner = fullbloom.BloomFilter(capacity, fpr)

    def add_if_not_contains(self, key):
        return not self.inner.add(key)

    def union(self, other):
        self.inner |= inner_of(other)

    def intersect(self, other):
        self.inner &= inner_of(other)

    def estimate_set_cardinality(self):
        return self.inner.approx_count()[0]


class CountingBloomFilter(_Filter):
    kind = fullbloom.CountingBloomFilter

    def __init__(self, capacity, fpr, repeat=True):
        self.inner = fullbloom.CountingBloomFilter(capacity, fpr)
        self.repeat = repeat

    def add(self, key):
        if self.repeat or key not in self.inner:
            self.inner.add(key)

    def remove(self, key):
        self.inner.discard(key)

    def estimate_count(self, key):
        return self.inner.count(key)


class FilterBuilder:
    def __init__(self, capacity, fpr):
        self.sizes = capacity, fpr
        self.repeat = True

    def enable_repeat_insert(self, repeat):
        self.repeat = repeat

    def build_bloom_filter(self):
        return BloomFilter(*self.sizes)

    def build_counting_bloom_filter(self):
        return CountingBloomFilter(*self.sizes, self.repeat)
