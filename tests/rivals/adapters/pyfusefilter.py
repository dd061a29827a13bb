"""pyfusefilter and pyxorfilter over BinaryFuseFilter and XorFilter, built from all keys at once."""

from _base import Wrapped

import fullbloom


class _Static(Wrapped):
    kind = None
    bits = 8

    def __init__(self, keys_or_size):
        if not isinstance(keys_or_size, int):
            self.populate(keys_or_size)

    def populate(self, keys):
        self.inner = self.kind.build(keys, bits=self.bits)
        return True

    def contains(self, key):
        return key in self.inner

    __getitem__ = contains

    def serialize(self):
        return self.inner.to_bytes()

    @classmethod
    def deserialize(cls, data):
        return cls.around(cls.kind.from_bytes(data))


class Fuse8(_Static):
    kind = fullbloom.BinaryFuseFilter


class Fuse16(Fuse8):
    bits = 16


class Xor8(_Static):
    kind = fullbloom.XorFilter


class Xor16(Xor8):
    bits = 16
