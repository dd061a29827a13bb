"""bloom-filter2's BloomFilter: `+=` adds; a file is mapped."""

from pathlib import Path

from _base import Wrapped, inner_of

import fullbloom


def get_filter_bitno_probes(*_arguments):
    """A name to choose a hash by, which Fullbloom has no choice of."""


def get_bitno_seed_rnd(*_arguments):
    """As get_filter_bitno_probes."""


class BloomFilter(Wrapped):
    def __init__(
        self, max_elements=10000, error_rate=0.1, probe_bitnoer=None, filename=None, start_fresh=False
    ):  # `probe_bitnoer` chooses a hash
        self.inner = fullbloom.BloomFilter(max_elements, error_rate, layout="classic")
        if filename is not None:
            if start_fresh or not Path(filename).exists():
                self.inner.save(filename)
            self.inner = fullbloom.BloomFilter.open(filename, mode="r+")

    num_bits_m = property(lambda self: self.inner.num_bits)
    num_probes_k = property(lambda self: self.inner.num_hashes)

    def add(self, key):
        self.inner.add(key)

    def __iadd__(self, key):
        self.inner.add(key)
        return self

    def __ior__(self, other):
        self.inner |= inner_of(other)
        return self

    def __iand__(self, other):
        self.inner &= inner_of(other)
        return self

    def close(self):
        self.inner.close()
