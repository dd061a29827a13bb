"""Static filters of the keys of one request: kinds that are made of all their keys at once."""

from __future__ import annotations

import secrets
from array import array
from typing import TYPE_CHECKING, Any

import bloomery
from bloomery import registry as structures
from bloomery.errors import BloomeryError
from bloomery.service.failures import Refused
from bloomery.service.http import bodies

if TYPE_CHECKING:
    from bloomery.service.http.wire import Scope

#: Kinds that a request can make.
KINDS = tuple(str(row["name"]) for row in structures.rows() if row["adds"] == "build")


class _Drawn:
    """How keys of a filter that is not there yet become hashes."""

    def __init__(self, service: Any, *, keyed: bool) -> None:
        self.seed = secrets.randbits(64)
        self.secret: bytes | None = service.secret_of(self.seed) if keyed else None

    def takes_hashes(self, _name: str) -> bool:
        return True

    def hashing(self, _name: str) -> tuple[int, bytes | None, str]:
        return self.seed, self.secret, "xxh3"


def frozen(
    service: Any, kind: str, fpr: float, scope: Scope, body: bytes, *, keyed: bool, most: int
) -> bytes:
    """Return the file of a filter of the keys in a body."""
    if kind not in KINDS:
        raise Refused("invalid", f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    drawn = _Drawn(service, keyed=keyed)
    hashes = array("Q")
    hashes.frombytes(_hashes(drawn, scope, body))
    if len(hashes) > most:
        raise Refused(
            "limit", f"a request may hold {most} keys; build a larger filter in a process and PUT its dump"
        )
    build = getattr(bloomery, str(structures.row_named(kind)["class"])).build_hashed
    try:
        data: bytes = build(hashes, fpr, seed=drawn.seed, secret=drawn.secret).to_bytes()
    except BloomeryError as error:
        raise Refused("invalid", str(error)) from None
    return data


def _hashes(drawn: _Drawn, scope: Scope, body: bytes) -> bytes:
    form = bodies.media_type(scope)
    if form == bodies.TEXT:
        return bodies.hashed(drawn, "", bodies.text_lines(body)).body
    if form == bodies.NDJSON:
        return bodies.from_lines(drawn, "", body).body
    if form == bodies.ARROW:
        return bodies.from_arrow(drawn, "", body).body
    if form != bodies.JSON:
        raise Refused(
            "media-type", f"the body is {bodies.JSON}, {bodies.TEXT}, {bodies.NDJSON} or {bodies.ARROW}"
        )
    value = bodies.loads(body)
    given = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(given, list):
        raise Refused("invalid", 'the body is an object with "keys", an array')
    return bodies.hashed(drawn, "", [bodies.as_key(key) for key in given]).body
