"""The description of requests about keys: `fullbloom.service.http.bulk` serves them without FastAPI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query

import fullbloom
from fullbloom.errors import FullbloomError
from fullbloom.service.failures import Refused
from fullbloom.service.http import schemas
from fullbloom.service.http.schemas import CurrentRequest, NameInPath

if TYPE_CHECKING:
    from fullbloom.service.http.request import Request
    from fullbloom.service.node import Node

#: Digits of an integer key, and bytes of a filter that is copied to find its cells.
_MAX_DIGITS, _MAX_COPIED = 300, 16 << 20
_INTEGER = re.compile(rf"-?[0-9]{{1,{_MAX_DIGITS}}}")
_TEXTS = {
    "add": "Add keys: for each whether it was certainly new.",
    "check": "Look up keys: for each whether it is probably in the filter.",
    "remove": "Remove keys: for each whether it was not certainly absent.",
    "count": "Occurrences of each key.",
    "values": "The label or value of each key, for kinds that store one; 0 or null if absent.",
}
_NUMBER = {"type": "integer"}
_NUMBERS = {"type": "array", "items": _NUMBER}
_OVER = {
    "type": "boolean",
    "description": "true if the filter holds more keys than its capacity, otherwise absent",
}
_WARNING = {
    "type": "string",
    "description": "a warning if the filter holds no key of the type that was looked up, otherwise absent",
}
_MAYBE = {"type": ["integer", "null"]}
_MAYBES = {"type": "array", "items": _MAYBE}
_RESULTS: dict[str, dict[str, Any]] = {
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
        "description": "true if the filter holds more keys than its capacity, otherwise absent",
        "schema": {"type": "string"},
    },
    "X-Fullbloom-Key-Domain-Warning": {
        "description": "the types of the keys looked up and of those in the filter, if they differ",
        "schema": {"type": "string"},
    },
}
_TEXT = {"schema": {"type": "string"}}


class Keys:
    """Routes of keys."""

    def __init__(self, node: Node) -> None:
        """Describe requests about the filters of a node."""
        self._node = node
        self.router = APIRouter(tags=["keys"])
        self.router.add_api_route("/v1/filters/{name}/positions", self.positions)
        for action, text in _TEXTS.items():
            self._describe(action, text)

    def positions(
        self,
        request: CurrentRequest,
        name: NameInPath,
        key: Annotated[str, Query(max_length=4096)],
        type: Annotated[Literal["text", "integer"], Query(description="type of the key")] = "text",  # noqa: A002 - the field's name
    ) -> dict[str, list[int]]:
        """The cells of a key; those of an integer in filters up to 16 MiB."""
        store = self._node.find_backend(name)
        if type == "text":
            return {"positions": store.positions(name, key.encode())}
        return {"positions": _find_integer(request, store, name, key)}

    def _describe(self, action: str, text: str) -> None:
        content = {
            "application/json": {"schema": schemas.SOME_KEYS},
            "text/plain": {"schema": {"type": "string", "description": "one key per line"}},
            "application/x-ndjson": {
                "schema": {"type": "string", "description": "one key per line, in JSON"}
            },
        }
        results = {
            "application/json": {"schema": {"type": "object", "properties": _RESULTS[action]}},
            "application/octet-stream": _TEXT,
            "application/x-ndjson": _TEXT,
        }
        form = "one bit per key, the first in the lowest bit of the first byte; or the format of Accept"
        self.router.add_api_route(
            f"/v1/filters/{{name}}/{action}",
            _unreachable,
            methods=["POST"],
            name=action,
            description=text,
            responses={200: {"description": form, "content": results, "headers": _HEADERS}},
            openapi_extra={"requestBody": {"required": True, "content": content}},
        )


def _find_integer(request: Request, store: Any, name: str, key: str) -> list[int]:
    """Return the cells of an integer, from a copy of the filter: the native module looks up texts."""
    if not _INTEGER.fullmatch(key):
        raise Refused("invalid", f"key: an integer of at most {_MAX_DIGITS} digits")
    nbytes = store.info(name, counted=False)["nbytes"]
    if nbytes > _MAX_COPIED:
        text = f"positions of integers are for filters up to {_MAX_COPIED} bytes; this one has {nbytes}"
        raise Refused("unsupported", text)
    _, secret, _ = store.hashing(name)
    request.budget.grow(3 * nbytes)
    try:
        copy: Any = fullbloom.loads(store.dump(name), secret=secret)
    except FullbloomError as error:
        raise Refused("unsupported", str(error)) from None
    if not hasattr(copy, "positions"):
        raise Refused("unsupported", f"a {copy.__class__.__name__} has no positions")
    found: list[int] = copy.positions(int(key))
    return found


def _unreachable(name: NameInPath) -> None:  # the gateway responds
    del name
