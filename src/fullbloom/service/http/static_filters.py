"""Static filters of the keys of one request: kinds that are built from all their keys at once."""

from __future__ import annotations

import secrets
from array import array
from typing import TYPE_CHECKING, Any

import fullbloom
from fullbloom import registry as structures
from fullbloom.errors import FullbloomError
from fullbloom.service.engine import hash_body
from fullbloom.service.failures import Refused
from fullbloom.service.http import keys

if TYPE_CHECKING:
    from fullbloom.service.http.request import Request
    from fullbloom.service.settings import Limits

#: Kinds that a request can build.
KINDS = tuple(str(row["name"]) for row in structures.rows() if structures.is_built(row, "key"))
#: Bytes that a key takes while its filter is built.
_KEY = 128


class _NewHash:
    """The key hash of a filter that does not exist yet, with the store's methods for hashing."""

    def __init__(self, service: Any, *, keyed: bool) -> None:
        self.seed = secrets.randbits(64)
        self.secret: bytes | None = service.secret_of(self.seed) if keyed else None

    def version(self, _name: str) -> None:
        """Return None: there is no filter yet."""

    def takes_pairs(self, _name: str) -> bool:
        """Return False: a static filter has no owners."""
        return False

    def hashing(self, _name: str) -> tuple[int, bytes | None, str]:
        return self.seed, self.secret, "xxh3"


def build_file(
    service: Any, kind: str, fpr: float, request: Request, body: bytes, limits: Limits, *, keyed: bool
) -> bytes:
    """Return the file of a filter of the keys in a body; the request's budget grows by what that takes."""
    if kind not in KINDS:
        raise Refused("invalid", f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    new = _NewHash(service, keyed=keyed)
    hashes = array("Q")
    hashes.frombytes(_hash_keys(new, request, body, limits))
    if len(hashes) > limits.batch_keys:
        raise Refused(
            "limit",
            f"a request may hold {limits.batch_keys} keys; "
            "build a larger filter in a process and PUT its dump",
        )
    request.budget.grow(_KEY * len(hashes))
    build = getattr(fullbloom, str(structures.get_row(kind)["class"])).build_hashed
    try:
        data: bytes = build(hashes, fpr, seed=new.seed, secret=new.secret).to_bytes()
    except FullbloomError as error:
        raise Refused("invalid", str(error)) from None
    return data


def _hash_keys(new: _NewHash, request: Request, body: bytes, limits: Limits) -> bytes:
    if request.media_type == keys.ARROW:
        return keys.parse_arrow(request, new, "", body, limits).body
    form = keys.FORMS.get(request.media_type)
    if form is None or form == "hashes":
        raise Refused("media-type", f"the body is {keys.JSON}, {keys.TEXT}, {keys.NDJSON} or {keys.ARROW}")
    seed, secret, base = new.hashing("")
    keys.reserve_work(request, body, limits)
    caps = {"most_keys": limits.batch_keys, "key_bytes": limits.key_bytes}
    hashes, what = hash_body(form, body, seed=seed, secret=secret, hash=base, **caps)
    if what == "one":
        raise Refused("invalid", 'the body is an object with "keys", an array')
    return bytes(hashes)
