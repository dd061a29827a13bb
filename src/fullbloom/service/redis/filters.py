"""Filters in Redis by name: making, finding and dropping them."""

from __future__ import annotations

import bisect
import logging
import secrets
from contextlib import suppress
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from fullbloom.errors import (
    FilterLost,
    FormatError,
    FullbloomError,
    IncompatibleFilters,
)
from fullbloom.service.auth import Grant
from fullbloom.service.failures import Refused
from fullbloom.service.redis.asked import Asked
from fullbloom.service.redis.described import BACKEND, described
from fullbloom.service.redis.handles import Handles
from fullbloom.service.redis.parameters import parameters
from fullbloom.service.redis.refusals import refused
from fullbloom.service.redis.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fullbloom.service.registry import Registry
    from fullbloom.service.settings import Settings

_LOG = logging.getLogger("fullbloom.redis")
#: Where RESP says that they live.
LIVES = "Redis: the HTTP port asks for it, this port does not"


class RedisFilters:
    """Filters by name; `Asked` has the calls for one.

    Calls wait for the registry or the server, so they are for threads other than the event loop's.
    """

    def __init__(self, settings: Settings, registry: Registry) -> None:
        """Take what connects; nothing is sent yet. ``StartError`` for a URL that is none."""
        self._settings, self._rows = settings, registry.shared_filters
        self._handles = Handles(settings, registry)
        self.answers, self.look_around = self._handles.answers, self._handles.look_around

    # Names

    @property
    def is_set_up(self) -> bool:
        """True when the settings name a server."""
        return self._handles.client is not None

    def known(self, name: str) -> Asked | None:
        """Return a filter that is known here by its name; nobody is asked."""
        row = self._handles.known.get(name)
        return None if row is None else Asked(self._handles, row)

    def find(self, name: str) -> Asked | None:
        """Ask the registry for a name; None where it has no such filter."""
        row = self._handles.find(name)
        return None if row is None else Asked(self._handles, row)

    def all_names(self) -> list[str]:
        """Return the names of all known filters, in order."""
        return list(self._handles.names)

    def names(
        self, *, prefix: str = "", after: str = "", most: int, patterns: Sequence[str] = ()
    ) -> list[str]:
        """Return known names in order that have the form of one of the patterns; of any form without one."""
        names = self._handles.names
        at = max(bisect.bisect_right(names, after), bisect.bisect_left(names, prefix))
        begin = takewhile(lambda name: name.startswith(prefix), islice(names, at, None))
        grant = Grant(0, 0, tuple(patterns))
        return list(islice((name for name in begin if grant.covers(name)), most))

    # Making and dropping

    def create(
        self, name: str, kind: str, options: dict[str, str], *, seed: int, keyed: bool, **rest: Any
    ) -> dict[str, Any]:
        """Make a filter: what it is. The name is free again where that fails; rest: strict, expires."""
        self._handles.require_server()
        client = self._handles.connected(name)
        chosen = parameters(kind, options, strict=rest["strict"])
        capacity, fpr = chosen.pop("capacity"), chosen.pop("fpr")
        secret = secrets.token_bytes(16) if keyed else None
        place = f"{self._settings.redis_prefix}{name}:{secrets.token_hex(4)}"
        row = {
            "name": name,
            "kind": kind,
            "expected_items": capacity,
            "fpr": fpr,
            "seed": str(seed),
            "keyed": keyed,
            "options": {key: value for key, value in chosen.items() if key != "allow_eviction"},
            "expires": rest["expires"],
            "backend": BACKEND,
            "place": place,
            "secret": secret,
        }
        self._check_size(client, place, capacity, fpr, chosen)
        number = self._rows.claim(row)
        if number is None and (left := self._rows.abandoned(name)) is not None:
            self._erase(left)
            number = self._rows.claim(row)
        if number is None:
            raise Refused("exists", f"there is a filter {name}; choose another name, or delete it first")
        try:
            handle = self._handles.engine()(client, place, capacity, fpr, seed=seed, secret=secret, **chosen)
            # Asked before others may delete it: what was made is what is told.
            info = handle.info()
            shape = {key: info[key] for key in ("num_bits", "num_hashes", "layout", "scheme")}
            made = self._rows.made(number, place, shape)
        except BaseException as error:
            self._give_up({**row, "id": number})
            if isinstance(error, FullbloomError):
                raise refused(error) from None
            raise
        if made is None:
            self._give_up({**row, "id": number})
            raise Refused("unavailable", f"it took too long to make the filter {name}; try again")
        self._handles.learn(made)
        return described(made, {}, info)

    def delete(self, name: str) -> bool:
        """Drop a filter; False where there is none, or others drop it."""
        row = self._handles.find(name)
        if row is None:
            return False
        try:  # nothing is hidden while the server cannot be asked
            with suppress(FilterLost, FormatError, IncompatibleFilters):
                self._handles.opened(row)
        except FullbloomError as error:
            raise refused(error) from None
        # Nobody finds it from here on, so that nobody takes what is missing for lost. Whoever stops before
        # the row is gone leaves it to `drop_expired`.
        hidden = self._rows.hide(row["id"], row["place"])
        self._handles.forget(row["name"], row["place"])
        if hidden:
            self._erase(row)
        return hidden

    def _erase(self, row: dict[str, Any]) -> None:
        """Delete the cells of a filter that is hidden, then its row."""
        try:
            self._handles.erase(row)
        except FullbloomError as error:
            raise refused(error) from None
        self._rows.drop(row["id"], row["place"])
        self._handles.forget(row["name"], row["place"])

    def _give_up(self, row: dict[str, Any]) -> None:
        """Drop a filter that could not be made; `drop_expired` does where the server cannot be asked now."""
        self._rows.hide(row["id"], row["place"])
        try:
            self._erase(row)
        except Refused as error:
            _LOG.warning("not dropped yet", extra={"filter": row["name"], "error": error.code})

    def drop_expired(self, now: int) -> None:
        """Drop filters whose time has come, and what was left of others; any node does, and tries again."""
        if self.is_set_up:
            for row in self._rows.retire(now):
                try:
                    self._erase(row)
                except Refused as error:
                    _LOG.warning("not dropped yet", extra={"filter": row["name"], "error": error.code})
                    return

    def _check_size(self, client: Any, place: str, capacity: int, fpr: float, chosen: dict[str, Any]) -> None:
        shape = {key: value for key, value in chosen.items() if key in {"shards", "layout", "scheme"}}
        try:
            plan = self._handles.engine().plan(client, capacity, fpr, batch=1, name=place, **shape)
        except FullbloomError as error:
            raise refused(error) from None
        most = self._settings.limits.filter_bytes
        if plan.nbytes > most:
            raise Refused("limit", f"the filter would take {plan.nbytes} bytes; one may take {most}")

    # Statistics

    def flush(self) -> None:
        """Add what was counted here since the last time to the registry's counters."""
        for one in self._handles.all_open():
            if counts := one.traffic.taken():
                self._rows.add_traffic(one.row["id"], counts)

    def told(self) -> list[dict[str, Any]]:
        """Return what filters that this node has open are, with their traffic here; nobody is asked."""
        opened = self._handles.all_open()
        return [{**described(one.row, {}, None), **one.traffic.totals()} for one in opened]

    def due(self, sampled: dict[int, Any]) -> Iterable[tuple[int, dict[str, Any]]]:
        """Yield row and info of filters that were asked since ``sampled``, which is kept up to date."""
        for row in self._rows.all():
            counters = (row["place"], *(row[name] for name in Traffic.NAMES))
            if sampled.get(row["id"]) == counters:
                continue
            try:
                info = Asked(self._handles, row).info(row["name"])
            except Refused as error:
                _LOG.warning("not sampled", extra={"filter": row["name"], "error": error.code})
                continue
            sampled[row["id"]] = counters
            yield row["id"], info
