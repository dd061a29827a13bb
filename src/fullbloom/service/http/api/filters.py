"""Create, list, change and delete filters."""

from __future__ import annotations

import heapq
import secrets
import time
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Query, Response

from fullbloom import registry as structures
from fullbloom.service.auth import READ, WRITE
from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.http import schemas
from fullbloom.service.http.conditions import etag_header, is_not_modified, make_etag, wanted_versions
from fullbloom.service.http.schemas import CurrentRequest, NameInPath
from fullbloom.service.node import default_kind
from fullbloom.service.redis import BACKEND, RedisFilter

if TYPE_CHECKING:
    from fullbloom.service.node import Node

_MAX_PAGE = 1000
_LATEST = 1 << 62
#: Bytes that a filter of a page, and a sample of a history, take while the response is built; 7.2 and 2.0 kB
#: were measured.
_FILTER_BYTES, _SAMPLE_BYTES = 8 << 10, 3 << 10
_FILTER = "/v1/filters/{name}"


class Filters:
    """Routes of filters."""

    def __init__(self, node: Node) -> None:
        """Manage the filters of a node."""
        self._node, self._service = node, node.service
        self.router = router = APIRouter(tags=["filters"])
        returns: Any = {"response_model": schemas.Filter}
        router.add_api_route("/v1/filters", self.list_filters, response_model=schemas.Page)
        router.add_api_route("/v1/filters", self.create, methods=["POST"], status_code=201, **returns)
        router.add_api_route(_FILTER, self.inspect, **returns)
        router.add_api_route(_FILTER, self.change, methods=["PATCH"], **returns)
        router.add_api_route(_FILTER, self.delete, methods=["DELETE"], status_code=204)
        router.add_api_route(f"{_FILTER}/clear", self.clear, methods=["POST"], status_code=204)
        router.add_api_route(f"{_FILTER}/advance", self.advance, methods=["POST"], status_code=204)
        router.add_api_route(f"{_FILTER}/merge", self.merge, methods=["POST"], **returns)
        router.add_api_route(f"{_FILTER}/clone", self.clone, methods=["POST"], status_code=201, **returns)
        router.add_api_route(f"{_FILTER}/history", self.history, response_model=schemas.History)

    def list_filters(
        self,
        request: CurrentRequest,
        prefix: Annotated[str, Query(max_length=128)] = "",
        after: Annotated[str, Query(max_length=128)] = "",
        limit: Annotated[int, Query(ge=1, le=_MAX_PAGE)] = 100,
    ) -> Any:
        """Filters in order of their names, one page at a time; their cells are not counted."""
        wanted = {"prefix": prefix, "after": after, "most": limit + 1}
        names = self._names(**wanted, patterns=list(request.grant.patterns))
        request.budget.grow(_FILTER_BYTES * len(names))
        infos = [info for name in names[:limit] if (info := self._find_info(name)) is not None]
        page = schemas.Page(
            filters=[schemas.Filter(**info) for info in infos],
            next=names[limit - 1] if len(names) > limit else None,
        )
        # Serialized here, in a thread: a thousand filters would block the event loop for too long.
        return _make_response(request, page.model_dump_json())

    def create(
        self, request: CurrentRequest, new: Annotated[schemas.NewFilter, Body()], response: Response
    ) -> Any:
        """Create a filter."""
        request.grant.check(WRITE, new.name)
        kind = new.kind or default_kind(grow=new.grow, window=new.window)
        make = self._node.create_shared if new.backend == BACKEND else self._node.create
        info = make(new.name, kind, _options(new, kind), **self._settings(new, kind))
        response.headers["location"] = f"/v1/filters/{new.name}"
        response.headers.update(etag_header(make_etag(self._node.find_backend(new.name), new.name)))
        return info

    def inspect(self, request: CurrentRequest, name: NameInPath) -> Any:
        """State and parameters of a filter; its cells are counted."""
        store = self._node.find_backend(name)
        tag = make_etag(store, name)
        if is_not_modified(request, tag):
            return Response(status_code=304, headers=etag_header(tag))
        info = schemas.Filter(**store.info(name))
        return Response(info.model_dump_json(), headers=etag_header(tag), media_type="application/json")

    def change(self, request: CurrentRequest, name: NameInPath, wanted: schemas.Change) -> Any:
        """Rename a filter, set its TTL, or both in one step."""
        store = self._node.find_backend(name)
        store.version(name)
        versions = wanted_versions(request)
        expires = _milliseconds(wanted.expire)
        given = "expire" in wanted.model_fields_set
        if wanted.name is not None and wanted.name != name:
            request.grant.check(WRITE, wanted.name)
            until = (expires or 0) if given else None
            self._node.rename(name, wanted.name, replace=wanted.replace, versions=versions, expires=until)
        elif given:
            store.expire(name, expires, versions=versions)
        return store.info(name) if isinstance(store, RedisFilter) else self._node.record(wanted.name or name)

    def delete(self, request: CurrentRequest, name: NameInPath) -> Response:
        """Delete a filter and its statistics."""
        if not self._node.delete(name, versions=wanted_versions(request)):
            raise Refused("missing", "not found")
        return Response(status_code=204)

    def clear(self, request: CurrentRequest, name: NameInPath) -> Response:
        """Remove every key."""
        self._node.find_backend(name).clear(name, versions=wanted_versions(request))
        return Response(status_code=204)

    def advance(self, request: CurrentRequest, name: NameInPath, wanted: schemas.Time) -> Response:
        """Advance the time of a filter with a window; the service also does so periodically."""
        now = time.time() if wanted.now is None else wanted.now
        self._node.find_backend(name).advance(name, now, versions=wanted_versions(request))
        return Response(status_code=204)

    def merge(self, request: CurrentRequest, name: NameInPath, wanted: schemas.Source) -> Any:
        """Add the keys of another filter."""
        request.grant.check(READ, wanted.source)
        self._node.merge(name, wanted.source, versions=wanted_versions(request))
        return self._node.find_backend(name).info(name)

    def clone(self, request: CurrentRequest, name: NameInPath, wanted: schemas.Copy) -> Any:
        """Copy a filter to another name."""
        request.grant.check(WRITE, wanted.name)
        versions = wanted_versions(request)
        return self._node.clone(wanted.name, name, replace=wanted.replace, versions=versions)

    def history(
        self,
        request: CurrentRequest,
        name: NameInPath,
        since: Annotated[int, Query(ge=0, le=_LATEST)] = 0,
        until: Annotated[int, Query(ge=0, le=_LATEST)] = _LATEST,
        limit: Annotated[int, Query(ge=1, le=10_000)] = _MAX_PAGE,
    ) -> Response:
        """Statistics over time, the newest first; times in milliseconds since 1970."""
        self._node.find_backend(name).version(name)
        request.budget.grow(_SAMPLE_BYTES * limit)
        samples = self._node.registry.snapshots.load(name, since=since, until=until, most=limit)
        history = schemas.History(samples=[schemas.Sample(**sample) for sample in samples])
        return _make_response(request, history.model_dump_json())

    def _names(self, **wanted: Any) -> list[str]:
        both = heapq.merge(self._service.names(**wanted), self._node.shared.names(**wanted))
        return list(islice(both, wanted["most"]))

    def _find_info(self, name: str) -> dict[str, Any] | None:
        try:
            # Without a query to the registry for a name that was in Redis a moment ago.
            store = self._node.shared.find_known(name) or self._service
            info: dict[str, Any] = store.info(name, counted=False)
        except (Fault, Refused):  # deleted meanwhile
            return None
        return info

    def _settings(self, new: schemas.NewFilter, kind: str) -> dict[str, Any]:
        return {
            "seed": secrets.randbits(64) if new.seed is None else new.seed,
            "keyed": self._service.is_keyed_unasked(kind) if new.keyed is None else new.keyed,
            "strict": new.strict,
            "expires": _milliseconds(new.expire),
        }


def _make_response(request: CurrentRequest, text: str) -> Response:
    """Return a response in JSON, which alone is charged to the budget from here on."""
    body = text.encode()
    request.budget.resize(len(body))
    return Response(body, media_type="application/json")


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int((time.time() + seconds) * 1000)


def _options(new: schemas.NewFilter, kind: str) -> dict[str, str]:
    """Return the parameters of the kind as texts; the native module rejects unknown ones."""
    try:
        known = {name for name, *_ in structures.get_row(kind)["parameters"]}
    except KeyError:
        known = set()
    options = {name: _format(value) for name, value in new.options.items()}
    sized = "capacity" if "capacity" in known else "initial_capacity"
    for name, value in ((sized, new.capacity), ("fpr", new.fpr), ("window", new.window)):
        if value is not None:
            options[name] = _format(value)
    return options


def _format(value: float | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else repr(value)
