"""Filters in Redis by name: creating, finding and dropping them."""

from __future__ import annotations

import bisect
import logging
import secrets
from contextlib import suppress
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from fullbloom import registry as structures
from fullbloom.errors import FilterLost, FormatError, FullbloomError, IncompatibleFilters
from fullbloom.service.auth import Grant
from fullbloom.service.failures import Refused
from fullbloom.service.redis.errors import translate, unsupported
from fullbloom.service.redis.filter import BACKEND, RedisFilter, describe
from fullbloom.service.redis.handles import Counters, Handles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fullbloom.service.registry import Registry
    from fullbloom.service.settings import Settings

_LOG = logging.getLogger("fullbloom.redis")
#: The address that the RESP port gives for them.
LOCATION = "Redis; use the HTTP port"
#: Parameters beside capacity and rate, and how their texts are parsed.
_OPTIONS: dict[str, Callable[[str], Any]] = {
    "layout": str,
    "scheme": str,
    "hash": str,
    "shards": int,
    "allow_eviction": lambda text: text == "true",
}


class RedisFilters:
    """Filters by name; `RedisFilter` has the calls for one.

    Calls wait for the registry or the server, so they do not run on the event loop.
    """

    def __init__(self, settings: Settings, registry: Registry) -> None:
        """Create the client; nothing is sent yet. ``StartError`` for an invalid URL."""
        self._settings, self._rows = settings, registry.shared_filters
        self._handles = Handles(settings, registry)
        self.answers, self.refresh = self._handles.answers, self._handles.refresh

    # Names

    @property
    def is_set_up(self) -> bool:
        """True when the settings name a server."""
        return self._handles.client is not None

    def find_known(self, name: str) -> RedisFilter | None:
        """Return the filter of a name that this node knows, without a query."""
        row = self._handles.known.get(name)
        return None if row is None else RedisFilter(self._handles, row)

    def find(self, name: str) -> RedisFilter | None:
        """Query the registry for a name; None if it has no such filter."""
        row = self._handles.find(name)
        return None if row is None else RedisFilter(self._handles, row)

    def all_names(self) -> list[str]:
        """Return the names of all known filters, in order."""
        return list(self._handles.names)

    def names(
        self, *, prefix: str = "", after: str = "", most: int, patterns: Sequence[str] = ()
    ) -> list[str]:
        """Return known names, in order, that match one of the patterns; any name without patterns."""
        names = self._handles.names
        at = max(bisect.bisect_right(names, after), bisect.bisect_left(names, prefix))
        begin = takewhile(lambda name: name.startswith(prefix), islice(names, at, None))
        grant = Grant(0, 0, tuple(patterns))
        return list(islice((name for name in begin if grant.covers(name)), most))

    # Creating and dropping

    def create(
        self, name: str, kind: str, options: dict[str, str], *, seed: int, keyed: bool, **rest: Any
    ) -> dict[str, Any]:
        """Create a filter and return its info; a failure frees the name. rest: strict, expires."""
        self._handles.require_server()
        client = self._handles.connect(name)
        parameters = _parse_parameters(kind, options, strict=rest["strict"])
        capacity, fpr = parameters.pop("capacity"), parameters.pop("fpr")
        secret = secrets.token_bytes(16) if keyed else None
        place = f"{self._settings.redis_prefix}{name}:{secrets.token_hex(4)}"
        row = {
            "name": name,
            "kind": kind,
            "expected_items": capacity,
            "fpr": fpr,
            "seed": str(seed),
            "keyed": keyed,
            "options": {key: value for key, value in parameters.items() if key != "allow_eviction"},
            "expires": rest["expires"],
            "backend": BACKEND,
            "place": place,
            "secret": secret,
        }
        self._check_size(client, place, capacity, fpr, parameters)
        number = self._rows.claim(row)
        if number is None and (abandoned := self._rows.take_abandoned(name)) is not None:
            self._erase(abandoned)
            number = self._rows.claim(row)
        if number is None:
            raise Refused("exists", f"there is a filter {name}; choose another name, or delete it first")
        try:
            new = self._handles.engine()(client, place, capacity, fpr, seed=seed, secret=secret, **parameters)
            # Read before others may delete it: the response describes the filter that was created.
            info = new.info()
            shape = {key: info[key] for key in ("num_bits", "num_hashes", "layout", "scheme")}
            created = self._rows.finish(number, place, shape)
        except BaseException as error:
            self._abandon({**row, "id": number})
            if isinstance(error, FullbloomError):
                raise translate(error) from None
            raise
        if created is None:
            self._abandon({**row, "id": number})
            raise Refused("unavailable", f"it took too long to create the filter {name}; try again")
        self._handles.learn(created)
        return describe(created, {}, info)

    def delete(self, name: str) -> bool:
        """Drop a filter; False if it does not exist, or another request drops it."""
        row = self._handles.find(name)
        if row is None:
            return False
        try:  # nothing is hidden while the server does not respond
            with suppress(FilterLost, FormatError, IncompatibleFilters):
                self._handles.reopen(row)
        except FullbloomError as error:
            raise translate(error) from None
        # No request finds the filter from here on, so none reports missing cells as a loss. If this process
        # stops before the row is gone, `drop_expired` finishes the deletion.
        hidden = self._rows.hide(row["id"], row["place"])
        self._handles.forget(row["name"], row["place"])
        if hidden:
            self._erase(row)
        return hidden

    def _erase(self, row: dict[str, Any]) -> None:
        """Delete the cells of a hidden filter, then its row."""
        try:
            self._handles.erase(row)
        except FullbloomError as error:
            raise translate(error) from None
        self._rows.drop(row["id"], row["place"])
        self._handles.forget(row["name"], row["place"])

    def _try_erase(self, row: dict[str, Any]) -> bool:
        """Erase a hidden filter; return False, with a warning, if the server does not respond."""
        try:
            self._erase(row)
        except Refused as error:
            _LOG.warning("not dropped yet", extra={"filter": row["name"], "error": error.code})
            return False
        return True

    def _abandon(self, row: dict[str, Any]) -> None:
        """Drop a filter that could not be created, now or with the next `drop_expired`."""
        self._rows.hide(row["id"], row["place"])
        self._try_erase(row)

    def drop_expired(self, now: int) -> None:
        """Drop filters that expired or whose deletion is unfinished; any node does so, and retries."""
        if self.is_set_up:
            for row in self._rows.retire(now):
                if not self._try_erase(row):
                    return

    def _check_size(
        self, client: Any, place: str, capacity: int, fpr: float, parameters: dict[str, Any]
    ) -> None:
        shape = {key: value for key, value in parameters.items() if key in {"shards", "layout", "scheme"}}
        try:
            plan = self._handles.engine().plan(client, capacity, fpr, batch=1, name=place, **shape)
        except FullbloomError as error:
            raise translate(error) from None
        most = self._settings.limits.filter_bytes
        if plan.nbytes > most:
            raise Refused("limit", f"the filter would take {plan.nbytes} bytes; one may take {most}")

    # Statistics

    def flush(self) -> None:
        """Add the pending counts to the registry's counters."""
        for one in self._handles.list_open():
            if counts := one.counters.take_pending():
                try:
                    self._rows.add_counts(one.row["id"], one.row["place"], counts)
                except BaseException:
                    one.counters.return_pending(counts)
                    raise
                # Lists add the pending counts to those of the row that is known here.
                self._handles.find(one.row["name"])

    def describe_open(self) -> list[dict[str, Any]]:
        """Return the infos of filters that this node has open, with its own counts, without a query."""
        return [
            {
                **describe(one.row, {}, None),
                **one.counters.totals(),
                "over_capacity": one.filter.over_capacity,
            }
            for one in self._handles.list_open()
        ]

    def list_due(self, sampled: dict[int, Any]) -> Iterable[tuple[int, dict[str, Any]]]:
        """Yield row and info of filters used since ``sampled``, which is updated."""
        for row in self._rows.list_all():
            counters = (row["place"], *(row[name] for name in Counters.NAMES))
            if sampled.get(row["id"]) == counters:
                continue
            try:
                info = RedisFilter(self._handles, row).info(row["name"])
            except Refused as error:
                _LOG.warning("not sampled", extra={"filter": row["name"], "error": error.code})
                continue
            sampled[row["id"]] = counters
            yield row["id"], info


def _parse_parameters(kind: str, options: dict[str, str], *, strict: bool) -> dict[str, Any]:
    """Return the filter's parameters as the engine takes them; ``Refused`` for any other."""
    plain = structures.find_by_role("plain")["name"]
    if kind != plain:
        raise unsupported(f"is of kind {plain}; got {kind}")
    if strict:
        raise unsupported("takes keys beyond its capacity, and cannot be strict")
    given = dict(options)
    if "capacity" not in given:
        raise Refused("invalid", "capacity: how many keys the filter in Redis is sized for")
    parameters: dict[str, Any] = {
        "capacity": int(given.pop("capacity")),
        "fpr": float(given.pop("fpr", "0.01")),
    }
    for name, text in given.items():
        if name not in _OPTIONS:
            raise unsupported(f"has no parameter {name}; it has {', '.join(_OPTIONS)}")
        try:
            parameters[name] = _OPTIONS[name](text)
        except ValueError:
            raise Refused("invalid", f"options.{name}: a whole number, got {text!r}") from None
    return parameters
