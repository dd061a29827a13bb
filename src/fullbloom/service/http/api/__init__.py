"""The JSON surface, and its OpenAPI description; requests come through the gateway only.

* ``about``: the service itself;
* ``filters``: making, listing, changing, dropping filters;
* ``keys``: what the gateway answers before FastAPI hears of it, described;
* ``files``: filters as files, and a copy of them all;
* ``tokens``: who may do what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import fullbloom
from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.http import shapes
from fullbloom.service.http.api.about import About
from fullbloom.service.http.api.files import Files
from fullbloom.service.http.api.filters import Filters
from fullbloom.service.http.api.keys import Keys
from fullbloom.service.http.api.tokens import Tokens
from fullbloom.service.http.wire import problem

if TYPE_CHECKING:
    from fullbloom.service.metrics import Metrics
    from fullbloom.service.node import Node

_CODES = {404: "missing", 405: "method"}
_MOST_SAID = 10


def build(node: Node, metrics: Metrics) -> FastAPI:
    """Return the application."""
    app = FastAPI(
        title="Fullbloom",
        version=fullbloom.__version__,
        description="Named Bloom filters and their relatives over HTTP.",
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": shapes.Problem, "description": "refused"}},
    )
    _add_handlers(app, node)
    for room in (About(app, node, metrics), Filters(node), Keys(node), Files(node), Tokens(node)):
        app.include_router(room.router)
    return app


def _refuse(request: Request, code: str, text: str, **extra: object) -> Response:
    known = request.scope.get("fullbloom")
    answer = problem(code, text, request=known.number if known else "", **extra)
    headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
    return Response(answer.body, answer.status, headers, answer.kind.decode())


def _add_handlers(app: FastAPI, node: Node) -> None:
    @app.exception_handler(Refused)
    def refused(request: Request, error: Refused) -> Response:
        return _refuse(request, error.code, str(error), **error.extra)

    @app.exception_handler(Fault)
    def fault(request: Request, error: Any) -> Response:
        return refused(request, node.explained(error, request.scope["path"]))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        def said(one: dict[str, Any]) -> str:
            place = ".".join(map(str, one["loc"][1:]))
            return f"{place}: {one['msg']}" if place else str(one["msg"])

        return _refuse(request, "invalid", "; ".join(map(said, error.errors()[:_MOST_SAID])))

    @app.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> Response:
        code = _CODES.get(error.status_code, "invalid")
        allow = {
            name.lower(): value for name, value in (error.headers or {}).items() if name.lower() == "allow"
        }
        return _refuse(request, code, str(error.detail), **allow)
