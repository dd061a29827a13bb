"""One node of the service: its store and its registry, kept in step."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import bloomery
from bloomery import registry as structures
from bloomery.service.engine import Fault
from bloomery.service.failures import Refused
from bloomery.service.others import Others
from bloomery.service.redis import LIVES, Asked, RedisFilters
from bloomery.service.redis.refusals import cannot

if TYPE_CHECKING:
    from bloomery.service.engine import Engine
    from bloomery.service.registry import Registry
    from bloomery.service.settings import Settings

_LOG = logging.getLogger("bloomery.node")
#: Numbers and versions that a filter may have for a change of it to be made; None: any.
Versions = list[tuple[int, int]] | None
#: What stands in no name.
_UNFIT = re.compile(r"[^A-Za-z0-9._:-]")
#: Place of a filter's name among the parts of a path.
_NAME = 3
_LOCAL = frozenset({b"localhost", b"127.0.0.1", b"[::1]", b"testserver"})


#: Filters that the registry is told of at once.
_AT_ONCE = 500


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Node:
    """What makes, renames and drops filters: a name is taken in the registry first, for all its nodes."""

    def __init__(self, settings: Settings, engine: Engine, registry: Registry) -> None:
        """Take its parts; its name is drawn once and kept in the data folder."""
        self.settings, self.engine, self.registry = settings, engine, registry
        self.service: Any = engine.service
        self.shared = RedisFilters(settings, registry)
        self.id = settings.node or _drawn_name(settings)
        self.url = ""
        self.resp = ""
        self.began = now()
        self.others = Others(registry, self.id, settings.silence)
        self._synced = -1
        self._twice: set[str] = set()
        self._one = threading.Lock()

    def enter(self, url: str, resp: str) -> None:
        """Say where it listens, and put what the store holds in the registry."""
        self.url, self.resp = self.settings.advertise or url, resp
        self.registry.nodes.enter(self.id, self.url, resp, now())
        self.service.set_tokens(self.registry.tokens.known())
        for _ in range(2):  # a name that another node has by now is given up by the second
            self.sync(told=False)
        self.look_around()

    # Where filters are

    def at_hand(self, name: str) -> Any:
        """Return what has the calls for a name, the store or the filters in Redis; None: ask the registry."""
        asked = self.shared.known(name)
        if asked is not None:
            return asked
        return self.service if not self.shared.is_set_up or name in self else None

    def store(self, name: str) -> Any:
        """Return what has the calls for a name; the registry is asked for one that is not at hand."""
        for look in (self.at_hand, self.shared.find):
            if (found := look(name)) is not None:
                return found
        return self.service

    def announce(self) -> None:
        """Tell the RESP port which names it cannot answer for."""
        self.service.set_elsewhere({**self.others.names, **dict.fromkeys(self.shared.all_names(), LIVES)})

    # Names

    def create_shared(self, name: str, kind: str, options: dict[str, str], **named: Any) -> dict[str, Any]:
        """Make a filter in Redis: what it is."""
        owner = self.registry.filters.owner(name)
        if owner is not None and owner[0] != self.id:
            raise self._lives_at(name, owner[1], f"/v1/filters/{name}")
        made = self.shared.create(name, kind, options, **named)
        self.announce()
        return made.info(name)

    def create(self, name: str, kind: str, options: dict[str, str], **named: Any) -> dict[str, Any]:
        """Make a filter: what it is."""
        with self._claimed(name, kind):
            self.service.create(name, kind, list(options.items()), **named)
        return self.put(name)

    def restore(self, name: str, data: bytes, *, replace: bool, versions: Versions = None) -> dict[str, Any]:
        """Put the filter in the bytes of a file under a name: what it is."""
        asked = self.store(name)
        if isinstance(asked, Asked):
            if not replace:
                raise _taken(name)
            asked.load(data)
            return asked.info(name)
        if replace and name in self:
            self.service.restore(name, data, replace=True, versions=versions)
        else:
            with self._claimed(name, "?"):
                self.service.restore(name, data)
        return self.put(name)

    def clone(self, name: str, source: str, *, replace: bool, versions: Versions = None) -> dict[str, Any]:
        """Put a copy of a filter, in one of some versions, under a name: what it is."""
        if any(isinstance(self.store(one), Asked) for one in (name, source)):
            raise cannot("is not cloned; make another and merge it into that")
        if replace and name in self:
            self.service.clone(name, source, replace=True, versions=versions)
        else:
            with self._claimed(name, "?"):
                self.service.clone(name, source, versions=versions)
        return self.put(name)

    def rename(self, old: str, new: str, *, replace: bool, versions: Versions = None) -> None:
        """Give a filter another name."""
        if any(isinstance(self.store(one), Asked) for one in (old, new)):
            raise cannot("keeps its name")
        self.service.version(old)
        if replace and new in self:
            self.delete(new)
        with self._one, self._claimed(new, "?"):
            self.service.rename(old, new, versions=versions)
            self.registry.filters.release(new, self.id)
            self.registry.filters.rename(old, new, self.id)

    def delete(self, name: str, *, versions: Versions = None) -> bool:
        """Drop a filter; False where there is none."""
        if isinstance(self.store(name), Asked):
            gone = self.shared.delete(name)
            self.announce()
            return gone
        dropped: bool = self.service.delete(name, versions=versions)
        self.registry.filters.release(name, self.id)
        return dropped

    def put(self, name: str) -> dict[str, Any]:
        """Write a filter's row: what it is."""
        info: dict[str, Any] = self.service.info(name)
        self.registry.filters.put(self.id, info)
        return info

    def __contains__(self, name: str) -> bool:
        """Tell whether the store has a filter of this name."""
        try:
            self.service.version(name)
        except Fault:
            return False
        return True

    def _claimed(self, name: str, kind: str) -> _Claim:
        if name in self:
            raise _taken(name)
        return _Claim(self, name, kind)

    # What others do

    def sync(self, *, told: bool = True) -> None:
        """Bring the registry up to what the store holds: filters made or dropped by RESP, or by the clock."""
        with self._one:
            epoch = self.service.epoch
            if epoch == self._synced:
                return
            known = self.registry.filters.known(self.id)
            held: dict[int, str] = dict(self.service.held())
            self.registry.filters.drop([row for number, (row, _) in known.items() if number not in held])
            fresh = [name for number, name in held.items() if number not in known]
            changed = [name for number, name in held.items() if number in known and known[number][1] != name]
            for start in range(0, len(fresh), _AT_ONCE):
                self._put(fresh[start : start + _AT_ONCE], told=told)
            for name in changed:
                self._put_one(name, told=told)
            # What two nodes have is looked at again: the other may be about to give it up.
            self._twice &= set(held.values())
            self._synced = -1 if self._twice else epoch

    def _put(self, names: list[str], *, told: bool) -> None:
        """Write rows of filters that have none; one by one where a name has a row already."""
        infos = []
        for name in names:
            with contextlib.suppress(Fault):  # dropped meanwhile
                infos.append(self.service.info(name))
        if not self.registry.filters.put_new(self.id, infos):
            for name in names:
                self._put_one(name, told=told)

    def _put_one(self, name: str, *, told: bool) -> None:
        try:
            info = self.service.info(name)
        except Fault:  # dropped meanwhile
            return
        if self.registry.filters.put(self.id, info):
            self._twice.discard(name)
            if told:
                _LOG.info("filter appeared", extra={"filter": name, "kind": info["kind"]})
        elif name in self._twice:
            self._step_back(name)
        else:
            self._twice.add(name)

    def _step_back(self, name: str) -> None:
        """Give a filter whose name another node has another: nothing is lost, a name is one filter's."""
        own = _UNFIT.sub("-", self.id[:16])
        new = next(new for number in count(1) if (new := f"{name[:90]}.{own}.{number}") not in self)
        with _Claim(self, new, "?"):
            self.service.rename(name, new)
        self._twice.discard(name)
        self._put_one(new, told=False)
        _LOG.error("another node has a filter of this name", extra={"filter": name, "now": new})

    def look_around(self) -> None:
        """Learn which names live on other nodes; say that this one lives."""
        if not self.registry.nodes.say(self.id, now(), self.service.epoch):
            _LOG.error("this node was let go; it takes its names anew", extra={"node": self.id})
            self.registry.nodes.enter(self.id, self.url, self.resp, now())
            self._synced = -1
        moved = [self.shared.look_around(), self.registry.shared and self.others.look()]
        if any(moved):
            self.announce()

    def merge(self, name: str, source: str, *, versions: Versions = None) -> None:
        """Add the keys of another filter, in memory here or in Redis, to a filter."""
        into, other = self.store(name), self.store(source)
        if isinstance(into, Asked):
            if not isinstance(other, Asked):
                secret = other.hashing(source)[1]
                other = bloomery.loads(other.dump(source), secret=secret)
            into.merge(other)
        elif isinstance(other, Asked):
            raise cannot("is merged into another one in Redis only")
        else:
            into.merge(name, source, versions=versions)

    def explained(self, fault: Any, path: str) -> Refused:
        """Return a refusal of the native half, with the address where the filter lives if that is elsewhere.

        The registry is asked about a name that is nowhere: another node may have made it a moment ago.
        """
        parts = path.split("/")
        name = parts[_NAME] if path.startswith("/v1/filters/") else ""
        address = self.others.names.get(name) if fault.code == "elsewhere" else None
        if fault.code == "missing" and name and self.registry.shared:
            owner = self.registry.filters.owner(name)
            address = owner[1] if owner is not None and owner[0] != self.id else None
        if address is None:
            return Refused(fault.code, str(fault))
        return self._lives_at(name, address, path)

    def _lives_at(self, name: str, address: str, path: str) -> Refused:
        text = f"{name} lives on {address}{self.others.told(address)}"
        return Refused("elsewhere", text, node=address, location=address + path)

    def is_own_host(self, host: bytes | None) -> bool:
        """Tell whether a request is addressed to this machine, by its ``Host``."""
        if host is None:
            return True
        bare = host.lower().rpartition(b":")[0] if host[-1:] != b"]" and b":" in host else host.lower()
        return bare in _LOCAL


