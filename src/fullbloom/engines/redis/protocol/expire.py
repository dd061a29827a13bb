"""Expiry: what happens when the ttl of a filter ends, and the filter that follows.

The manifest and all strings expire at the same moment by the server's clock. In a cluster each node uses its
own clock, and the node with the manifest chooses the moment. A client that misses a string asks the node
which should have it for the time: after that moment the filter is empty, before it something was lost. The
strings have the filter's id in their keys, so an add that arrives too late writes where no client reads; the
client that sent it deletes what it wrote, and adds to the next filter.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, replace
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fullbloom.engines.redis.protocol import create
from fullbloom.engines.redis.protocol.keys import Names
from fullbloom.engines.redis.protocol.manifest import BUILDING, Manifest
from fullbloom.engines.redis.protocol.requests import Sleep, Steps, call
from fullbloom.errors import EngineTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom._core import WireCells

T = TypeVar("T")

#: What the next filter must have in common with the expired one.
_KEPT = ("backend", "capacity", "fpr", "layout", "scheme", "hash", "num_bits", "num_hashes", "seed", "secret")
_MAX_ATTEMPTS = 200
_WAIT = 0.05


class Expired(Exception):
    """The filter has expired: it holds nothing."""


class _Storage(Protocol):
    name: str
    #: When the filter expires by this process's clock; None until the server reports it.
    ends: float | None

    @property
    def manifest(self) -> Manifest: ...
    @property
    def names(self) -> Names: ...
    @property
    def cells(self) -> WireCells: ...
    def adopt(self, manifest: Manifest) -> None: ...
    def refresh(self) -> Steps[Any]: ...


def check_expiry(storage: _Storage) -> Steps[None]:
    """Raise Expired if the filter has expired; asks the server only if this client's clock says so.

    Without this check, adds after a long pause would write to strings that are gone.
    """
    if storage.ends is None:
        key = storage.names.manifest
        left = yield from call(key, b"PTTL", key)
        storage.ends = inf if left == -1 else time.monotonic() + max(left, 0) / 1000
    if time.monotonic() >= storage.ends:
        storage.ends = None
        yield from storage.refresh()


def recreate(storage: _Storage, old: Manifest) -> Steps[None]:
    """Create the expired filter ``old`` again, or adopt the one that another client created."""
    if storage.manifest.id != old.id:  # another thread has done so
        return
    for part in (old, old.other_layout()) if old.other_shards else (old,):
        for key in Names.of(storage.name, part).bits:
            yield from call(key, b"UNLINK", key)
    for _ in range(_MAX_ATTEMPTS):
        manifest = yield from create.wait_until_ready(storage.name)
        if manifest is None:
            initial = {"generation": 0, "cut": 0, "other_shards": 0, "other_cut": 0, "state": BUILDING}
            new = replace(old, id=secrets.token_hex(16), **initial)  # type: ignore[arg-type]
            manifest = yield from create.create_filter(storage.name, new, storage.cells)
        if manifest.id != old.id:
            return _adopt(storage, manifest)
        yield [Sleep(_WAIT)]  # the clock of the node with the manifest is behind
    raise EngineTimeout(
        f"filter {storage.name!r}: it has expired by the clock of one node, but not by that of another "
        f"{_MAX_ATTEMPTS * _WAIT:.0f} s later; synchronize the clocks of the cluster"
    )


def adopt_successor(storage: _Storage) -> Steps[bool]:
    """Adopt the filter that another client created after the expiry; False if it does not exist."""
    manifest = yield from create.wait_until_ready(storage.name)
    if manifest is None or manifest.id == storage.manifest.id:
        return False
    _adopt(storage, manifest)
    return True


def _adopt(storage: _Storage, manifest: Manifest) -> None:
    old = asdict(storage.manifest)
    manifest.require_match(storage.name, {field: old[field] for field in (*_KEPT, "ttl")})
    storage.adopt(manifest)


def run_or_recreate(storage: _Storage, steps: Callable[[], Steps[T]]) -> Steps[T]:
    """Run steps, recreating the filter if it expired."""
    while True:
        old = storage.manifest
        try:
            return (yield from steps())
        except Expired:
            yield from recreate(storage, old)


def run_or_default(storage: _Storage, steps: Callable[[], Steps[T]], default: Callable[[], T]) -> Steps[T]:
    """Run steps that only read; return ``default()`` if the filter expired and has no successor."""
    while True:
        old = storage.manifest
        try:
            return (yield from steps())
        except Expired:
            if storage.manifest.id == old.id and not (yield from adopt_successor(storage)):
                return default()
