"""Cache digests: proxies exchange filters of what they have cached, instead of asking each other every time.

Each proxy publishes a filter of its keys from time to time. On a miss, a proxy looks into the digests of its
neighbours, and asks only one that probably has the object. An object that left a cache since its digest was
made, or that the filter found by mistake, is a *false hit*: one round trip in vain.

After Fan, Cao, Almeida and Broder, "Summary cache", IEEE/ACM ToN 8(3), 2000, and Squid's cache digests: five
bits per object, four probes, and removals only with the next digest.

>>> digest = make_digest(["http://a.org/", "http://b.org/"])
>>> neighbours = Neighbours()
>>> neighbours.update("north", digest)
>>> neighbours.find("http://a.org/"), len(digest)
(['north'], 320)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom import BloomFilter
from fullbloom.errors import FormatError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Neighbours", "make_digest"]

#: Squid's defaults.
_BITS_PER_OBJECT, _NUM_HASHES = 5, 4
#: Bits of the smallest digest, which hide little of what a nearly empty cache holds.
_LEAST_BITS = 512
#: Bytes of the largest digest that is accepted by default: some 100 million objects.
_MOST_BYTES = 1 << 26


def make_digest(
    keys: Collection[str], *, bits_per_object: int = _BITS_PER_OBJECT, num_hashes: int = _NUM_HASHES
) -> bytes:
    """Return the digest of a cache: the file of a filter of its keys.

    Make it from the present content, as Squid does every hour. Its rate is 9.2 % by default. Raises
    ``ParameterError`` for numbers below 1. The hash is public, because all proxies need the same.
    """
    if bits_per_object < 1:
        raise ParameterError(f"bits_per_object must be at least 1, got {bits_per_object}")
    num_bits = max(bits_per_object * len(keys), _LEAST_BITS)
    digest = BloomFilter.with_shape(num_bits, num_hashes, capacity=max(len(keys), 1))
    digest.update(keys)
    return digest.to_bytes()


class Neighbours:
    """The last digest of each neighbour.

    max_bytes: a longer digest is refused. Digests come from other machines: the parser checks them, and one
    that lies can only cause false hits and misses.
    """

    def __init__(self, *, max_bytes: int = _MOST_BYTES) -> None:
        self.max_bytes = max_bytes
        self._digests: dict[str, BloomFilter] = {}

    def update(self, name: str, digest: bytes) -> None:
        """Replace the digest of a neighbour.

        Raises ``FormatError`` if it is too long, damaged or a filter of another kind or hash; the neighbour
        then keeps its last digest.
        """
        if len(digest) > self.max_bytes:
            raise FormatError(f"a digest may have at most {self.max_bytes} bytes, got {len(digest)}")
        try:
            found = BloomFilter.from_bytes(digest)
        except ParameterError as error:  # a filter with a secret
            raise FormatError(f"a digest must have the public hash: {error}") from None
        if found.keyed or found.seed != 0 or found.hash != "xxh3":
            raise FormatError("a digest must have the public hash, without a seed or secret")
        self._digests[name] = found

    def remove(self, name: str) -> None:
        """Forget a neighbour; one that is unknown is ignored."""
        self._digests.pop(name, None)

    def find(self, key: str) -> list[str]:
        """Return the neighbours that probably have ``key``, in the order of their first digests."""
        return [name for name, digest in self._digests.items() if key in digest]
