"""Tokens: create, list, revoke."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Path, Response

from fullbloom.service.data_folder import record_tokens
from fullbloom.service.failures import Refused
from fullbloom.service.http import schemas
from fullbloom.service.registry.tokens import LAST_REVOKED

if TYPE_CHECKING:
    from fullbloom.service.node import Node


_LOG = logging.getLogger("fullbloom.tokens")


class Tokens:
    """Routes of tokens."""

    def __init__(self, node: Node) -> None:
        """Manage the tokens of a node's registry."""
        self._node, self._rows = node, node.registry.tokens
        self.router = router = APIRouter(tags=["tokens"])
        router.add_api_route("/v1/tokens", self.list_tokens)
        router.add_api_route("/v1/tokens", self.create, methods=["POST"], status_code=201)
        router.add_api_route("/v1/tokens/{name}", self.revoke, methods=["DELETE"], status_code=204)

    def list_tokens(self) -> dict[str, Any]:
        """All tokens, without their secrets."""
        return {"tokens": self._rows.list_all()}

    def create(self, new: Annotated[schemas.NewToken, Body()]) -> dict[str, str]:
        """Create a token; it is shown once."""
        record_tokens(self._node.settings.data)
        token = self._rows.create(new.name, new.scopes, new.patterns)
        if token is None:
            raise Refused("exists", f"there is a token {new.name}; revoke it first")
        self._node.load_tokens()
        return {"name": new.name, "token": token}

    def revoke(self, name: Annotated[str, Path(max_length=128)]) -> Response:
        """Revoke a token. After the last one every request is rejected until a token is created."""
        if not self._rows.revoke(name):
            raise Refused("missing", "no token has this name")
        known = self._node.load_tokens()
        if not known:
            _LOG.warning(LAST_REVOKED)
        return Response(status_code=204)
