"""Results about keys, in the format that the request accepts."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.service.engine import flags_text, numbers_text
from fullbloom.service.failures import Refused
from fullbloom.service.http.asgi import Response, make_json
from fullbloom.service.http.keys import ARROW, JSON, NDJSON

if TYPE_CHECKING:
    from fullbloom.service.http.keys import Keys
    from fullbloom.service.http.request import Request

BITS = "application/octet-stream"
#: Formats with one bit per key.
PACKED = frozenset({BITS, ARROW})
#: Member of the result about one key, and about many, of each action.
WORDS = {"add": "new", "check": "found", "remove": "removed"}
#: Member of the number of one key.
NUMBERS = {"count": "count", "values": "value"}
#: A body of fewer bytes is searched for a single key.
_SMALL = 1 << 16


class Notes(NamedTuple):
    """What a response says about the filter and the request: in headers, and in JSON also in members."""

    #: True if the filter holds more keys than its capacity.
    over: bool = False
    #: The warning of a lookup of keys of a type of which the filter holds none.
    key_domain: str | None = None

    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Return the headers; none if there is nothing to say."""
        over = ((b"x-fullbloom-over-capacity", b"true"),) if self.over else ()
        if self.key_domain is None:
            return over
        return (*over, (b"x-fullbloom-key-domain-warning", self.key_domain.encode("ascii")))

    def members(self) -> dict[str, object]:
        """Return the members of a JSON response."""
        over: dict[str, object] = {"over_capacity": True} if self.over else {}
        return over if self.key_domain is None else {**over, "key_domain_warning": self.key_domain}

    def text(self) -> bytes:
        """Return the members as text that is appended to those of a JSON object."""
        members = self.members()
        return b"," + json.dumps(members, separators=(",", ":"))[1:-1].encode() if members else b""


def choose_format(request: Request, keys: Keys) -> str:
    """Return the media type of the results by ``Accept``; those of a single key are JSON in any case."""
    is_json = keys.form == "json"
    try:
        return _accepted(request, BITS if request.action in WORDS and not is_json else JSON)
    except Refused:
        if is_json and len(keys.body) < _SMALL and b'"key"' in keys.body:
            return JSON
        raise


def _accepted(request: Request, default: str) -> str:
    accept = request.headers.get(b"accept")
    if accept is None:
        return default
    for part in accept.decode("latin-1").split(","):
        name = part.partition(";")[0].strip().lower()
        if name in {"*/*", "application/*", "text/*", ""}:
            return default
        if name == ARROW:  # without its extra, the request is refused here, before a change is made
            importlib.import_module("fullbloom.service.http.arrow")
        if name in {BITS, JSON, NDJSON, ARROW}:
            return name
    raise Refused("not-acceptable", f"answers come as {BITS}, {JSON}, {NDJSON} or {ARROW}")


def encode_flags(
    action: str, media_type: str, result: tuple[bytes, int, int, str, bool, str | None]
) -> Response:
    """Return a flag a key: packed bits for the formats of `PACKED`, else a byte each.

    The result has the flags, the number of keys and of positives, whether the body held "one" key, "many"
    or "pairs", whether the filter is over capacity, and the warning of a lookup.
    """
    flags, count, positives, what, over, warning = result
    word, notes = WORDS[action], Notes(over, warning)
    if what == "one":
        return _encode_flag(word, notes, flag=positives == 1)
    if what == "pairs":
        return make_json({"keys": count, **notes.members()})
    headers = (
        (b"x-fullbloom-keys", str(count).encode()),
        (b"x-fullbloom-yes", str(positives).encode()),
        *notes.headers(),
    )
    if media_type == NDJSON:
        text = flags_text(flags, b"\n")
        flags = text + b"\n" if text else b""
    elif media_type == ARROW:
        from fullbloom.service.http.arrow import write_flags

        flags = write_flags(flags, count)
    elif media_type == JSON:
        members = word.encode(), flags_text(flags, b","), count, positives, notes.text()
        flags = b'{"%s":[%s],"keys":%d,"yes":%d%s}' % members
    return Response(200, media_type.encode(), flags, headers)


def _encode_flag(word: str, notes: Notes, *, flag: bool) -> Response:
    if notes.members():
        return make_json({word: flag, **notes.members()}, headers=notes.headers())
    return Response(200, JSON.encode(), b'{"%s":%s}' % (word.encode(), b"true" if flag else b"false"))


def encode_numbers(action: str, media_type: str, result: tuple[bytes, str, bytes, str | None]) -> Response:
    """Return a number a key, from 8 bytes each; null where the byte of ``nulls``, if it has any, is 1.

    The result has the numbers, whether the body held "one" key or "many", the nulls, and the warning of a
    lookup.
    """
    numbers, what, nulls, warning = result
    word, notes = NUMBERS[action], Notes(key_domain=warning)
    headers = notes.headers()
    if what == "one":
        value = None if nulls == b"\x01" else int.from_bytes(numbers, "little")
        return make_json({word: value, **notes.members()}, headers=headers)
    if media_type == NDJSON:
        text = numbers_text(numbers, b"\n", nulls)
        text = text + b"\n" if text else b""
    elif media_type == ARROW:
        from fullbloom.service.http.arrow import write_numbers

        text = write_numbers(word, numbers, nulls)
    else:
        members = word.encode(), numbers_text(numbers, b",", nulls), len(numbers) // 8, notes.text()
        media_type, text = JSON, b'{"%ss":[%s],"keys":%d%s}' % members
    return Response(200, media_type.encode(), text, headers)
