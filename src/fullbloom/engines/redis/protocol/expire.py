"""The term of a filter that was made with a time to live, and what comes after it.

The manifest and all strings vanish at the same moment, which the server's clock tells; of a cluster, each
node's own, and the moment is chosen by that of the node with the manifest. A client that finds a string gone
asks the node which should have it for the time: after the moment the filter holds nothing, before it
something was lost. The strings have the filter's id in their names, so that an add which comes too late
writes where nobody reads; who sent it deletes what it wrote, and adds to the filter of the next term.
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
from fullbloom.engines.redis.protocol.requests import Pause, Steps, call
from fullbloom.errors import EngineTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom._core import WireCells

T = TypeVar("T")

#: What the filter of the next term must have in common with that of the last one.
_SAME = ("backend", "capacity", "fpr", "layout", "scheme", "hash", "num_bits", "num_hashes", "seed", "secret")
_WAITS = 200
_WAIT = 0.05


class Expired(Exception):
    """The moment has come at which a filter vanishes: it holds nothing."""


class _Filter(Protocol):
    name: str
    #: When the term is over by this process's clock; None until the server said it.
    ends: float | None

    @property
    def manifest(self) -> Manifest: ...
    @property
    def names(self) -> Names: ...
    @property
    def cells(self) -> WireCells: ...
    def adopt(self, stood: Manifest) -> None: ...
    def refreshed(self) -> Steps[Any]: ...


def begun(there: _Filter) -> Steps[None]:
    """Raise Expired where the term is over; nothing is asked until this client's clock says so.

    Without it, adds after a long pause would write to strings that are gone.
    """
    if there.ends is None:
        key = there.names.manifest
        left = yield from call(key, b"PTTL", key)
        there.ends = inf if left == -1 else time.monotonic() + max(left, 0) / 1000
    if time.monotonic() >= there.ends:
        there.ends = None
        yield from there.refreshed()


def anew(there: _Filter, old: Manifest) -> Steps[None]:
    """Make the filter ``old``, whose term is over, anew, or take the one that another client made."""
    if there.manifest.id != old.id:  # another thread has done so
        return
    for part in (old, old.other()) if old.other_shards else (old,):
        for key in Names.of(there.name, part).bits:
            yield from call(key, b"UNLINK", key)
    for _ in range(_WAITS):
        stood = yield from create.standing(there.name)
        if stood is None:
            begins = {"generation": 0, "cut": 0, "other_shards": 0, "other_cut": 0, "state": BUILDING}
            new = replace(old, id=secrets.token_hex(16), **begins)  # type: ignore[arg-type]
            stood = yield from create.made(there.name, new, there.cells)
        if stood.id != old.id:
            return _taken(there, stood)
        yield [Pause(_WAIT)]  # the clock of the node with the manifest is behind
    raise EngineTimeout(
        f"filter {there.name!r}: its term is over by the clock of one node, and {_WAITS * _WAIT:.0f} s "
        "later not by that of another; set the clocks of the cluster"
    )


def found(there: _Filter) -> Steps[bool]:
    """Take the filter that another client made after the term; False where there is none."""
    stood = yield from create.standing(there.name)
    if stood is None or stood.id == there.manifest.id:
        return False
    _taken(there, stood)
    return True


def _taken(there: _Filter, stood: Manifest) -> None:
    was = asdict(there.manifest)
    stood.check(there.name, {field: was[field] for field in (*_SAME, "ttl")})
    there.adopt(stood)


def living(there: _Filter, steps: Callable[[], Steps[T]]) -> Steps[T]:
    """Ask what needs a filter: one whose term is over is made anew."""
    while True:
        old = there.manifest
        try:
            return (yield from steps())
        except Expired:
            yield from anew(there, old)


def looked(there: _Filter, steps: Callable[[], Steps[T]], nothing: Callable[[], T]) -> Steps[T]:
    """Ask what a filter holds: ``nothing`` where its term is over and nobody made it anew."""
    while True:
        old = there.manifest
        try:
            return (yield from steps())
        except Expired:
            if there.manifest.id == old.id and not (yield from found(there)):
                return nothing()
