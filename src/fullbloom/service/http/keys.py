"""Keys in the body of a request: JSON, text, Arrow, or ready hashes."""

from __future__ import annotations

import asyncio
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import fullbloom
from fullbloom.errors import FullbloomError
from fullbloom.service.failures import Refused
from fullbloom.service.http.bodies import SMALL

if TYPE_CHECKING:
    from fullbloom.service.http.request import Request
    from fullbloom.service.settings import Limits

TEXT, NDJSON, JSON = "text/plain", "application/x-ndjson", "application/json"
HASHES, ARROW = "application/x-fullbloom-hashes", "application/vnd.apache.arrow.stream"
#: The native module's name for the keys of a body of each type; `curl -d` sends no type, or that of a form.
FORMS = {
    JSON: "json",
    "": "json",
    "application/x-www-form-urlencoded": "json",
    TEXT: "lines",
    NDJSON: "ndjson",
    HASHES: "hashes",
}
#: Bytes that a key takes during its request: its hash, its result, and the text of the result.
_KEY = 32


class Keys(NamedTuple):
    """Keys as the native module takes them: their form, and the filter's number if they are its hashes.

    The form of hashes of keys of a known type is "hashes of TYPE".
    """

    form: str
    body: bytes
    of: int | None = None


async def parse(request: Request, store: Any, body: bytes, limits: Limits) -> Keys:
    """Return the keys of a body; the request's budget grows by what the work with them takes."""
    form = FORMS.get(request.media_type)
    reserve_work(request, body, limits)
    if form is not None:
        return Keys(form, body)
    if request.media_type == ARROW:
        return await asyncio.to_thread(parse_arrow, request, store, str(request.name), body, limits)
    raise Refused("media-type", f"the body is {JSON}, {TEXT}, {NDJSON}, {ARROW} or {HASHES}")


def reserve_work(request: Request, body: bytes, limits: Limits) -> None:
    """Grow the budget by what the keys of a body may take; a key has at least one byte in the body."""
    request.budget.grow(0 if len(body) <= SMALL else _KEY * min(len(body), limits.batch_keys))


def parse_arrow(request: Request, store: Any, name: str, body: bytes, limits: Limits) -> Keys:
    """Hash the first column of an Arrow IPC stream; for a bank, the first two: owners and keys."""
    from fullbloom.service.http.arrow import extract_words, interleave_words, read_columns

    # The number is read before the hash: a filter that is created under the name meanwhile has another one.
    version = store.version(name)
    seed, secret, base = store.hashing(name)
    width = 2 if store.takes_pairs(name) else 1
    parts = []
    form = "hashes"
    # The type of an Arrow column is that of its keys, so the first key says which it is.
    first = fullbloom.BloomFilter(1)
    try:
        for columns in read_columns(body, limits, request.budget, width):
            keys = columns[-1]
            hashed = [fullbloom.hash_many(one, seed=seed, secret=secret, hash=base) for one in columns]
            if form == "hashes" and len(keys):
                first.update(keys.slice(0, 1))
                form = f"hashes of {first.key_domains}"
            words = [
                array("Q", one).tobytes() if isinstance(one, list) else extract_words(one) for one in hashed
            ]
            parts.append(words[0] if width == 1 else interleave_words(*words))
    except FullbloomError as error:
        raise Refused("invalid", str(error)) from None
    return Keys(form, b"".join(parts), None if version is None else version[0])
