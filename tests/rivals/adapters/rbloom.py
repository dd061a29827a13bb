"""rbloom's Bloom over BloomFilter. A hash function of one's own enters as ready hashes."""

from _base import Wrapped

from fullbloom import BloomFilter


class Bloom(Wrapped):
    def __init__(self, expected_items, false_positive_rate, hash_func=hash):
        self.inner = BloomFilter(expected_items, false_positive_rate)
        self.hash_func = hash_func

    def _hashes(self, keys):
        return [self.hash_func(key) % 2**64 for key in keys]

    def _as_inner(self, other):
        if isinstance(other, Bloom):
            return other.inner
        instance = self.copy()
        instance.clear()
        instance.update(other)
        return instance.inner

    def _new(self, inner):
        return self.around(inner, hash_func=self.hash_func)

    def add(self, key):
        self.update([key])

    def update(self, *others):
        for other in others:
            if isinstance(other, Bloom):
                self.inner.update(other.inner)
            elif self.hash_func is hash:
                self.inner.update(other)
            else:
                self.inner.add_hashed(self._hashes(other))

    def __contains__(self, key):
        if self.hash_func is hash:
            return key in self.inner
        return self.inner.contains_hashed(self._hashes([key]))[0]

    def __repr__(self):
        return f"<Bloom size_in_bits={self.size_in_bits} approx_items={self.approx_items}>"

    size_in_bits = property(lambda self: self.inner.num_bits)
    approx_items = property(lambda self: self.inner.approx_count()[0])

    def copy(self):
        return self._new(self.inner.copy())

    def clear(self):
        self.inner.clear()

    def union(self, *others):
        return self._new(self.inner.union(*map(self._as_inner, others)))

    def intersection(self, *others):
        return self._new(self.inner.intersection(*map(self._as_inner, others)))

    def intersection_update(self, *others):
        self.inner.intersection_update(*map(self._as_inner, others))

    def issubset(self, other):
        return self.inner.issubset(other.inner)

    def issuperset(self, other):
        return self.inner.issuperset(other.inner)

    def __or__(self, other):
        return self._new(self.inner | other.inner)

    def __and__(self, other):
        return self._new(self.inner & other.inner)

    def __ior__(self, other):
        self.inner |= other.inner
        return self

    def __iand__(self, other):
        self.inner &= other.inner
        return self

    def __le__(self, other):
        return self.inner <= other.inner

    def __lt__(self, other):
        return self.inner < other.inner

    def __ge__(self, other):
        return self.inner >= other.inner

    def __gt__(self, other):
        return self.inner > other.inner

    def save(self, path):
        self.inner.save(path)

    def save_bytes(self):
        return self.inner.to_bytes()

    @classmethod
    def load(cls, path, hash_func):
        return cls.around(BloomFilter.open(path).copy(), hash_func=hash_func)

    @classmethod
    def load_bytes(cls, data, hash_func):
        return cls.around(BloomFilter.from_bytes(data), hash_func=hash_func)
