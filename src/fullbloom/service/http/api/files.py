"""Filters as files, and a copy of them all."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from fullbloom.service import backup, rests
from fullbloom.service.failures import Refused
from fullbloom.service.http import bodies, bulk, freezing, pieces, shapes
from fullbloom.service.http.shapes import NameInPath

if TYPE_CHECKING:
    from fullbloom.service.node import Node

CONTAINER = "application/vnd.fullbloom"
TAR = "application/x-tar"
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_KEYS = {
    bodies.JSON: {"schema": shapes.ALL_KEYS},
    bodies.TEXT: {"schema": {"type": "string", "description": "a key a line"}},
    bodies.NDJSON: {"schema": {"type": "string", "description": "a key a line, in JSON"}},
}


class Files:
    """Routes of files."""

    def __init__(self, node: Node) -> None:
        """Take the node."""
        self._node, self._service = node, node.service
        self.router = router = APIRouter(tags=["files"])
        dump = "/v1/filters/{name}/dump"
        file: Any = {"response_class": Response}
        router.add_api_route(
            dump,
            self.dump,
            responses={200: {"content": {CONTAINER: _BINARY}, "description": "a file"}},
            **file,
        )
        router.add_api_route(
            dump,
            self.restore,
            methods=["PUT"],
            status_code=201,
            response_model=shapes.Filter,
            openapi_extra={
                "requestBody": {"required": True, "content": {"application/octet-stream": _BINARY}}
            },
        )
        router.add_api_route(
            "/v1/filters/{name}/freeze",
            self.freeze,
            methods=["POST"],
            status_code=201,
            response_model=shapes.Filter,
            openapi_extra={"requestBody": {"required": True, "content": _KEYS}},
        )
        router.add_api_route("/v1/filters/{name}/secret", self.secret)
        router.add_api_route(
            "/v1/backup",
            self.backup,
            responses={200: {"content": {TAR: _BINARY}, "description": "a tar"}},
            **file,
        )

    def dump(self, request: Request, name: NameInPath) -> Response:
        """The filter as a file, which fullbloom.open reads; a keyed one with its secret."""
        store = self._node.store(name)
        tag = bulk.etag(store, name)
        if bulk.is_known(request.scope, tag):
            return Response(status_code=304, headers=bulk.tagged(tag))
        held = request.scope["fullbloom"].held
        if store is self._service:
            return self._in_pieces(name, bulk.tagged(tag), held)
        # The bytes of the file, and a copy of them on their way to Python.
        nbytes = store.info(name, counted=False)["nbytes"]
        held.grow(2 * nbytes + bodies.SMALL)
        data = store.dump(name)
        held.resize(len(data))
        return Response(data, headers=bulk.tagged(tag), media_type=CONTAINER)

    def _in_pieces(self, name: str, headers: dict[str, str], held: Any) -> Response:
        held.grow(2 * pieces.PIECE)
        file = self._service.open_dump(name)
        try:
            file.read(0, 1)  # makes the checksums, so that a fault is an answer of its own
        except BaseException:
            file.close()
            raise
        return pieces.Pieces(file, headers=headers, media_type=CONTAINER)

    async def restore(self, request: Request, name: NameInPath, *, replace: bool = False) -> Any:
        """Put the filter in a file under a name."""
        most = min(self._node.settings.limits.filter_bytes, self._node.settings.limits.file_bytes)
        data = await bodies.read(request.scope, request.receive, most, request.scope["fullbloom"].held)
        versions = bulk.wanted(request.scope)
        return await asyncio.to_thread(self._node.restore, name, data, replace=replace, versions=versions)

    async def freeze(
        self,
        request: Request,
        name: NameInPath,
        kind: Annotated[str, Query(max_length=64, description=f"one of {', '.join(freezing.KINDS)}")],
        *,
        fpr: Annotated[float, Query(gt=0, lt=1)] = 0.01,
        replace: bool = False,
    ) -> Any:
        """Make a static filter of the keys in the body, which no key is added to or taken from any more."""
        settings, versions = self._node.settings, bulk.wanted(request.scope)
        limits, held = settings.limits, request.scope["fullbloom"].held
        body = await bodies.read(request.scope, request.receive, limits.request_bytes, held)

        def made() -> dict[str, Any]:
            asked = (request.scope, body, held)
            data = freezing.frozen(self._service, kind, fpr, asked, limits, keyed=not settings.plain)
            return self._node.restore(name, data, replace=replace, versions=versions)

        return await asyncio.to_thread(made)

    def secret(self, name: NameInPath) -> dict[str, Any]:
        """Seed and secret (hexadecimal) of a filter's key hash: to open its file, or hash alike."""
        seed, own, base = self._node.store(name).hashing(name)
        return {"seed": seed, "secret": None if own is None else own.hex(), "hash": base}

    def backup(self) -> Response:
        """A copy of all filters, and of the registry if it is a file: a tar for fullbloom restore."""
        if self._service.durability is None:
            raise Refused("unsupported", "the service keeps nothing")
        folder = tempfile.mkdtemp(prefix=rests.PREFIX, dir=self._node.settings.data)
        try:
            path = backup.write(self._node, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        gone = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
        return FileResponse(path, media_type=TAR, filename="fullbloom.tar", background=gone)
