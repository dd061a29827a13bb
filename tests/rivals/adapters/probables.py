"""pyprobables: its Bloom filters over ours. The tables that keep fingerprints are in probables_tables.py."""

import math
from pathlib import Path

from _base import Wrapped, inner_of, renamed

import fullbloom


class _Error(Exception):
    pass


class InitializationError(_Error, ValueError):
    """Fullbloom's ParameterError is a ValueError; a few of their constructors raise just that."""


class SimilarityError(_Error):
    pass


class NotSupportedError(_Error):
    pass


class RotatingBloomFilterError(_Error):
    pass


class CuckooFilterFullError(_Error):
    pass


class QuotientFilterError(_Error):
    pass


UINT64_T_MAX = 2**64 - 1
KeyT = str | bytes


def hash_with_depth_int(function):
    """The decorator of the package's hash functions, which here gives the one hash that a filter takes."""
    return lambda key, depth=1, **options: [function(key, depth, **options)]


class Exported(Wrapped):
    """Bytes, files and hex text, in Fullbloom's format."""

    kind = None

    @staticmethod
    def _read(filepath, hex_string=None):
        names = dict.fromkeys(("FormatError", "OSError", "ParameterTypeError"), InitializationError)
        with renamed(**names, ValueError=InitializationError):
            data = bytes.fromhex(hex_string) if filepath is None else Path(filepath).read_bytes()
            return fullbloom.loads(data)

    def __bytes__(self):
        return self.inner.to_bytes()

    def export(self, path):
        self.inner.save(path)

    @classmethod
    def frombytes(cls, data, **fields):
        return cls.around(fullbloom.loads(data), **fields)


class Counted(Exported):
    """Looking up and counting what was added."""

    @property
    def elements_added(self):
        return self.inner.num_added

    def check(self, key):
        return key in self


class _Bloom(Counted):
    hash_function = None
    is_on_disk = False

    def __init__(
        self, est_elements=None, false_positive_rate=None, filepath=None, hex_string=None, hash_function=None
    ):
        self.hash_function = hash_function
        if est_elements is None:
            self.inner = self._read(filepath, hex_string)
        else:
            names = dict.fromkeys(("ParameterError", "ParameterTypeError"), InitializationError)
            with renamed(**names):
                self.inner = self._make(est_elements, false_positive_rate)

    def _make(self, est_elements, false_positive_rate):
        return self.kind(est_elements, false_positive_rate, layout="classic")

    estimated_elements = property(lambda self: self.inner.capacity)
    false_positive_rate = property(lambda self: self.inner.target_fpr)
    number_bits = property(lambda self: self.inner.num_bits)
    number_hashes = property(lambda self: self.inner.num_hashes)
    bloom_length = property(lambda self: -(-self.number_bits // 8))

    def _hash(self, key):
        return [self.hash_function(key, 1)[0]]

    def add(self, key):
        if self.hash_function:
            self.inner.add_hashed(self._hash(key))
        else:
            self.inner.add(key)

    def __contains__(self, key):
        if self.hash_function:
            return self.inner.contains_hashed(self._hash(key))[0]
        return key in self.inner

    def clear(self):
        self.inner.clear()

    def estimate_elements(self):
        count = self.inner.approx_count()[0]
        return -1 if count == math.inf else round(count)

    def export_hex(self):
        return self.inner.to_bytes().hex()

    def export_size(self):
        return len(self.inner.to_bytes())

    def _with(self, method, second):
        with renamed(IncompatibleFilters=SimilarityError):
            return method(inner_of(second))

    def union(self, second):
        return self.around(self._with(self.inner.union, second))

    def intersection(self, second):
        return self.around(self._with(self.inner.intersection, second))

    def jaccard_index(self, second):
        return self._with(self.inner.jaccard, second)


class BloomFilter(_Bloom):
    kind = fullbloom.BloomFilter


class BloomFilterOnDisk(_Bloom):
    kind = fullbloom.BloomFilter
    is_on_disk = True

    def __init__(
        self, filepath, est_elements=None, false_positive_rate=None, hex_string=None, hash_function=None
    ):
        if hex_string is not None:
            raise NotSupportedError("a file is opened by its path")
        if est_elements is not None:
            super().__init__(est_elements, false_positive_rate, hash_function=hash_function)
            self.inner.save(filepath)
        with renamed(OSError=InitializationError, FormatError=InitializationError):
            self.inner = self.kind.open(filepath, mode="r+")

    @classmethod
    def frombytes(cls, _data, **_fields):
        raise NotSupportedError("a file is opened by its path")

    def close(self):
        self.inner.close()


class CountingBloomFilter(_Bloom):
    kind = fullbloom.CountingBloomFilter

    number_bits = property(lambda self: self.inner.num_counters)
    bloom_length = property(lambda self: self.inner.num_counters)

    def _make(self, est_elements, false_positive_rate):
        return self.kind(est_elements, false_positive_rate, layout="classic", counter_bits=16)

    def check(self, key):
        return self.inner.count(key)

    def add(self, key, num_els=1):
        self.inner.add(key, num_els)
        return self.check(key)

    def remove(self, key, num_els=1):
        self.inner.discard(key, min(num_els, self.check(key)) or 1)
        return self.check(key)


class ExpandingBloomFilter(_Bloom):
    kind = fullbloom.ScalableBloomFilter

    def _make(self, est_elements, false_positive_rate):
        return self.kind(est_elements, false_positive_rate, growth=1.0)

    estimated_elements = property(lambda self: self.inner.initial_capacity)
    expansions = property(lambda self: self.inner.stages - 1)

    def add(self, key, force=False):
        super().add(key)


class RotatingBloomFilter(_Bloom):
    kind = fullbloom.RollingBloomFilter

    def __init__(self, est_elements=None, false_positive_rate=None, max_queue_size=10, **options):
        self.max_queue_size = max_queue_size
        super().__init__(est_elements, false_positive_rate, **options)

    def _make(self, est_elements, false_positive_rate):
        size = self.max_queue_size
        return self.kind(est_elements * size, false_positive_rate, generations=size)

    def add(self, key, force=False):
        super().add(key)

    def push(self):
        self.inner.advance()
