"""Keys in, answers out, described: `fullbloom.service.http.bulk` answers before FastAPI hears of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from fullbloom.service.http import shapes
from fullbloom.service.http.shapes import NameInPath

if TYPE_CHECKING:
    from fullbloom.service.node import Node

_TEXTS = {
    "add": "Add keys: for each whether it was certainly new.",
    "check": "Look for keys: for each whether it is probably there.",
    "remove": "Remove keys: for each whether it was not certainly absent.",
    "count": "Occurrences of each key.",
    "values": "The label or value of each key, for kinds with such; 0 without one, null in a bloomier map.",
}
_NUMBER = {"type": "integer"}
_NUMBERS = {"type": "array", "items": _NUMBER}
_OVER = {
    "type": "boolean",
    "description": "true where the filter holds more keys than its capacity, else left out",
}
_WARNING = {
    "type": "string",
    "description": "there where keys of a type were looked up of which the filter holds none, else left out",
}
_MAYBE = {"type": ["integer", "null"]}
_MAYBES = {"type": "array", "items": _MAYBE}
_ANSWERS: dict[str, dict[str, Any]] = {
    "add": {"new": {}, "keys": _NUMBER, "yes": _NUMBER, "over_capacity": _OVER},
    "check": {
        "found": {},
        "keys": _NUMBER,
        "yes": _NUMBER,
        "over_capacity": _OVER,
        "key_domain_warning": _WARNING,
    },
    "remove": {
        "removed": {},
        "keys": _NUMBER,
        "yes": _NUMBER,
        "over_capacity": _OVER,
        "key_domain_warning": _WARNING,
    },
    "count": {"count": _NUMBER, "counts": _NUMBERS, "keys": _NUMBER, "key_domain_warning": _WARNING},
    "values": {"value": _MAYBE, "values": _MAYBES, "keys": _NUMBER, "key_domain_warning": _WARNING},
}
_HEADERS = {
    "X-Fullbloom-Over-Capacity": {
        "description": "true where the filter holds more keys than its capacity, else left out",
        "schema": {"type": "string"},
    },
    "X-Fullbloom-Key-Domain-Warning": {
        "description": "the types that were looked up and those that the filter holds, where these differ",
        "schema": {"type": "string"},
    },
}
_TEXT = {"schema": {"type": "string"}}


class Keys:
    """Routes of keys."""

    def __init__(self, node: Node) -> None:
        """Take the node."""
        self._node = node
        self.router = APIRouter(tags=["keys"])
        self.router.add_api_route("/v1/filters/{name}/positions", self.positions)
        for action, text in _TEXTS.items():
            self._describe(action, text)

    def positions(
        self, name: NameInPath, key: Annotated[str, Query(max_length=4096)]
    ) -> dict[str, list[int]]:
        """The cells of a text."""
        return {"positions": self._node.store(name).positions(name, key.encode())}

    def _describe(self, action: str, text: str) -> None:
        content = {
            "application/json": {"schema": shapes.SOME_KEYS},
            "text/plain": {"schema": {"type": "string", "description": "a key a line"}},
            "application/x-ndjson": {"schema": {"type": "string", "description": "a key a line, in JSON"}},
        }
        answers = {
            "application/json": {"schema": {"type": "object", "properties": _ANSWERS[action]}},
            "application/octet-stream": _TEXT,
            "application/x-ndjson": _TEXT,
        }
        form = "one bit a key, the first in the lowest bit of the first byte; or as Accept asks"
        self.router.add_api_route(
            f"/v1/filters/{{name}}/{action}",
            _never,
            methods=["POST"],
            name=action,
            description=text,
            responses={200: {"description": form, "content": answers, "headers": _HEADERS}},
            openapi_extra={"requestBody": {"required": True, "content": content}},
        )


def _never(name: NameInPath) -> None:  # the gateway answers
    del name
