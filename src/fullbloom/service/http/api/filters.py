"""Making, listing, changing and dropping filters."""

from __future__ import annotations

import heapq
import secrets
import time
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response

from fullbloom import registry as structures
from fullbloom.service.access import READ, WRITE, Grant
from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.http import bulk, shapes
from fullbloom.service.http.shapes import NameInPath
from fullbloom.service.node import kind_of
from fullbloom.service.redis import BACKEND, Asked

if TYPE_CHECKING:
    from fullbloom.service.node import Node

_MOST = 1000
_LATEST = 1 << 62
_FILTER = "/v1/filters/{name}"


class Filters:
    """Routes of filters."""

    def __init__(self, node: Node) -> None:
        """Take the node."""
        self._node, self._service = node, node.service
        self.router = router = APIRouter(tags=["filters"])
        told: Any = {"response_model": shapes.Filter}
        router.add_api_route("/v1/filters", self.listed, response_model=shapes.Page)
        router.add_api_route("/v1/filters", self.create, methods=["POST"], status_code=201, **told)
        router.add_api_route(_FILTER, self.inspect, **told)
        router.add_api_route(_FILTER, self.change, methods=["PATCH"], **told)
        router.add_api_route(_FILTER, self.delete, methods=["DELETE"], status_code=204)
        router.add_api_route(f"{_FILTER}/clear", self.clear, methods=["POST"], status_code=204)
        router.add_api_route(f"{_FILTER}/advance", self.advance, methods=["POST"], status_code=204)
        router.add_api_route(f"{_FILTER}/merge", self.merge, methods=["POST"], **told)
        router.add_api_route(f"{_FILTER}/clone", self.clone, methods=["POST"], status_code=201, **told)
        router.add_api_route(f"{_FILTER}/history", self.history, response_model=shapes.History)

    def listed(
        self,
        request: Request,
        prefix: Annotated[str, Query(max_length=128)] = "",
        after: Annotated[str, Query(max_length=128)] = "",
        limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
    ) -> Any:
        """Filters in order of their names, a page at a time; their cells are not counted."""
        wanted = {"prefix": prefix, "after": after, "most": limit + 1}
        names = self._names(**wanted, patterns=list(_grant(request).patterns))
        infos = [info for name in names[:limit] if (info := self._told(name)) is not None]
        page = shapes.Page(
            filters=[shapes.Filter(**info) for info in infos],
            next=names[limit - 1] if len(names) > limit else None,
        )
        # Written here, in a thread: a thousand filters take longer than the event loop may be held.
        return Response(page.model_dump_json(), media_type="application/json")

    def create(self, request: Request, new: Annotated[shapes.NewFilter, Body()], response: Response) -> Any:
        """Make a filter."""
        _grant(request).check(WRITE, new.name)
        kind = new.kind or kind_of(grow=new.grow, window=new.window)
        make = self._node.create_shared if new.backend == BACKEND else self._node.create
        info = make(new.name, kind, _options(new, kind), **self._settings(new, kind))
        response.headers["location"] = f"/v1/filters/{new.name}"
        response.headers.update(bulk.tagged(bulk.etag(self._node.store(new.name), new.name)))
        return info

    def inspect(self, request: Request, name: NameInPath) -> Any:
        """What a filter is and holds; its cells are counted."""
        store = self._node.store(name)
        tag = bulk.etag(store, name)
        if bulk.is_known(request.scope, tag):
            return Response(status_code=304, headers=bulk.tagged(tag))
        info = shapes.Filter(**store.info(name))
        return Response(info.model_dump_json(), headers=bulk.tagged(tag), media_type="application/json")

    def change(self, request: Request, name: NameInPath, wanted: shapes.Change) -> Any:
        """Give a filter another name, a time at which it is dropped, or both in one step."""
        store = self._node.store(name)
        store.version(name)
        versions = bulk.wanted(request.scope)
        expires = _milliseconds(wanted.expire)
        given = "expire" in wanted.model_fields_set
        if wanted.name is not None and wanted.name != name:
            _grant(request).check(WRITE, wanted.name)
            until = (expires or 0) if given else None
            self._node.rename(name, wanted.name, replace=wanted.replace, versions=versions, expires=until)
        elif given:
            store.expire(name, expires, versions=versions)
        return store.info(name) if isinstance(store, Asked) else self._node.put(wanted.name or name)

    def delete(self, request: Request, name: NameInPath) -> Response:
        """Drop a filter, and its statistics."""
        if not self._node.delete(name, versions=bulk.wanted(request.scope)):
            raise Refused("missing", "not found")
        return Response(status_code=204)

    def clear(self, request: Request, name: NameInPath) -> Response:
        """Forget every key."""
        self._node.store(name).clear(name, versions=bulk.wanted(request.scope))
        return Response(status_code=204)

    def advance(self, request: Request, name: NameInPath, wanted: shapes.Time) -> Response:
        """Let time pass for a filter with a window; it passes by itself, too."""
        now = time.time() if wanted.now is None else wanted.now
        self._node.store(name).advance(name, now, versions=bulk.wanted(request.scope))
        return Response(status_code=204)

    def merge(self, request: Request, name: NameInPath, wanted: shapes.Source) -> Any:
        """Take the keys of another filter in."""
        _grant(request).check(READ, wanted.source)
        self._node.merge(name, wanted.source, versions=bulk.wanted(request.scope))
        return self._node.store(name).info(name)

    def clone(self, request: Request, name: NameInPath, wanted: shapes.Copy) -> Any:
        """Put a copy under another name."""
        _grant(request).check(WRITE, wanted.name)
        versions = bulk.wanted(request.scope)
        return self._node.clone(wanted.name, name, replace=wanted.replace, versions=versions)

    def history(
        self,
        name: NameInPath,
        since: Annotated[int, Query(ge=0, le=_LATEST)] = 0,
        until: Annotated[int, Query(ge=0, le=_LATEST)] = _LATEST,
        limit: Annotated[int, Query(ge=1, le=10_000)] = _MOST,
    ) -> Response:
        """Statistics over time, the newest first; times in milliseconds since 1970."""
        self._node.store(name).version(name)
        samples = self._node.registry.snapshots.of(name, since=since, until=until, most=limit)
        history = shapes.History(samples=[shapes.Sample(**sample) for sample in samples])
        return Response(history.model_dump_json(), media_type="application/json")

    def _names(self, **wanted: Any) -> list[str]:
        both = heapq.merge(self._service.names(**wanted), self._node.shared.names(**wanted))
        return list(islice(both, wanted["most"]))

    def _told(self, name: str) -> dict[str, Any] | None:
        try:
            # A name that was in Redis a moment ago is not asked for in the registry.
            store = self._node.shared.known(name) or self._service
            info: dict[str, Any] = store.info(name, counted=False)
        except (Fault, Refused):  # dropped meanwhile
            return None
        return info

    def _settings(self, new: shapes.NewFilter, kind: str) -> dict[str, Any]:
        return {
            "seed": secrets.randbits(64) if new.seed is None else new.seed,
            "keyed": self._service.is_keyed_unasked(kind) if new.keyed is None else new.keyed,
            "strict": new.strict,
            "expires": _milliseconds(new.expire),
        }


def _grant(request: Request) -> Grant:
    grant: Grant = request.scope["fullbloom"].grant
    return grant


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int((time.time() + seconds) * 1000)


def _options(new: shapes.NewFilter, kind: str) -> dict[str, str]:
    """Return the parameters of the kind as texts; the native half refuses those it does not have."""
    try:
        known = {name for name, *_ in structures.row_named(kind)["parameters"]}
    except KeyError:
        known = set()
    options = {name: _text(value) for name, value in new.options.items()}
    sized = "capacity" if "capacity" in known else "initial_capacity"
    for name, value in ((sized, new.capacity), ("fpr", new.fpr), ("window", new.window)):
        if value is not None:
            options[name] = _text(value)
    return options


def _text(value: float | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else repr(value)
