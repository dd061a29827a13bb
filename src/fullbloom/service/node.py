"""One node of the service: its store and its registry, kept in step."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import fullbloom
from fullbloom import registry as structures
from fullbloom.service import data_folder
from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.peers import Peers
from fullbloom.service.redis import LOCATION, RedisFilter, RedisFilters
from fullbloom.service.redis.errors import not_found, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.service.engine import Engine
    from fullbloom.service.registry import Registry
    from fullbloom.service.settings import Settings

_LOG = logging.getLogger("fullbloom.node")
#: Ids and versions of which a filter must have one to be changed; None: any.
Versions = list[tuple[int, int]] | None
#: Characters that no name contains.
_INVALID = re.compile(r"[^A-Za-z0-9._:-]")
#: Place of a filter's name among the parts of a path.
_NAME = 3
#: Rows inserted by one statement.
_BATCH = 500


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Node:
    """Creates, renames and drops filters; the registry reserves a name first, for all its nodes."""

    def __init__(self, settings: Settings, engine: Engine, registry: Registry) -> None:
        """Connect the parts; the node's name is drawn once and kept in the data folder."""
        self.settings, self.engine, self.registry = settings, engine, registry
        self.service: Any = engine.service
        self.shared = RedisFilters(settings, registry)
        self.id = settings.node or data_folder.load_node_name(settings, registry)
        self.url = ""
        self.resp = ""
        self.began = now()
        self.peers = Peers(registry, self.id, settings.silence)
        #: Epoch of the store that the registry has; -1: sync again.
        self._synced = -1
        #: Names of this store that another node owned at the last sync.
        self._conflicts: set[str] = set()
        self._sync_lock = threading.Lock()
        #: Names that requests of this process are about to assign, and what is set once they have.
        self._claims: dict[str, threading.Event] = {}
        self._claims_lock = threading.Lock()
        #: Held from reading what the ports learn until they have it: what was read last is set last.
        self._announcing = threading.Lock()
        #: Names of filters in Redis that the RESP port refuses.
        self._announced: frozenset[str] = frozenset()

    def register(self, url: str, resp: str) -> None:
        """Record the node's addresses and the store's filters in the registry."""
        self.url, self.resp = self.settings.advertise or url, resp
        self.registry.nodes.register(self.id, self.url, resp, now())
        self.load_tokens()
        for _ in range(2):  # the second gives up a name that another node owns by now
            self.sync(log_new=False)
        self.refresh()

    def load_tokens(self) -> int:
        """Load the tokens for both ports, record in the folder that there are any, and return how many."""
        with self._announcing:  # no revoked token comes back
            tokens = self.registry.tokens.load()
            self.service.set_tokens(tokens)
        if tokens:
            data_folder.record_tokens(self.settings.data)
        return len(tokens)

    # Where filters are

    def find_known_backend(self, name: str) -> Any:
        """Return the backend that serves a filter, the store or one in Redis; None: query the registry."""
        shared = self.shared.find_known(name)
        if shared is not None:
            return shared
        return self.service if not self.shared.is_set_up or name in self else None

    def find_backend(self, name: str) -> Any:
        """Return the backend that serves a filter, with a query to the registry if it is unknown here."""
        for find in (self.find_known_backend, self.shared.find):
            if (found := find(name)) is not None:
                return found
        return self.service

    def announce(self) -> None:
        """Set the names that the RESP port does not serve."""
        with self._announcing:
            names = self.shared.all_names()
            self.service.set_remote_names({**self.peers.names, **dict.fromkeys(names, LOCATION)})
            self._announced = frozenset(names)

    # Names

    def create_shared(self, name: str, kind: str, options: dict[str, str], **named: Any) -> dict[str, Any]:
        """Create a filter in Redis; return its info."""
        owner = self.registry.filters.find_owner(name)
        if owner is not None and owner[0] != self.id:
            raise self._redirect(name, owner[1], f"/v1/filters/{name}")
        info = self.shared.create(name, kind, options, **named)
        self.announce()
        return info

    def create(self, name: str, kind: str, options: dict[str, str], **named: Any) -> dict[str, Any]:
        """Create a filter; return its info."""
        with self._claim(name, kind=kind):
            info = self.service.create(name, kind, list(options.items()), **named)
        return self.record(info)

    def restore(self, name: str, data: bytes, *, replace: bool, versions: Versions = None) -> dict[str, Any]:
        """Store the filter of a file's bytes under a name; return its info."""
        backend = self.find_backend(name)
        if isinstance(backend, RedisFilter):
            if not replace:
                raise _name_taken(name)
            with self.service.hold(2 * len(data)):
                backend.load(data)
            return backend.info(name)
        with self._claim(name, replace=replace):
            info = self.service.restore(name, data, replace=replace, versions=versions)
        return self.record(info)

    def clone(self, name: str, source: str, *, replace: bool, versions: Versions = None) -> dict[str, Any]:
        """Copy a filter, if it has one of the versions, to another name; return the copy's info."""
        if any(isinstance(self.find_backend(one), RedisFilter) for one in (name, source)):
            raise unsupported("cannot be cloned; create another one and merge it into that")
        with self._claim(name, replace=replace):
            info = self.service.clone(name, source, replace=replace, versions=versions)
        return self.record(info)

    def rename(
        self, old: str, new: str, *, replace: bool, versions: Versions = None, expires: int | None = None
    ) -> dict[str, Any]:
        """Rename a filter in one step and return its info; ``replace`` drops a filter of the new name.

        ``expires`` sets when the filter is dropped: 0 never, None as before.
        """
        if any(isinstance(self.find_backend(one), RedisFilter) for one in (old, new)):
            raise unsupported("cannot be renamed")
        self.service.version(old)
        with self._claim(new, replace=replace), self._sync_lock:
            info = self.service.rename(old, new, replace=replace, versions=versions, expires=expires)
            self.registry.filters.rename(old, new, self.id)
        return self.record(info)

    def delete(self, name: str, *, versions: Versions = None) -> bool:
        """Drop a filter; return False if it does not exist."""
        if not isinstance(self.find_backend(name), RedisFilter):
            try:
                number: int | None = self.service.delete(name, versions=versions)
            except Fault as fault:
                # It may have been created in Redis since the lookup.
                if fault.code != "elsewhere" or self.shared.find(name) is None:
                    raise
            else:
                if number is not None:
                    self.registry.filters.release(name, self.id, number)
                else:
                    self._release_unused(name)
                return number is not None
        deleted = self.shared.delete(name)
        self.announce()
        return deleted

    def record(self, info: dict[str, Any]) -> dict[str, Any]:
        """Write a filter's row to the registry, unless it has lost its name since; return its info."""
        if self._is_current(info):
            self.registry.filters.record(self.id, info)
        if not self._is_current(info):
            # Of the row, only the claim is certainly this filter's. The next `sync` compares all rows.
            self._release_unused(info["name"])
            with self._sync_lock:
                self._synced = -1
        return info

    def _release_unused(self, name: str) -> None:
        """Release a name that is only claimed, unless a request of this process is about to assign it."""
        with self._claims_lock:  # a request that begins now reserves the name afterwards
            if name not in self._claims:
                self.registry.filters.release(name, self.id, 0)

    def _is_current(self, info: dict[str, Any]) -> bool:
        """Return whether a filter still has its name."""
        number: int = info["id"]
        return self._find_number(info["name"]) == number

    def _find_number(self, name: str) -> int | None:
        """Return the number of the filter of this name in the store."""
        try:
            number: int = self.service.version(name)[0]
        except Fault:
            return None
        return number

    def __contains__(self, name: str) -> bool:
        """Return whether the store has a filter of this name."""
        return self._find_number(name) is not None

    @contextlib.contextmanager
    def _claim(self, name: str, *, kind: str = "?", replace: bool = False) -> Iterator[None]:
        """Reserve a name inside ``with``, and keep it unless that raises; refuse a name that is taken.

        With ``replace``, a name of this node counts as free.
        """
        deadline = time.monotonic() + self.settings.limits.receive
        while True:
            with self._claims_lock:
                claim = self._claims.get(name)
                begun = claim is not None
                if not replace and not begun and name in self:
                    raise _name_taken(name)
                if claim is None or replace:
                    ended = self._claims.setdefault(name, threading.Event())
                    break
            # The other request may fail yet, on a full disk for example: then the name is free.
            if not claim.wait(deadline - time.monotonic()):
                raise Refused("overloaded", f"another request is about to create {name}; try again")
        try:
            is_new = not begun and self._reserve(name, kind, replace=replace)
            try:
                yield
            except BaseException:
                if is_new:  # a row that was finished meanwhile belongs to another filter
                    self.registry.filters.release(name, self.id, 0)
                raise
        finally:
            if not begun:
                with self._claims_lock:
                    del self._claims[name]
                ended.set()

    def _reserve(self, name: str, kind: str, *, replace: bool) -> bool:
        """Claim a name in the registry; return False if this node owns it and may replace its filter."""
        filters = self.registry.filters
        if filters.claim(name, self.id, kind):
            if name in self._announced:  # a filter in Redis that was dropped a moment ago
                self.shared.find(name)
                self.announce()
            return True
        owner = filters.find_owner(name)
        if owner is not None and owner[0] != self.id:
            raise self._redirect(name, owner[1], f"/v1/filters/{name}")
        if name in self:
            if replace:
                return False
            raise _name_taken(name)
        if self.shared.find(name) is not None:
            raise _name_taken(name)
        # An unfinished claim of this node: its process ended, or the filter was just dropped.
        filters.release(name, self.id)
        filters.claim(name, self.id, kind)
        return True

    # Other nodes

    def sync(self, *, log_new: bool = True) -> None:
        """Update the registry with filters that RESP commands or expiry created, renamed or dropped."""
        with self._sync_lock:
            epoch = self.service.epoch
            if epoch == self._synced:
                return
            rows = self.registry.filters.load(self.id)
            held: dict[int, str] = dict(self.service.filter_names())
            self.registry.filters.drop(self.id, [number for number in rows if number not in held])
            new = [name for number, name in held.items() if number not in rows]
            renamed = [name for number, name in held.items() if number in rows and rows[number][1] != name]
            for start in range(0, len(new), _BATCH):
                self._record_new(new[start : start + _BATCH], log_new=log_new)
            for name in renamed:
                self._record_or_rename(name, log_new=log_new)
            # A name of two nodes is checked again: the other node may be about to give it up.
            self._conflicts &= set(held.values())
            self._synced = -1 if self._conflicts else epoch
            # Now, not before: other nodes read the names once when they see a new epoch.
            self.registry.nodes.beat(self.id, now(), self._synced)

    def _record_new(self, names: list[str], *, log_new: bool) -> None:
        """Write rows of filters that have none: by one statement, or one by one if a name is taken."""
        infos = []
        for name in names:
            with contextlib.suppress(Fault):  # dropped meanwhile
                infos.append(self.service.info(name))
        if not self.registry.filters.insert(self.id, infos):
            for name in names:
                self._record_or_rename(name, log_new=log_new)

    def _record_or_rename(self, name: str, *, log_new: bool) -> None:
        try:
            info = self.service.info(name)
        except Fault:  # dropped meanwhile
            return
        if self.registry.filters.record(self.id, info):
            self._conflicts.discard(name)
            if log_new:
                _LOG.info("filter appeared", extra={"filter": name, "kind": info["kind"]})
        elif name in self._conflicts:
            self._rename_conflicting(name)
        else:
            self._conflicts.add(name)

    def _rename_conflicting(self, name: str) -> None:
        """Rename a filter whose name another node owns, so that nothing is lost and the name is unique."""
        own = _INVALID.sub("-", self.id[:16])
        names = (f"{name[:90]}.{own}.{number}" for number in count(1))
        new = next(new for new in names if new not in self and new not in self._claims)
        with self._claim(new):
            self.service.rename(name, new)
        self._conflicts.discard(name)
        self._record_or_rename(new, log_new=False)
        _LOG.error("another node has a filter of this name", extra={"filter": name, "now": new})

    def refresh(self) -> None:
        """Send a heartbeat, and read which names are on other nodes."""
        if not self.registry.nodes.beat(self.id, now(), self._synced):
            _LOG.error("this node was removed; it registers again", extra={"node": self.id})
            self.registry.nodes.register(self.id, self.url, self.resp, now())
            with self._sync_lock:  # a `sync` that began before would set the epoch, and no row be written
                self._synced = -1
        # One after the other: if reading the peers fails, no later run would see that the filters changed.
        if self.shared.refresh():
            self.announce()
        if self.registry.shared and self.peers.refresh():
            self.announce()

    def merge(self, name: str, source: str, *, versions: Versions = None) -> dict[str, Any]:
        """Add the keys of another filter, in memory here or in Redis, to a filter; return its info."""
        into, other = self.find_backend(name), self.find_backend(source)
        if isinstance(into, RedisFilter):
            if not isinstance(other, RedisFilter):
                # The file's bytes, a copy of them, and the filter that they are read into.
                with self.service.hold(3 * other.info(source, counted=False)["nbytes"]):
                    secret = other.hashing(source)[1]
                    into.merge(fullbloom.loads(other.dump(source), secret=secret))
            else:
                into.merge(other)
            info: dict[str, Any] = into.info(name)
            return info
        if isinstance(other, RedisFilter):
            raise unsupported("can only be merged into another one in Redis")
        merged: dict[str, Any] = into.merge(name, source, versions=versions)
        return merged

    def explain(self, fault: Any, path: str) -> Refused:
        """Return the error for a fault of the native module, with the address of another node's filter.

        A name that is unknown here is looked up in the registry: another node may just have created it.
        """
        parts = path.split("/")
        name = parts[_NAME] if path.startswith("/v1/filters/") else ""
        address = self.peers.names.get(name) if fault.code == "elsewhere" else None
        if fault.code == "missing" and name and self.registry.shared:
            owner = self.registry.filters.find_owner(name)
            address = owner[1] if owner is not None and owner[0] != self.id else None
        if address is None and fault.code == "elsewhere" and name:  # it was in Redis a moment ago
            found = self.shared.find(name)
            self.announce()
            if found is None:
                return not_found()
            return Refused("unavailable", f"{name} was recreated meanwhile; try again")
        if address is None:
            return Refused(fault.code, str(fault))
        return self._redirect(name, address, path)

    def _redirect(self, name: str, address: str, path: str) -> Refused:
        text = f"{name} is stored on {address}{self.peers.describe_silence(address)}"
        return Refused("elsewhere", text, node=address, location=address + path)


def _name_taken(name: str) -> Refused:
    return Refused("exists", f"there is a filter {name}; choose another name, or delete it first")


def default_kind(*, grow: bool, window: float | None) -> str:
    """Return the kind of a filter whose request names none."""
    if window is not None:
        rows = [row for row in structures.rows() if any(name == "window" for name, *_ in row["parameters"])]
        return str(rows[-1]["name"])
    return str(structures.find_by_role("growing" if grow else "plain")["name"])
