"""Owners of a bank: list, describe, clear, remove and export them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Response

from fullbloom.service.failures import Refused
from fullbloom.service.http import schemas
from fullbloom.service.http.api.files import BINARY, CONTAINER
from fullbloom.service.http.conditions import parse_if_match
from fullbloom.service.http.schemas import CurrentRequest, NameInPath

if TYPE_CHECKING:
    from fullbloom.service.node import Node

_MAX_PAGE = 10_000
#: Bytes that an owner of a page takes while the response is built.
_OWNER_BYTES = 512
_OWNERS = "/v1/filters/{name}/owners"


class Owners:
    """Routes of owners."""

    def __init__(self, node: Node) -> None:
        """Serve the banks of a node."""
        self._node, self._service = node, node.service
        self.router = router = APIRouter(tags=["owners"])
        router.add_api_route(_OWNERS, self.list_owners, response_model=schemas.OwnerPage)
        router.add_api_route(
            f"{_OWNERS}/info", self.describe, methods=["POST"], response_model=schemas.OwnerInfo
        )
        router.add_api_route(f"{_OWNERS}/clear", self.clear, methods=["POST"])
        router.add_api_route(f"{_OWNERS}/remove", self.remove, methods=["POST"])
        router.add_api_route(
            f"{_OWNERS}/export",
            self.export,
            methods=["POST"],
            responses={200: {"content": {CONTAINER: BINARY}, "description": "a file"}},
            response_class=Response,
        )

    def list_owners(
        self,
        request: CurrentRequest,
        name: NameInPath,
        start: Annotated[int, Query(ge=0, lt=1 << 64, description="the next of the page before")] = 0,
        limit: Annotated[int, Query(ge=1, le=_MAX_PAGE)] = 1000,
    ) -> Any:
        """The hashes of owners with their numbers of keys, in an order that stays; a bank stores no names."""
        self._check(name)
        request.budget.grow(_OWNER_BYTES * limit)
        owners, following, total = self._service.owners(name, start=start, most=limit)
        page = [schemas.OwnerCount(hash=owner, num_added=keys) for owner, keys in owners]
        return schemas.OwnerPage(owners=page, next=following, total=total)

    def describe(self, name: NameInPath, wanted: schemas.OneOwner) -> Any:
        """The number of keys of an owner, its bytes and its rate; reads its filter."""
        self._check(name)
        return _require(self._service.owner_info(name, _encode(wanted.owner)))

    def clear(self, request: CurrentRequest, name: NameInPath, wanted: schemas.SomeOwners) -> dict[str, Any]:
        """Remove every key of an owner, or of several: for each whether it exists."""
        return {"cleared": self._change(self._service.clear_owners, request, name, wanted)}

    def remove(self, request: CurrentRequest, name: NameInPath, wanted: schemas.SomeOwners) -> dict[str, Any]:
        """Remove an owner, or several, with all keys: for each whether it existed."""
        return {"removed": self._change(self._service.remove_owners, request, name, wanted)}

    def export(self, request: CurrentRequest, name: NameInPath, wanted: schemas.OneOwner) -> Response:
        """The filter of an owner as a file, for fullbloom.open; a keyed one with the bank's secret."""
        self._check(name)
        data: bytes = _require(self._service.export_owner(name, _encode(wanted.owner)))
        request.budget.grow(len(data))
        return Response(data, media_type=CONTAINER)

    def _change(
        self, change: Any, request: CurrentRequest, name: str, wanted: schemas.SomeOwners
    ) -> bool | list[bool]:
        self._check(name)
        given = wanted.model_fields_set & {"owner", "owners"}
        if len(given) != 1:
            raise Refused("invalid", "give owner, or owners")
        is_one = "owner" in given
        body = _encode(wanted.owner) if is_one else json.dumps({"keys": wanted.owners}).encode()
        flags: list[bool] = change(name, body, versions=parse_if_match(request))
        return flags[0] if is_one else flags

    def _check(self, name: str) -> None:
        """Refuse a filter in Redis: there are no banks."""
        if self._node.find_backend(name) is not self._service:
            raise Refused("unsupported", "a filter in Redis cannot have owners: it is not a bank")


def _encode(owner: Any) -> bytes:
    """Return the body in which the native module expects an owner: there it is hashed as a key is."""
    return json.dumps({"key": owner}).encode()


def _require(result: Any) -> Any:
    if result is None:
        raise Refused("missing", "the bank has no such owner")
    return result
