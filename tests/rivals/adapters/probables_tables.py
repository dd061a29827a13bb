"""pyprobables' cuckoo and quotient filters over ours, whose capacity is a number of keys."""

from _base import inner_of, renamed
from probables import Counted, CuckooFilterFullError, InitializationError, QuotientFilterError

import fullbloom


class CuckooFilter(Counted):
    """DynamicCuckooFilter where it expands by itself; theirs counts buckets as capacity, ours keys."""

    hash_function = None

    def __init__(
        self, capacity=10000, bucket_size=4, max_swaps=500, expansion_rate=2, auto_expand=True,
        finger_size=4, filepath=None, hash_function=None, fpr=0.01,
    ):  # fmt: skip
        self.max_swaps, self.expansion_rate, self.auto_expand = max_swaps, expansion_rate, auto_expand
        self.hash_function = hash_function
        if filepath is not None:
            self.inner = self._read(filepath)
            return
        bits = None if finger_size is None else 8 * finger_size
        names = dict.fromkeys(("ParameterError", "ParameterTypeError"), InitializationError)
        with renamed(**names):
            kind = fullbloom.DynamicCuckooFilter if auto_expand else fullbloom.CuckooFilter
            self.inner = kind(
                self._keys(capacity, bucket_size), fpr, bucket_size=bucket_size, fingerprint_bits=bits
            )

    @staticmethod
    def _keys(capacity, bucket_size):
        """The keys that so many buckets hold; what is no number is Fullbloom's to refuse."""
        return int(0.84 * capacity * bucket_size) if isinstance(capacity, int) else capacity

    @classmethod
    def init_error_rate(cls, error_rate, **options):
        return cls(fpr=error_rate, finger_size=None, **options)

    @classmethod
    def load_error_rate(cls, error_rate, filepath, **options):  # noqa: ARG003 - the file has it
        return cls(filepath=filepath, **options)

    @classmethod
    def frombytes(cls, data, error_rate=None, **fields):  # noqa: ARG003 - the bytes have it
        return super().frombytes(data, **fields)

    capacity = property(lambda self: self.inner.num_buckets)
    bucket_size = property(lambda self: self.inner.bucket_size)
    fingerprint_size_bits = property(lambda self: self.inner.fingerprint_bits)
    fingerprint_size = property(lambda self: -(-self.inner.fingerprint_bits // 8))
    error_rate = property(lambda self: self.inner.target_fpr)

    def __contains__(self, key):
        if self.hash_function:
            return self.inner.contains_hashed([self.hash_function(key) % 2**64])[0]
        return key in self.inner

    def add(self, key):
        with renamed(FilterFull=CuckooFilterFullError):
            if self.hash_function:
                self.inner.add_hashed([self.hash_function(key) % 2**64])
            elif key not in self.inner:
                self.inner.add(key)

    def remove(self, key):
        return self.inner.discard(key)

    def load_factor(self):
        return self.inner.fill


class CountingCuckooFilter(CuckooFilter):
    def check(self, key):
        return self.inner.count(key)

    def add(self, key):
        with renamed(FilterFull=CuckooFilterFullError):
            self.inner.add(key)


class QuotientFilter(Counted):
    """A quotient filter of Fullbloom counts keys where theirs counts slots, and grows on request."""

    kind = fullbloom.QuotientFilter
    max_load_factor = 0.85

    def __init__(self, quotient=20, auto_expand=True, hash_function=None):
        self.auto_expand, self.hash_function = auto_expand, hash_function
        with renamed(ParameterError=QuotientFilterError, FilterMemoryError=QuotientFilterError):
            self.inner = self.kind(int(self.max_load_factor * 2**quotient), 2.0 ** (quotient - 32))

    quotient = property(lambda self: self.inner.quotient_bits)
    remainder = property(lambda self: self.inner.remainder_bits)
    size = property(lambda self: self.inner.num_slots)
    num_elements = property(lambda self: self.inner.num_slots)
    load_factor = property(lambda self: self.inner.fill)

    def add(self, key):
        if self.auto_expand and self.load_factor >= self.max_load_factor:
            self.inner.grow()
        with renamed(FilterFull=QuotientFilterError):
            self.inner.add(key)

    def remove(self, key):
        self.inner.discard(key)

    def merge(self, second):
        second = inner_of(second).copy()
        together = self.inner.num_added + second.num_added
        while self.auto_expand and together > self.max_load_factor * self.size:
            self.inner.grow()
            second.grow()
        with renamed(IncompatibleFilters=QuotientFilterError, FilterFull=QuotientFilterError):
            self.inner.merge(second)

    def validate_metadata(self):
        """Reading checks every slot's bits against the others."""
        return self.kind.from_bytes(self.inner.to_bytes()) == self.inner

    def _hash_func(self, key, _depth):
        return fullbloom.hash_key(key)

    _r = remainder

    def resize(self, quotient):
        with renamed(ValueError=QuotientFilterError, FilterFull=QuotientFilterError):
            while self.quotient < quotient:
                self.inner.grow()
            if quotient < self.quotient:
                raise ValueError("a quotient filter only grows")
