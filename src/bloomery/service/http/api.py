"""The JSON surface, and its OpenAPI description; requests come through the gateway only."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Body, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import bloomery
from bloomery import registry as structures
from bloomery.service.engine import Fault
from bloomery.service.failures import STATUS, Refused
from bloomery.service.http import bulk, shapes
from bloomery.service.http.wire import header, problem
from bloomery.service.node import kind_of

if TYPE_CHECKING:
    from bloomery.service.metrics import Metrics
    from bloomery.service.node import Node

CONTAINER = "application/vnd.bloomery"
_MOST = 1000
_LATEST = 1 << 62
NameInPath = Annotated[str, Path(pattern=shapes.NAME, max_length=128)]


def build(node: Node, metrics: Metrics) -> FastAPI:
    """Return the application."""
    app = FastAPI(
        title="Bloomery",
        version=bloomery.__version__,
        description="Named Bloom filters and their relatives over HTTP.",
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": shapes.Problem, "description": "refused"}},
    )
    _add_handlers(app, node)
    _add_service(app, node, metrics)
    _add_filters(app, node)
    _add_files(app, node)
    _add_tokens(app, node)
    return app


def _request_of(request: Request) -> str:
    known = request.scope.get("bloomery")
    return known[1].decode() if known else ""


def _refuse(request: Request, code: str, text: str, **extra: object) -> Response:
    answer = problem(code, text, request=_request_of(request), **extra)
    headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
    return Response(answer.body, answer.status, headers, answer.kind.decode())


def _add_handlers(app: FastAPI, node: Node) -> None:
    @app.exception_handler(Refused)
    def refused(request: Request, error: Refused) -> Response:
        return _refuse(request, error.code, str(error), **error.extra)

    @app.exception_handler(Fault)
    def fault(request: Request, error: Any) -> Response:
        return _refuse(request, error.code, str(error), **node.extra_of(error, request.scope))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        said = "; ".join(f"{'.'.join(map(str, e['loc'][1:]))}: {e['msg']}" for e in error.errors()[:10])
        return _refuse(request, "invalid", said)

    @app.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> Response:
        codes = {404: "missing", 405: "method"}
        code = codes.get(error.status_code, "invalid")
        extra = {
            name.lower(): value for name, value in (error.headers or {}).items() if name.lower() == "allow"
        }
        return _refuse(request, code, str(error.detail), **extra)


def _add_service(app: FastAPI, node: Node, metrics: Metrics) -> None:
    @app.get("/healthz", tags=["service"])
    def healthz() -> dict[str, str]:
        """The process lives."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["service"])
    def readyz(response: Response) -> dict[str, str]:
        """Changes are taken and the registry answers; 503 says what is not so."""
        trouble = node.service.trouble()
        if trouble is None:
            try:
                node.registry.ping()
            except Exception:  # whatever the driver raises
                trouble = "the registry does not answer"
        if trouble is not None:
            response.status_code = STATUS["read-only"]
        return {"status": "ok" if trouble is None else trouble}

    @app.get("/metrics", tags=["service"], response_class=Response)
    def figures() -> Response:
        """Figures for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/docs", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    def page() -> Response:
        from bloomery.service.http.page import written

        policy = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(written(app.openapi()), media_type="text/html; charset=utf-8", headers=policy)

    @app.get("/v1/service", tags=["service"])
    def service() -> dict[str, Any]:
        """What the service is and holds."""
        return {
            "version": bloomery.__version__,
            "node": node.id,
            "http": node.url,
            "resp": node.resp,
            "began": node.began,
            "durability": node.service.durability,
            "filters": len(node.service),
            "nbytes": node.service.nbytes,
            "trouble": node.service.trouble(),
            "salvaged": node.service.salvaged,
            "limits": node.settings.limits.model_dump(),
        }

    @app.get("/v1/kinds", tags=["service"])
    def kinds() -> dict[str, Any]:
        """The kinds of filters, what they can do, and their parameters."""
        return {"kinds": [_kind(row) for row in structures.rows()]}

    @app.post("/v1/checkpoint", tags=["service"])
    def checkpoint() -> dict[str, int]:
        """Write what changed since the last checkpoint; it happens by itself, too."""
        files, nbytes = node.service.checkpoint()
        return {"files": files, "bytes": nbytes}

    @app.get("/v1/nodes", tags=["service"])
    def nodes() -> dict[str, Any]:
        """The nodes of the registry."""
        return {"nodes": node.registry.nodes.listed()}


def _kind(row: dict[str, Any]) -> dict[str, Any]:
    parameters = [
        {"name": name, "type": kind, "default": default} for name, kind, default in row["parameters"]
    ]
    return {
        "kind": row["name"],
        "class": row["class"],
        "capabilities": row["capabilities"],
        "parameters": parameters,
        "false_negatives": row["false_negatives"],
    }


def _add_filters(app: FastAPI, node: Node) -> None:
    tags: list[Any] = ["filters"]

    @app.get("/v1/filters", tags=tags, response_model=shapes.Page)
    def listed(
        request: Request,
        prefix: Annotated[str, Query(max_length=128)] = "",
        after: Annotated[str, Query(max_length=128)] = "",
        limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
    ) -> Any:
        """Filters in order of their names, a page at a time."""
        grant = request.scope["bloomery"][0]
        names: list[str] = []
        while len(names) <= limit:
            more = node.service.names(prefix=prefix, after=after, most=_MOST)
            names += [name for name in more if grant.covers(name)]
            if len(more) < _MOST:
                break
            after = more[-1]
        infos = [info for name in names[:limit] if (info := _told(node, name)) is not None]
        return {"filters": infos, "next": names[limit - 1] if len(names) > limit else None}

    @app.post("/v1/filters", tags=tags, status_code=201, response_model=shapes.Filter)
    def create(request: Request, new: Annotated[shapes.NewFilter, Body()], response: Response) -> Any:
        """Make a filter."""
        request.scope["bloomery"][0].check(2, new.name)
        kind = new.kind or kind_of(grow=new.grow, window=new.window)
        info = node.create(new.name, kind, _options(new, kind), **_settings(node, new))
        response.headers["location"] = f"/v1/filters/{new.name}"
        response.headers["etag"] = bulk.etag(node.service, new.name).decode()
        return info

    @app.get("/v1/filters/{name}", tags=tags, response_model=shapes.Filter)
    def inspect(request: Request, name: NameInPath) -> Any:
        """What a filter is and holds; its cells are counted."""
        node.check_here(name)
        tag = bulk.etag(node.service, name)
        given = header(request.scope, b"if-none-match")
        if given is not None and bulk.matches(given, tag):
            return Response(status_code=304, headers={"etag": tag.decode()})
        info = shapes.Filter(**node.service.info(name))
        return Response(info.model_dump_json(), headers={"etag": tag.decode()}, media_type="application/json")

    @app.patch("/v1/filters/{name}", tags=tags, response_model=shapes.Filter)
    def change(request: Request, name: NameInPath, wanted: shapes.Change) -> Any:
        """Give a filter another name, or a time at which it is dropped."""
        if "expire" in wanted.model_fields_set:
            node.service.expire(name, _milliseconds(wanted.expire))
        if wanted.name is not None and wanted.name != name:
            request.scope["bloomery"][0].check(2, wanted.name)
            node.rename(name, wanted.name, replace=wanted.replace)
        return node.put(wanted.name or name)

    @app.delete("/v1/filters/{name}", tags=tags, status_code=204)
    def delete(name: NameInPath) -> Response:
        """Drop a filter, and its statistics."""
        if not node.delete(name):
            raise Refused("missing", "not found")
        return Response(status_code=204)

    @app.post("/v1/filters/{name}/clear", tags=tags, status_code=204)
    def clear(name: NameInPath) -> Response:
        """Forget every key."""
        node.service.clear(name)
        return Response(status_code=204)

    @app.post("/v1/filters/{name}/advance", tags=tags, status_code=204)
    def advance(name: NameInPath, time: shapes.Time) -> Response:
        """Let time pass for a filter with a window."""
        node.service.advance(name, time.now)
        return Response(status_code=204)

    @app.post("/v1/filters/{name}/merge", tags=tags, response_model=shapes.Filter)
    def merge(request: Request, name: NameInPath, wanted: shapes.Source) -> Any:
        """Take the keys of another filter in."""
        request.scope["bloomery"][0].check(1, wanted.source)
        node.service.merge(name, wanted.source)
        return node.service.info(name)

    @app.post("/v1/filters/{name}/clone", tags=tags, status_code=201, response_model=shapes.Filter)
    def clone(request: Request, name: NameInPath, wanted: shapes.Copy) -> Any:
        """Put a copy under another name."""
        request.scope["bloomery"][0].check(2, wanted.name)
        return node.clone(wanted.name, name, replace=wanted.replace)

    @app.get("/v1/filters/{name}/history", tags=tags)
    def history(
        name: NameInPath,
        since: Annotated[int, Query(ge=0, le=_LATEST)] = 0,
        until: Annotated[int, Query(ge=0, le=_LATEST)] = _LATEST,
        limit: Annotated[int, Query(ge=1, le=10_000)] = _MOST,
    ) -> dict[str, list[shapes.Sample]]:
        """Statistics over time, the newest first; times in milliseconds since 1970."""
        node.service.version(name)
        samples = node.registry.snapshots.of(name, since=since, until=until, most=limit)
        return {"samples": [shapes.Sample(**sample) for sample in samples]}

    @app.get("/v1/filters/{name}/positions", tags=tags)
    def positions(name: NameInPath, key: Annotated[str, Query(max_length=4096)]) -> dict[str, list[int]]:
        """The cells of a text."""
        return {"positions": node.service.positions(name, key.encode())}

    for action, text in _BULK.items():
        _describe(app, action, text)


_BULK = {
    "add": "Add keys: for each whether it was certainly new.",
    "check": "Look for keys: for each whether it is probably there.",
    "remove": "Remove keys: for each whether it was not certainly absent.",
    "count": "Occurrences of each key.",
}


def _describe(app: FastAPI, action: str, text: str) -> None:
    """Put in the description what the gateway answers before FastAPI hears of it."""
    lines = {"schema": {"type": "string"}}
    content = {
        "application/json": {"schema": shapes.OneKey.model_json_schema()},
        "text/plain": {"schema": {"type": "string", "description": "a key a line"}},
        "application/x-ndjson": {"schema": {"type": "string", "description": "a key a line, in JSON"}},
    }
    properties = {
        "add": {"new": {}},
        "check": {"found": {}},
        "remove": {"removed": {}},
        "count": {"count": {"type": "integer"}, "counts": {"type": "array", "items": {"type": "integer"}}},
    }[action]
    responses: dict[int | str, Any] = {
        200: {
            "description": "one bit a key (the first in the lowest bit of the first byte), or as Accept asks",
            "content": {
                "application/json": {"schema": {"type": "object", "properties": properties}},
                "application/octet-stream": lines,
                "application/x-ndjson": lines,
            },
        }
    }

    def never(name: NameInPath) -> None:  # pragma: no cover - the gateway answers
        del name

    never.__doc__ = text
    app.add_api_route(
        f"/v1/filters/{{name}}/{action}",
        never,
        methods=["POST"],
        name=action,
        tags=["keys"],
        responses=responses,
        openapi_extra={"requestBody": {"required": True, "content": content}},
    )


def _told(node: Node, name: str) -> dict[str, Any] | None:
    try:
        info: dict[str, Any] = node.service.info(name, counted=False)
    except Fault:  # dropped meanwhile
        return None
    return info


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int((time.time() + seconds) * 1000)


def _options(new: shapes.NewFilter, kind: str) -> dict[str, str]:
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


def _settings(node: Node, new: shapes.NewFilter) -> dict[str, Any]:
    return {
        "seed": secrets.randbits(64) if new.seed is None else new.seed,
        "keyed": not node.settings.plain if new.keyed is None else new.keyed,
        "strict": new.strict,
        "expires": _milliseconds(new.expire),
    }


def _text(value: float | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else repr(value)


def _add_files(app: FastAPI, node: Node) -> None:
    tags: list[Any] = ["files"]

    @app.get("/v1/filters/{name}/dump", tags=tags, response_class=Response)
    def dump(request: Request, name: NameInPath) -> Response:
        """The filter as a file, which bloomery.open reads; a keyed one with its secret."""
        tag = bulk.etag(node.service, name)
        given = header(request.scope, b"if-none-match")
        if given is not None and bulk.matches(given, tag):
            return Response(status_code=304, headers={"etag": tag.decode()})
        return Response(node.service.dump(name), headers={"etag": tag.decode()}, media_type=CONTAINER)

    content = {CONTAINER: {"schema": {"type": "string", "format": "binary"}}}

    @app.put(
        "/v1/filters/{name}/dump",
        tags=tags,
        status_code=201,
        response_model=shapes.Filter,
        openapi_extra={"requestBody": {"required": True, "content": content}},
    )
    async def restore(request: Request, name: NameInPath, *, replace: bool = False) -> Any:
        """Put the filter in a file under a name."""
        import asyncio

        from bloomery.service.http import bodies

        data = await bodies.read(request.scope, request.receive, node.settings.limits.filter_bytes)
        return await asyncio.to_thread(node.restore, name, data, replace=replace)

    @app.get("/v1/filters/{name}/secret", tags=tags)
    def secret(name: NameInPath) -> dict[str, Any]:
        """Seed and secret of a filter's key hash, in hexadecimal: to open its file, or to hash keys elsewhere."""
        seed, own, base = node.service.hashing(name)
        return {"seed": seed, "secret": None if own is None else own.hex(), "hash": base}


def _add_tokens(app: FastAPI, node: Node) -> None:
    tags: list[Any] = ["tokens"]

    @app.get("/v1/tokens", tags=tags)
    def listed() -> dict[str, Any]:
        """Tokens, without what opens anything."""
        return {"tokens": node.registry.tokens.listed()}

    @app.post("/v1/tokens", tags=tags, status_code=201)
    def create(new: Annotated[shapes.NewToken, Body()]) -> dict[str, str]:
        """Make a token; it is told this once."""
        token = node.registry.tokens.create(new.name, new.scopes, new.patterns)
        if token is None:
            raise Refused("exists", f"there is a token {new.name}; revoke it first")
        node.service.set_tokens(node.registry.tokens.known())
        return {"name": new.name, "token": token}

    @app.delete("/v1/tokens/{name}", tags=tags, status_code=204)
    def revoke(name: Annotated[str, Path(max_length=128)]) -> Response:
        """Revoke a token."""
        if not node.registry.tokens.revoke(name):
            raise Refused("missing", "no token has this name")
        node.service.set_tokens(node.registry.tokens.known())
        return Response(status_code=204)
