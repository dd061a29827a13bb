"""Filters as files, and backups."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Response
from starlette.responses import FileResponse

from fullbloom.service import backup
from fullbloom.service.data_folder import BACKUP_PREFIX
from fullbloom.service.failures import Refused
from fullbloom.service.http import bodies, keys, schemas, static_filters, streaming
from fullbloom.service.http.conditions import etag_header, is_not_modified, make_etag, parse_if_match
from fullbloom.service.http.schemas import CurrentRequest, NameInPath

if TYPE_CHECKING:
    from fullbloom.service.http.asgi import Receive, Scope, Send
    from fullbloom.service.node import Node

CONTAINER = "application/vnd.fullbloom"
TAR = "application/x-tar"
BINARY = {"schema": {"type": "string", "format": "binary"}}
_KEYS = {
    keys.JSON: {"schema": schemas.ALL_KEYS},
    keys.TEXT: {"schema": {"type": "string", "description": "one key per line"}},
    keys.NDJSON: {"schema": {"type": "string", "description": "one key per line, in JSON"}},
}


class Files:
    """Routes of files."""

    def __init__(self, node: Node) -> None:
        """Serve the filters of a node."""
        self._node, self._service = node, node.service
        self.router = router = APIRouter(tags=["files"])
        dump = "/v1/filters/{name}/dump"
        file: Any = {"response_class": Response}
        router.add_api_route(
            dump,
            self.dump,
            responses={200: {"content": {CONTAINER: BINARY}, "description": "a file"}},
            **file,
        )
        router.add_api_route(
            dump,
            self.restore,
            methods=["PUT"],
            status_code=201,
            response_model=schemas.Filter,
            openapi_extra={
                "requestBody": {"required": True, "content": {"application/octet-stream": BINARY}}
            },
        )
        router.add_api_route(
            "/v1/filters/{name}/freeze",
            self.freeze,
            methods=["POST"],
            status_code=201,
            response_model=schemas.Filter,
            openapi_extra={"requestBody": {"required": True, "content": _KEYS}},
        )
        router.add_api_route("/v1/filters/{name}/secret", self.secret)
        router.add_api_route(
            "/v1/backup",
            self.backup,
            responses={200: {"content": {TAR: BINARY}, "description": "a tar"}},
            **file,
        )

    def dump(self, request: CurrentRequest, name: NameInPath) -> Response:
        """The filter as a file, which fullbloom.open reads; a keyed one with its secret."""
        store = self._node.find_backend(name)
        tag = make_etag(store, name)
        if is_not_modified(request, tag):
            return Response(status_code=304, headers=etag_header(tag))
        if store is self._service:
            return self._stream(name, etag_header(tag), request.budget)
        # The bytes of the file, and a copy of them on their way to Python.
        nbytes = store.info(name, counted=False)["nbytes"]
        request.budget.grow(2 * nbytes + bodies.SMALL)
        data = store.dump(name)
        request.budget.resize(len(data))
        return Response(data, headers=etag_header(tag), media_type=CONTAINER)

    def _stream(self, name: str, headers: dict[str, str], budget: Any) -> Response:
        budget.grow(2 * streaming.CHUNK)
        file = self._service.open_dump(name)
        try:
            file.read(0, 1)  # computes the checksums: a fault is raised before the response starts
        except BaseException:
            file.close()
            raise
        return streaming.DumpResponse(file, headers=headers, media_type=CONTAINER)

    async def restore(self, request: CurrentRequest, name: NameInPath, *, replace: bool = False) -> Any:
        """Store the filter of a file under a name."""
        limits, versions = self._node.settings.limits, parse_if_match(request)
        data = await bodies.read(request, min(limits.filter_bytes, limits.file_bytes))
        return await asyncio.to_thread(self._node.restore, name, data, replace=replace, versions=versions)

    async def freeze(
        self,
        request: CurrentRequest,
        name: NameInPath,
        kind: Annotated[str, Query(max_length=64, description=f"one of {', '.join(static_filters.KINDS)}")],
        *,
        fpr: Annotated[float, Query(gt=0, lt=1)] = 0.01,
        replace: bool = False,
    ) -> Any:
        """Build a static filter of the keys in the body; it never changes afterwards."""
        settings, versions = self._node.settings, parse_if_match(request)
        limits, keyed = settings.limits, not settings.plain
        body = await bodies.read(request, limits.request_bytes)

        def build() -> dict[str, Any]:
            data = static_filters.build_file(self._service, kind, fpr, request, body, limits, keyed=keyed)
            return self._node.restore(name, data, replace=replace, versions=versions)

        return await asyncio.to_thread(build)

    def secret(self, name: NameInPath) -> dict[str, Any]:
        """Seed and secret (hexadecimal) of a filter's key hash: to open its file, or hash keys as it does."""
        seed, own, base = self._node.find_backend(name).hashing(name)
        return {"seed": seed, "secret": None if own is None else own.hex(), "hash": base}

    def backup(self) -> Response:
        """A backup of all filters, and of the registry if it is a file: a tar for fullbloom restore."""
        if self._service.durability is None:
            raise Refused("unsupported", "the service keeps nothing")
        folder = tempfile.mkdtemp(prefix=BACKUP_PREFIX, dir=self._node.settings.data)
        try:
            path = backup.write(self._node, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return _TarResponse(path, media_type=TAR, filename="fullbloom.tar", headers={"accept-ranges": "none"})


class _TarResponse(FileResponse):
    """A response with a backup, whose folder is removed however it ends.

    It is sent as a whole, whatever range is requested: the rest of another backup does not complete one.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        headers = [pair for pair in scope["headers"] if pair[0] != b"range"]
        try:
            await super().__call__({**scope, "headers": headers}, receive, send)
        finally:
            await asyncio.to_thread(shutil.rmtree, Path(self.path).parent, ignore_errors=True)
