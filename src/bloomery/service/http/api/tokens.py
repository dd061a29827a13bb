"""Who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Path, Response

from bloomery.service.failures import Refused
from bloomery.service.http import shapes

if TYPE_CHECKING:
    from bloomery.service.node import Node


class Tokens:
    """Routes of tokens."""

    def __init__(self, node: Node) -> None:
        """Take the node."""
        self._node, self._rows = node, node.registry.tokens
        self.router = router = APIRouter(tags=["tokens"])
        router.add_api_route("/v1/tokens", self.listed)
        router.add_api_route("/v1/tokens", self.create, methods=["POST"], status_code=201)
        router.add_api_route("/v1/tokens/{name}", self.revoke, methods=["DELETE"], status_code=204)

    def listed(self) -> dict[str, Any]:
        """Tokens, without what opens anything."""
        return {"tokens": self._rows.listed()}

    def create(self, new: Annotated[shapes.NewToken, Body()]) -> dict[str, str]:
        """Make a token; it is told this once."""
        token = self._rows.create(new.name, new.scopes, new.patterns)
        if token is None:
            raise Refused("exists", f"there is a token {new.name}; revoke it first")
        self._node.service.set_tokens(self._rows.known())
        return {"name": new.name, "token": token}

    def revoke(self, name: Annotated[str, Path(max_length=128)]) -> Response:
        """Revoke a token."""
        if not self._rows.revoke(name):
            raise Refused("missing", "no token has this name")
        self._node.service.set_tokens(self._rows.known())
        return Response(status_code=204)
