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
from fullbloom.service import remembered
from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.others import Others
from fullbloom.service.redis import LIVES, Asked, RedisFilters
from fullbloom.service.redis.refusals import cannot, missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.service.engine import Engine
    from fullbloom.service.registry import Registry
    from fullbloom.service.settings import Settings

_LOG = logging.getLogger("fullbloom.node")
#: Numbers and versions that a filter may have for a change of it to be made; None: any.
Versions = list[tuple[int, int]] | None
#: What stands in no name.
_UNFIT = re.compile(r"[^A-Za-z0-9._:-]")
#: Place of a filter's name among the parts of a path.
_NAME = 3


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
        self.id = settings.node or remembered.node_name(settings, registry)
        self.url = ""
        self.resp = ""
        self.began = now()
        self.others = Others(registry, self.id, settings.silence)
        self._synced = -1
        self._twice: set[str] = set()
        self._one = threading.Lock()
        #: Names that requests of this process are about to give.
        self._claims: set[str] = set()
        self._claiming = threading.Lock()
        #: Names of filters in Redis that the RESP port refuses.
        self._announced: frozenset[str] = frozenset()

    def enter(self, url: str, resp: str) -> None:
        """Say where it listens, and put what the store holds in the registry."""
        self.url, self.resp = self.settings.advertise or url, resp
        self.registry.nodes.enter(self.id, self.url, resp, now())
        self.learn_tokens()
        for _ in range(2):  # a name that another node has by now is given up by the second
            self.sync(told=False)
        self.look_around()

    def learn_tokens(self) -> int:
        """Tell both ports which tokens there are, and the folder that there are any: how many."""
        known = self.registry.tokens.known()
        self.service.set_tokens(known)
        if known:
            remembered.remember_tokens(self.settings.data)
        return len(known)

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
        names = self.shared.all_names()
        self.service.set_elsewhere({**self.others.names, **dict.fromkeys(names, LIVES)})
        self._announced = frozenset(names)

    # Names

    def create_shared(self, name: str, kind: str, options: dict[str, str], **named: Any) -> dict[str, Any]:
        """Make a filter in Redis: what it is."""
        owner = self.registry.filters.owner(name)
        if owner is not None and owner[0] != self.id:
            raise self._lives_at(name, owner[1], f"/v1/filters/{name}")
        made = self.shared.create(name, kind, options, **named)
        self.announce()
        return made

    def create(self, name: str, kind: str, options: dict[str, str], **named: Any) -> dict[str, Any]:
        """Make a filter: what it is."""
        with self._claimed(name, kind=kind):
            self.service.create(name, kind, list(options.items()), **named)
        return self.put(name)

    def restore(self, name: str, data: bytes, *, replace: bool, versions: Versions = None) -> dict[str, Any]:
        """Put the filter in the bytes of a file under a name: what it is."""
        asked = self.store(name)
        if isinstance(asked, Asked):
            if not replace:
                raise _taken(name)
            with self.service.hold(2 * len(data)):
                asked.load(data)
            return asked.info(name)
        with self._claimed(name, replace=replace):
            self.service.restore(name, data, replace=replace, versions=versions)
        return self.put(name)

    def clone(self, name: str, source: str, *, replace: bool, versions: Versions = None) -> dict[str, Any]:
        """Put a copy of a filter, in one of some versions, under a name: what it is."""
        if any(isinstance(self.store(one), Asked) for one in (name, source)):
            raise cannot("is not cloned; make another and merge it into that")
        with self._claimed(name, replace=replace):
            self.service.clone(name, source, replace=replace, versions=versions)
        return self.put(name)

    def rename(
        self, old: str, new: str, *, replace: bool, versions: Versions = None, expires: int | None = None
    ) -> None:
        """Give a filter another name, in place of the filter that has it if ``replace``, in one step.

        ``expires`` is when the filter is dropped from then on; 0 never, None: as before.
        """
        if any(isinstance(self.store(one), Asked) for one in (old, new)):
            raise cannot("keeps its name")
        self.service.version(old)
        with self._one, self._claimed(new, replace=replace):
            self.service.rename(old, new, replace=replace, versions=versions, expires=expires)
            self.registry.filters.rename(old, new, self.id)

    def delete(self, name: str, *, versions: Versions = None) -> bool:
        """Drop a filter; False where there is none."""
        if isinstance(self.store(name), Asked):
            gone = self.shared.delete(name)
            self.announce()
            return gone
        number: int | None = self.service.delete(name, versions=versions)
        if number is not None:
            self.registry.filters.release(name, self.id, number)
        elif name not in self._claims:
            self.registry.filters.release(name, self.id, 0)
        return number is not None

    def put(self, name: str) -> dict[str, Any]:
        """Write a filter's row: what it is."""
        try:
            info: dict[str, Any] = self.service.info(name)
        except Fault:  # dropped meanwhile, and its name was never more than claimed
            self.registry.filters.release(name, self.id, 0)
            raise
        self.registry.filters.put(self.id, info)
        return info

    def __contains__(self, name: str) -> bool:
        """Tell whether the store has a filter of this name."""
        try:
            self.service.version(name)
        except Fault:
            return False
        return True

    @contextlib.contextmanager
    def _claimed(self, name: str, *, kind: str = "?", replace: bool = False) -> Iterator[None]:
        """Reserve a name inside ``with`` and keep it where that ends well; refuse one that is taken.

        With ``replace``, a name of this node is as good as a free one.
        """
        with self._claiming:
            begun = name in self._claims
            if not replace and (begun or name in self):
                raise _taken(name)
            if not begun:
                self._claims.add(name)
        try:
            fresh = not begun and self._claim(name, kind, replace=replace)
            try:
                yield
            except BaseException:
                if fresh:  # a row that was finished meanwhile is another filter's
                    self.registry.filters.release(name, self.id, 0)
                raise
        finally:
            if not begun:
                with self._claiming:
                    self._claims.discard(name)

    def _claim(self, name: str, kind: str, *, replace: bool) -> bool:
        """Take a name in the registry; False where this node has it and may replace what it has."""
        filters = self.registry.filters
        if filters.claim(name, self.id, kind):
            if name in self._announced:  # a filter in Redis that was dropped a moment ago
                self.shared.find(name)
                self.announce()
            return True
        owner = filters.owner(name)
        if owner is not None and owner[0] != self.id:
            raise self._lives_at(name, owner[1], f"/v1/filters/{name}")
        if name in self:
            if replace:
                return False
            raise _taken(name)
        if self.shared.find(name) is not None:
            raise _taken(name)
        # A claim of this node that nobody finished: a process that ended, or a filter that was just dropped.
        filters.release(name, self.id)
        filters.claim(name, self.id, kind)
        return True

    # What others do

    def sync(self, *, told: bool = True) -> None:
        """Bring the registry up to what the store holds: filters made or dropped by RESP, or by the clock."""
        with self._one:
            epoch = self.service.epoch
            if epoch == self._synced:
                return
            known = self.registry.filters.known(self.id)
            held: dict[int, str] = dict(self.service.filter_names())
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
        with self._claimed(new):
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
                # The file's bytes, a copy of them, and the filter that they are read into.
                with self.service.hold(3 * other.info(source, counted=False)["nbytes"]):
                    secret = other.hashing(source)[1]
                    into.merge(fullbloom.loads(other.dump(source), secret=secret))
                return
            into.merge(other)
        elif isinstance(other, Asked):
            raise cannot("is merged into another one in Redis only")
        else:
            into.merge(name, source, versions=versions)

    def explain(self, fault: Any, path: str) -> Refused:
        """Return the error for a fault of the native module, with the address of another node's filter.

        A name that is unknown here is looked up in the registry: another node may just have created it.
        """
        parts = path.split("/")
        name = parts[_NAME] if path.startswith("/v1/filters/") else ""
        address = self.others.names.get(name) if fault.code == "elsewhere" else None
        if fault.code == "missing" and name and self.registry.shared:
            owner = self.registry.filters.owner(name)
            address = owner[1] if owner is not None and owner[0] != self.id else None
        if address is None and fault.code == "elsewhere" and name:  # it was in Redis a moment ago
            found = self.shared.find(name)
            self.announce()
            if found is None:
                return missing()
            return Refused("unavailable", f"{name} was made anew meanwhile; try again")
        if address is None:
            return Refused(fault.code, str(fault))
        return self._lives_at(name, address, path)

    def _lives_at(self, name: str, address: str, path: str) -> Refused:
        text = f"{name} lives on {address}{self.others.told(address)}"
        return Refused("elsewhere", text, node=address, location=address + path)


def _taken(name: str) -> Refused:
    return Refused("exists", f"there is a filter {name}; choose another name, or delete it first")


def kind_of(*, grow: bool, window: float | None) -> str:
    """Return the kind that is made unasked."""
    if window is not None:
        rows = [row for row in structures.rows() if any(name == "window" for name, *_ in row["parameters"])]
        return str(rows[-1]["name"])
    return str(structures.with_role("growing" if grow else "plain")["name"])