class _Claim:
    """A name, taken for the time of a ``with``: kept where that ends well."""

    def __init__(self, node: Node, name: str, kind: str) -> None:
        self._node, self._name, self._kind = node, name, kind

    def __enter__(self) -> None:
        filters, node = self._node.registry.filters, self._node
        if filters.claim(self._name, node.id, self._kind):
            return
        owner = filters.owner(self._name)
        if owner is not None and owner[0] != node.id:
            raise node._lives_at(self._name, owner[1], f"/v1/filters/{self._name}")  # noqa: SLF001 - its own
        if self._name in node or node.shared.find(self._name) is not None:
            raise _taken(self._name)
        # A claim of this node that nobody finished: a process that ended meanwhile.
        filters.release(self._name, node.id)
        filters.claim(self._name, node.id, self._kind)

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is not None:
            self._node.registry.filters.release(self._name, self._node.id)


def _taken(name: str) -> Refused:
    return Refused("exists", f"there is a filter {name}; choose another name, or delete it first")


def kind_of(*, grow: bool, window: float | None) -> str:
    """Return the kind that is made unasked."""
    if window is not None:
        rows = [row for row in structures.rows() if any(name == "window" for name, *_ in row["parameters"])]
        return str(rows[-1]["name"])
    return str(structures.with_role("growing" if grow else "plain")["name"])


def _drawn_name(settings: Settings) -> str:
    path = settings.data / "node"
    if path.is_file():
        return path.read_text("ascii").strip()
    name = secrets.token_hex(8)
    new = path.with_name("node.new")
    with new.open("w", encoding="ascii") as file:
        file.write(name + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    return name
