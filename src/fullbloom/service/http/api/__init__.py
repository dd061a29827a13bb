"""The FastAPI app and its OpenAPI description; all requests come through the gateway.

* ``about``: the service itself;
* ``filters``: create, list, change and delete filters;
* ``keys``: the description of requests about keys, which the gateway serves without FastAPI;
* ``owners``: owners of a bank;
* ``files``: filters as files, and backups;
* ``plans``: advice before a filter is created, and about its load;
* ``tokens``: create, list and revoke tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import fullbloom
from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.http import schemas
from fullbloom.service.http.api.about import About
from fullbloom.service.http.api.files import Files
from fullbloom.service.http.api.filters import Filters
from fullbloom.service.http.api.keys import Keys
from fullbloom.service.http.api.owners import Owners
from fullbloom.service.http.api.plans import Plans
from fullbloom.service.http.api.tokens import Tokens
from fullbloom.service.http.asgi import make_problem

if TYPE_CHECKING:
    from fullbloom.service.metrics import Metrics
    from fullbloom.service.node import Node

_CODES = {404: "missing", 405: "method"}
#: Most validation errors that a response names.
_MAX_ERRORS = 10


def build(node: Node, metrics: Metrics) -> FastAPI:
    """Return the FastAPI app."""
    app = FastAPI(
        title="Fullbloom",
        version=fullbloom.__version__,
        description="Named Bloom filters and their relatives over HTTP.",
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": schemas.Problem, "description": "refused"}},
    )
    _add_handlers(app, node)
    for group in (
        About(app, node, metrics),
        Filters(node),
        Keys(node),
        Owners(node),
        Files(node),
        Plans(node),
        Tokens(node),
    ):
        app.include_router(group.router)
    return app


def _refuse(request: Request, code: str, text: str, **extra: object) -> Response:
    problem = make_problem(code, text, request=request.scope["fullbloom"].id, **extra)
    headers = {name.decode(): value.decode("latin-1") for name, value in problem.headers}
    return Response(problem.body, problem.status, headers, problem.media_type.decode())


def _add_handlers(app: FastAPI, node: Node) -> None:
    @app.exception_handler(Refused)
    def refuse(request: Request, error: Refused) -> Response:
        return _refuse(request, error.code, str(error), **error.extra)

    @app.exception_handler(Fault)
    def refuse_fault(request: Request, error: Any) -> Response:
        return refuse(request, node.explain(error, request.scope["path"]))

    @app.exception_handler(RequestValidationError)
    def refuse_invalid(request: Request, error: RequestValidationError) -> Response:
        return _refuse(request, "invalid", "; ".join(map(_describe, error.errors()[:_MAX_ERRORS])))

    @app.exception_handler(HTTPException)
    def refuse_other(request: Request, error: HTTPException) -> Response:
        code = _CODES.get(error.status_code, "invalid")
        allow = {
            name.lower(): value for name, value in (error.headers or {}).items() if name.lower() == "allow"
        }
        return _refuse(request, code, str(error.detail), **allow)


def _describe(error: dict[str, Any]) -> str:
    place = ".".join(map(str, error["loc"][1:]))
    return f"{place}: {error['msg']}" if place else str(error["msg"])
