"""The service itself: health, settings, kinds, nodes, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Response

import fullbloom
from fullbloom import registry as structures
from fullbloom.service.engine import more_kinds
from fullbloom.service.failures import STATUS
from fullbloom.service.http.page import render_page
from fullbloom.service.http.pages import NOT_BUILT, find_folders
from fullbloom.service.http.schemas import CurrentRequest

if TYPE_CHECKING:
    from fullbloom.service.metrics import Metrics
    from fullbloom.service.node import Node

_NO_SCRIPTS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


class About:
    """Routes about the service."""

    def __init__(self, app: FastAPI, node: Node, metrics: Metrics) -> None:
        """Describe a node."""
        self._app, self._node, self._metrics = app, node, metrics
        self._pages = list(find_folders())
        self.router = router = APIRouter(tags=["service"])
        router.add_api_route("/healthz", self.healthz)
        router.add_api_route("/readyz", self.readyz, responses={503: {"description": "changes are refused"}})
        router.add_api_route("/metrics", self.metrics, response_class=Response)
        router.add_api_route("/", self.start_page, include_in_schema=False)
        router.add_api_route("/docs", self.page, include_in_schema=False)
        router.add_api_route("/v1/service", self.service)
        router.add_api_route("/v1/kinds", self.kinds)
        router.add_api_route("/v1/nodes", self.nodes)
        router.add_api_route("/v1/nodes/{node}", self.forget_node, methods=["DELETE"], status_code=204)
        router.add_api_route("/v1/checkpoint", self.checkpoint, methods=["POST"])

    def healthz(self) -> dict[str, str]:
        """The process is alive."""
        return {"status": "ok"}

    def readyz(self, response: Response) -> dict[str, str]:
        """The service accepts changes and the registry responds; 503 names what does not work."""
        trouble = self._node.service.trouble()
        if trouble is None and not self._node.registry.answers():
            trouble = "the registry does not answer"
        if trouble is None and not self._node.shared.answers():
            trouble = "the Redis server does not answer"
        if trouble is not None:
            response.status_code = STATUS["read-only"]
        return {"status": "ok" if trouble is None else trouble}

    def metrics(self, request: CurrentRequest) -> Response:
        """Prometheus metrics of the service, and of the largest filters that the token covers."""
        text = self._metrics.text(request.grant)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def page(self) -> Response:
        """This description, for people."""
        return self._render("")

    def start_page(self) -> Response:
        """This description, and how to build the dashboard: the gateway serves that where it is built."""
        return self._render(NOT_BUILT)

    def _render(self, notice: str) -> Response:
        page = render_page(self._app.openapi(), notice)
        return Response(page, media_type="text/html; charset=utf-8", headers=_NO_SCRIPTS)

    def service(self, request: CurrentRequest) -> dict[str, Any]:
        """State and settings of the service; a token for some filters does not see which were skipped."""
        node = self._node
        salvaged = [] if request.grant.patterns else node.service.skipped
        return {
            "version": fullbloom.__version__,
            "node": node.id,
            "http": node.url,
            "resp": node.resp,
            "began": node.began,
            "durability": node.service.durability,
            "redis": node.shared.is_set_up,
            "filters": len(node.service),
            "nbytes": node.service.nbytes,
            "pages": self._pages,
            "trouble": node.service.trouble(),
            "salvaged": salvaged,
            "limits": node.settings.limits.model_dump(),
        }

    def kinds(self) -> dict[str, Any]:
        """The kinds of filters, what they can do, and their parameters."""
        return {"kinds": [_describe_kind(row) for row in [*structures.rows(), *more_kinds()]]}

    def nodes(self) -> dict[str, Any]:
        """The nodes of the registry; silent is the number of seconds since a node last reported.

        It is null for this node, whose ``own`` is true, and for one that this node has not heard of yet.
        """
        node = self._node
        rows = node.registry.nodes.list_all()
        about = [{"own": row["id"] == node.id, "silent": node.peers.silence(str(row["id"]))} for row in rows]
        return {"nodes": [{**row, **more} for row, more in zip(rows, about, strict=True)]}

    def forget_node(self, node: Annotated[str, Path(max_length=64)]) -> Response:
        """Forget a node that has long been silent, with its names and statistics; its folder is kept."""
        self._node.peers.remove(node)
        return Response(status_code=204)

    def checkpoint(self) -> dict[str, int]:
        """Write the changes since the last checkpoint; the service also does so periodically."""
        files, nbytes = self._node.service.checkpoint()
        return {"files": files, "bytes": nbytes}


def _describe_kind(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": row["name"],
        "class": row["class"],
        "adds": row["adds"],
        "capabilities": row["capabilities"],
        "parameters": [
            {"name": name, "type": kind, "default": default} for name, kind, default in row["parameters"]
        ],
        "false_negatives": row["false_negatives"],
    }
