"""Answers about many keys, in the form that was asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.service.engine import flags_text, numbers_text
from fullbloom.service.failures import Refused
from fullbloom.service.http.bodies import ARROW, JSON, NDJSON
from fullbloom.service.http.wire import Answer, as_json, header

if TYPE_CHECKING:
    from fullbloom.service.http.wire import Scope

BITS = "application/octet-stream"


class Notes(NamedTuple):
    """What an answer says of the filter and the request, in headers and, in JSON, in members."""

    #: True where the filter holds more keys than it was made for.
    over: bool = False
    #: The warning of a lookup of keys of a type of which the filter holds none.
    key_domain: str | None = None

    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Return the headers; none where there is nothing to say."""
        over = ((b"x-fullbloom-over-capacity", b"true"),) if self.over else ()
        if self.key_domain is None:
            return over
        return (*over, (b"x-fullbloom-key-domain-warning", self.key_domain.encode("ascii")))

    def members(self) -> dict[str, object]:
        """Return the members of a JSON answer."""
        over: dict[str, object] = {"over_capacity": True} if self.over else {}
        return over if self.key_domain is None else {**over, "key_domain_warning": self.key_domain}

    def text(self) -> bytes:
        """Return the members as they are appended to those of a JSON object."""
        members = self.members()
        return b"," + json.dumps(members, separators=(",", ":"))[1:-1].encode() if members else b""


def wanted(scope: Scope, default: str) -> str:
    """Return the form of answers that ``Accept`` asks for."""
    accept = header(scope, b"accept")
    if accept is None:
        return default
    for part in accept.decode("latin-1").split(","):
        name = part.partition(";")[0].strip().lower()
        if name in {"*/*", "application/*", "text/*", ""}:
            return default
        if name in {BITS, JSON, NDJSON, ARROW}:
            return name
    raise Refused("not-acceptable", f"answers come as {BITS}, {JSON}, {NDJSON} or {ARROW}")


def of_keys(form: str, word: str, answer: bytes, keys: int, yes: int, notes: Notes) -> Answer:
    """Return answers of one bit a key (packed for `BITS` and `ARROW`, else a byte each)."""
    counted = (
        (b"x-fullbloom-keys", str(keys).encode()),
        (b"x-fullbloom-yes", str(yes).encode()),
        *notes.headers(),
    )
    if form == BITS:
        return Answer(200, BITS.encode(), answer, counted)
    if form == NDJSON:
        text = flags_text(answer, b"\n")
        return Answer(200, NDJSON.encode(), text + b"\n" if text else b"", counted)
    if form == ARROW:
        from fullbloom.service.http.arrow import answers

        return Answer(200, ARROW.encode(), answers(answer, keys), counted)
    flags, said = flags_text(answer, b","), notes.text()
    text = b'{"%s":[%s],"keys":%d,"yes":%d%s}' % (word.encode(), flags, keys, yes, said)
    return Answer(200, JSON.encode(), text, counted)


def of_key(word: str, notes: Notes, *, yes: bool) -> Answer:
    """Return the answer about one key."""
    if notes.members():
        return as_json({word: yes, **notes.members()}, headers=notes.headers())
    return Answer(200, JSON.encode(), b'{"%s":%s}' % (word.encode(), b"true" if yes else b"false"))


def of_numbers(form: str, word: str, numbers: bytes, nulls: bytes, notes: Notes) -> Answer:
    """Return a number a key, from 8 bytes each; null where the byte of ``nulls``, if it has any, is 1."""
    headers = notes.headers()
    if form == NDJSON:
        text = numbers_text(numbers, b"\n", nulls)
        return Answer(200, NDJSON.encode(), text + b"\n" if text else b"", headers)
    if form == ARROW:
        from fullbloom.service.http.arrow import numbers as stream

        return Answer(200, ARROW.encode(), stream(word, numbers, nulls), headers)
    listed, said = numbers_text(numbers, b",", nulls), notes.text()
    text = b'{"%ss":[%s],"keys":%d%s}' % (word.encode(), listed, len(numbers) // 8, said)
    return Answer(200, JSON.encode(), text, headers)


def of_number(word: str, number: bytes, nulls: bytes, notes: Notes) -> Answer:
    """Return the number of one key, from 8 bytes; null where the byte of ``nulls`` is 1."""
    value = None if nulls == b"\x01" else int.from_bytes(number, "little")
    return as_json({word: value, **notes.members()}, headers=notes.headers())
