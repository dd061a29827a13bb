"""Create, list, change and delete filters."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Response

from fullbloom import registry as structures
from fullbloom.service.auth import READ, WRITE
from fullbloom.service.failures import Refused
from fullbloom.service.http import schemas
from fullbloom.service.http.conditions import (
    etag_header,
    format_etag,
    is_not_modified,
    make_etag,
    parse_if_match,
)
from fullbloom.service.http.schemas import CurrentRequest, NameInPath
from fullbloom.service.listing import Listing, ListQuery, Sort
from fullbloom.service.node import default_kind
from fullbloom.service.redis import BACKEND, RedisFilter

if TYPE_CHECKING:
    from fullbloom.service.node import Node

_MAX_PAGE, _MAX_PAGES = 1000, 100_000
_LATEST = 1 << 62
#: Bytes that a filter of a page, and a sample of a history, take while the response is built; 7.2 and 2.0 kB
#: were measured.
_FILTER_BYTES, _SAMPLE_BYTES = 8 << 10, 3 << 10
_FILTER = "/v1/filters/{name}"


class Filters:
    """Routes of filters."""

    def __init__(self, node: Node) -> None:
        """Manage the filters of a node."""
        self._node, self._service, self._listing = node, node.service, Listing(node)
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
        after: Annotated[str, Query(max_length=128, description="the next of the page before")] = "",
        limit: Annotated[int, Query(ge=1, le=_MAX_PAGE)] = 100,
        search: Annotated[
            str, Query(max_length=128, description="a text within the names, in either case; * is any text")
        ] = "",
        sort: Annotated[
            Sort, Query(description="sorts by this figure; needs page unless it is name")
        ] = "name",
        order: Annotated[Literal["asc", "desc"], Query()] = "asc",
        page: Annotated[
            int | None, Query(ge=1, le=_MAX_PAGES, description="number of the page, instead of after")
        ] = None,
        *,
        figures: Annotated[bool, Query(description="adds fill and operations per second")] = False,
    ) -> Any:
        """Filters in order of their names or of a figure, one page at a time.

        Their cells are not counted, except those of filters up to 1 MiB in a list with figures.
        """
        wanted = ListQuery(prefix, tuple(request.grant.patterns), search, sort, descending=order == "desc")
        total = following = None
        if page is not None:
            if after:
                raise Refused("invalid", "give page or after, not both")
            names, total = self._listing.page(wanted, number=page, size=limit)
        elif wanted.sort != "name" or wanted.descending:
            raise Refused("invalid", "a list that is sorted by a figure, or in descending order, needs page")
        else:
            names = self._listing.names(wanted, after=after, most=limit + 1)
            following = names[limit - 1] if len(names) > limit else None
            names = names[:limit]
        request.budget.grow(_FILTER_BYTES * len(names))
        infos = self._listing.infos(names, figures=figures)
        found = schemas.Page(filters=[schemas.Filter(**info) for info in infos], next=following, total=total)
        # Serialized here, in a thread: a thousand filters would block the event loop for too long.
        return _make_response(request, found.model_dump_json())

    def create(
        self, request: CurrentRequest, new: Annotated[schemas.NewFilter, Body()], response: Response
    ) -> Any:
        """Create a filter."""
        request.grant.check(WRITE, new.name)
        kind = new.kind or default_kind(grow=new.grow, window=new.window)
        make = self._node.create_shared if new.backend == BACKEND else self._node.create
        info = make(new.name, kind, _options(new, kind), **self._settings(new, kind))
        response.headers["location"] = f"/v1/filters/{new.name}"
        response.headers.update(etag_header(format_etag(info)))
        return info

    def inspect(
        self,
        request: CurrentRequest,
        name: NameInPath,
        *,
        counted: Annotated[bool, Query(description="counts the cells, which reads all of them")] = True,
    ) -> Any:
        """State and parameters of a filter; without counting its cells, fill and estimate are null."""
        store = self._node.find_backend(name)
        tag = make_etag(store, name)
        if is_not_modified(request, tag):
            return Response(status_code=304, headers=etag_header(tag))
        info = schemas.Filter(**store.info(name, counted=counted))
        return Response(info.model_dump_json(), headers=etag_header(tag), media_type="application/json")

    def change(self, request: CurrentRequest, name: NameInPath, wanted: schemas.Change) -> Any:
        """Rename a filter, set its TTL, or both in one step."""
        store = self._node.find_backend(name)
        store.version(name)
        versions = parse_if_match(request)
        expires = _milliseconds(wanted.expire)
        given = "expire" in wanted.model_fields_set
        if wanted.name is not None and wanted.name != name:
            request.grant.check(WRITE, wanted.name)
            until = (expires or 0) if given else None
            return self._node.rename(
                name, wanted.name, replace=wanted.replace, versions=versions, expires=until
            )
        info = store.expire(name, expires, versions=versions) if given else store.info(name)
        return info if isinstance(store, RedisFilter) else self._node.record(info)

    def delete(self, request: CurrentRequest, name: NameInPath) -> Response:
        """Delete a filter and its statistics."""
        if not self._node.delete(name, versions=parse_if_match(request)):
            raise Refused("missing", "not found")
        return Response(status_code=204)

    def clear(self, request: CurrentRequest, name: NameInPath) -> Response:
        """Remove every key."""
        self._node.find_backend(name).clear(name, versions=parse_if_match(request))
        return Response(status_code=204)

    def advance(self, request: CurrentRequest, name: NameInPath, wanted: schemas.Time) -> Response:
        """Advance the time of a filter with a window; the service also does so periodically."""
        now = time.time() if wanted.now is None else wanted.now
        self._node.find_backend(name).advance(name, now, versions=parse_if_match(request))
        return Response(status_code=204)

    def merge(self, request: CurrentRequest, name: NameInPath, wanted: schemas.Source) -> Any:
        """Add the keys of another filter."""
        request.grant.check(READ, wanted.source)
        return self._node.merge(name, wanted.source, versions=parse_if_match(request))

    def clone(self, request: CurrentRequest, name: NameInPath, wanted: schemas.Copy) -> Any:
        """Copy a filter to another name."""
        request.grant.check(WRITE, wanted.name)
        versions = parse_if_match(request)
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

    def _settings(self, new: schemas.NewFilter, kind: str) -> dict[str, Any]:
        return {
            "seed": secrets.randbits(64) if new.seed is None else new.seed,
            "keyed": self._service.is_keyed_by_default(kind) if new.keyed is None else new.keyed,
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
    sized = "initial_capacity" if "initial_capacity" in known else "capacity"
    for name, value in ((sized, new.capacity), ("fpr", new.fpr), ("window", new.window)):
        if value is not None:
            options[name] = _format(value)
    return options


def _format(value: float | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else repr(value)
