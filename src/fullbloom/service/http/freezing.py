"""Static filters of the keys of one request: kinds that are made of all their keys at once."""

from __future__ import annotations

import secrets
from array import array
from typing import TYPE_CHECKING, Any

import fullbloom
from fullbloom import registry as structures
from fullbloom.errors import FullbloomError
from fullbloom.service.engine import hash_body
from fullbloom.service.failures import Refused
from fullbloom.service.http import bodies

if TYPE_CHECKING:
    from fullbloom.service.http.wire import Scope
    from fullbloom.service.settings import Limits

#: Kinds that a request can make.
KINDS = tuple(str(row["name"]) for row in structures.rows() if row["adds"] == "build")


#: Bytes that a key takes while its filter is built.
_KEY = 128


class _Drawn:
    """How keys of a filter that is not there yet become hashes."""

    def __init__(self, service: Any, *, keyed: bool) -> None:
        self.seed = secrets.randbits(64)
        self.secret: bytes | None = service.secret_of(self.seed) if keyed else None

    def version(self, _name: str) -> None:
        """Return nothing: there is no filter yet."""

    def hashing(self, _name: str) -> tuple[int, bytes | None, str]:
        return self.seed, self.secret, "xxh3"


def frozen(
    service: Any, kind: str, fpr: float, request: tuple[Scope, bytes, Any], limits: Limits, *, keyed: bool
) -> bytes:
    """Return the file of a filter of the keys in a body; the request's bytes grow by what the build takes."""
    if kind not in KINDS:
        raise Refused("invalid", f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    scope, body, held = request
    drawn = _Drawn(service, keyed=keyed)
    hashes = array("Q")
    hashes.frombytes(_hashes(drawn, scope, body, limits, held))
    if len(hashes) > limits.batch_keys:
        raise Refused(
            "limit",
            f"a request may hold {limits.batch_keys} keys; "
            "build a larger filter in a process and PUT its dump",
        )
    held.grow(_KEY * len(hashes))
    build = getattr(fullbloom, str(structures.row_named(kind)["class"])).build_hashed
    try:
        data: bytes = build(hashes, fpr, seed=drawn.seed, secret=drawn.secret).to_bytes()
    except FullbloomError as error:
        raise Refused("invalid", str(error)) from None
    return data


def _hashes(drawn: _Drawn, scope: Scope, body: bytes, limits: Limits, held: Any) -> bytes:
    kind = bodies.media_type(scope)
    if kind == bodies.ARROW:
        return bodies.from_arrow(drawn, "", body, limits, held).body
    form = bodies.FORMS.get(kind)
    if form is None or form == "hashes":
        raise Refused(
            "media-type", f"the body is {bodies.JSON}, {bodies.TEXT}, {bodies.NDJSON} or {bodies.ARROW}"
        )
    seed, secret, base = drawn.hashing("")
    held.grow(bodies.working_bytes(body, limits))
    caps = {"most_keys": limits.batch_keys, "key_bytes": limits.key_bytes}
    hashes, what = hash_body(form, body, seed=seed, secret=secret, hash=base, **caps)
    if what == "one":
        raise Refused("invalid", 'the body is an object with "keys", an array')
    return bytes(hashes)
