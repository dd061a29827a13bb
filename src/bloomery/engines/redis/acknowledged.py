"""What a client remembers of what servers acknowledged, so that a loss is noticed.

A server that comes back without its latest data, or a replica that takes over, has lost the end of its
history: the keys that came last. The hashes of the last ones are remembered, and looked for by `verify`; so
is how many bits must be set.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import islice
from threading import Lock

#: Keys that are remembered: 32 KiB of hashes.
REMEMBERED = 4096
_HASH_BYTES = 8


@dataclass(frozen=True)
class Verification:
    """What `verify` found; true when nothing that was acknowledged is known to be gone.

    ``ok`` is no proof: keys that another client added last may be gone, or the only ones that are gone be
    found by a false positive (probability fpr each).
    """

    #: True when nothing is known to be gone.
    ok: bool
    #: The manifest is gone, or another filter has the name.
    replaced: bool
    #: The server is another process than the one that this client met first.
    restarted: bool
    #: Numbers of the shards that are not there, or not whole; of a window, of the generations.
    shards_lost: tuple[int, ...]
    #: The last acknowledged keys of this client that were looked for, and how many of them were not found.
    keys_checked: int
    keys_lost: int
    #: Bits that must be set by what this client knows, and those that are.
    bits_expected: int
    bits_found: int
    #: The server went back to an earlier state: older cells than this client has seen.
    rolled_back: bool = False

    def __bool__(self) -> bool:
        """Tell whether nothing is known to be gone."""
        return self.ok


class Acknowledged:
    """The hashes of the last keys, in a ring, and the bits that a client has set, by shard."""

    def __init__(self, shards: int) -> None:
        """Remember nothing yet."""
        self._ring = bytearray(REMEMBERED * _HASH_BYTES)
        self._at = 0
        self._full = False
        self._one = Lock()
        #: Least numbers of set bits: those that a count found, and those that were set since.
        self.bits = [0] * shards

    def note(self, hashes: bytes) -> None:
        """Remember the hashes of keys that were added."""
        ring, size = self._ring, len(self._ring)
        hashes = hashes[-size:]
        with self._one:  # of threads that share a filter
            room = size - self._at
            ring[self._at : self._at + len(hashes)] = hashes[:room]
            if len(hashes) >= room:
                ring[: len(hashes) - room] = hashes[room:]
                self._full = True
            self._at = (self._at + len(hashes)) % size

    def hashes(self) -> bytes:
        """Return what is remembered."""
        return bytes(self._ring if self._full else self._ring[: self._at])


class Present:
    """The hashes of the last keys that a client has added and not removed, and how often it added them."""

    def __init__(self, shards: int) -> None:
        """Remember nothing yet."""
        self._times: dict[int, int] = {}
        self._one = Lock()
        #: As `Acknowledged` has it; counters may become fewer.
        self.bits = [0] * shards

    def note(self, hashes: bytes) -> None:
        """Remember the hashes of keys that were added."""
        with self._one:  # of threads that share a filter
            times = self._times
            for hash_ in array("Q", hashes[-REMEMBERED * _HASH_BYTES :]):
                times[hash_] = times.pop(hash_, 0) + 1
            if len(times) > 2 * REMEMBERED:  # so seldom that it costs nothing a key
                self._times = dict(self._last())

    def drop(self, hashes: bytes) -> None:
        """Forget keys that were removed, each as often as it was."""
        with self._one:
            for hash_ in array("Q", hashes):
                if (times := self._times.get(hash_, 0)) > 1:
                    self._times[hash_] = times - 1
                else:
                    self._times.pop(hash_, None)

    def _last(self) -> islice[tuple[int, int]]:
        return islice(self._times.items(), max(0, len(self._times) - REMEMBERED), None)

    def hashes(self) -> bytes:
        """Return what is remembered."""
        with self._one:
            return array("Q", [hash_ for hash_, _ in self._last()]).tobytes()
